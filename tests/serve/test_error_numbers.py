"""The error table: what a broker answers to a wrong request, as numbers.

The same requests go to the simulated cluster and, as slow tests, to a real one. The numbers were read from
Apache Kafka 4.3.1.
"""

import time
from collections.abc import Callable
from typing import Any

import pytest

from kview.simulate.records import encode_batch
from tests.serve import questions as q
from tests.serve.both import Cluster
from tests.simulate.client_batches import compressed, compressed_batch, raw_batch, record, streamed

NAMES = {"bad topic!": 17, "": 17, "..": 17, "x" * 250: 17, "nobodys-topic": 3}
"""Topic names and their error numbers in Metadata without creation."""

SESSIONS = {(77, -1): 0, (0, 0): 0, (77, 0): 0, (0, 1): 70, (77, 1): 70, (0, -2): 70}
"""Ids and epochs of fetch sessions that do not exist, and the error numbers of a fetch."""

HOUR_MS = 3_600_000
MARGIN_MS = 60_000
NANOSECONDS = 1_000_000


def one(key: bytes | None, after_ms: int = 0) -> bytes:
    """Return a batch with one record whose timestamp is `after_ms` from now."""
    return encode_batch([(key, b"v", now_ms() + after_ms)])


def altered(*changes: tuple[str, int, str | None], topic: str = "et") -> Callable[[Cluster], int]:
    return lambda c: q.incremental_alter(c.leader, q.TOPIC, topic, changes)


def of_broker(name: str, *changes: tuple[str, int, str | None]) -> Callable[[Cluster], int]:
    return lambda c: q.incremental_alter(c.leader, q.BROKER, name, changes)


def in_session(session: tuple[int, int]) -> Callable[[Cluster], int]:
    return lambda c: q.fetch(c.leader, "et", 0, session=session)[0]


Row = tuple[str, Callable[[Cluster], Any], Any]

METADATA: list[Row] = [
    (f"Metadata {name[:12]!r}", lambda c, name=name: q.metadata(c.leader, name), number)
    for name, number in NAMES.items()
] + [
    ("Metadata with creation", lambda c: q.metadata(c.leader, "bad topic!", create=True), 17),
    ("DescribeCluster of brokers", lambda c: q.describe_cluster(c.leader, 1), 0),
    ("DescribeCluster of controllers", lambda c: q.describe_cluster(c.leader, 2), 114),
    ("DescribeCluster of others", lambda c: q.describe_cluster(c.leader, 3), 115),
    ("FindCoordinator of a share group", lambda c: q.find_coordinator(c.leader, "g", 2)[0], 42),
    ("FindCoordinator of others", lambda c: q.find_coordinator(c.leader, "g", 7)[0], 42),
    ("InitProducerId, empty", lambda c: q.init_producer_id(c.leader, ""), 42),
]

