"""The partitions of a cluster, as the brokers' replicas of them."""

from collections.abc import Mapping

from kview.simulate.brokers.broker import Broker
from kview.simulate.brokers.replica import Replica
from kview.simulate.controllers.metadata_log import MetadataLog
from kview.simulate.metadata import TopicPartition


class Partitions:
    """Finds replicas on whatever broker they are."""

    def __init__(self, metadata: MetadataLog, brokers: Mapping[int, Broker]) -> None:
        self._metadata = metadata
        self._brokers = brokers

    def leader(self, key: TopicPartition) -> Replica | None:
        """Return the replica that the controller's metadata names as the leader.

        Returns None if there is no leader, or if the leader does not know yet that it leads.
        """
        image = self._metadata.image
        partition = image.partition(*key)
        broker = self._brokers.get(partition.leader) if partition is not None else None
        replica = broker.replicas.get(key) if broker is not None else None
        if replica is None or not replica.leading or replica.topic_id != image.topics[key[0]].topic_id:
            return None
        return replica

    def replicas(self, key: TopicPartition, topic_id: bytes) -> list[Replica]:
        """Return all replicas of this topic's partition, including those on brokers that are down, and those
        in log directories that have failed."""
        partition = self._metadata.image.partition(*key)
        members = () if partition is None else partition.replicas
        replicas = (
            broker.replicas.get(key) or (broker.dirs.offline.get(key) if b in members else None)
            for b, broker in self._brokers.items()
        )
        return [replica for replica in replicas if replica is not None and replica.topic_id == topic_id]
