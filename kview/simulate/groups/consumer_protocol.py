"""Subscriptions and assignments, which consumers pass to each other through the coordinator as bytes.

Sources: ConsumerProtocolSubscription.json (v0–3, written as v1), ConsumerProtocolAssignment.json (v0–3,
written as v1) and StickyAssignorUserData.json (v1). Newer versions only add fields at the end.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kview.wire.primitives import MalformedBytes, Reader, Writer

CONSUMER = "consumer"
"""The protocol type of consumer groups."""

Partitions = Mapping[str, Sequence[int]]
"""Topic → partitions."""


@dataclass(frozen=True, slots=True)
class Subscription:
    """The topics that a member wants to read and the partitions it owns."""

    topics: tuple[str, ...]
    owned: Partitions
    generation: int = -1
    """The generation in which `owned` was assigned; −1 if unknown."""
    rack: str | None = None


def by_topic(pairs: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Group (topic, partition) pairs by topic, and return topic → partitions with both sorted."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(pairs):
        topics.setdefault(topic, []).append(partition)
    return topics


def _write_partitions(writer: Writer, partitions: Partitions) -> Writer:
    writer.int32(len(partitions))
    for topic in sorted(partitions):
        writer.string(topic).int32s(partitions[topic])
    return writer


def _read_partitions(reader: Reader) -> dict[str, tuple[int, ...]]:
    return {reader.string(): reader.int32s() for _ in range(reader.array_length())}


def encode_subscription(subscription: Subscription) -> bytes:
    """Encode a subscription. The owned partitions are also in the user data, where the sticky assignor reads
    them."""
    user_data = None
    if subscription.owned:
        user_data = _write_partitions(Writer(), subscription.owned).int32(subscription.generation).done()
    writer = Writer().int16(1).int32(len(subscription.topics))
    for topic in subscription.topics:
        writer.string(topic)
    return _write_partitions(writer.nullable_bytes(user_data), subscription.owned).done()


def decode_subscription(data: bytes) -> Subscription:
    """Decode a subscription of any version. Raises MalformedBytes."""
    reader = Reader(data)
    version = reader.int16()
    topics = tuple(reader.string() for _ in range(reader.array_length()))
    user_data = reader.nullable_bytes()
    owned = _read_partitions(reader) if version >= 1 else {}
    generation = reader.int32() if version >= 2 else -1
    rack = reader.nullable_string() if version >= 3 else None
    if generation < 0 and user_data:
        try:
            sticky = Reader(user_data)
            previous = _read_partitions(sticky)
            generation = sticky.int32()
            owned = owned or previous
        except MalformedBytes:
            generation = -1  # user data of another assignor, or of v0, which has no generation
    return Subscription(topics, owned, generation, rack)


def encode_assignment(partitions: Partitions) -> bytes:
    """Encode an assignment, in version 1 of Kafka's ConsumerProtocolAssignment."""
    return _write_partitions(Writer().int16(1), partitions).nullable_bytes(None).done()


def decode_assignment(data: bytes) -> list[tuple[str, int]]:
    """Decode an assignment into sorted (topic, partition) pairs. Raises MalformedBytes."""
    if not data:
        return []
    reader = Reader(data)
    reader.int16()
    assigned = _read_partitions(reader)
    return sorted((topic, partition) for topic, partitions in assigned.items() for partition in partitions)


def assignment_user_data(data: bytes) -> bytes:
    """Return what an assignor has added to an assignment for its own use. Raises MalformedBytes."""
    if not data:
        return b""
    reader = Reader(data)
    reader.int16()
    _read_partitions(reader)
    return reader.nullable_bytes() or b""
