"""How the leader of a simulated group makes the assignments, and how members read them."""

from collections.abc import Sequence
from typing import NamedTuple

from kview.simulate.groups.assignors import ASSIGNORS
from kview.simulate.groups.consumer_protocol import (
    Subscription,
    by_topic,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)
from kview.simulate.groups.results import JoinResult
from kview.simulate.metadata import MetadataImage, TopicPartition
from kview.simulate.traffic.metadata import ClientMetadata
from kview.wire.primitives import MalformedBytes


class KnownTopics(NamedTuple):
    """What a group's leader knew when it made the assignment: (topic, number of partitions), and the number
    of its metadata refreshes until then."""

    partitions: tuple[tuple[str, int], ...]
    refreshes: int

    @classmethod
    def of(cls, topics: Sequence[str], image: MetadataImage, metadata: ClientMetadata) -> "KnownTopics":
        """Return what the leader knows now. It assigns what `image` has."""
        images = (image.topics.get(topic) for topic in topics)
        counts = (len(topic.partitions) if topic is not None else 0 for topic in images)
        return cls(tuple(zip(topics, counts, strict=True)), metadata.refreshes)

    def outdated(self, metadata: ClientMetadata) -> bool:
        """Return whether newer metadata has another number of partitions, so that the leader must assign
        again."""
        return metadata.refreshes > self.refreshes and any(
            metadata.partitions(topic) != count for topic, count in self.partitions
        )


def assign(result: JoinResult, assignor: str, image: MetadataImage) -> tuple[tuple[str, bytes], ...]:
    """Compute the assignments of all members, as the group's leader does."""
    members = sorted(result.members, key=lambda m: (m.group_instance_id or m.member_id, m.member_id))
    subscriptions = {m.member_id: _subscription(m.metadata) for m in members}
    topics = sorted({topic for subscription in subscriptions.values() for topic in subscription.topics})
    counts = {topic: len(image.topics[topic].partitions) for topic in topics if topic in image.topics}
    assignment = ASSIGNORS[assignor](subscriptions, counts)
    return tuple((member, encode_assignment(by_topic(pairs))) for member, pairs in assignment.items())


def assigned(assignment: bytes) -> list[TopicPartition]:
    """Return the partitions of an assignment, or no partitions if it cannot be decoded."""
    try:
        return decode_assignment(assignment)
    except MalformedBytes:
        return []


def _subscription(metadata: bytes) -> Subscription:
    """Decode a member's subscription. Return one without topics if it cannot be decoded."""
    try:
        return decode_subscription(metadata)
    except MalformedBytes:
        return Subscription((), {})
