"""The description of a group that DescribeGroups returns."""

from kview.simulate.codes import ErrorCode
from kview.simulate.groups.group import Group, GroupState
from kview.simulate.groups.results import DescribedGroup, DescribedMember


def described(group: Group) -> DescribedGroup:
    """Describe a group's state and members. Subscriptions are known while it is stable."""
    stable = group.state is GroupState.STABLE
    members = tuple(
        DescribedMember(
            m.member_id,
            m.group_instance_id,
            m.client_id,
            m.client_host,
            m.metadata(group.protocol) if stable else b"",
            m.assignment,
        )
        for m in group.members.values()
    )
    protocol = (group.protocol or "") if stable else ""
    return DescribedGroup(
        group.name, ErrorCode.NONE, group.state.value, group.protocol_type, protocol, members
    )
