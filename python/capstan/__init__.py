"""Capstan: a parameter-server runtime on MPI, UCX and HDF5, with TensorFlow's names.

``docs/python.md`` describes the package, and takes a program from TensorFlow to Capstan.

Examples
--------
>>> import capstan as cs
>>> cluster = cs.Cluster.join()
>>> if cluster.role != "coordinator":
...     sys.exit(cs.Server(cluster).join())
>>> strategy = cs.ParameterServerStrategy(cluster)
>>> with strategy.scope():
...     w = cs.Variable([0.0, 0.0], name="w", optimizer=cs.optimizers.SGD(0.1))
>>> coordinator = cs.ClusterCoordinator(strategy)
>>> result = coordinator.schedule(train_step, args=(w,))
>>> coordinator.join()
"""

from . import _remote, errors, initializers, optimizers, partitioners
from ._capstan import VERSION as __version__
from ._capstan import Counter, Initializer, Optimizer, Partitioner, UpdateGroup
from ._checkpoint import Checkpoint, CheckpointManager
from ._cluster import Cluster, Server
from ._coordinator import (
    ClusterCoordinator,
    PerWorkerDataset,
    PerWorkerIterator,
    PerWorkerValues,
    RemoteValue,
    current_worker_index,
    function,
)
from ._groups import StaleSynchronous, Synchronous
from ._replicas import Replicas
from ._strategy import ParameterServerStrategy, current_strategy
from ._variable import (
    IndexedSlices,
    PendingAll,
    PendingRows,
    Variable,
    embedding_lookup,
    embedding_lookup_sparse,
    lookup_all,
)

__all__ = [
    "Checkpoint",
    "CheckpointManager",
    "Cluster",
    "ClusterCoordinator",
    "Counter",
    "IndexedSlices",
    "Initializer",
    "Optimizer",
    "ParameterServerStrategy",
    "Partitioner",
    "PendingAll",
    "PendingRows",
    "PerWorkerDataset",
    "PerWorkerIterator",
    "PerWorkerValues",
    "RemoteValue",
    "Replicas",
    "Server",
    "StaleSynchronous",
    "Synchronous",
    "UpdateGroup",
    "Variable",
    "__version__",
    "current_strategy",
    "current_worker_index",
    "embedding_lookup",
    "embedding_lookup_sparse",
    "errors",
    "function",
    "initializers",
    "lookup_all",
    "optimizers",
    "partitioners",
]