CREATION: list[Row] = [
    ("CreateTopics", lambda c: q.create_topic(c.leader, "new"), 0),
    ("CreateTopics, defaults", lambda c: q.create_topic(c.leader, "new", -1, -1), 0),
    ("CreateTopics bad name", lambda c: q.create_topic(c.leader, "bad topic!"), 17),
    ("CreateTopics no name", lambda c: q.create_topic(c.leader, ""), 17),
    ("CreateTopics colliding", lambda c: q.create_topic(c.leader, "et_dot"), 17),
    ("CreateTopics again", lambda c: q.create_topic(c.leader, "et"), 36),
    ("CreateTopics 0 partitions", lambda c: q.create_topic(c.leader, "new", 0), 37),
    ("CreateTopics 20,000 partitions", lambda c: q.create_topic(c.leader, "new", 20_000), 44),
    ("CreateTopics 4 replicas", lambda c: q.create_topic(c.leader, "new", 1, 4), 38),
    ("CreateTopics 0 replicas", lambda c: q.create_topic(c.leader, "new", 1, 0), 38),
    ("CreateTopics both", lambda c: q.create_topic(c.leader, "new", 1, 1, [(0, [0])]), 42),
    ("CreateTopics gap", lambda c: q.create_topic(c.leader, "new", -1, -1, [(0, [0]), (2, [1])]), 39),
    ("CreateTopics broker 9", lambda c: q.create_topic(c.leader, "new", -1, -1, [(0, [9])]), 39),
    ("CreateTopics twice 0", lambda c: q.create_topic(c.leader, "new", -1, -1, [(0, [0, 0])]), 39),
    ("CreateTopics on no broker", lambda c: q.create_topic(c.leader, "new", -1, -1, [(0, [])]), 39),
    ("CreateTopics uneven", lambda c: q.create_topic(c.leader, "new", -1, -1, [(0, [0]), (1, [0, 1])]), 39),
    (
        "CreateTopics wrong value",
        lambda c: q.create_topic(c.leader, "new", configs=[("retention.ms", "x")]),
        40,
    ),
    ("CreateTopics unknown key", lambda c: q.create_topic(c.leader, "new", configs=[("nope", "1")]), 40),
    (
        "CreateTopics null value",
        lambda c: q.create_topic(c.leader, "new", configs=[("retention.ms", None)]),
        40,
    ),
    ("CreatePartitions", lambda c: q.create_partitions(c.leader, "et", 2), 0),
    ("CreatePartitions on brokers", lambda c: q.create_partitions(c.leader, "et", 2, [[2, 1]]), 0),
    ("CreatePartitions same", lambda c: q.create_partitions(c.leader, "et", 1), 37),
    ("CreatePartitions fewer", lambda c: q.create_partitions(c.leader, "et", 0), 37),
    ("CreatePartitions unknown", lambda c: q.create_partitions(c.leader, "nobodys-topic", 3), 3),
    ("CreatePartitions bad name", lambda c: q.create_partitions(c.leader, "bad topic!", 3), 3),
    ("CreatePartitions fewer replicas", lambda c: q.create_partitions(c.leader, "et", 2, [[0]]), 39),
    ("CreatePartitions too many lists", lambda c: q.create_partitions(c.leader, "et", 2, [[0, 1]] * 2), 39),
    ("CreatePartitions no lists", lambda c: q.create_partitions(c.leader, "et", 2, []), 39),
    ("CreatePartitions broker 9", lambda c: q.create_partitions(c.leader, "et", 2, [[0, 9]]), 39),
    ("CreatePartitions on no broker", lambda c: q.create_partitions(c.leader, "et", 2, [[]]), 39),
    ("CreatePartitions twice", lambda c: q.create_partitions(c.leader, "et", 2, times=2), 42),
]

CONFIGS: list[Row] = [
    ("Describe unknown topic", lambda c: q.describe_configs(c.leader, q.TOPIC, "none").error_code, 3),
    ("Describe bad name", lambda c: q.describe_configs(c.leader, q.TOPIC, "a b").error_code, 17),
    ("Describe another broker", lambda c: q.describe_configs(c.leader, q.BROKER, "1").error_code, 42),
    ("Describe broker x", lambda c: q.describe_configs(c.leader, q.BROKER, "x").error_code, 42),
    ("Describe type 7", lambda c: q.describe_configs(c.leader, 7, "x").error_code, 42),
    ("Set", altered(("flush.ms", q.SET, "1000")), 0),
    ("Set a word for a number", altered(("retention.ms", q.SET, "x")), 40),
    ("Set below the range", altered(("retention.ms", q.SET, "-2")), 40),
    ("Set below 1", altered(("min.insync.replicas", q.SET, "0")), 40),
    ("Set an unknown choice", altered(("compression.type", q.SET, "zip")), 40),
    ("Set an unknown item", altered(("cleanup.policy", q.SET, "delete,shred")), 40),
    ("Set a ratio above 1", altered(("min.cleanable.dirty.ratio", q.SET, "1.5")), 40),
    ("Set a gzip level between", altered(("compression.gzip.level", q.SET, "0")), 40),
    ("Set a boolean", altered(("preallocate", q.SET, "maybe")), 40),
    ("Set no replica", altered(("leader.replication.throttled.replicas", q.SET, "zz")), 40),
    ("Set a replica", altered(("leader.replication.throttled.replicas", q.SET, "0:1")), 0),
    ("Set tiered storage", altered(("remote.storage.enable", q.SET, "true")), 40),
    ("Set a gzip level", altered(("compression.gzip.level", q.SET, "9")), 0),
    ("Set no gzip level", altered(("compression.gzip.level", q.SET, "-1")), 0),
    (
        "Set compaction lags",
        altered(("min.compaction.lag.ms", q.SET, "10"), ("max.compaction.lag.ms", q.SET, "5")),
        40,
    ),
    ("Set small segments", altered(("segment.bytes", q.SET, "1000")), 40),
    ("Set an unknown key", altered(("nope", q.SET, "1")), 40),
    ("Delete an unknown key", altered(("nope", q.DELETE, None)), 0),
    ("Set null", altered(("retention.ms", q.SET, None)), 42),
    ("Append to a number", altered(("retention.ms", q.APPEND, "1")), 40),
    ("Same key twice", altered(("flush.ms", q.SET, "5"), ("flush.ms", q.DELETE, None)), 42),
    ("Operation 9", altered(("flush.ms", 9, "1")), -1),
    ("Alter unknown topic", altered(("flush.ms", q.SET, "1"), topic="nobodys-topic"), 3),
    ("Alter bad name", altered(("flush.ms", q.SET, "1"), topic="a b"), 17),
    ("Broker: another one", of_broker("1", ("log.retention.ms", q.SET, "6000000")), 42),
    ("Broker: not dynamic", of_broker("", ("broker.session.timeout.ms", q.SET, "5000")), 42),
    ("Broker: wrong value", of_broker("", ("log.retention.ms", q.SET, "q")), 42),
    ("Broker: unknown key", of_broker("", ("nope.nope", q.SET, "1")), 0),
    ("Broker: its min ISR", of_broker("0", ("min.insync.replicas", q.SET, "2")), 40),
    ("Brokers: no min ISR", of_broker("", ("min.insync.replicas", q.DELETE, None)), 40),
    ("AlterConfigs null", lambda c: q.alter(c.leader, "et", [("retention.ms", None)]), 42),
    ("AlterConfigs unknown key", lambda c: q.alter(c.leader, "et", [("nope", "1")]), 40),
    ("AlterConfigs unknown topic", lambda c: q.alter(c.leader, "none", [("flush.ms", "1")]), 3),
    ("ListConfigResources 7", lambda c: q.config_resources(c.leader, [7])[0], 35),
]

