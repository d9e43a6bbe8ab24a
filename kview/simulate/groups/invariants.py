"""What must hold of groups: `GroupPartitionHasOneOwner` is one of an invariant checker's other checks."""

from kview.simulate.cluster import Cluster
from kview.simulate.groups.consumer_protocol import CONSUMER, decode_assignment
from kview.simulate.groups.group import Group, GroupState
from kview.simulate.groups.wire import MalformedBytes


def owned_twice(group: Group) -> str | None:
    """What is wrong with a stable consumer group's assignment, None where nothing is."""
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


class GroupPartitionHasOneOwner:
    """No partition of a stable group has two owners, at any broker that coordinates it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def __call__(self) -> str | None:
        for broker in self._cluster.broker_ids():
            for group in self._cluster.groups(broker).groups():
                wrong = owned_twice(group)
                if wrong is not None:
                    return f"broker {broker}: {wrong}"
        return None
