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

from . import _remote, cluster_resolver, data, errors, initializers, metrics, optimizers, partitioners
from ._capstan import VERSION as __version__
from ._capstan import Counter, Initializer, Optimizer, Partitioner, UpdateGroup, build_info
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
from ._embedding import PendingAll, embedding_lookup, embedding_lookup_sparse, lookup_all
from ._groups import StaleSynchronous, Synchronous
from ._replicas import InputContext, PerReplica, ReplicaContext, Replicas, ValueContext, get_replica_context
from ._scope import current_strategy
from ._strategy import ParameterServerStrategy
from ._table import DynamicTable, KeyTexts, hash_keys
from ._variable import CombinePushes, IndexedSlices, PendingRows, Variable

__all__ = [
    "Checkpoint",
    "CheckpointManager",
    "Cluster",
    "ClusterCoordinator",
    "CombinePushes",
    "Counter",
    "DynamicTable",
    "IndexedSlices",
    "Initializer",
    "InputContext",
    "KeyTexts",
    "Optimizer",
    "ParameterServerStrategy",
    "Partitioner",
    "PendingAll",
    "PendingRows",
    "PerReplica",
    "PerWorkerDataset",
    "PerWorkerIterator",
    "PerWorkerValues",
    "RemoteValue",
    "ReplicaContext",
    "Replicas",
    "Server",
    "StaleSynchronous",
    "Synchronous",
    "UpdateGroup",
    "ValueContext",
    "Variable",
    "__version__",
    "build_info",
    "cluster_resolver",
    "current_strategy",
    "current_worker_index",
    "data",
    "embedding_lookup",
    "embedding_lookup_sparse",
    "errors",
    "function",
    "get_replica_context",
    "hash_keys",
    "initializers",
    "lookup_all",
    "metrics",
    "optimizers",
    "partitioners",
]
