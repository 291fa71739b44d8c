"""Descriptions of a cluster, with the names of ``tf.distribute.cluster_resolver``. They start nothing.

`Cluster.join` does not need a resolver. A program reads one to learn about tasks and their addresses.
"""

from ._capstan import cluster_resolver as _native
from ._cluster import Cluster

ClusterResolver = _native.ClusterResolver
SimpleClusterResolver = _native.SimpleClusterResolver
SlurmClusterResolver = _native.SlurmClusterResolver
TFConfigClusterResolver = _native.TFConfigClusterResolver
UnionResolver = _native.UnionResolver
validate_cluster = _native.validate_cluster

__all__ = [
    "ClusterResolver",
    "SimpleClusterResolver",
    "SlurmClusterResolver",
    "TFConfigClusterResolver",
    "UnionResolver",
    "of_cluster",
    "validate_cluster",
]


def of_cluster(cluster: Cluster, rpc_layer: "str | None" = None) -> ClusterResolver:
    """Return the ranks of a cluster that this process has joined; the coordinator is the chief."""
    return _native.MpiClusterResolver(cluster._implementation, rpc_layer)
