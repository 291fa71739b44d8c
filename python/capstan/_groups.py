"""Update groups: variables for which workers synchronize their steps."""

from __future__ import annotations

from . import _capstan


def StaleSynchronous(name: str, bound: int) -> _capstan.UpdateGroup:  # noqa: N802: the name of the C++ API
    """Return an update group in which a worker more than `bound` steps ahead of the slowest waits for it.

    Made on the coordinator, in the scope of a strategy. Passed as an argument to functions, which call
    ``end_step`` on it.
    """
    return _capstan.stale_synchronous(name, bound)


def Synchronous(name: str, average: bool = True, backup_workers: int = 0) -> _capstan.UpdateGroup:  # noqa: N802
    """Return an update group in which the pushes of a step are averaged, or summed, and applied once.

    A step does not wait for the slowest `backup_workers` workers, and drops their pushes.
    """
    return _capstan.synchronous(name, average, backup_workers)
