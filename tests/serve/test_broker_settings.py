"""A broker's settings: the same table in the simulated and in a real cluster, and the same refusals.

Read from Apache Kafka 4.3.1.
"""

import time
from collections.abc import Sequence
from typing import Any

import pytest

from kview.simulate.broker_configs import BrokerConfigs, Update
from kview.simulate.records import encode_batch
from kview.simulate.releases import KAFKA_3_9, KAFKA_4_3, RELEASES, Release
from kview.simulate.results import ConfigSource
from kview.simulate.setting import ConfigType
from kview.simulate.settings import broker_keys
from tests.serve import questions as q
from tests.serve.both import Cluster
from tests.waiting import wait_until

TOPIC = "broker-settings"
BUFFER, RETENTION, FLUSH = "log.cleaner.io.buffer.size", "log.retention.ms", "log.flush.interval.ms"
AFTER_MAX, HOUR_MS = "log.message.timestamp.after.max.ms", 3_600_000
UNKNOWN = "kview.nobodys.setting"
OWN = {
    RETENTION: "has a default here: log.retention.hours does not count",
    "log.dirs": "null is an empty text here",
    "replica.selector.class": "null is an empty text here",
}
SIMULATED_ONLY = {
    "allow.everyone.if.no.acl.found",
    "eligible.leader.replicas.version",
    "group.consumer.regex.refresh.interval.ms",
    "super.users",
    "unclean.leader.election.interval.ms",
}

FIXED = "Cannot update these configs dynamically"
OF_ONE = "Cannot update these configs at default cluster level, broker id must be specified"
OF_LISTENER = "These security configs can be dynamically updated only per-listener using the listener prefix"
THREADS = (
    "Invalid value org.apache.kafka.common.config.ConfigException: Dynamic thread count update validation "
    "failed for background.threads={}, value {} the current value 10 for configuration Invalid dynamic "
    "configuration"
)

DOUBLE, MIN_ISR = "should not be greater than double", "min.insync.replicas"

Changes = Sequence[tuple[str, int, str | None]]


def value(name: str, value: str, why: str) -> str:
    return f"Invalid value {value} for configuration {name}: {why}"


