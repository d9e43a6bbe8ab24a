"""The releases of Apache Kafka that a simulated cluster can be, and all that differs between them.

Kafka 4.3 is what this code simulates unless it asks the release. What is said of 3.9 was read from 3.9.1's
own definitions and measured on a 3.9.1 in KRaft mode, formatted as it comes.
"""

from collections.abc import Mapping
from functools import cached_property

from msgspec import Struct, field
from msgspec.structs import replace

from kview.simulate.acls import AclOperation
from kview.simulate.broker_configs import BrokerConfigs, broker_configs
from kview.simulate.features import KRAFT_VERSION, METADATA_VERSION, SUPPORTED
from kview.simulate.setting import LONG_MAX, ConfigType, Key, boolean, number
from kview.simulate.topic_settings import TOPIC_KEYS, TopicKey

REBALANCE_PROTOCOLS = "group.coordinator.rebalance.protocols"
ASSIGNORS = "group.consumer.assignors"
CLASSIC = "classic"
ASSIGNMENT_INTERVAL = "group.consumer.assignment.interval.ms"
SCALA_SMALL_SET = 4
"""The largest set that Scala keeps in order, and calls `Set`, if it is not built as a hash set."""


class Release(Struct, frozen=True, eq=False, dict=True):
    """A release of Kafka.

    `last_versions` are those of each API that its brokers take, or None for all that the simulated cluster
    knows, whose first versions are those of Kafka 4.3 in each release. `features` are the levels that it
    supports. `topic_keys` are the configurations of its topics.
    """

    name: str
    last_versions: Mapping[int, int] | None = None
    features: Mapping[str, tuple[int, int]] = field(default_factory=lambda: SUPPORTED)
    changed_configs: str = ""
    """The table with what differs in its brokers' configurations."""
    broker_keys: Mapping[str, Key] = field(default_factory=dict)
    """The settings with which its brokers can be started, as far as they are not those of 4.3."""
    lacking: Mapping[str, str] = field(default_factory=dict)
    """What counts in the place of settings that it lacks, if that is not the default of 4.3."""
    topic_keys: Mapping[str, TopicKey] = field(default_factory=lambda: TOPIC_KEYS)

    merges_look_ups: bool = True
    """Whether ListOffsets answers for each partition once (KIP-1075). Before, topics and partitions are
    answered as they were asked for."""
    tells_group_errors: bool = True
    """Whether OffsetFetch v1, which has no error of a group, says it of each partition."""
    tells_unregister_errors: bool = True
    """Whether UnregisterBroker says why in words."""
    optional_directories: bool = False
    """Whether messages about voters have the ids of directories as a java.util.Optional."""
    last_acl_operation: AclOperation = AclOperation.TWO_PHASE_COMMIT
    """The last of the operations that its ACLs know."""
    cordons_log_dirs: bool = True
    """Whether log directories can be cordoned (KIP-1066), of which messages tell."""
    stores_topic_ids: bool = True
    """Whether committed offsets are stored with the ids of their topics (OffsetCommitValue v4)."""
    group_configs: bool = True
    """Whether groups have configurations."""
    first_group_epoch: int = 1
    """The epoch of a new consumer group before its first member joins."""
    features_together: bool = True
    """Whether UpdateFeatures changes all features or none (KIP-1022). Before, each has its own result."""
    lossless_from: int = 1 << 15
    """The lowest metadata.version to which a cluster with the highest one can go back."""
    scala_configs: bool = False
    """Whether what checks and describes configurations of brokers, log levels and subscriptions of metrics is
    still written in Scala. It has other messages, and some wrong requests are errors that it does not expect.
    """

    @cached_property
    def broker_configs(self) -> BrokerConfigs:
        """All configurations of its brokers."""
        return broker_configs(self.changed_configs)

    @cached_property
    def topic_config_keys(self) -> Mapping[str, Key]:
        """The configurations of its topics without the brokers'."""
        return {name: topic_key.key for name, topic_key in self.topic_keys.items()}

    def of_configs(self, names: list[str], is_hash_set: bool = False) -> str:
        """Return names of configurations as its messages list them."""
        if not self.scala_configs:
            return f"[{', '.join(names)}]"
        is_small = len(names) <= SCALA_SMALL_SET and not is_hash_set
        return f"{'Set' if is_small else 'HashSet'}({', '.join(names)})"


KAFKA_4_3 = Release("4.3")


