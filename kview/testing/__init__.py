"""A simulated Kafka cluster for tests, in a process of its own: several brokers, true replication, faults.

    from kview.testing import Cluster

    with Cluster(brokers=3) as kafka:
        orders = kafka.new_topic(partitions=3)
        produce(kafka.bootstrap_servers, orders)
        kafka.crash(kafka.leader(orders))

In pytest, the fixture `kafka` is such a cluster (see `kview.testing.plugin`).
"""

from kview.testing.cluster import AsyncCluster, Cluster, ClusterError, Partition

__all__ = ["AsyncCluster", "Cluster", "ClusterError", "Partition"]
