"""A topic has all of Kafka's settings, with Kafka's defaults and types, on both clusters."""

import pytest

from tests.serve import questions as q
from tests.serve.both import Cluster

BOOLEAN, STRING, INT, LONG, DOUBLE, LIST = 1, 2, 3, 5, 6, 7

SETTINGS = {
    "cleanup.policy": ("delete", 7),
    "compression.gzip.level": ("-1", 3),
    "compression.lz4.level": ("9", 3),
    "compression.type": ("producer", 2),
    "compression.zstd.level": ("3", 3),
    "delete.retention.ms": ("86400000", 5),
    "file.delete.delay.ms": ("60000", 5),
    "flush.messages": ("9223372036854775807", 5),
    "flush.ms": ("9223372036854775807", 5),
    "follower.replication.throttled.replicas": ("", 7),
    "index.interval.bytes": ("4096", 3),
    "leader.replication.throttled.replicas": ("", 7),
    "local.retention.bytes": ("-2", 5),
    "local.retention.ms": ("-2", 5),
    "max.compaction.lag.ms": ("9223372036854775807", 5),
    "max.message.bytes": ("1048588", 3),
    "message.timestamp.after.max.ms": ("3600000", 5),
    "message.timestamp.before.max.ms": ("9223372036854775807", 5),
    "message.timestamp.type": ("CreateTime", 2),
    "min.cleanable.dirty.ratio": ("0.5", 6),
    "min.compaction.lag.ms": ("0", 5),
    "min.insync.replicas": ("1", 3),
    "preallocate": ("false", 1),
    "remote.log.copy.disable": ("false", 1),
    "remote.log.delete.on.disable": ("false", 1),
    "remote.storage.enable": ("false", 1),
    "retention.bytes": ("-1", 5),
    "retention.ms": ("604800000", 5),
    "segment.bytes": ("1073741824", 3),
    "segment.index.bytes": ("10485760", 3),
    "segment.jitter.ms": ("0", 5),
    "segment.ms": ("604800000", 5),
    "unclean.leader.election.enable": ("false", 1),
}
"""Setting → its default and the number of its type, as Kafka 4.3.1 returns them."""

ELSEWHERE = ("segment.bytes", "compression.gzip.level", "remote.storage.enable")
"""Settings that do not take all values of their type. The error table has values of theirs."""

OTHER_VALUES = {
    BOOLEAN: ("true", "TRUE", " false "),
    INT: ("10", "+12", " 9 "),
    LONG: ("3600000", "9223372036854775807"),
    DOUBLE: ("0.25", "1", ".5"),
}
WRONG_VALUES = {
    BOOLEAN: ("yes", "1", ""),
    INT: ("2147483648", "1.5", "ten", "", "-131073"),
    LONG: ("9223372036854775808", "1e3", "-9223372036854775809", ""),
    DOUBLE: ("1.01", "-0.1", "half", ""),
    STRING: ("something", ""),
    LIST: ("something", "0:x"),
}


def test_all_settings_are_returned_with_their_defaults(cluster: Cluster) -> None:
    cluster.create("settings", [[0, 1]])
    found = q.describe_configs(cluster.leader, q.TOPIC, "settings").configs
    assert {entry.name: (entry.value, entry.config_type) for entry in found} == SETTINGS
    assert not any(entry.read_only or entry.is_sensitive for entry in found)


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_takes_values_of_its_type_only(cluster: Cluster, name: str) -> None:
    cluster.create("settings", [[0, 1]])
    kind = SETTINGS[name][1]
    for value in WRONG_VALUES[kind]:
        if kind == LIST and value == "":
            continue
        change = [(name, q.SET, value)]
        assert q.incremental_alter(cluster.leader, q.TOPIC, "settings", change, True) == 40, value
    if name not in ELSEWHERE:
        for value in OTHER_VALUES.get(kind, ()):
            change = [(name, q.SET, value)]
            assert q.incremental_alter(cluster.leader, q.TOPIC, "settings", change, True) == 0, value
