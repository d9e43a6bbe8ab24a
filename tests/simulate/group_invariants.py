"""Invariants on consumer groups, and the list of all invariants on an entire cluster."""

from collections.abc import Iterator

from kview.simulate.cluster import Cluster
from kview.simulate.groups.consumer_group import ConsumerGroup, owned_pairs, pairs
from kview.simulate.groups.consumer_protocol import CONSUMER, decode_assignment
from kview.simulate.groups.group import GroupState
from kview.simulate.groups.records import NO_TOPIC_ID
from kview.simulate.groups.shard import AnyGroup
from kview.simulate.groups.streams_group import StreamsGroup
from kview.simulate.groups.streams_records import OwnedTasks, Role, Tasks
from kview.wire.primitives import MalformedBytes
from tests.simulate.invariants import ClusterInvariant, ReplicasAreOfLivingTopics


def owned_twice(group: AnyGroup) -> str | None:
    """Return what is wrong with the assignment of a stable group of consumers, or None.

    In a group of the consumer protocol a partition has one owner at any time, and the same in the target
    assignment.
    """
    if isinstance(group, ConsumerGroup):
        return _owned_twice_at_any_time(group)
    if isinstance(group, StreamsGroup):
        return _active_twice(group)
    if group.state is not GroupState.STABLE or group.protocol_type != CONSUMER:
        return None
    owners: dict[tuple[str, int], str] = {}
    for member in group.members.values():
        try:
            pairs = decode_assignment(member.assignment)
        except MalformedBytes:
            return f"group {group.name}: the assignment of {member.member_id} cannot be read"
        for pair in pairs:
            other = owners.setdefault(pair, member.member_id)
            if other != member.member_id:
                return f"group {group.name}: {pair[0]}-{pair[1]} is owned by {other} and {member.member_id}"
    return None


def _owned_twice_at_any_time(group: ConsumerGroup) -> str | None:
    has: dict[tuple[bytes, int], str] = {}
    for member in group.members.values():
        for pair in owned_pairs(member.current):
            other = has.setdefault(pair, member.member_id)
            if other != member.member_id:
                return f"group {group.name}: {pair} is owned by {other} and {member.member_id}"
    if has != group.owners:
        return f"group {group.name}: the owners are {has}, the coordinator has {group.owners}"
    gets: dict[tuple[bytes, int], str] = {}
    for member_id, target in group.targets.items():
        if member_id not in group.members:
            return f"group {group.name}: a target assignment of {member_id}, which is not a member"
        for pair in pairs(target):
            if gets.setdefault(pair, member_id) != member_id:
                return f"group {group.name}: {pair} is to be owned by {gets[pair]} and {member_id}"
    return None


def _active_twice(group: StreamsGroup) -> str | None:
    """Return the task of a streams group that is active in two members, or is to be, or None."""
    has: dict[tuple[str, int], str] = {}
    gets: dict[tuple[str, int], str] = {}
    for member_id, member in group.members.items():
        for owned in (member.current.assigned, member.current.revoking):
            for task in _active(owned):
                if has.setdefault(task, member_id) != member_id:
                    return f"group {group.name}: {task} is active in {has[task]} and {member_id}"
        for task in _active(group.targets.get(member_id, {})):
            if gets.setdefault(task, member_id) != member_id:
                return f"group {group.name}: {task} is to be active in {gets[task]} and {member_id}"
    return None


def _active(tasks: Tasks | OwnedTasks) -> Iterator[tuple[str, int]]:
    active = {key.subtopology: numbers for key, numbers in tasks.items() if key.role is Role.ACTIVE}
    return ((name, number) for name, numbers in active.items() for number in numbers)


class GroupPartitionHasOneOwner(ClusterInvariant):
    """An invariant: no partition of a stable group has two owners, on any broker that coordinates the
    group."""

    def __call__(self) -> str | None:
        for broker in self.cluster.broker_ids():
            for group in self.cluster.groups(broker).groups():
                wrong = owned_twice(group)
                if wrong is not None:
                    return f"broker {broker}: {wrong}"
        return None


class CommittedOffsetsAreOfLivingTopics(ClusterInvariant):
    """An invariant: a coordinator has offsets only for topics that its broker's metadata has, by id if that
    is stored."""

    def __call__(self) -> str | None:
        without_ids = () if self.cluster.world.release.stores_topic_ids else (NO_TOPIC_ID,)
        for broker in self.cluster.broker_ids():
            topics = self.cluster.image(broker).topics
            for group in self.cluster.groups(broker).groups():
                for (topic, partition), value in group.offsets.items():
                    known = topics.get(topic)
                    if known is None or value.topic_id not in (known.topic_id, *without_ids):
                        return f"broker {broker}: {group.name} has an offset of deleted {topic}-{partition}"
        return None


def of_the_cluster(cluster: Cluster) -> list[ClusterInvariant]:
    """Return all invariants on an entire cluster."""
    return [
        ReplicasAreOfLivingTopics(cluster),
        GroupPartitionHasOneOwner(cluster),
        CommittedOffsetsAreOfLivingTopics(cluster),
    ]