REFUSED: list[tuple[str, Changes, int, str | None]] = [
    ("", [("node.id", q.SET, "7")], 42, f"{FIXED}: [node.id]"),
    ("0", [("node.id", q.SET, "7")], 42, f"{FIXED}: [node.id]"),
    ("0", [("advertised.listeners", q.SET, "A://b:1")], 42, f"{FIXED}: [advertised.listeners]"),
    ("", [("log.retention.hours", q.SET, "1")], 42, f"{FIXED}: [log.retention.hours]"),
    ("", [("node.id", q.SET, "7"), ("broker.rack", q.SET, "x")], 42, f"{FIXED}: [node.id, broker.rack]"),
    ("", [("log.cleaner.threads", q.SET, "x"), ("node.id", q.SET, "7")], 42, f"{FIXED}: [node.id]"),
    ("", [("listeners", q.SET, "x")], 42, f"{OF_ONE}: [listeners]"),
    ("", [("sasl.enabled.mechanisms", q.SET, "PLAIN")], 42, f"{OF_ONE}: [sasl.enabled.mechanisms]"),
    ("0", [("ssl.keystore.location", q.SET, "x")], 42, f"{OF_LISTENER}: [ssl.keystore.location]"),
    ("", [("background.threads", q.SET, "100")], 42, THREADS.format(100, DOUBLE)),
    ("", [("background.threads", q.SET, "4")], 42, THREADS.format(4, "should be at least half")),
    ("", [("background.threads", q.SET, "20")], 0, None),
    ("", [("log.cleaner.threads", q.APPEND, "1")], 40, "Config value append is not allowed for config key: "
     "log.cleaner.threads"),
    ("", [(UNKNOWN, q.SUBTRACT, "1")], 40, f"Unknown config name: {UNKNOWN}"),
    ("", [("log.cleanup.policy", q.APPEND, "compact")], 0, None),
    ("", [(UNKNOWN, q.SET, "1")], 0, None),
    ("", [(UNKNOWN, 9, "1")], 42, "Unknown operations type 9"),
    ("", [(UNKNOWN, q.SET, None)], 42, f"Null value not supported for : {UNKNOWN}"),
    ("1", [(BUFFER, q.SET, "2")], 42, "Unexpected broker id, expected 0, but received 1"),
    ("x", [(BUFFER, q.SET, "2")], 42, "Node id must be an integer, but it is: x"),
    ("0", [(MIN_ISR, q.SET, "x")], 42, value(MIN_ISR, "x", "Not a number of type INT")),
    ("", [(RETENTION, q.SET, "0")], 42, f"requirement failed: {RETENTION} must be unlimited (-1) or, greater "
     "than or equal to 1"),
    ("", [(RETENTION, q.SET, "-5")], 0, None),
    *(
        ("", [(name, q.SET, given)], 42, value(name, shown, why))
        for name, given, shown, why in (
            ("log.cleaner.threads", "many", "many", "Not a number of type INT"),
            ("log.preallocate", "maybe", "maybe", "Expected value to be either true or false"),
            ("log.cleanup.policy", "shred", "shred", "String must be one of: compact, delete"),
            ("log.cleaner.min.cleanable.ratio", "7", "7.0", "Value must be no more than 1"),
            ("log.segment.bytes", "1", "1", "Value must be at least 1048576"),
            ("compression.gzip.level", "0", "0", "Value must be between 1 and 9 or equal to -1"),
            ("leader.replication.throttled.rate", "-1", "-1", "Value must be at least 0"),
            ("producer.id.expiration.ms", "99999999999", "99999999999", "Not a number of type INT"),
        )
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("broker", "changes", "number", "words"), REFUSED, ids=[f"{row[0]} {row[1][0]}" for row in REFUSED]
)
def test_a_change_of_a_brokers_settings_is_checked_as_in_kafka(
    cluster: Cluster, broker: str, changes: Changes, number: int, words: str | None
) -> None:
    answer = q.incrementally_altered(cluster.leader, q.BROKER, broker, changes, validate_only=True)
    assert answer == (number, words)


def described(cluster: Cluster, name: str, *keys: str, kind: int = q.BROKER) -> dict[str, Any]:
    return {row.name: row for row in q.describe_configs(cluster.leader, kind, name, keys).configs}


def test_a_broker_describes_all_settings_that_kafka_has(cluster: Cluster) -> None:
    check_description(cluster, KAFKA_4_3.broker_configs)


def check_description(cluster: Cluster, table: BrokerConfigs) -> None:
    """Check that a broker lists these settings, with their types and defaults."""
    rows = described(cluster, "0")
    assert {n for n, config in table.items() if config.update is not Update.UNLISTED} <= set(rows)
    for name in rows.keys() & table.keys():
        row, (key, default, update) = rows[name], table[name]
        fixed, secret = update is Update.FIXED, key.type is ConfigType.PASSWORD
        assert (row.config_type, row.read_only, row.is_sensitive) == (key.type, fixed, secret), name
        if row.config_source == ConfigSource.DEFAULT:
            assert row.value == default, name
            synonyms = [(s.name, s.value, s.source) for s in row.synonyms]
            assert synonyms == ([] if default is None else [(name, default, ConfigSource.DEFAULT)]), name


def test_what_is_set_is_stored_and_described_with_what_it_hides(cluster: Cluster) -> None:
    cluster.create(TOPIC, [[0, 1]])
    changes = {"": {BUFFER: "600000", FLUSH: "99999", UNKNOWN: "1"}, "0": {BUFFER: "700000"}}
    try:
        for broker, values in changes.items():
            wanted = [(name, q.SET, text) for name, text in values.items()]
            assert q.incremental_alter(cluster.leader, q.BROKER, broker, wanted) == 0
        wait_until(lambda: described(cluster, "0", BUFFER)[BUFFER].value == "700000", "it is set")
        rows = described(cluster, "0", BUFFER, FLUSH, UNKNOWN)
        chain = [(BUFFER, "700000", 2), (BUFFER, "600000", 3), (BUFFER, "524288", 5)]
        hidden = ("log.flush.scheduler.interval.ms", "9223372036854775807", 5)
        assert shown(rows[BUFFER]) == ("700000", 2, 3, False, False, chain)
        assert shown(rows[FLUSH]) == ("99999", 3, 5, False, False, [(FLUSH, "99999", 3), hidden])
        assert shown(rows[UNKNOWN]) == (None, 3, 0, True, True, [(UNKNOWN, None, 3)])
        of_all = described(cluster, "", BUFFER)
        assert shown(of_all[BUFFER]) == ("600000", 3, 3, False, False, [(BUFFER, "600000", 3)])
        topic = described(cluster, TOPIC, "flush.ms", kind=q.TOPIC)["flush.ms"]
        assert shown(topic) == ("99999", 3, 5, False, False, [(FLUSH, "99999", 3), hidden])
    finally:
        for broker, values in changes.items():
            back = [(name, q.DELETE, None) for name in values]
            assert q.incremental_alter(cluster.leader, q.BROKER, broker, back) == 0
    wait_until(lambda: described(cluster, "0", BUFFER)[BUFFER].value == "524288", "it is as before")


def test_a_setting_of_all_brokers_that_is_a_topics_default_takes_effect(cluster: Cluster) -> None:
    cluster.create(TOPIC, [[0, 1]])
    two_hours_ahead = encode_batch([(None, b"v", round(time.time() * 1000) + 2 * HOUR_MS)])

    def produced() -> int:
        return q.produce(cluster.leader, TOPIC, two_hours_ahead)

    assert produced() == 32
    changes = [(AFTER_MAX, q.SET, str(3 * HOUR_MS))]
    assert q.incremental_alter(cluster.leader, q.BROKER, "", changes) == 0
    try:
        wait_until(lambda: produced() == 0, "the record is taken")
    finally:
        assert q.incremental_alter(cluster.leader, q.BROKER, "", [(AFTER_MAX, q.DELETE, None)]) == 0
    wait_until(lambda: produced() == 32, "the record is refused again")


def shown(row: Any) -> Any:
    synonyms = [(s.name, s.value, s.source) for s in row.synonyms]
    return row.value, row.config_source, row.config_type, row.read_only, row.is_sensitive, synonyms


def test_an_empty_list_of_keys_is_all_of_them(cluster: Cluster) -> None:
    cluster.create(TOPIC, [[0, 1]])
    for kind, name in ((q.TOPIC, TOPIC), (q.BROKER, "0")):
        everything = q.describe_configs(cluster.leader, kind, name).configs
        no_keys = q.describe_configs(cluster.leader, kind, name, ()).configs
        assert len(everything) == len(no_keys) > 30


@pytest.mark.parametrize("release", RELEASES.values(), ids=RELEASES)
def test_what_the_simulated_cluster_can_be_started_with_has_kafkas_defaults(release: Release) -> None:
    internal = {"group.consumer.migration.policy"} if release is KAFKA_3_9 else set()
    for name, key in broker_keys(release).items():
        if name not in SIMULATED_ONLY | OWN.keys() | internal:
            assert key.default == (release.broker_configs[name].default or ""), name
