"""DescribeGroups (15) 0–6 and ListGroups (16) 0–5: describe and list the groups that this broker coordinates.

DescribeGroups: v3 adds authorized operations, v4 static members, v5 is flexible, v6 answers
an unknown group with an error instead of state `Dead`. ListGroups: v3 is flexible, v4 adds states (as a
filter and in the response), v5 adds types in the same way.
"""

from typing import Any

from kafka.protocol.admin.groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)

from kview.serve.call import Api, Call, Steps, shortened
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import ErrorCode
from kview.simulate.groups.results import DescribedGroup

OPERATIONS_FROM = 3
UNKNOWN_GROUP_IS_AN_ERROR_FROM = 6


def describe_groups(call: Call) -> Steps:
    """Answer with the state and members of each group."""
    coordinator = call.cluster.groups(call.broker)
    groups = []
    for group in call.request.groups:
        if call.may(AclOperation.DESCRIBE, ResourceType.GROUP, group):
            described = coordinator.describe(group)
        else:
            described = DescribedGroup(group, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        groups.append(_described(call, described))
        yield
    call.answer(DescribeGroupsResponse(version=call.version, groups=groups))


def _described(call: Call, group: DescribedGroup) -> Any:
    version = call.version
    per_group = DescribeGroupsResponse.DescribedGroup
    unknown = group.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    asked = version >= OPERATIONS_FROM and call.request.include_authorized_operations
    error = 0 if unknown and version < UNKNOWN_GROUP_IS_AN_ERROR_FROM else group.error_code
    return per_group(
        version=version,
        error_message=None if group.message is None else shortened(group.message),
        error_code=error,
        group_id=group.group,
        group_state=group.state,
        protocol_type=group.protocol_type,
        protocol_data=group.protocol,
        members=[
            per_group.DescribedGroupMember(
                version=version,
                member_id=m.member_id,
                group_instance_id=m.group_instance_id,
                client_id=m.client_id,
                client_host=m.client_host,
                member_metadata=m.metadata,
                member_assignment=m.assignment,
            )
            for m in group.members
        ],
        authorized_operations=call.operations(ResourceType.GROUP, group.group)
        if asked and not error
        else None,
    )


def list_groups(call: Call) -> None:
    """Answer with the groups of this coordinator that have the requested states and types."""
    request, version = call.request, call.version
    states = request.states_filter if version >= 4 else ()
    types = request.types_filter if version >= 5 else ()
    result = call.cluster.groups(call.broker).list_groups(states or (), types or ())
    everything = call.may(AclOperation.DESCRIBE, ResourceType.CLUSTER)
    groups = [
        ListGroupsResponse.ListedGroup(
            version=version,
            group_id=g.group,
            protocol_type=g.protocol_type,
            group_state=g.state,
            group_type=g.group_type,
        )
        for g in result.groups
        if everything or call.may(AclOperation.DESCRIBE, ResourceType.GROUP, g.group)
    ]
    call.answer(ListGroupsResponse(version=version, error_code=result.error_code, groups=groups))


APIS = (
    Api(15, DescribeGroupsRequest, (0, 6), describe_groups),
    Api(16, ListGroupsRequest, (0, 5), list_groups),
)
