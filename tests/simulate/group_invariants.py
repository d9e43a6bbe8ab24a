"""Invariants on consumer groups, and the list of all invariants on an entire cluster."""

from kview.simulate.cluster import Cluster
from kview.simulate.groups.consumer_protocol import CONSUMER, decode_assignment
from kview.simulate.groups.group import Group, GroupState
from kview.wire.primitives import MalformedBytes
from tests.simulate.invariants import ClusterInvariant, ReplicasAreOfLivingTopics


def owned_twice(group: Group) -> str | None:
    """Return what is wrong with a stable consumer group's assignment, or None."""
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
    """An invariant: a coordinator has offsets only for topics (by id) that its broker's metadata has."""

    def __call__(self) -> str | None:
        for broker in self.cluster.broker_ids():
            topics = self.cluster.image(broker).topics
            for group in self.cluster.groups(broker).groups():
                for (topic, partition), value in group.offsets.items():
                    if topic not in topics or topics[topic].topic_id != value.topic_id:
                        return f"broker {broker}: {group.name} has an offset of deleted {topic}-{partition}"
        return None


def of_the_cluster(cluster: Cluster) -> list[ClusterInvariant]:
    """Return all invariants on an entire cluster."""
    return [
        ReplicasAreOfLivingTopics(cluster),
        GroupPartitionHasOneOwner(cluster),
        CommittedOffsetsAreOfLivingTopics(cluster),
    ]
