"""Metadata (3), whose topics stay encoded until they have changed.

Two answers of an unchanged KRaft cluster differ only in the controller id, which is a random live broker. So
an answer is split before its topics, and the topics are decoded only if their bytes have changed. Versions 10
(topic ids) to 12 are decoded here, older versions by kafka-python's codec. Requests list topics and never
create any.
"""

import struct
from collections.abc import Iterable
from functools import cache
from typing import Any

from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from msgspec import Struct

from kview.wire.kafka_internals import Message
from kview.wire.primitives import MalformedBytes, Reader

API_KEY = 3
TOPIC_IDS_FROM = 10
HIGHEST = 12

_LISTS_AT = 14
"""Where the list of replicas of a partition begins: after its error, number, leader and leader epoch."""
_MOST_REPLICAS = 126
"""Replica lists of up to 126 ids store their length + 1 in one byte. The decoder relies on this."""


class BrokerAddress(Struct, frozen=True):
    """A broker in an answer, with its address."""

    id: int
    host: str
    port: int
    rack: str


class TopicRow(Struct, frozen=True, gc=False):
    """A topic of an answer.

    Its `count` partitions start at index `first` of `Topics.partitions`.
    """

    name: str
    topic_id: str
    internal: bool
    error: int
    first: int
    count: int


class PartitionRow(Struct, frozen=True, gc=False):
    """A partition of an answer."""

    error: int
    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]


class Topics(Struct, frozen=True):
    """The topics of an answer and their partitions, in the broker's own order."""

    topics: list[TopicRow]
    partitions: list[PartitionRow]


class MetadataAnswer(Struct, frozen=True):
    """An answer whose topics are still encoded.

    If `topics_bytes` equals that of an earlier answer, the topics have not changed. `topics` decodes them.
    """

    version: int
    throttle_time_ms: int
    brokers: tuple[BrokerAddress, ...]
    cluster_id: str
    controller_id: int
    topics_bytes: bytes

    def topics(self) -> Topics:
        """Decode the topics. Raises MalformedBytes if their layout is unexpected."""
        if self.version < TOPIC_IDS_FROM:
            return _from_library(MetadataResponse[self.version].decode(self.topics_bytes))
        return decode_topics(self.version, self.topics_bytes)


def request(version: int, all_topics: bool = True) -> Message[MetadataAnswer]:
    """Build a request for all topics, or for the brokers only."""
    message = MetadataRequest(
        version=version, topics=None if all_topics else [], allow_auto_topic_creation=False
    )
    flexible = MetadataRequest.flexible_version_q(version)
    return Message(API_KEY, version, flexible, message.encode(), lambda data: decode(version, data))


def decode(version: int, data: memoryview) -> MetadataAnswer:
    """Decode an answer's body, except for its topics."""
    if version < TOPIC_IDS_FROM:
        return _whole(version, data)
    reader = Reader(data)
    throttle_time_ms = reader.int32()
    brokers = []
    for _ in range(reader.array_length(compact=True)):
        node, host, port = reader.int32(), reader.nullable_compact_string(), reader.int32()
        brokers.append(BrokerAddress(node, host or "", port, reader.nullable_compact_string() or ""))
        reader.no_tagged_fields()
    cluster_id = reader.nullable_compact_string() or ""
    controller_id = reader.int32()
    return MetadataAnswer(
        version, throttle_time_ms, tuple(brokers), cluster_id, controller_id, bytes(data[reader.position :])
    )


def decode_topics(version: int, data: bytes) -> Topics:
    """Decode the topics of a version 10–12 answer, which takes about 1 µs per partition."""
    reader = Reader(memoryview(data))
    topics: list[TopicRow] = []
    partitions: list[PartitionRow] = []
    for _ in range(reader.array_length(compact=True)):
        error = reader.int16()
        name = reader.nullable_compact_string() or ""
        topic_id = _uuid(bytes(reader.take(16)))
        internal = bool(reader.take(1)[0])
        count = reader.array_length(compact=True)
        topics.append(TopicRow(name, topic_id, internal, error, len(partitions), count))
        reader.position = _walk(data, reader.position, count, partitions)
        reader.take(4)  # authorized operations
        reader.no_tagged_fields()
    if version == TOPIC_IDS_FROM:
        reader.take(4)
    reader.no_tagged_fields()
    reader.end()
    return Topics(topics, partitions)


def _walk(data: bytes, position: int, count: int, out: list[PartitionRow]) -> int:
    try:
        for _ in range(count):
            lists = position + _LISTS_AT
            replicas = data[lists] - 1
            isr = data[lists + 1 + 4 * replicas] - 1
            offline = data[lists + 2 + 4 * (replicas + isr)] - 1
            row = _row(replicas, isr, offline)
            values = row.unpack_from(data, position)
            if values[-1]:
                raise MalformedBytes(f"tagged fields of partition {values[1]}")
            position += row.size
            isr_at = 4 + replicas
            offline_at = isr_at + isr
            error, partition, leader, epoch = values[:4]
            lists_of = values[4:isr_at], values[isr_at:offline_at], values[offline_at:-1]
            out.append(PartitionRow(error, partition, leader, epoch, *lists_of))
    except (IndexError, struct.error) as cut:
        raise MalformedBytes(f"{count} partitions end early") from cut
    return position


@cache  # one entry for each triple of lengths; only a few occur
def _row(replicas: int, isr: int, offline: int) -> struct.Struct:
    if not 0 <= min(replicas, isr, offline) <= max(replicas, isr, offline) <= _MOST_REPLICAS:
        raise MalformedBytes(f"replica lists of {replicas}, {isr}, {offline}")
    return struct.Struct(f">hiiix{replicas}ix{isr}ix{offline}iB")


def _uuid(raw: bytes) -> str:
    """Return an id as `str(uuid.UUID)` writes it, which takes ten times as long."""
    digits = raw.hex()
    parts = digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]
    return "-".join(parts) if any(raw) else ""


def _whole(version: int, data: memoryview) -> MetadataAnswer:
    """Decode an answer below version 10 with kafka-python's codec. Its `topics_bytes` are the complete
    body."""
    answer = MetadataResponse[version].decode(data)
    return MetadataAnswer(
        version,
        getattr(answer, "throttle_time_ms", 0) or 0,
        tuple(BrokerAddress(b.node_id, b.host, b.port, b.rack or "") for b in answer.brokers),
        answer.cluster_id or "",
        answer.controller_id,
        bytes(data),
    )


def _from_library(answer: Any) -> Topics:
    topics: list[TopicRow] = []
    partitions: list[PartitionRow] = []
    for t in answer.topics:
        topic_id = "" if t.topic_id is None or not int(t.topic_id) else str(t.topic_id)
        topics.append(
            TopicRow(t.name, topic_id, bool(t.is_internal), t.error_code, len(partitions), len(t.partitions))
        )
        partitions += (
            PartitionRow(
                p.error_code,
                p.partition_index,
                p.leader_id,
                p.leader_epoch,
                tuple(p.replica_nodes),
                tuple(p.isr_nodes),
                _ids(p.offline_replicas),
            )
            for p in t.partitions
        )
    return Topics(topics, partitions)


def _ids(values: Iterable[int] | None) -> tuple[int, ...]:
    return tuple(values or ())