_SUBVERSIONS_3_9 = {
    "0.10.0": 2, "0.10.1": 3, "0.10.2": 1, "0.11.0": 3, "1.0": 1, "1.1": 1, "2.0": 2, "2.1": 3, "2.2": 2,
    "2.3": 2, "2.4": 2, "2.5": 1, "2.6": 1, "2.7": 3, "2.8": 2, "3.0": 2, "3.1": 1, "3.2": 1, "3.3": 4,
    "3.4": 1, "3.5": 3, "3.6": 3, "3.7": 5, "3.8": 1, "3.9": 1, "4.0": 2,
}  # fmt: skip
"""Release → how many versions of its formats there are (org.apache.kafka.server.common.MetadataVersion)."""
_METADATA_VERSIONS_3_9 = (
    *("0.8.0", "0.8.1", "0.8.2", "0.9.0"),
    *(name for name in _SUBVERSIONS_3_9 if name != "4.0"),  # which is not released yet
    *(f"{name}-IV{number}" for name, count in _SUBVERSIONS_3_9.items() for number in range(count)),
)


def _topic_keys_3_9() -> Mapping[str, TopicKey]:
    keys = dict(TOPIC_KEYS)
    after, segment = "message.timestamp.after.max.ms", "segment.bytes"
    unlimited = number(LONG_MAX, 0, LONG_MAX)
    keys[after] = keys[after]._replace(key=unlimited)
    keys[segment] = keys[segment]._replace(key=replace(keys[segment].key, low=14))
    keys["message.downconversion.enable"] = TopicKey(boolean(True), "log.message.downconversion.enable", True)
    version = Key("3.0-IV1", choices=_METADATA_VERSIONS_3_9, version=True)
    keys["message.format.version"] = TopicKey(version, "log.message.format.version", True)
    difference = "message.timestamp.difference.max.ms"
    keys[difference] = TopicKey(unlimited, f"log.{difference}")
    return keys


_ASSIGNORS_3_9 = tuple(
    f"org.apache.kafka.coordinator.group.assignor.{name}Assignor" for name in ("Uniform", "Range")
)

KAFKA_3_9 = Release(
    "3.9",
    last_versions={
        0: 11, 1: 17, 2: 9, 3: 12, 8: 9, 9: 9, 10: 6, 11: 9, 12: 4, 13: 5, 14: 5, 15: 5, 16: 5, 17: 1,
        18: 4, 19: 7, 20: 6, 21: 2, 22: 5, 23: 4, 24: 5, 25: 4, 26: 4, 27: 1, 28: 4, 29: 3, 30: 3, 31: 3,
        32: 4, 33: 2, 34: 2, 35: 4, 36: 2, 37: 3, 38: 3, 39: 2, 40: 2, 41: 3, 42: 2, 43: 2,
        44: 1, 45: 0, 46: 0, 47: 0, 48: 1, 49: 1, 50: 0, 51: 0, 55: 2, 57: 1, 60: 1, 61: 0, 64: 0, 65: 0,
        66: 1, 68: 0, 69: 0, 74: 0, 75: 0, 80: 0, 81: 0,
    },
    features={KRAFT_VERSION: (0, 1), METADATA_VERSION: (1, 21)},
    changed_configs="3_9",
    broker_keys={
        ASSIGNORS: Key(",".join(_ASSIGNORS_3_9), choices=_ASSIGNORS_3_9, type=ConfigType.LIST),
        "group.consumer.migration.policy": Key(
            "disabled", choices=("bidirectional", "upgrade", "downgrade", "disabled")
        ),
        REBALANCE_PROTOCOLS: Key(CLASSIC, choices=(CLASSIC, "consumer"), type=ConfigType.LIST),
    },
    lacking={ASSIGNMENT_INTERVAL: "0"},
    topic_keys=_topic_keys_3_9(),
    merges_look_ups=False,
    tells_group_errors=False,
    tells_unregister_errors=False,
    optional_directories=True,
    last_acl_operation=AclOperation.DESCRIBE_TOKENS,
    cordons_log_dirs=False,
    stores_topic_ids=False,
    group_configs=False,
    first_group_epoch=0,
    features_together=False,
    lossless_from=18,
    scala_configs=True,
)  # fmt: skip

RELEASES: Mapping[str, Release] = {release.name: release for release in (KAFKA_3_9, KAFKA_4_3)}
