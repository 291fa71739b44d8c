"""Lookups of several rows or variables at once."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from . import _capstan, errors
from ._arrays import Array, empty, id_array, raw
from ._rows import RowAccess


def lookup_all(lookups: list[tuple[RowAccess, ArrayLike]]) -> PendingAll:
    """Start lookups of several variables or dynamic tables with one round trip to each ps.

    Parameters
    ----------
    lookups : list of (Variable or DynamicTable, ids or keys)

    Returns
    -------
    PendingAll
        Its `wait` returns the rows of each lookup.
    """
    parts, outs = [], []
    for variable, ids in lookups:
        ids = variable._ids(ids)
        outs.append(empty(ids.shape + variable._row_shape, variable.dtype))
        parts.append((variable._native, ids.reshape(-1), raw(outs[-1])))
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


def embedding_lookup(params: RowAccess, ids: ArrayLike, max_norm: float | None = None) -> Array:
    """Return the rows `ids` of a variable, with shape ``ids.shape + shape[1:]``. Reads each row once.

    Parameters
    ----------
    params : Variable or DynamicTable
    ids : array_like of integers
    max_norm : float, optional
        Rows with a larger L2 norm are scaled down to it.
    """
    distinct, where = np.unique(params._ids(ids), return_inverse=True)
    rows = params.lookup(distinct)
    if max_norm is not None:
        norms = np.sqrt(np.sum(np.square(rows), axis=tuple(range(1, rows.ndim)), keepdims=True))
        rows = rows * np.where(norms > max_norm, max_norm / np.maximum(norms, np.finfo(rows.dtype).tiny), 1)
        rows = rows.astype(params.dtype)
    return rows[where.reshape(np.shape(ids))]


def embedding_lookup_sparse(
    params: RowAccess,
    ids: ArrayLike,
    row_splits: ArrayLike,
    weights: ArrayLike | None = None,
    combiner: str = "mean",
    max_norm: float | None = None,
) -> Array:
    """Return the combined rows of each bag of ids, with shape ``(bags,) + shape[1:]``. An empty bag has zeros.

    Parameters
    ----------
    params : Variable or DynamicTable
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
    ids, row_splits = params._ids(ids), id_array(row_splits)
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
