"""Calls on the replicas of a worker. A worker of Python has one replica: its function."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from . import errors

_OPERATIONS: dict[str, Callable[..., Any]] = {"SUM": np.sum, "MEAN": np.mean}


class Replicas:
    """The calls of a strategy on replicas. In a function on a worker, an argument or a captured strategy is one of these."""

    num_replicas_in_sync = 1

    def run(self, fn: Callable[..., Any], args: Iterable[Any] = (), kwargs: dict[str, Any] | None = None) -> Any:
        """Run a function on each replica. Return its result."""
        return fn(*args, **(kwargs or {}))

    def reduce(self, reduce_op: str, value: Any, axis: int | None = None) -> Any:
        """Combine the values of the replicas, and along `axis` of each.

        Parameters
        ----------
        reduce_op : {"SUM", "MEAN"}
        value : array_like
            A result of `run`.
        axis : int, optional
            None: combine the replicas only, which returns the value of the one replica.
        """
        name = str(reduce_op).rpartition(".")[2].upper()
        if name not in _OPERATIONS:
            raise errors.InvalidArgumentError(f"reduce: found {reduce_op!r}, expected 'SUM' or 'MEAN'")
        return value if axis is None else _OPERATIONS[name](value, axis=axis)

    def gather(self, value: Any, axis: int) -> Any:
        """Return the values of the replicas, concatenated along `axis`."""
        if not -np.ndim(value) <= axis < np.ndim(value):
            raise errors.InvalidArgumentError(f"gather: found axis {axis}, expected one of {np.ndim(value)} axes")
        return np.asarray(value)

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """Return the value of each replica."""
        return (value,)

    def __reduce__(self) -> tuple[Any, ...]:
        return Replicas, ()
