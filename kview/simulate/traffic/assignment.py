"""The assignments of a simulated group, as members read them and the group's leader makes them."""

from kview.simulate.groups.assignors import ASSIGNORS
from kview.simulate.groups.consumer_protocol import (
    Subscription,
    by_topic,
    decode_assignment,
    decode_subscription,
    encode_assignment,
)
from kview.simulate.groups.results import JoinResult
from kview.simulate.groups.wire import MalformedBytes
from kview.simulate.metadata import MetadataImage, TopicPartition


def assign(result: JoinResult, assignor: str, image: MetadataImage) -> tuple[tuple[str, bytes], ...]:
    """Return the assignments of all members as the group's leader makes them."""
    members = sorted(result.members, key=lambda m: (m.group_instance_id or m.member_id, m.member_id))
    subscriptions = {m.member_id: _subscription(m.metadata) for m in members}
    topics = sorted({topic for subscription in subscriptions.values() for topic in subscription.topics})
    counts = {topic: len(image.topics[topic].partitions) for topic in topics if topic in image.topics}
    assignment = ASSIGNORS[assignor](subscriptions, counts)
    return tuple((member, encode_assignment(by_topic(pairs))) for member, pairs in assignment.items())


def assigned(assignment: bytes) -> list[TopicPartition]:
    """Return the partitions of an assignment. An assignment that cannot be read has none."""
    try:
        return decode_assignment(assignment)
    except MalformedBytes:
        return []


def _subscription(metadata: bytes) -> Subscription:
    """Decode a member's subscription. A subscription that cannot be read has no topics."""
    try:
        return decode_subscription(metadata)
    except MalformedBytes:
        return Subscription((), {})
