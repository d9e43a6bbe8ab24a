"""A simulated Kafka cluster for tests, in a process of its own: several brokers, true replication, faults.

    from kview.testing import Cluster

    with Cluster(brokers=3) as kafka:
        orders = kafka.new_topic(partitions=3)
        produce(kafka.bootstrap_servers, orders)
        kafka.crash(kafka.leader(orders))

In pytest, the fixture `kafka` is such a cluster (see `kview.testing.plugin`).
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kview.testing.cluster import AsyncCluster, Cluster, ClusterError, Options, Partition, Which
    from kview.testing.credentials import Credentials

__all__ = ["AsyncCluster", "Cluster", "ClusterError", "Credentials", "Options", "Partition", "Which"]


def __getattr__(name: str) -> Any:
    """Import what is asked for when it is: pytest loads the plugin in every run of everybody."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kview.testing import cluster

    return getattr(cluster, name)
