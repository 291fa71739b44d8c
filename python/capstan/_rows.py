"""Rows by id or by key: the common base class of Variable and DynamicTable."""

from __future__ import annotations

import math
from typing import Any, Union

import numpy as np
from numpy.typing import ArrayLike

from . import _capstan, errors
from ._arrays import DTYPES, Array, contiguous, empty, host_array, id_array, raw, writable


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


def check_optimizer(name: str | None, optimizer: Any) -> None:
    """Raise InvalidArgumentError unless `optimizer` is one of `capstan.optimizers`, or None."""
    if optimizer is None or isinstance(optimizer, _capstan.Optimizer):
        return
    raise errors.InvalidArgumentError(
        f"variable {name!r}: found optimizer {optimizer!r}, expected one such as capstan.optimizers.SGD(0.1)"
    )


class RowAccess:
    """Reads and pushes rows. Base class of `Variable` and `DynamicTable`.

    Attributes
    ----------
    name : str
    dtype : numpy.dtype
    shape : tuple of int
    """

    _kind = "variable"  # in messages

    def _bind(self, handle: _capstan.RawVariable, strategy: _capstan.Strategy | None) -> None:
        self._handle = handle
        self._strategy = strategy  # None on a worker, where the variable cannot outlive the job
        self.name: str = handle.name
        self.dtype: np.dtype[Any] = DTYPES[handle.dtype]
        self.shape: tuple[int, ...] = tuple(handle.shape)
        self._row_shape = self.shape[1:]
        self._width = math.prod(self._row_shape)

    @property
    def _native(self) -> _capstan.RawVariable:
        if self._strategy is not None and not self._strategy.is_open:
            raise errors.FailedPreconditionError(f"{self._kind} {self.name!r}: its strategy is closed")
        return self._handle

    @property
    def trainable(self) -> bool:
        """Whether it is marked for training."""
        return self._native.trainable

    def _ids(self, ids: Any) -> Array:
        """Return ids, or keys of a table, as a contiguous array of int64."""
        return id_array(ids)

    def lookup(self, ids: ArrayLike, *, out: Array | None = None, consistent: bool = False) -> Array:
        """Return the rows `ids`, in that order.

        Parameters
        ----------
        ids : array_like of integers
        out : array, optional
            A NumPy array, or a tensor in host memory, that receives the rows. It must be writable and contiguous,
            and have the variable's dtype.
        consistent : bool
            If true, no push changes a shard while its rows are read. Otherwise, a row may mix two updates.

        Returns
        -------
        ndarray of shape ``ids.shape + shape[1:]``

        Raises
        ------
        OutOfRangeError
            An id is not the number of a row.
        UnavailableError
            A ps is dead; the message names it.
        """
        ids = self._ids(ids)
        if out is None:
            out = empty(ids.shape + self._row_shape, self.dtype)
        self._native.lookup(ids.reshape(-1), self._receiver(out), consistent)
        return out

    def lookup_async(self, ids: ArrayLike, *, out: Array | None = None) -> PendingRows:
        """Start a lookup. Return a `PendingRows`, whose `wait` returns the rows."""
        ids = self._ids(ids)
        if out is None:
            out = empty(ids.shape + self._row_shape, self.dtype)
        return PendingRows(self._native.lookup_async(ids.reshape(-1), self._receiver(out)), out)

    def push(self, ids: Ids, gradients: ArrayLike | None = None) -> None:
        """Send gradients of rows. The ps updates the rows with the optimizer. Return before that.

        Parameters
        ----------
        ids : array_like of integers, or IndexedSlices
            An id that occurs twice counts once, with the sum of its gradients.
        gradients : array_like, of shape ``ids.shape + shape[1:]``
        """
        ids, gradients = self._slices(ids, gradients, "push")
        self._native.push(ids, gradients)

    def push_async(self, ids: Ids, gradients: ArrayLike | None = None) -> _capstan.Pending:
        """Like `push`, but return an object to wait for the updates.

        Its `wait` returns when the ps have applied this push and this rank's earlier pushes to them.
        """
        self.push(ids, gradients)
        return self._native.pushed()

    def flush(self) -> None:
        """Wait until all pushes of this rank, to any variable, have been applied."""
        self._native.flush()

    def set_learning_rate(self, rate: float) -> None:
        """Set the learning rate of the optimizer, for every later push of any rank."""
        self._native.set_learning_rate(rate)

    @property
    def skipped_rows(self) -> int:
        """Number of gradient rows of this rank that were skipped because of NaN (``nan_gradients="skip"``)."""
        return self._native.skipped_rows

    def _slices(self, ids: Any, values: ArrayLike | None, call: str) -> tuple[Array, Array]:
        if isinstance(ids, IndexedSlices):
            if values is not None:
                raise errors.InvalidArgumentError(
                    f"{call}: found IndexedSlices and a second argument, expected only IndexedSlices, "
                    "which contain the values"
                )
            ids, values = ids.indices, ids.values
        ids = self._ids(ids)
        return ids.reshape(-1), self._values(values, ids.shape + self._row_shape, call)

    def _values(self, values: ArrayLike | None, shape: tuple[int, ...], call: str) -> Array:
        array = host_array(values, self.dtype)
        if array.shape != shape:
            raise errors.InvalidArgumentError(
                f"{call} of {self._kind} {self.name!r}: found values of shape {array.shape}, expected {tuple(shape)}"
            )
        return raw(contiguous(array))

    def _receiver(self, out: Any) -> Array:
        """Check `out`, into which rows will be copied, and return it for the extension module."""
        array = writable(out)
        if array.dtype != self.dtype or not array.flags.c_contiguous or not array.flags.writeable:
            layout = "contiguous" if array.flags.c_contiguous else "non-contiguous"
            access = "writable" if array.flags.writeable else "read-only"
            raise errors.InvalidArgumentError(
                f"{self._kind} {self.name!r}: out: found a {access}, {layout} array of {array.dtype}, "
                f"expected a writable, contiguous array of {self.dtype}"
            )
        return raw(array)


class PendingRows:
    """A lookup in flight."""

    def __init__(self, pending: _capstan.Pending, out: Array) -> None:
        self._pending = pending
        self._out = out

    def ready(self) -> bool:
        """Return True if `wait` would return without blocking."""
        return self._pending.ready()

    def wait(self) -> Array:
        """Return the rows, once they have been read."""
        self._pending.wait()
        return self._out
