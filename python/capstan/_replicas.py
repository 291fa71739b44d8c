"""Calls on the replicas of a worker: threads that run a function together (``--replicas``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from . import _capstan, data, errors
from ._capstan import Counter
from ._variable import IndexedSlices, Variable

_OPERATIONS: dict[str, Callable[..., Any]] = {"SUM": np.sum, "MEAN": np.mean}


class PerReplica:
    """Values by replica, as an argument or a result of `run` on several replicas.

    Attributes
    ----------
    values : tuple
    """

    def __init__(self, values: Iterable[Any]) -> None:
        self.values = tuple(values)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, replica: int) -> Any:
        return self.values[replica]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PerReplica) and self.values == other.values

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"PerReplica({', '.join(map(repr, self.values))})"


class Replicas:
    """Calls of a strategy that concern replicas. Functions on workers get this class in place of a strategy.

    Used by the thread that runs the program or the function, not by replicas inside `run`. On the
    coordinator, `run` and `reduce` use threads of the coordinator and log a warning once.
    """

    _implementation: _capstan.Strategy | None = None  # None: the calling thread's strategy

    @property
    def num_replicas_in_sync(self) -> int:
        """Number of replicas of one worker. Replicas of different workers are never in sync."""
        return _capstan.num_replicas_in_sync(self._implementation)

    def run(self, fn: Callable[..., Any], args: Iterable[Any] = (), kwargs: dict[str, Any] | None = None) -> Any:
        """Run a function on each replica concurrently, and wait for all of them.

        Parameters
        ----------
        fn : callable
            Called once for each replica. `get_replica_context` returns the replica.
        args, kwargs
            A `PerReplica` among them, or in a list, tuple or dict, is replaced by the replica's value.

        Returns
        -------
        PerReplica, or the result if there is one replica

        Raises
        ------
        Exception
            The exception of the lowest-numbered replica that failed.
        """
        args, kwargs = tuple(args), kwargs or {}

        replicas = self.num_replicas_in_sync

        def body(replica: int) -> Any:
            return fn(*_selected(args, replica, replicas), **_selected(kwargs, replica, replicas))

        return _per_replica(_capstan.run_on_replicas(self._implementation, body))

    def reduce(self, reduce_op: str, value: Any, axis: int | None = None) -> Any:
        """Combine the values of the replicas, and optionally also along `axis`.

        Parameters
        ----------
        reduce_op : {"SUM", "MEAN"}
        value : array_like, PerReplica, IndexedSlices, or a list, tuple or dict of them
            A result of `run`. A plain value counts as equal on every replica.
        axis : int, optional
            Also reduce this axis of each value; a mean divides by the number of elements of all replicas.

        Returns
        -------
        numpy array or scalar, in the structure of `value`
        """
        _require_cross_replica("reduce", "all_reduce")
        return _reduced(_operation(reduce_op), value, axis, self.num_replicas_in_sync)

    def gather(self, value: Any, axis: int) -> Any:
        """Return the values of the replicas, concatenated along `axis`."""
        _require_cross_replica("gather", "all_gather")
        return _gathered(_values(value), axis)

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """Return the value of each replica."""
        return tuple(_values(value))

    def experimental_distribute_values_from_function(self, value_fn: Callable[[ValueContext], Any]) -> Any:
        """Call ``value_fn(ValueContext)`` for each replica, sequentially. Return a `PerReplica`."""
        replicas = self.num_replicas_in_sync
        return _per_replica([value_fn(ValueContext(replica, replicas)) for replica in range(replicas)])

    def experimental_distribute_dataset(self, dataset: data.Dataset, prefetch: int = 1) -> data.Dataset:
        """Split each global batch of `dataset` into one batch per replica.

        Call it on a worker, in the function passed to ``create_per_worker_dataset``. Every worker reads
        all the data.

        Parameters
        ----------
        dataset : capstan.data.Dataset of batches
        prefetch : int
            Number of steps that a background thread prepares.
        """
        return data.Dataset._of(dataset._native.distribute(prefetch)).map(_step_of)

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], data.Dataset], per_replica: bool = False, prefetch: int = 1
    ) -> data.Dataset:
        """Return a dataset of steps from ``dataset_fn(InputContext)``, whose result yields batches for single replicas.

        Parameters
        ----------
        dataset_fn : callable
        per_replica : bool
            Call `dataset_fn` once for each replica, which then has a pipeline of its own.
        prefetch : int
            As in `experimental_distribute_dataset`.
        """

        def make(pipelines: int, pipeline: int, replicas: int) -> _capstan.Dataset:
            return dataset_fn(InputContext(pipelines, pipeline, replicas))._native

        return data.Dataset._of(_capstan.distribute_from_function(make, per_replica, prefetch)).map(_step_of)

    def __reduce__(self) -> tuple[Any, ...]:
        return Replicas, ()


class ValueContext:
    """Argument of the function that is passed to ``experimental_distribute_values_from_function``."""

    def __init__(self, replica_id_in_sync_group: int, num_replicas_in_sync: int) -> None:
        self.replica_id_in_sync_group = replica_id_in_sync_group
        self.num_replicas_in_sync = num_replicas_in_sync


class InputContext:
    """Tells a ``dataset_fn`` which input pipeline it makes, and how many replicas read it."""

    def __init__(self, num_input_pipelines: int, input_pipeline_id: int, num_replicas_in_sync: int) -> None:
        self.num_input_pipelines = num_input_pipelines
        self.input_pipeline_id = input_pipeline_id
        self.num_replicas_in_sync = num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """Return the global batch size divided by the number of replicas, or raise `InvalidArgumentError`."""
        if global_batch_size % self.num_replicas_in_sync:
            raise errors.InvalidArgumentError(
                f"get_per_replica_batch_size: found {global_batch_size}, expected a multiple of"
                f" {self.num_replicas_in_sync} replicas"
            )
        return global_batch_size // self.num_replicas_in_sync


class ReplicaContext:
    """One replica's view during `run`. All replicas must make the same collective calls in the same order.

    A collective call waits for the other replicas, at most ``--wait-timeout``. It raises `DeadlineExceededError` naming
    those that are missing, `FailedPreconditionError` if another replica made another call or returned, and
    `AbortedError` if another replica failed.

    Attributes
    ----------
    replica_id_in_sync_group : int
        Number among the replicas of this worker, from 0.
    """

    def __init__(self, replica: int) -> None:
        self.replica_id_in_sync_group = replica

    @property
    def num_replicas_in_sync(self) -> int:
        """Number of replicas of this worker."""
        return _capstan.num_replicas_in_sync(None)

    @property
    def strategy(self) -> Replicas:
        """The strategy, for calls that concern all replicas."""
        return Replicas()

    def all_reduce(self, reduce_op: str, value: Any, axis: int | None = None) -> Any:
        """Return the combined value of all replicas to each of them, as `Replicas.reduce` does."""
        operation = _operation(reduce_op)

        def combine(values: list[Any]) -> Any:
            return _reduced(operation, _merged(values), axis, len(values))

        return _capstan.run_collective(f"all_reduce {operation} along {axis}", value, combine)

    def all_gather(self, value: Any, axis: int) -> Any:
        """Return the values of all replicas, concatenated along `axis`, to each of them."""
        return _capstan.run_collective(f"all_gather along axis {axis}", value, lambda values: _gathered(values, axis))

    def merge_call(
        self, merge_fn: Callable[..., Any], args: Iterable[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call ``merge_fn(strategy, *args, **kwargs)`` once, when all replicas have made this call.

        Each argument is a `PerReplica` of the replicas' arguments, except variables and counters, which are passed as
        they are.

        Returns
        -------
        The result of ``merge_fn``; if it is a `PerReplica`, this replica's value.
        """

        def combine(calls: list[Any]) -> Any:
            arguments, keywords = calls[0]
            merged = [_merged_argument([call[0][i] for call in calls]) for i in range(len(arguments))]
            named = {name: _merged_argument([call[1][name] for call in calls]) for name in keywords}
            return merge_fn(Replicas(), *merged, **named)

        result = _capstan.run_collective("merge_call", (tuple(args), kwargs or {}), combine)
        return _selected(result, self.replica_id_in_sync_group, self.num_replicas_in_sync)


