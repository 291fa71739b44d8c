"""Variable: values on the ps, as numpy arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Union

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from . import _capstan, errors
from ._strategy import current_strategy

try:
    from ml_dtypes import bfloat16 as _bfloat16
except ImportError:
    _bfloat16 = None

Array = np.ndarray[Any, Any]

# Numbers of DType in capstan/dtype.hpp.
_NUMBERS = {"float32": 1, "float64": 2, "int64": 3, "int32": 4, "float16": 5, "bfloat16": 6, "bool": 7}
_DTYPES = {_NUMBERS[name]: np.dtype(name) for name in _NUMBERS if name != "bfloat16"}
_BFLOAT16 = None if _bfloat16 is None else np.dtype(_bfloat16)
if _BFLOAT16 is not None:
    _DTYPES[_NUMBERS["bfloat16"]] = _BFLOAT16

# Numbers of RowOp.
_SET, _ADD, _SUB, _MUL, _DIV, _MIN, _MAX = range(1, 8)


def _number_of(dtype: Any) -> int:
    name = "bfloat16" if dtype == "bfloat16" else np.dtype(dtype).name
    if name not in _NUMBERS:
        raise errors.InvalidArgumentError(f"found dtype {name}, expected one of {', '.join(_NUMBERS)}")
    if name == "bfloat16" and _bfloat16 is None:
        raise errors.UnimplementedError("bfloat16 needs the package ml_dtypes; install it with pip")
    return _NUMBERS[name]


def _raw(array: Array) -> Array:
    """Return an array as the extension module takes it: it does not know bfloat16."""
    return array.view(np.uint16) if _BFLOAT16 is not None and array.dtype == _BFLOAT16 else array


def _contiguous(array: Array) -> Array:
    """Return a row-major array with these values; faster than np.require."""
    return array if array.flags.c_contiguous else array.copy(order="C")


class IndexedSlices:
    """Values of some rows: row i of `values` belongs to row ``indices[i]``. Indices may repeat.

    Parameters
    ----------
    values : array_like, of shape ``indices.shape + (row shape)``
    indices : array_like of integers
    """

    def __init__(self, values: ArrayLike, indices: ArrayLike) -> None:
        self.values = values
        self.indices = indices


Ids = Union[ArrayLike, IndexedSlices]


class Variable(np.lib.mixins.NDArrayOperatorsMixin):
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
    group : UpdateGroup, optional
        Synchronizes the workers that push.
    memory : {"host", "device"}, optional
        Default: that of the strategy.

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
        group: _capstan.UpdateGroup | None = None,
        memory: str | None = None,
    ) -> None:
        strategy = current_strategy()
        if strategy is None:
            raise errors.FailedPreconditionError(
                "Variable: no scope is open; create variables in 'with strategy.scope():' on the coordinator"
            )
        initializer, values = None, None
        if isinstance(initial_value, _capstan.Initializer):
            if shape is None:
                raise errors.InvalidArgumentError(f"variable {name!r}: an initializer needs shape=")
            initializer, number = initial_value, _number_of(dtype or "float32")
        else:
            array = _initial_array(initial_value, dtype)
            number = _number_of(array.dtype)
            if shape is not None and tuple(shape) != array.shape:
                raise errors.InvalidArgumentError(
                    f"variable {name!r}: found values of shape {array.shape}, expected {tuple(shape)}"
                )
            shape, values = array.shape, _raw(_contiguous(array))
        self._bind(
            _capstan.RawVariable(
                strategy._name(name),
                number,
                [int(size) for size in shape],
                initializer,
                values,
                optimizer,
                trainable,
                group,
                memory,
            ),
            strategy._implementation,
        )

    def _bind(self, raw: _capstan.RawVariable, strategy: _capstan.Strategy | None) -> None:
        self._handle = raw
        self._strategy = strategy  # None on a worker, where the variable cannot outlive the job
        self.name: str = raw.name
        self.dtype: np.dtype[Any] = _DTYPES[raw.dtype]
        self.shape: tuple[int, ...] = tuple(raw.shape)
        self._row_shape = self.shape[1:]
        self._width = math.prod(self._row_shape)

    @classmethod
    def _of(cls, raw: _capstan.RawVariable, strategy: _capstan.Strategy | None = None) -> Variable:
        variable = cls.__new__(cls)
        variable._bind(raw, strategy)
        return variable

    @property
    def _native(self) -> _capstan.RawVariable:
        if self._strategy is not None and not self._strategy.is_open:
            raise errors.FailedPreconditionError(f"variable {self.name!r}: its strategy is closed")
        return self._handle

    def __reduce__(self) -> tuple[Any, ...]:
        return _received, (*self._native.to_send(), self._handle.dtype)

    @property
    def trainable(self) -> bool:
        """Whether the variable is marked for training."""
        return self._native.trainable

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    # Reads.

    def lookup(self, ids: ArrayLike, *, out: Array | None = None, consistent: bool = False) -> Array:
        """Return the rows `ids`, in that order.

        Parameters
        ----------
        ids : array_like of integers
        out : ndarray, optional
            Receives the rows; contiguous, of the dtype of the variable.
        consistent : bool
            Read the rows of a shard between two pushes. Default: a row may mix two updates.

        Returns
        -------
        ndarray of shape ``ids.shape + shape[1:]``

        Raises
        ------
        OutOfRangeError
            An id that is not a row.
        UnavailableError
            A ps is dead; the message names it.
        """
        ids = _ids(ids)
        if out is None:
            out = np.empty(ids.shape + self._row_shape, self.dtype)
        else:
            self._check_out(out)
        self._native.lookup(ids.reshape(-1), _raw(out), consistent)
        return out

    sparse_read = lookup

    def lookup_async(self, ids: ArrayLike, *, out: Array | None = None) -> PendingRows:
        """Start a lookup. Return a `PendingRows`, whose `wait` returns the rows."""
        ids = _ids(ids)
        if out is None:
            out = np.empty(ids.shape + self._row_shape, self.dtype)
        else:
            self._check_out(out)
        return PendingRows(self._native.lookup_async(ids.reshape(-1), _raw(out)), out)

    def pull(self, *, out: Array | None = None, consistent: bool = False) -> Array:
        """Return the complete variable, as an array of its shape."""
        if out is None:
            out = np.empty(self.shape, self.dtype)
        else:
            self._check_out(out)
        self._native.pull(0, _raw(out), consistent)
        return out

    read_value = numpy = value = pull

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("a variable is on the ps: reading it copies it")
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
        out = np.empty((last - first, *self._row_shape), self.dtype)
        if out.size:
            self._native.pull(first, _raw(out))
        return out

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a scalar has no length")
        return self.shape[0]

    # Pushes.

    def push(self, ids: Ids, gradients: ArrayLike | None = None) -> None:
        """Send gradients of rows, to which the ps applies the optimizer. Return before they are applied.

        Parameters
        ----------
        ids : array_like of integers, or IndexedSlices
            An id that occurs twice counts once, with the sum of its gradients.
        gradients : array_like, of shape ``ids.shape + shape[1:]``
        """
        ids, gradients = self._slices(ids, gradients, "push")
        self._native.push(ids, gradients)

    def push_dense(self, gradient: ArrayLike) -> None:
        """Send a gradient of the complete variable."""
        self._native.push_dense(self._values(gradient, self.shape, "push_dense"))

    def push_async(self, ids: Ids, gradients: ArrayLike | None = None) -> _capstan.Pending:
        """As `push`. Return an object whose `wait` returns when the ps has applied the push."""
        self.push(ids, gradients)
        return self._native.pushed()

    def flush(self) -> None:
        """Wait until all pushes of this rank, to any variable, have been applied."""
        self._native.flush()

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
        if np.ndim(value) == 0 and self.shape:
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
        """Divide rows; integers towards zero. Return the variable."""
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

    def set_learning_rate(self, rate: float) -> None:
        """Set the learning rate of the optimizer, for every later push of any rank."""
        self._native.set_learning_rate(rate)

    @property
    def skipped_rows(self) -> int:
        """Number of gradient rows of this rank that were skipped because of NaN (``nan_gradients="skip"``)."""
        return self._native.skipped_rows

    def __repr__(self) -> str:
        return f"<capstan.Variable {self.name!r} shape={self.shape} dtype={self.dtype}>"

    __hash__ = object.__hash__

    # Conversions.

    def _slices(self, ids: Any, values: ArrayLike | None, call: str) -> tuple[Array, Array]:
        if isinstance(ids, IndexedSlices):
            if values is not None:
                raise errors.InvalidArgumentError(f"{call}: found IndexedSlices and values, expected one of them")
            ids, values = ids.indices, ids.values
        ids = _ids(ids)
        return ids.reshape(-1), self._values(values, ids.shape + self._row_shape, call)

    def _values(self, values: ArrayLike | None, shape: tuple[int, ...], call: str) -> Array:
        array = np.asarray(values, self.dtype)
        if array.shape != shape:
            raise errors.InvalidArgumentError(
                f"{call} of variable {self.name!r}: found values of shape {array.shape}, expected {tuple(shape)}"
            )
        return _raw(_contiguous(array))

    def _check_out(self, out: Array) -> None:
        if out.dtype != self.dtype or not out.flags.c_contiguous or not out.flags.writeable:
            raise errors.InvalidArgumentError(
                f"variable {self.name!r}: out must be a writable contiguous array of {self.dtype}, found {out.dtype}"
            )


def _ids(ids: Any) -> Array:
    array = np.asarray(ids)
    if array.dtype != np.int64:
        if array.size and array.dtype.kind not in "iu":
            raise errors.InvalidArgumentError(f"ids: found dtype {array.dtype}, expected integers")
        array = array.astype(np.int64)
    return _contiguous(array)


def _initial_array(value: Any, dtype: Any) -> Array:
    if callable(value) and not hasattr(value, "__array__"):
        value = value()
    if dtype == "bfloat16":
        _number_of(dtype)
        dtype = _bfloat16
    array = np.asarray(value, dtype)
    if dtype is None and not hasattr(value, "dtype"):  # Python's numbers, as in TensorFlow
        array = array.astype({"f": np.float32, "i": np.int32}.get(array.dtype.kind, array.dtype))
    return array


def _received(number: int, part: int, dtype: int) -> Variable:
    return Variable._of(_capstan.variable_of(number, part, dtype))


class PendingRows:
    """A lookup in flight."""

    def __init__(self, pending: _capstan.Pending, out: Array) -> None:
        self._pending = pending
        self._out = out

    def ready(self) -> bool:
        """Return whether `wait` will not block."""
        return self._pending.ready()

    def wait(self) -> Array:
        """Return the rows, once they have been read."""
        self._pending.wait()
        return self._out


def lookup_all(lookups: list[tuple[Variable, ArrayLike]]) -> PendingAll:
    """Start lookups of several variables with one round trip to each ps.

    Parameters
    ----------
    lookups : list of (Variable, ids)

    Returns
    -------
    PendingAll
        Its `wait` returns the rows of each lookup.
    """
    parts, outs = [], []
    for variable, ids in lookups:
        ids = _ids(ids)
        outs.append(np.empty(ids.shape + variable._row_shape, variable.dtype))
        parts.append((variable._native, ids.reshape(-1), _raw(outs[-1])))
    return PendingAll(_capstan.lookup_all_async(parts), outs, parts)


class PendingAll:
    """Lookups of several variables in flight."""

    def __init__(self, pending: _capstan.Pending, outs: list[Array], parts: list[Any]) -> None:
        self._pending = pending
        self._outs = outs
        self._parts = parts  # the ids must live as long as the read

    def ready(self) -> bool:
        """Return whether `wait` will not block."""
        return self._pending.ready()

    def wait(self) -> list[Array]:
        """Return the rows of each lookup, once they have been read."""
        self._pending.wait()
        return self._outs


def embedding_lookup(params: Variable, ids: ArrayLike, max_norm: float | None = None) -> Array:
    """Return the rows `ids` of a variable, with shape ``ids.shape + shape[1:]``. Reads each row once.

    Parameters
    ----------
    params : Variable
    ids : array_like of integers
    max_norm : float, optional
        Rows with a larger L2 norm are scaled down to it.
    """
    distinct, where = np.unique(_ids(ids), return_inverse=True)
    rows = params.lookup(distinct)
    if max_norm is not None:
        norms = np.sqrt(np.sum(np.square(rows), axis=tuple(range(1, rows.ndim)), keepdims=True))
        rows = rows * np.where(norms > max_norm, max_norm / np.maximum(norms, np.finfo(rows.dtype).tiny), 1)
        rows = rows.astype(params.dtype)
    return rows[where.reshape(np.shape(ids))]


def embedding_lookup_sparse(
    params: Variable,
    ids: ArrayLike,
    row_splits: ArrayLike,
    weights: ArrayLike | None = None,
    combiner: str = "mean",
    max_norm: float | None = None,
) -> Array:
    """Return the combined rows of each bag of ids, with shape ``(bags,) + shape[1:]``. An empty bag has zeros.

    Parameters
    ----------
    params : Variable
    ids : array_like of integers
        The ids of all bags, one bag after the other.
    row_splits : array_like of integers
        Bag i is ``ids[row_splits[i]:row_splits[i + 1]]``.
    weights : array_like, optional
        One for each id. Default: 1.
    combiner : {"mean", "sum", "sqrtn"}
        Divides the weighted sum by the sum of weights, by 1, or by the root of the sum of squared weights.
    max_norm : float, optional
        As in `embedding_lookup`.
    """
    ids, row_splits = _ids(ids), _ids(row_splits)
    ends = row_splits[[0, -1]].tolist() if row_splits.ndim == 1 and row_splits.size else None
    if ends != [0, ids.size] or np.any(np.diff(row_splits) < 0):
        raise errors.InvalidArgumentError(f"row_splits: expected ascending numbers from 0 to {ids.size}")
    if combiner not in ("mean", "sum", "sqrtn"):
        raise errors.InvalidArgumentError(f"combiner: found {combiner!r}, expected 'mean', 'sum' or 'sqrtn'")
    rows = embedding_lookup(params, ids, max_norm)
    weights = np.ones(ids.size, rows.dtype) if weights is None else np.asarray(weights, rows.dtype)
    if weights.shape != ids.shape:
        raise errors.InvalidArgumentError(f"weights: found shape {weights.shape}, expected {ids.shape}")
    bags = np.repeat(np.arange(row_splits.size - 1), np.diff(row_splits))
    out = np.zeros((row_splits.size - 1, *rows.shape[1:]), rows.dtype)
    column = (slice(None), *[None] * (rows.ndim - 1))
    np.add.at(out, bags, rows * weights[column])
    if combiner == "sum":
        return out
    divisors = np.bincount(bags, weights if combiner == "mean" else weights**2, row_splits.size - 1).astype(rows.dtype)
    if combiner == "sqrtn":
        divisors = np.sqrt(divisors)
    return np.divide(out, divisors[column], out=np.zeros_like(out), where=divisors[column] != 0)
