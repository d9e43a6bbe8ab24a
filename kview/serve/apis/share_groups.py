"""ShareGroupHeartbeat (76) 1 and ShareGroupDescribe (77) 1: members of share groups (KIP-932)."""

from typing import Any

from kview.serve.apis.consumer_groups import (
    GroupKind,
    described_groups,
    heartbeat_refusal,
    heartbeat_response,
)
from kview.serve.apis.operations import NOT_ASKED, bits
from kview.serve.call import Api, Call, Steps, shortened, topic_uuid
from kview.simulate.acls import ResourceType
from kview.simulate.codes import ErrorCode
from kview.simulate.features import SHARE_VERSION
from kview.simulate.groups.share_group import ShareMember
from kview.simulate.groups.share_results import DescribedShareGroup, ShareHeartbeat, ShareHeartbeatResult
from kview.wire.group_messages import ShareGroupDescribeRequest, ShareGroupDescribeResponse
from kview.wire.member_messages import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse


def heartbeat(call: Call) -> None:
    """Let a member join, stay or leave, and answer when that is committed."""
    request, version = call.request, call.version

    def answer(result: ShareHeartbeatResult) -> None:
        call.answer(heartbeat_response(ShareGroupHeartbeatResponse, version, result))

    topics = request.subscribed_topic_names
    refused = heartbeat_refusal(call, SHARE_VERSION, topics)
    if refused is not ErrorCode.NONE:
        answer(ShareHeartbeatResult(refused))
        return
    call.is_from_member(request.group_id, request.member_id)
    call.cluster.groups(call.broker).share_heartbeat(
        ShareHeartbeat(
            request.group_id,
            request.member_id,
            request.member_epoch,
            call.client_id,
            call.client_host,
            request.rack_id,
            None if topics is None else tuple(topics),
        ),
        call.later(answer),
    )


def describe(call: Call) -> Steps:
    """Answer with the state of each group and with what its members have."""
    coordinator = call.cluster.groups(call.broker)
    groups = yield from described_groups(call, _KIND, coordinator.describe_share_group)
    call.answer(ShareGroupDescribeResponse(version=call.version, groups=groups))


def _topics(call: Call, group: DescribedShareGroup) -> set[str]:
    """Return all topics that the members read."""
    names = call.image.topic_names
    ids = {topic_id for member in group.members for topic_id in member.current.assigned}
    return {names[topic_id] for topic_id in ids if topic_id in names}


def _described(call: Call, group: DescribedShareGroup, members: list[Any]) -> Any:
    version = call.version
    asked = call.request.include_authorized_operations and not group.error_code
    return ShareGroupDescribeResponse.DescribedGroup(
        version=version,
        error_code=group.error_code,
        error_message=None if group.message is None else shortened(group.message),
        group_id=group.group,
        group_state=group.state,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.assignor,
        members=members,
        authorized_operations=bits(call.operations(ResourceType.GROUP, group.group)) if asked else NOT_ASKED,
    )


def _member(call: Call, group: DescribedShareGroup, member: ShareMember) -> Any:
    metadata, version, names = member.metadata, call.version, call.image.topic_names
    per_member = ShareGroupDescribeResponse.DescribedGroup.Member
    return per_member(
        version=version,
        member_id=member.member_id,
        rack_id=metadata.rack_id,
        member_epoch=member.current.epoch,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        subscribed_topic_names=list(metadata.topics),
        assignment=per_member.Assignment(
            version=version,
            topic_partitions=[
                per_member.Assignment.TopicPartitions(
                    version=version,
                    topic_id=topic_uuid(topic_id),
                    topic_name=names[topic_id],
                    partitions=sorted(partitions),
                )
                for topic_id, partitions in member.current.assigned.items()
                if topic_id in names  # Those of deleted topics are left out.
            ],
        ),
    )


_KIND = GroupKind(SHARE_VERSION, DescribedShareGroup, _topics, _member, _described)

APIS = (
    Api(76, ShareGroupHeartbeatRequest, (1, 1), heartbeat),
    Api(77, ShareGroupDescribeRequest, (1, 1), describe),
)
