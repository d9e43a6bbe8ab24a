"""Groups that appear to have been running for a while, with their records in `__consumer_offsets`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from kview.simulate.coordination.placement import partition_of
from kview.simulate.groups.assignors import ASSIGNORS
from kview.simulate.groups.consumer_protocol import (
    CONSUMER,
    Subscription,
    by_topic,
    encode_assignment,
    encode_subscription,
)
from kview.simulate.groups.records import (
    Change,
    GroupKey,
    GroupValue,
    MemberValue,
    OffsetKey,
    OffsetValue,
    encode_batch,
)
from kview.simulate.metadata import TopicPartition
from kview.simulate.traffic.member import HOST, MAX_POLL_INTERVAL_MS, SESSION_TIMEOUT_MS
from kview.simulate.uuids import random_id
from kview.simulate.world import CLASSIC, GroupSpec

PAST_GENERATIONS_MAX = 6
"""A group's generation at the start is below this, as if the group had rebalanced a few times."""

OffsetAt = Callable[[str, int, int], tuple[int, int]]
"""(topic, partition, epoch ms) → (offset of the first record at that time or later, its leader epoch)."""


@dataclass(frozen=True, slots=True)
class WarmMember:
    """A member that exists from the start."""

    member_id: str
    owned: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class WarmGroup:
    """A group that exists from the start. `batch` contains its records for `partition` of
    `__consumer_offsets`."""

    spec: GroupSpec
    partition: int
    generation: int
    members: tuple[WarmMember, ...]
    batch: bytes
    records: int


def warm_group(
    spec: GroupSpec,
    partitions: Mapping[str, int],
    offset_at: OffsetAt,
    start_ms: int,
    random: Random,
    offsets_partitions: int,
    topic_ids: Mapping[str, bytes],
) -> WarmGroup:
    """Create a group with its members, assignment and commits as of `start_ms`.

    `partitions` maps each topic to its number of partitions. A group without members has stopped, so its
    commits and its end are `stopped_ms` old. The members of a group of the consumer protocol join later.
    """
    subscription = Subscription(spec.topics, {})
    members_then = spec.members if spec.protocol == CLASSIC else 0
    ids = [f"{spec.name}-{i}-{random_id(random)}" for i in range(members_then)]
    wanted = {topic: partitions[topic] for topic in spec.topics}
    assignment = ASSIGNORS[spec.assignor](dict.fromkeys(sorted(ids), subscription), wanted)
    generation = random.randrange(1, PAST_GENERATIONS_MAX)
    behind_ms = spec.stopped_ms if spec.members == 0 else round(spec.warm_lag_seconds * 1000)
    commit_ms = start_ms - (
        spec.stopped_ms if spec.members == 0 else random.randrange(spec.commit_interval_ms)
    )
    changes: list[Change] = []
    for topic in sorted(wanted):
        for partition in range(wanted[topic]):
            offset, epoch = offset_at(topic, partition, start_ms - behind_ms)
            value = OffsetValue(offset, epoch, "", commit_ms, topic_ids[topic])
            changes.append((OffsetKey(spec.name, topic, partition), value))
    members = tuple(
        MemberValue(
            member_id,
            None,
            f"{spec.name}-{i}",
            HOST,
            MAX_POLL_INTERVAL_MS,
            SESSION_TIMEOUT_MS,
            encode_subscription(subscription),
            encode_assignment(by_topic(assignment[member_id])),
        )
        for i, member_id in enumerate(ids)
    )
    protocol = spec.assignor if members else None
    leader = ids[0] if ids else None
    group = GroupValue(CONSUMER, generation, protocol, leader, commit_ms, members)
    changes.append((GroupKey(spec.name), group))
    return WarmGroup(
        spec,
        partition_of(spec.name, offsets_partitions),
        generation,
        tuple(WarmMember(member_id, tuple(assignment[member_id])) for member_id in ids),
        encode_batch(changes, commit_ms),
        len(changes),
    )
