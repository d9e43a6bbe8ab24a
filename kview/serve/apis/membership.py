"""JoinGroup (11) 0–9, Heartbeat (12) 0–4, LeaveGroup (13) 0–5, SyncGroup (14) 0–5: members of classic groups.

JoinGroup: v1 adds the rebalance timeout, v4 returns a new member's id and has it join again (KIP-394), v5
adds static members, v6 is flexible, v7 adds the protocol type, v8 a reason, v9 lets the coordinator tell the
leader to skip the assignment (KIP-814).

Heartbeat: v3 adds static members, v4 is flexible. LeaveGroup: v3 takes several members, v4 is flexible, v5
adds a reason. SyncGroup: v3 adds static members, v4 is flexible, v5 adds the protocol type and name.

A join or sync that waits blocks only its own connection.
"""

from collections.abc import Callable, Sequence

from kafka.protocol.consumer.group import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

from kview.serve.apis.gather import ask_in_parts
from kview.serve.call import Api, Call, Steps
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import ErrorCode
from kview.simulate.groups.results import (
    GroupProtocol,
    JoinRequest,
    JoinResult,
    LeaveResult,
    LeavingMember,
    SyncRequest,
    SyncResult,
)

KNOWN_MEMBER_ID_FROM = 4
NULLABLE_PROTOCOL_FROM = 7
SKIP_ASSIGNMENT_FROM = 9
LEAVE_SEVERAL_FROM = 3
PROTOCOLS_NAMED_FROM = 5
"""The first version of SyncGroup that must name the protocol and its type."""


REFUSED = ErrorCode.GROUP_AUTHORIZATION_FAILED


def _may_read(call: Call) -> bool:
    """Return whether the client may be a member of the group in its request."""
    return call.may(AclOperation.READ, ResourceType.GROUP, call.request.group_id)


def join_group(call: Call) -> None:
    """Let a member join, and answer once the rebalance has gathered all members."""
    request, version = call.request, call.version

    def joined(result: JoinResult) -> None:
        members = [
            JoinGroupResponse.JoinGroupResponseMember(
                version=version,
                member_id=m.member_id,
                group_instance_id=m.group_instance_id,
                metadata=m.metadata,
            )
            for m in result.members
        ]
        no_protocol = None if version >= NULLABLE_PROTOCOL_FROM else ""
        call.answer(
            JoinGroupResponse(
                version=version,
                error_code=result.error_code,
                generation_id=result.generation,
                protocol_type=result.protocol_type,
                protocol_name=no_protocol if result.protocol is None else result.protocol,
                leader=result.leader,
                skip_assignment=result.skip_assignment,
                member_id=result.member_id,
                members=members,
            )
        )

    if not _may_read(call):
        joined(JoinResult(REFUSED, request.member_id))
        return
    if request.member_id:
        call.is_from_member(request.group_id, request.member_id)
    call.cluster.groups(call.broker).join(
        JoinRequest(
            group=request.group_id,
            member_id=request.member_id,
            client_id=call.client_id,
            client_host=call.client_host,
            protocol_type=request.protocol_type,
            protocols=tuple(GroupProtocol(p.name, p.metadata) for p in request.protocols),
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=request.rebalance_timeout_ms if version >= 1 else request.session_timeout_ms,
            group_instance_id=request.group_instance_id,
            require_known_member_id=version >= KNOWN_MEMBER_ID_FROM,
            supports_skipping_assignment=version >= SKIP_ASSIGNMENT_FROM,
        ),
        call.later(joined),
    )


def sync_group(call: Call) -> None:
    """Accept the leader's assignment or wait for it, then answer with the member's own part."""
    request, version = call.request, call.version

    def synced(result: SyncResult) -> None:
        call.answer(
            SyncGroupResponse(
                version=version,
                error_code=result.error_code,
                protocol_type=result.protocol_type,
                protocol_name=result.protocol,
                assignment=result.assignment,
            )
        )

    nameless = request.protocol_type is None or request.protocol_name is None
    if version >= PROTOCOLS_NAMED_FROM and nameless:
        synced(SyncResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        return
    if not _may_read(call):
        synced(SyncResult(REFUSED))
        return
    call.is_from_member(request.group_id, request.member_id)
    call.cluster.groups(call.broker).sync(
        SyncRequest(
            group=request.group_id,
            generation=request.generation_id,
            member_id=request.member_id,
            group_instance_id=request.group_instance_id,
            protocol_type=request.protocol_type,
            protocol=request.protocol_name,
            assignments=tuple((a.member_id, a.assignment) for a in request.assignments),
        ),
        call.later(synced),
    )


def heartbeat(call: Call) -> None:
    """Restart a member's session timeout."""
    request = call.request
    if not _may_read(call):
        call.answer(HeartbeatResponse(version=call.version, error_code=REFUSED))
        return
    call.is_from_member(request.group_id, request.member_id)
    error = call.cluster.groups(call.broker).heartbeat(
        request.group_id, request.generation_id, request.member_id, request.group_instance_id
    )
    call.answer(HeartbeatResponse(version=call.version, error_code=error))


def leave_group(call: Call) -> Steps:
    """Remove members. Before v3, a request names only one member, whose error is the top-level error."""
    request, version = call.request, call.version
    coordinator = call.cluster.groups(call.broker)
    if not _may_read(call):
        call.answer(LeaveGroupResponse(version=version, error_code=REFUSED, members=[]))
        return
    if version < LEAVE_SEVERAL_FROM:
        result = coordinator.leave(request.group_id, [LeavingMember(request.member_id)])
        error = result.error_code or next((m.error_code for m in result.members), 0)
        call.answer(LeaveGroupResponse(version=version, error_code=error))
        return
    leaving = [LeavingMember(m.member_id, m.group_instance_id) for m in request.members]

    def leave(part: Sequence[LeavingMember], done: Callable[[Sequence[LeaveResult]], None]) -> None:
        done([coordinator.leave(request.group_id, part)])

    def left(results: Sequence[LeaveResult]) -> None:
        call.run(_answer_leave(call, results))

    yield from ask_in_parts(leaving, leave, left)


def _answer_leave(call: Call, results: Sequence[LeaveResult]) -> Steps:
    members = []
    for result in results:
        for m in result.members:
            row = LeaveGroupResponse.MemberResponse(
                version=call.version,
                member_id=m.member_id,
                group_instance_id=m.group_instance_id,
                error_code=m.error_code,
            )
            members.append(row)
            yield
    error = results[0].error_code
    call.answer(LeaveGroupResponse(version=call.version, error_code=error, members=members))


APIS = (
    Api(11, JoinGroupRequest, (0, 9), join_group),
    Api(12, HeartbeatRequest, (0, 4), heartbeat),
    Api(13, LeaveGroupRequest, (0, 5), leave_group),
    Api(14, SyncGroupRequest, (0, 5), sync_group),
)
