"""ClusterCoordinator: schedules functions on workers."""

from __future__ import annotations

import contextlib
import datetime
import pickle
import weakref
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from . import _capstan, _remote
from ._strategy import ParameterServerStrategy

Function = TypeVar("Function", bound=Callable[..., Any])


def _milliseconds(seconds: float | None) -> datetime.timedelta | None:
    return None if seconds is None else datetime.timedelta(seconds=seconds)


class RemoteValue:
    """The future result of a scheduled function. As an argument of a later function, it stands for its value."""

    __slots__ = ("_future",)

    def __init__(self, future: _capstan.Future) -> None:
        self._future = future

    def fetch(self) -> Any:
        """Wait for the function and return its result.

        Raises
        ------
        CapstanError
            The exception of the function, or `CancelledError` if an earlier error cancelled it.
        """
        return pickle.loads(self._future.fetch())

    get = fetch

    def ready(self) -> bool:
        """Return whether the function has ended, with or without an error."""
        return self._future.ready()

    def __reduce__(self) -> tuple[Any, ...]:
        return _remote.reduce_future(self._future)


class PerWorkerValues:
    """An object on every worker, made when a function first uses it there. Pass it to functions as an argument."""

    def __init__(self, handle: _capstan.PerWorkerObject) -> None:
        self._handle = handle

    def __reduce__(self) -> tuple[Any, ...]:
        return _remote.reduce_object(self._handle)


class PerWorkerDataset(PerWorkerValues):
    """A dataset on every worker. ``iter(dataset)`` makes an iterator on every worker."""

    def __init__(self, strategy: ParameterServerStrategy, handle: _capstan.PerWorkerObject) -> None:
        super().__init__(handle)
        self._strategy = strategy

    def __iter__(self) -> PerWorkerIterator:
        payload, _, objects = _remote.packed((iter, (self,)))
        return PerWorkerIterator(self._strategy._implementation.create_per_worker_object(payload, objects))


class PerWorkerIterator(PerWorkerValues):
    """An iterator on every worker. Functions call ``next`` on it."""

    def __iter__(self) -> PerWorkerIterator:
        return self

    def __next__(self) -> Any:
        raise TypeError("next: each worker has its own iterator; call next in a scheduled function")


