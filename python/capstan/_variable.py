"""Variable: values on the ps, as numpy arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import _capstan, errors
from ._arrays import Array, communication_number, contiguous, empty, host_array, initial_array, number_of, raw
from ._rows import Ids, IndexedSlices, PendingRows, RowAccess, check_optimizer
from ._scope import current_strategy

__all__ = ["CombinePushes", "IndexedSlices", "PendingRows", "Variable"]

# Numbers of VariableAggregation, and of RowOp.
_AGGREGATIONS = {"NONE": 0, "SUM": 1, "MEAN": 2, "ONLY_FIRST_REPLICA": 3}
_SET, _ADD, _SUB, _MUL, _DIV, _MIN, _MAX = range(1, 8)


class CombinePushes(NamedTuple):
    """Each worker sums the gradients of frequently pushed rows in its own memory, and pushes the sums.

    This takes load off the ps if a small part of the rows gets most of the gradients. Parameters are the number of
    rows whose sums a worker holds, and the number of pushes after which it sends the sums. It sends them earlier at the end
    of the function, and when the function flushes, ends a step or assigns.
    """

    rows: int = 4096
    pushes: int = 16


class Variable(RowAccess, np.lib.mixins.NDArrayOperatorsMixin):
    """A variable on the ps. Made on the coordinator, in the scope of a strategy; passed to functions as an argument.

    Operators of numpy take a variable as the array of its values.

    Parameters
    ----------
    initial_value : array_like, Initializer or callable
        Values; or an initializer, such as ``capstan.initializers.uniform()``, with which each ps fills its own
        shards; or a function without arguments that returns values.
    name : str, optional
        Must be unique. Default: Variable, Variable_1, ...
    dtype : optional
        float32, float64, float16, bfloat16, int32, int64 or bool. Default: that of the values, float32 for an
        initializer and for Python floats, int32 for Python integers.
    shape : tuple of int, optional
        Needed for an initializer.
    optimizer : Optimizer, optional
        Applied by the ps to pushes, such as ``capstan.optimizers.Adam(1e-3)``. Default: SGD with a rate of 0.01;
        1 for integers.
    trainable : bool
        Marks the variable for training; pushes are accepted in any case.
    aggregation : {"NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA"}
        Combines assignments of the replicas of a worker; several replicas cannot assign with NONE.
    group : UpdateGroup, optional
        Synchronizes the workers that push.
    memory : {"host", "device"}, optional
        Default: the memory that the strategy selects.
    combine_pushes : CombinePushes, optional
        Functions push the sums of several gradients of frequent rows. Default: every push is sent at once.
    stochastic_rounding : bool
        For float16, bfloat16 and int8_rows: rounds updates at random, so that small ones take effect on average. For
        float32 with a communication_dtype of bfloat16: rounds the gradients that are sent at random.
    int8_rows : bool
        For float32 in host memory: the ps stores rows as 8-bit integers, with a minimum and a maximum for each row.
        Rows need at least 3 elements. Lookups and pulls return the stored rows, whatever communication_dtype is.
    communication_dtype : optional
        "bfloat16" for float32: gradients and rows cross a network as bfloat16, which halves them. Default: the
        variable's dtype.
    int8_lookups : bool, optional
        For float32: `lookup` reads rows through a network as 8-bit integers, with a minimum and a maximum for each row.
        The largest error is (maximum - minimum) / 510 of the row. Default: the strategy's.

    Raises
    ------
    FailedPreconditionError
        No scope is open, or this is not the coordinator.
    InvalidArgumentError
        Invalid shapes, dtypes, names or parameters of the optimizer.
    AlreadyExistsError
        The name is taken.
    """

    def __init__(
        self,
        initial_value: ArrayLike | _capstan.Initializer | Callable[[], ArrayLike],
        name: str | None = None,
        dtype: DTypeLike | None = None,
        shape: tuple[int, ...] | None = None,
        optimizer: _capstan.Optimizer | None = None,
        *,
        trainable: bool = True,
        aggregation: str = "NONE",
        group: _capstan.UpdateGroup | None = None,
        memory: str | None = None,
        combine_pushes: CombinePushes | None = None,
        stochastic_rounding: bool = False,
        int8_rows: bool = False,
        communication_dtype: DTypeLike | None = None,
        int8_lookups: bool | None = None,
    ) -> None:
        strategy = current_strategy()
        if strategy is None:
            raise errors.FailedPreconditionError(
                "Variable: no scope is open; create variables in 'with strategy.scope():' on the coordinator"
            )
        check_optimizer(name, optimizer)
        initializer, values = None, None
        if isinstance(initial_value, _capstan.Initializer):
            if shape is None:
                raise errors.InvalidArgumentError(f"variable {name!r}: an initializer needs shape=")
            initializer, number = initial_value, number_of(dtype or "float32")
        else:
            array = initial_array(initial_value, dtype)
            number = number_of(array.dtype)
            if shape is not None and tuple(shape) != array.shape:
                raise errors.InvalidArgumentError(
                    f"variable {name!r}: found values of shape {array.shape}, expected {tuple(shape)}"
                )
            shape, values = array.shape, raw(contiguous(array))
        self._bind(
            _capstan.RawVariable(
                strategy._name(name),
                number,
                [int(size) for size in shape],
                initializer,
                values,
                optimizer,
                trainable,
                _aggregation(aggregation),
                group,
                memory,
                combine_pushes,
                stochastic_rounding,
                int8_rows,
                communication_number(communication_dtype),
                int8_lookups,
            ),
            strategy._implementation,
        )

    @classmethod
    def _of(cls, raw: _capstan.RawVariable, strategy: _capstan.Strategy | None = None) -> Variable:
        variable = cls.__new__(cls)
        variable._bind(raw, strategy)
        return variable

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (*self._native.to_send(), self._handle.dtype)

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    # Reads.

    sparse_read = RowAccess.lookup

    def pull(self, *, out: Array | None = None, consistent: bool = False) -> Array:
        """Return the complete variable, as an array of its shape."""
        if out is None:
            out = empty(self.shape, self.dtype)
        self._native.pull(0, self._receiver(out), consistent)
        return out

    read_value = numpy = value = pull

    def view(self) -> Array:
        """Return the rows without a copy, in the memory of a ps of this host, as a read-only array.

        The ps changes the values while it applies pushes, so that a row may mix two updates. The memory stays mapped
        while the array, or another one that shares its memory, lives. Once the ps's memory is lost, or after the job,
        the values no longer change.

        Raises
        ------
        FailedPreconditionError
            The variable has several shards (use `variables`) or int8_rows, or its shard is on another host or on a
            GPU, or ``window`` is ``"rma"``.
        """
        return self._native.mapped().view(self.dtype).reshape(self.shape)

    def __dlpack__(self, **options: Any) -> Any:
        return self.pull().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[Any, ...]:
        return np.empty(0, np.float32).__dlpack_device__()

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("found copy=False, expected None or True: reading a variable always copies it")
        array = self.pull()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if any(isinstance(out, Variable) for out in kwargs.get("out", ())):
            return NotImplemented
        return getattr(ufunc, method)(*(i.pull() if isinstance(i, Variable) else i for i in inputs), **kwargs)

    def __getitem__(self, index: Any) -> Any:
        """Read a part, by an index of numpy. Reads only the rows that an integer or a slice of axis 0 selects."""
        key = index if isinstance(index, tuple) else (index,)
        first = key[0] if key else slice(None)
        if self.shape and isinstance(first, slice) and first != slice(None):
            start, stop, step = first.indices(self.shape[0])
            low, high = (start, stop) if step > 0 else (stop + 1, start + 1)
            rows = self._rows(low, max(low, high))
            return rows[(slice(None, None, step),) + key[1:]]
        if self.shape and isinstance(first, (int, np.integer)) and not isinstance(first, bool):
            row = int(first) + (self.shape[0] if first < 0 else 0)
            if not 0 <= row < self.shape[0]:
                raise errors.OutOfRangeError(
                    f"variable {self.name!r}: found index {first}, expected one below {self.shape[0]}"
                )
            return self._rows(row, row + 1)[(0,) + key[1:]]
        return self.pull()[index]

    def _rows(self, first: int, last: int) -> Array:
        out = empty((last - first, *self._row_shape), self.dtype)
        if out.size:
            self._native.pull(first, raw(out))
        return out

    def __bool__(self) -> bool:
        """Return whether a variable of one element is not 0, as numpy does."""
        return bool(self.pull())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar has no length")
        return self.shape[0]

    def push_dense(self, gradient: ArrayLike) -> None:
        """Send a gradient of the complete variable."""
        self._native.push_dense(self._values(gradient, self.shape, "push_dense"))

    # Assignments bypass the optimizer, and wait until they are applied.

    def assign(self, value: ArrayLike) -> Variable:
        """Set every element. A number sets all of them. Return the variable."""
        return self._assign(_SET, value, "assign")

    def assign_add(self, value: ArrayLike) -> Variable:
        """Add to every element. Return the variable."""
        return self._assign(_ADD, value, "assign_add")

    def assign_sub(self, value: ArrayLike) -> Variable:
        """Subtract from every element. Return the variable."""
        return self._assign(_SUB, value, "assign_sub")

    def _assign(self, op: int, value: ArrayLike, call: str) -> Variable:
        value = host_array(value, self.dtype)
        if value.ndim == 0 and self.shape:
            value = np.full(self.shape, value, self.dtype)
        self._native.assign(op, self._values(value, self.shape, call))
        return self

    def scatter_update(self, ids: Ids, values: ArrayLike | None = None) -> Variable:
        """Set rows: ``(ids, values)``, or an `IndexedSlices`. Return the variable."""
        return self._scatter(_SET, ids, values, "scatter_update")

    batch_scatter_update = scatter_update

    def scatter_add(self, ids: Ids, values: ArrayLike | None = None) -> Variable:
        """Add to rows; a repeated id is changed repeatedly. Return the variable."""
        return self._scatter(_ADD, ids, values, "scatter_add")

    def scatter_sub(self, ids: Ids, values: ArrayLike | None = None) -> Variable:
        """Subtract from rows. Return the variable."""
        return self._scatter(_SUB, ids, values, "scatter_sub")

    def scatter_mul(self, ids: Ids, values: ArrayLike | None = None) -> Variable:
        """Multiply rows. Return the variable."""
        return self._scatter(_MUL, ids, values, "scatter_mul")

    def scatter_div(self, ids: Ids, values: ArrayLike | None = None) -> Variable:
        """Divide rows; integer division truncates towards zero. Return the variable."""
        return self._scatter(_DIV, ids, values, "scatter_div")

    def scatter_min(self, ids: Ids, values: ArrayLike | None = None) -> Variable:
        """Set rows to the minimum with `values`. Return the variable."""
        return self._scatter(_MIN, ids, values, "scatter_min")

    def scatter_max(self, ids: Ids, values: ArrayLike | None = None) -> Variable:
        """Set rows to the maximum with `values`. Return the variable."""
        return self._scatter(_MAX, ids, values, "scatter_max")

    def _scatter(self, op: int, ids: Ids, values: ArrayLike | None, call: str) -> Variable:
        ids, values = self._slices(ids, values, call)
        self._native.scatter(op, ids, values)
        return self

    # Shards.

    def shards(self) -> list[tuple[str, int, int, int]]:
        """Return ``(name, first row, rows, ps)`` of each shard."""
        return self._native.shards()

    @property
    def variables(self) -> list[Variable]:
        """One variable for each shard, with the rows of the shard."""
        return [Variable._of(raw, self._strategy) for raw in self._native.parts()]

    def __repr__(self) -> str:
        return f"<capstan.Variable {self.name!r} shape={self.shape} dtype={self.dtype}>"

    __hash__ = object.__hash__

def _aggregation(name: Any) -> int:
    found = str(name).rpartition(".")[2].upper()
    if found not in _AGGREGATIONS:
        raise errors.InvalidArgumentError(f"aggregation: found {name!r}, expected one of {', '.join(_AGGREGATIONS)}")
    return _AGGREGATIONS[found]


def _received(number: int, part: int, dtype: int) -> Variable:
    return Variable._of(_capstan.variable_of(number, part, dtype))