def get_replica_context() -> ReplicaContext | None:
    """Return the calling thread's replica, or None outside of `run` and in a ``merge_call``'s function."""
    replica = _capstan.replica_id()
    return None if replica is None else ReplicaContext(replica)


def _require_cross_replica(call: str, instead: str) -> None:
    if _capstan.replica_id() is not None:
        raise errors.FailedPreconditionError(
            f"{call}: called by a replica inside run, expected a call outside of run; use {instead} in a replica"
        )


def _operation(reduce_op: str) -> str:
    name = str(reduce_op).rpartition(".")[2].upper()
    if name not in _OPERATIONS:
        raise errors.InvalidArgumentError(f"reduce: found {reduce_op!r}, expected 'SUM' or 'MEAN'")
    return name


def _per_replica(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else PerReplica(values)


def _step_of(*values: Any) -> Any:
    return _per_replica(list(values))


def _values(value: Any) -> list[Any]:
    return list(value.values) if isinstance(value, PerReplica) else [value]


def _mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """Apply a function to the leaves of lists, tuples and dicts."""
    if isinstance(value, dict):
        return {key: _mapped(function, part) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_mapped(function, part) for part in value))
    if isinstance(value, (list, tuple)):
        return type(value)(_mapped(function, part) for part in value)
    return function(value)


