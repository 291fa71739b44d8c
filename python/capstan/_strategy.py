"""ParameterServerStrategy: creates variables on the ps."""

from __future__ import annotations

import atexit
import contextlib
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from numpy.typing import DTypeLike

from . import _capstan, _scope
from ._arrays import communication_number
from ._cluster import Cluster
from ._replicas import Replicas

_strategies: weakref.WeakSet[ParameterServerStrategy] = weakref.WeakSet()


class ParameterServerStrategy(Replicas):
    """Creates variables on the ps while its scope is open.

    Made on the coordinator. Closing it, as the end of the script does, ends the job for every other rank.

    Parameters
    ----------
    cluster : Cluster, optional
        Default: ``Cluster.join()``.
    variable_partitioner : Partitioner, optional
        Decides into how many shards each variable is divided, such as
        ``capstan.partitioners.FixedShardsPartitioner(4)``. Default: one shard.
    placement : {"round_robin", "by_bytes"}
        Selects the ps of a new shard: the next ps in turn, or the ps with the fewest bytes.
    memory : {"host", "device"}
        Where a ps stores variables: in main memory, or in the memory of its GPU.
    communication_dtype : optional
        "bfloat16": as in `Variable`, for all float32 variables and tables that do not set it.
    int8_lookups : bool
        As in `Variable`, for all float32 variables and tables that do not set it.
    """

    def __init__(
        self,
        cluster: Cluster | None = None,
        variable_partitioner: _capstan.Partitioner | None = None,
        *,
        placement: str = "round_robin",
        memory: str = "host",
        communication_dtype: DTypeLike | None = None,
        int8_lookups: bool = False,
    ) -> None:
        if placement not in ("round_robin", "by_bytes"):
            raise ValueError(f"placement: found {placement!r}, expected 'round_robin' or 'by_bytes'")
        if memory not in ("host", "device"):
            raise ValueError(f"memory: found {memory!r}, expected 'host' or 'device'")
        self._cluster = cluster or Cluster.join()
        self._implementation: _capstan.Strategy = _capstan.Strategy(
            self._cluster._implementation,
            variable_partitioner,
            placement == "by_bytes",
            memory == "device",
            communication_number(communication_dtype),
            int8_lookups,
        )
        self._before_close: list[Callable[[], None]] = []
        self._names: dict[str, int] = {}
        _strategies.add(self)

    @property
    def cluster(self) -> Cluster:
        """The cluster."""
        return self._cluster

    @contextlib.contextmanager
    def scope(self) -> Iterator[ParameterServerStrategy]:
        """Return a context in which new variables belong to this strategy."""
        self._implementation.open_scope()
        _scope.open_scopes.append(self)
        try:
            yield self
        finally:
            _scope.open_scopes.pop()
            if self._implementation.is_open:
                self._implementation.close_scope()

    def close(self) -> None:
        """End the job. Variables and results cannot be used afterwards."""
        for close in reversed(self._before_close):
            close()
        self._before_close.clear()
        self._implementation.close()

    def __enter__(self) -> ParameterServerStrategy:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def variables(self, trainable_only: bool = False) -> list[str]:
        """Return the names of the variables, in the order of creation."""
        return self._implementation.variables(trainable_only)

    def loads(self) -> list[_capstan.PsLoad]:
        """Return the load of each ps: shards, bytes, pushes."""
        return self._implementation.loads()

    def describe_loads(self) -> str:
        """Return `loads` as a table."""
        return self._implementation.describe_loads()

    def _name(self, name: str | None) -> str:
        """Return a name for a variable without one: Variable, Variable_1, ..."""
        if name is not None:
            return name
        number = self._names["Variable"] = self._names.get("Variable", -1) + 1
        return f"Variable_{number}" if number else "Variable"


@atexit.register
def _close_all() -> None:
    for strategy in list(_strategies):
        if strategy._implementation.is_open:
            strategy.close()