class ClusterCoordinator:
    """Schedules functions on workers, and waits for them.

    Used by the thread that made the strategy. After the first error, queued functions are cancelled, and the next
    `schedule`, `join` or `done` raises the error once. A function whose worker dies runs again on another worker;
    each of its pushes counts once.

    Parameters
    ----------
    strategy : ParameterServerStrategy
    """

    def __init__(self, strategy: ParameterServerStrategy) -> None:
        self._strategy = strategy
        self._implementation = strategy._implementation
        # Each worker frees a function after the coordinator has, so lambdas that a loop makes do not accumulate.
        self._functions: weakref.WeakKeyDictionary[Callable[..., Any], _capstan.PerWorkerObject] = weakref.WeakKeyDictionary()

    @property
    def strategy(self) -> ParameterServerStrategy:
        """The strategy."""
        return self._strategy

    def _function(self, function: Callable[..., Any]) -> _capstan.PerWorkerObject:
        try:
            return self._functions[function]
        except (KeyError, TypeError):  # TypeError: an object that cannot be a key
            pass
        payload, objects = _remote.packed_function(function)
        handle = self._implementation.create_per_worker_object(payload, objects)
        with contextlib.suppress(TypeError):
            self._functions[function] = handle
        return handle

    def schedule(
        self,
        fn: Callable[..., Any],
        args: Iterable[Any] = (),
        kwargs: dict[str, Any] | None = None,
        *,
        priority: int = 0,
        affinity: int | None = None,
        deadline: float | None = None,
    ) -> RemoteValue:
        """Queue ``fn(*args, **kwargs)`` and return. Blocks while the queue is full (``queue_limit``).

        Parameters
        ----------
        fn : callable
            A function of a module, which every rank finds by its name, or any function that cloudpickle can send.
            Each worker receives it once, as it is now: later changes of captured values have no effect.
        args, kwargs : tuple, dict
            Values that pickle can send, variables, objects per worker, and results of earlier functions.
        priority : int
            Higher priorities run first.
        affinity : int, optional
            Preferred worker.
        deadline : float, optional
            Seconds from now. A function that has not ended by then fails with `DeadlineExceededError`.

        Returns
        -------
        RemoteValue

        Raises
        ------
        InvalidArgumentError
            The function or an argument cannot be sent; the message names it.
        """
        payload, futures, objects = _remote.packed_arguments(_remote.name_of(fn), args, kwargs or {})
        options = None
        if priority or affinity is not None or deadline is not None:
            options = _capstan.ScheduleOptions(priority, affinity, _milliseconds(deadline))
        return RemoteValue(self._implementation.schedule(self._function(fn), payload, objects, futures, options))

    def schedule_on(
        self, worker: int, fn: Callable[..., Any], args: Iterable[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> RemoteValue:
        """Run a function on one worker. `join` does not wait for it, and only `fetch` raises its error."""
        payload, futures, objects = _remote.packed_arguments(_remote.name_of(fn), args, kwargs or {})
        return RemoteValue(
            self._implementation.schedule(self._function(fn), payload, objects, futures, worker=worker)
        )

    def run_on_every_worker(
        self, fn: Callable[..., Any], args: Iterable[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> list[Any]:
        """Run a function once on each live worker. Return the results in the order of `worker_indices`."""
        return [value.fetch() for value in [self.schedule_on(i, fn, args, kwargs) for i in self.worker_indices()]]

    def join(self, timeout: float | None = None) -> bool:
        """Wait until every scheduled function is done.

        Parameters
        ----------
        timeout : float, optional
            Seconds.

        Returns
        -------
        bool
            Whether every function is done.
        """
        return self._implementation.join(_milliseconds(timeout))

    def done(self) -> bool:
        """Return whether every scheduled function is done."""
        return self._implementation.done()

    def fetch(self, values: Any) -> Any:
        """Return `values` with each `RemoteValue` in a list, tuple or dict replaced by its result."""
        if isinstance(values, RemoteValue):
            return values.fetch()
        if isinstance(values, dict):
            return {key: self.fetch(value) for key, value in values.items()}
        if isinstance(values, tuple) and hasattr(values, "_fields"):
            return type(values)(*(self.fetch(value) for value in values))
        if isinstance(values, (list, tuple)):
            return type(values)(self.fetch(value) for value in values)
        return values

    def create_per_worker_dataset(self, dataset_fn: Callable[[], Iterable[Any]]) -> PerWorkerDataset:
        """Make a dataset on each worker.

        Parameters
        ----------
        dataset_fn : callable
            Called without arguments on each worker; returns any iterable. Functions take ``iter(dataset)`` as an
            argument, and call ``next`` on it. At the end of the dataset, `join` raises `OutOfRangeError`.

        Returns
        -------
        PerWorkerDataset
        """
        return PerWorkerDataset(self._strategy, self._per_worker(dataset_fn, ()))

    def create_per_worker_resource(self, fn: Callable[..., Any], args: Iterable[Any] = ()) -> PerWorkerValues:
        """Make an object on each worker by ``fn(*args)``, when a function first uses it there."""
        return PerWorkerValues(self._per_worker(fn, args))

    def _per_worker(self, function: Callable[..., Any], args: Iterable[Any]) -> _capstan.PerWorkerObject:
        maker = PerWorkerValues(self._function(function))
        payload, _, objects = _remote.packed((_call, (maker, args)))
        return self._implementation.create_per_worker_object(payload, objects)

    def record_step(self, step: int) -> None:
        """Record a step after which a coordinator that replaces this one resumes. Blocks as `join` does."""
        self._implementation.record_step(step)

    def scalar(self, name: str, value: float, step: int) -> None:
        """Record a value of the program, such as the loss, for TensorBoard and metrics (``run_dir``)."""
        self._implementation.scalar(name, float(value), step)

    def worker_indices(self) -> list[int]:
        """Return the indices of the live workers."""
        return self._implementation.worker_indices()

    @property
    def workers(self) -> int:
        """Number of live workers."""
        return len(self._implementation.worker_indices())

    def task_states(self) -> list[tuple[str, int, bool, str]]:
        """Return ``(role, index, dead, name)`` of all ranks except the coordinator."""
        return self._implementation.task_states()

    def statistics(self) -> dict[str, int]:
        """Return counts of functions since the start, as a dict."""
        return self._implementation.statistics()


def _call(function: Callable[..., Any], args: Iterable[Any]) -> Any:
    return function(*args)


def current_worker_index() -> int:
    """Return the index of the worker that runs the calling function."""
    return _capstan.current_worker_index()


def function(fn: Function) -> Function:
    """Check that a function can be sent by name, else raise ValueError. For use in place of ``tf.function``.

    A function of a module is sent by name without this decorator, too.
    """
    if "<" in fn.__qualname__:
        raise ValueError(f"capstan.function: found {fn.__qualname__}, expected a function of a module")
    return fn