def _selected(value: Any, replica: int, replicas: int) -> Any:
    def select(leaf: Any) -> Any:
        if not isinstance(leaf, PerReplica):
            return leaf
        if len(leaf) != replicas:
            raise errors.InvalidArgumentError(
                f"PerReplica argument: found values for {len(leaf)} replicas, expected {replicas}"
            )
        return leaf[replica]

    return _mapped(select, value)


def _merged_argument(values: list[Any]) -> Any:
    on_ps = (Variable, Counter)
    return values[0] if len(values) == 1 or isinstance(values[0], on_ps) else PerReplica(values)


def _merged(values: list[Any]) -> Any:
    """Turn one structure per replica into one structure of PerReplica."""
    first = values[0]
    if any(type(value) is not type(first) for value in values) and isinstance(first, (dict, list, tuple)):
        raise errors.InvalidArgumentError("all_reduce: the replicas' values have different structures")
    if isinstance(first, dict):
        if any(value.keys() != first.keys() for value in values):
            raise errors.InvalidArgumentError("all_reduce: the replicas' values have different keys")
        return {key: _merged([value[key] for value in values]) for key in first}
    if isinstance(first, (list, tuple)):
        if any(len(value) != len(first) for value in values):
            raise errors.InvalidArgumentError("all_reduce: the replicas' values have different sizes")
        return type(first)(_merged([value[i] for value in values]) for i in range(len(first)))
    return PerReplica(values)


def _reduced(operation: str, value: Any, axis: int | None, replicas: int) -> Any:
    if isinstance(value, (dict, list, tuple)):
        return _mapped(lambda leaf: _reduced(operation, leaf, axis, replicas), value)
    plain = not isinstance(value, PerReplica)
    values = [value] * replicas if plain else list(value.values)
    if len(values) > 0 and isinstance(values[0], (dict, list, tuple)):
        return _reduced(operation, _merged(values), axis, replicas)
    if isinstance(values[0], IndexedSlices):
        rows = np.concatenate([np.asarray(part.values) for part in values])
        ids = np.concatenate([np.asarray(part.indices) for part in values])
        return IndexedSlices(rows / len(values) if operation == "MEAN" else rows, ids)
    arrays = [np.asarray(part) for part in values]
    if axis is None:
        if len({array.shape for array in arrays}) > 1:
            raise errors.InvalidArgumentError(
                f"reduce: found shapes {', '.join(str(array.shape) for array in arrays)}, expected equal shapes"
            )
        if plain and operation == "SUM" and replicas > 1 and np.any(arrays[0]):
            raise errors.InvalidArgumentError(
                f"reduce SUM: found a plain value, which is the same on each of the {replicas} replicas, expected a"
                " PerReplica; pass a PerReplica, or use MEAN"
            )
        return values[0] if len(arrays) == 1 else _typed(_OPERATIONS[operation](np.stack(arrays), axis=0), arrays[0])
    try:
        total = sum(np.sum(array, axis=axis) for array in arrays)
        count = sum(array.shape[axis] for array in arrays)
    except (ValueError, IndexError) as error:  # np.AxisError derives from both
        raise errors.InvalidArgumentError(f"reduce: {error}") from error
    return _typed(total / count if operation == "MEAN" else total, arrays[0])


def _typed(result: Any, array: np.ndarray[Any, Any]) -> Any:
    """Cast `result` to the dtype of `array` if that is a float; the mean of integers remains a double."""
    return result.astype(array.dtype) if array.dtype.kind == "f" else result


def _gathered(values: list[Any], axis: int) -> Any:
    if isinstance(values[0], IndexedSlices):
        raise errors.UnimplementedError("gather: found IndexedSlices, expected arrays")
    arrays = [np.asarray(value) for value in values]
    try:
        return np.concatenate(arrays, axis=axis)
    except ValueError as error:
        raise errors.InvalidArgumentError(f"gather along axis {axis}: {error}") from error