MOVING: list[Row] = [
    ("Elect preferred, not needed", lambda c: q.elect_leaders(c.leader, 0, "et", 0), (0, 84)),
    ("Elect unclean, not needed", lambda c: q.elect_leaders(c.leader, 1, "et", 0), (0, 84)),
    ("Elect in an unknown topic", lambda c: q.elect_leaders(c.leader, 0, "none", 0), (0, 3)),
    ("Elect in an unknown partition", lambda c: q.elect_leaders(c.leader, 0, "et", 7), (0, 3)),
    ("Elect of type 5", lambda c: q.elect_leaders(c.leader, 5, "et", 0), (42, 42)),
    ("Cancel nothing", lambda c: q.reassign(c.leader, "et", 0, None), 85),
    ("Reassign unknown topic", lambda c: q.reassign(c.leader, "none", 0, [0]), 3),
    ("Reassign unknown partition", lambda c: q.reassign(c.leader, "et", 9, [0]), 3),
    ("Reassign to nobody", lambda c: q.reassign(c.leader, "et", 0, []), 39),
    ("Reassign to 0 twice", lambda c: q.reassign(c.leader, "et", 0, [0, 0]), 39),
    ("Reassign to broker 9", lambda c: q.reassign(c.leader, "et", 0, [9]), 39),
    ("Reassign to more", lambda c: q.reassign(c.leader, "et", 0, [0, 1, 2], may_change=False), 38),
]

