"""Moves partitions from broker to broker, slowly if need be."""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from kafka.admin import KafkaAdminClient
from kafka.structs import TopicPartition

from tests.real_kafka.cluster import RealKafka


def throttle(kafka: RealKafka, topic: str, bytes_per_s: int) -> None:
    """Let replicas of a topic catch up at `bytes_per_s` from now on, 0 for as fast as they can."""
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    rates = {f"{role}.replication.throttled.rate": str(bytes_per_s) for role in ("leader", "follower")}
    replicas = {f"{role}.replication.throttled.replicas": "*" for role in ("leader", "follower")}
    operation = AlterConfigOpType.SET if bytes_per_s else AlterConfigOpType.DELETE
    for kind, names, values in (
        (ResourceType.BROKER, map(str, kafka.broker_ids), rates),
        (ResourceType.TOPIC, [topic], replicas),
    ):
        for name in names:
            entries = [ConfigEntry(k, v, incremental_operation=operation) for k, v in values.items()]
            resource = ConfigResource(kind, name, incremental_configs=entries)
            for done in admin.incremental_alter_configs([resource]).values():
                done.result()


@contextmanager
def throttled(kafka: RealKafka, topic: str, bytes_per_s: int) -> Iterator[None]:
    """The same, meanwhile."""
    throttle(kafka, topic, bytes_per_s)
    try:
        yield
    finally:
        throttle(kafka, topic, 0)


def move(kafka: RealKafka, topic: str, replicas: Sequence[int]) -> None:
    """Begin to move a topic's only partition to these brokers."""
    with closing(KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)) as admin:
        admin.alter_partition_reassignments({TopicPartition(topic, 0): list(replicas)})
