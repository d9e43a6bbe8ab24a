"""What tools print about a request that is refused: the same words from the simulated and from a real
cluster.

The words were read from Apache Kafka 4.3.1 by librdkafka's admin client, which passes on what brokers say.
"""

from collections.abc import Callable
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewTopic

from tests.serve.both import Cluster

ANSWER_S = 20.0
TOPIC = "words"
REPLICA_LIST = (
    "must be the literal '*' or a list of replicas in the following format: "
    "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
)
COMPACTION = {"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "50"}

VALUES = {
    ("retention.ms", "abc"): "Not a number of type LONG",
    ("retention.ms", "-5"): "Value must be at least -1",
    ("retention.ms", "99999999999999999999"): "Not a number of type LONG",
    ("segment.bytes", "1"): "Value must be at least 1048576",
    ("segment.bytes", "3000000000"): "Not a number of type INT",
    ("compression.type", "foo"): "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
    ("compression.gzip.level", "44"): "Value must be between 1 and 9 or equal to -1",
    ("compression.zstd.level", "23"): "Value must be no more than 22",
    ("cleanup.policy", "foo"): "String must be one of: compact, delete",
    ("min.cleanable.dirty.ratio", "x"): "Not a number of type DOUBLE",
    ("preallocate", "maybe"): "Expected value to be either true or false",
}

Asked = Callable[[AdminClient], Any]


def created(name: str, replication: int = 1, configs: dict[str, str] | None = None) -> Asked:
    """Ask for a topic."""
    topic = NewTopic(name, 1, replication, config=configs or {})
    return lambda admin: admin.create_topics([topic], validate_only=True)[name].result(ANSWER_S)


def altered(configs: dict[str, str], kind: ResourceType = ResourceType.TOPIC, name: str = TOPIC) -> Asked:
    """Ask for other configurations."""
    entries = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in configs.items()
    ]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    return lambda admin: admin.incremental_alter_configs([resource])[resource].result(ANSWER_S)


def wrong_value(name: str, value: str, why: str) -> str:
    return f"Invalid value {value} for configuration {name}: {why}"


ROWS: list[tuple[str, Asked, str]] = [
    *(
        (f"{name}={value}", altered({name: value}), wrong_value(name, value, why))
        for (name, value), why in VALUES.items()
    ),
    (
        "creation with a wrong value",
        created("new", configs={"retention.ms": "abc"}),
        wrong_value("retention.ms", "abc", "Not a number of type LONG"),
    ),
    ("unknown setting", altered({"nosuch": "1"}), "Unknown topic config name: nosuch"),
    (
        "lags in conflict",
        altered(COMPACTION),
        "conflict topic config setting min.compaction.lag.ms (100) > max.compaction.lag.ms (50)",
    ),
    (
        "wrong replicas",
        altered({"leader.replication.throttled.replicas": "*,1:2"}),
        wrong_value(
            "leader.replication.throttled.replicas",
            "[*, 1:2]",
            f"leader.replication.throttled.replicas {REPLICA_LIST}",
        ),
    ),
    ("no name", altered({"retention.ms": "1"}, name=".."), "Topic name is invalid: '..' is not allowed"),
    (
        "bad name",
        created("bad/name"),
        "Topic name is invalid: 'bad/name' contains one or more characters other than ASCII alphanumerics, "
        "'.', '_' and '-'",
    ),
    (
        "long name",
        created("x" * 250),
        f"Topic name is invalid: the length of '{'x' * 250}' is longer than the max allowed length 249",
    ),
    (
        "9 replicas",
        created("new", 9),
        "Unable to replicate the partition 9 time(s): The target replication factor of 9 cannot be reached "
        "because only 3 broker(s) are registered or some brokers have all their log directories cordoned.",
    ),
    (
        "a broker's min.insync.replicas",
        altered({"min.insync.replicas": "2"}, ResourceType.BROKER, "0"),
        "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
    ),
]


@pytest.mark.parametrize(("asked", "words"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_refused_request_is_explained_in_kafkas_words(cluster: Cluster, asked: Asked, words: str) -> None:
    cluster.create(TOPIC, [[0, 1]])
    with pytest.raises(confluent_kafka.KafkaException) as refused:
        asked(AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0}))
    assert refused.value.args[0].str() == words


def test_the_clusters_min_insync_replicas_is_a_dynamic_setting(cluster: Cluster) -> None:
    cluster.create(TOPIC, [[0, 1]])
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, "log_level": 0})

    def described(kind: ResourceType, name: str) -> dict[str, ConfigEntry]:
        resource = ConfigResource(kind, name)
        found: dict[str, ConfigEntry] = admin.describe_configs([resource])[resource].result(ANSWER_S)
        return found

    of_topic, of_broker = described(ResourceType.TOPIC, TOPIC), described(ResourceType.BROKER, "0")
    for found in (of_topic["min.insync.replicas"], of_broker["min.insync.replicas"]):
        source: object = found.source
        assert (found.value, found.is_default, source) == ("1", False, 3)
    assert (of_topic["retention.ms"].value, of_topic["retention.ms"].synonyms) == ("604800000", {})
    assert of_broker["log.retention.ms"].value is None
    assert "follower.replication.throttled.rate" not in of_broker
    assert "eligible.leader.replicas.version" not in of_broker