READING: list[Row] = [
    ("ListOffsets −3", lambda c: q.list_offset(c.leader, "et", -3, 7)[0], 0),
    ("ListOffsets −3 in v5", lambda c: q.list_offset(c.leader, "et", -3, 5)[0], 35),
    ("ListOffsets −5 in v7", lambda c: q.list_offset(c.leader, "et", -5, 7)[0], 35),
    ("ListOffsets −6 in v11", lambda c: q.list_offset(c.leader, "et", -6, 11)[0], 0),
    ("ListOffsets −7", lambda c: q.list_offset(c.leader, "et", -7, 11)[0], 35),
    ("ListOffsets newer epoch", lambda c: q.list_offset(c.leader, "et", -1, epoch=99)[0], 75),
    ("ListOffsets partition 5", lambda c: q.list_offset(c.leader, "et", -1, partition=5)[0], 3),
    ("ListOffsets at a follower", lambda c: q.list_offset(c.follower, "et", -1)[0], 6),
    ("Fetch newer epoch", lambda c: q.fetch(c.leader, "et", 0, epoch=99)[0], 75),
    ("Fetch beyond the end", lambda c: q.fetch(c.leader, "et", 999)[0], 1),
    ("Fetch below 0", lambda c: q.fetch(c.leader, "et", -1)[0], 1),
    *(
        (f"Fetch of session {session[0]} epoch {session[1]}", in_session(session), number)
        for session, number in SESSIONS.items()
    ),
    ("Fetch unknown topic", lambda c: q.fetch(c.leader, "none", 0)[0], 3),
    ("Fetch v10 at a follower", lambda c: q.fetch(c.follower, "et", 0, version=10)[0], 6),
    ("Fetch v11 at a follower", lambda c: q.fetch(c.follower, "et", 0)[0], 0),
    ("Fetch beyond a follower's end", lambda c: q.fetch(c.follower, "et", 999)[0], 1),
    ("Fetch newer epoch at a follower", lambda c: q.fetch(c.follower, "et", 0, epoch=99)[0], 75),
    ("Epoch newer than the leader's", lambda c: q.epoch_end(c.leader, "et", 5), (0, -1, -1)),
    ("Epoch −1", lambda c: q.epoch_end(c.leader, "et", -1), (0, -1, -1)),
    ("Epoch of a newer leader", lambda c: q.epoch_end(c.leader, "et", 0, current=99)[0], 75),
    ("Epoch at a follower", lambda c: q.epoch_end(c.follower, "et", 0)[0], 6),
    ("Epoch of an unknown topic", lambda c: q.epoch_end(c.leader, "none", 0)[0], 3),
    ("Partitions of a bad name", lambda c: q.topic_partitions(c.leader, ["a b"]).topics[0].error_code, 17),
    ("Partitions of no topic", lambda c: q.topic_partitions(c.leader, ["none"]).topics[0].error_code, 3),
    (
        "Partitions from another topic",
        lambda c: q.topic_partitions(c.leader, ["et"], ("et.dot", 0)).topics[0].error_code,
        42,
    ),
    (
        "Partitions from −1",
        lambda c: q.topic_partitions(c.leader, ["et"], ("et", -1)).topics[0].error_code,
        42,
    ),
    ("DescribeProducers at a follower", lambda c: q.producers(c.follower, "et", 0)[0], 0),
    ("DescribeProducers partition 9", lambda c: q.producers(c.leader, "et", 9)[0], 3),
    ("DescribeProducers bad name", lambda c: q.producers(c.leader, "a b", 0)[0], 17),
]

WRITING: list[Row] = [
    ("Produce", lambda c: q.produce(c.leader, "et", one(None)), 0),
    ("Produce two batches", lambda c: q.produce(c.leader, "et", one(None) * 2), 87),
    ("Produce nothing", lambda c: q.produce(c.leader, "et", b""), 87),
    ("Produce in nanoseconds", lambda c: q.produce(c.leader, "et", in_nanoseconds()), 32),
    ("Produce just below 1 h", lambda c: q.produce(c.leader, "et", one(None, HOUR_MS - MARGIN_MS)), 0),
    ("Produce just above 1 h", lambda c: q.produce(c.leader, "et", one(None, HOUR_MS + MARGIN_MS)), 32),
    ("Produce into the past", lambda c: q.produce(c.leader, "et-late", one(None, MARGIN_MS - HOUR_MS)), 0),
    (
        "Produce too far into the past",
        lambda c: q.produce(c.leader, "et-late", one(None, -MARGIN_MS - HOUR_MS)),
        32,
    ),
    ("Produce append time", lambda c: q.produce(c.leader, "et-append", one(None, 25 * HOUR_MS)), 0),
    ("Produce no key", lambda c: q.produce(c.leader, "et-compact", one(None)), 87),
    ("Produce a key", lambda c: q.produce(c.leader, "et-compact", one(b"k")), 0),
    ("Produce to a follower", lambda c: q.produce(c.follower, "et", one(None)), 6),
    ("Produce acks 2", lambda c: q.produce(c.leader, "et", one(None), acks=2), 21),
    ("Produce to partition 9", lambda c: q.produce(c.leader, "et", one(None), partition=9), 3),
    ("DeleteRecords beyond", lambda c: q.delete_records(c.leader, "et", 0, 999), (1, -1)),
    ("DeleteRecords below", lambda c: q.delete_records(c.leader, "et", 0, -5), (1, -1)),
    ("DeleteRecords partition 7", lambda c: q.delete_records(c.leader, "et", 7, 0), (3, -1)),
    ("DeleteRecords at a follower", lambda c: q.delete_records(c.follower, "et", 0, 0), (6, -1)),
    ("DeleteRecords compacted", lambda c: q.delete_records(c.leader, "et-compact", 0, 0), (44, -1)),
    ("DeleteRecords bad name", lambda c: q.delete_records(c.leader, "a b", 0, 0), (3, -1)),
]

CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
SENSELESS = b"\xde\xad\xbe\xef" * 20
KEYED, UNKEYED = record(0) + record(1), record(0) + record(1, None)
INSIDE: dict[str, tuple[str, Callable[[int], bytes], int]] = {
    "two records": ("et", lambda c: inside(c, KEYED, 2), 0),
    "no keys": ("et", lambda c: inside(c, UNKEYED, 2), 0),
    "keys, compacted": ("et-compact", lambda c: inside(c, KEYED, 2), 0),
    "no keys, compacted": ("et-compact", lambda c: inside(c, UNKEYED, 2), 87),
    "a record too few": ("et", lambda c: inside(c, KEYED, 1), 87),
    "a record too many": ("et", lambda c: inside(c, KEYED, 3), 87),
    "nothing": ("et", lambda c: inside(c, b"", 2), 87),
    "offset deltas 1, 2": ("et", lambda c: inside(c, record(1) + record(2), 2), -1),
    "2 h in the future": ("et", lambda c: inside(c, record(0, after_ms=2 * HOUR_MS), 1), 32),
    "senseless bytes": ("et", lambda c: raw_batch(c, SENSELESS, 2, now_ms()), -1),
    "plain bytes": ("et", lambda c: raw_batch(c, KEYED, 2, now_ms()), -1),
    "bytes cut off": ("et", lambda c: raw_batch(c, compressed(c, KEYED)[:-5], 2, now_ms()), -1),
    "bytes and one more": (
        "et",
        lambda c: raw_batch(c, compressed(c, KEYED) + b"x", 2, now_ms()),
        0,
    ),
}
"""What is wrong inside a compressed batch: the topic, the batch and the error number."""

REFUSES_MORE_BYTES = ("snappy", "zstd")

COMPRESSED: list[Row] = [
    (
        f"Produce {name} with {what}",
        lambda c, topic=topic, make=make, codec=codec: q.produce(c.leader, topic, make(codec)),
        -1 if what == "bytes and one more" and name in REFUSES_MORE_BYTES else number,
    )
    for name, codec in CODECS.items()
    for what, (topic, make, number) in INSIDE.items()
] + [
    (
        "Produce lz4 with linked blocks",
        lambda c: q.produce(c.leader, "et", raw_batch(3, streamed("lz4", KEYED), 2, now_ms())),
        -1,
    ),
    (
        "Produce a length without an end",
        lambda c: q.produce(c.leader, "et", raw_batch(0, b"\xff" * 20, 1, now_ms())),
        -1,
    ),
    ("Produce zstd in v6", lambda c: q.produce(c.leader, "et", inside(4, KEYED, 2), version=6), 76),
    ("Produce zstd in v7", lambda c: q.produce(c.leader, "et", inside(4, KEYED, 2), version=7), 0),
    (
        "Produce two of zstd in v6",
        lambda c: q.produce(c.leader, "et", inside(4, KEYED, 2) * 2, version=6),
        76,
    ),
]

TOPICS: dict[str, dict[str, str]] = {
    "et": {},
    "et-compact": {"cleanup.policy": "compact"},
    "et-append": {"message.timestamp.type": "LogAppendTime"},
    "et-late": {"message.timestamp.before.max.ms": str(HOUR_MS)},
    "et.dot": {},
}
"""The topics of the table. Broker 0 leads them, broker 1 follows."""

GROUPS: list[Row] = [
    ("SyncGroup v5 without a protocol", lambda c: q.sync_group(c.leader, None, 5), 23),
]

ROWS = [*METADATA, *CREATION, *CONFIGS, *MOVING, *READING, *WRITING, *COMPRESSED, *GROUPS]


def now_ms() -> int:
    return round(time.time() * 1000)


def inside(codec: int, records: bytes, count: int) -> bytes:
    """Return a compressed batch that was created now."""
    return compressed_batch(codec, records, count, now_ms())


def in_nanoseconds() -> bytes:
    """Return a batch whose timestamp is in the wrong unit."""
    return encode_batch([(None, b"v", now_ms() * NANOSECONDS)])


@pytest.mark.parametrize(("asked", "number"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_request_is_answered_with_kafkas_number(
    cluster: Cluster, asked: Callable[[Cluster], Any], number: Any
) -> None:
    for name, configs in TOPICS.items():
        cluster.create(name, [[0, 1]], configs)
    assert asked(cluster) == number
