"""ConsumerGroupHeartbeat (68) 0–1, ConsumerGroupDescribe (69) 0–1: members of consumer groups (KIP-848).

ConsumerGroupHeartbeat: v1 adds regular expressions, and a member makes its id itself. ConsumerGroupDescribe:
v1 adds whether a member uses the consumer protocol or the classic one.
"""

from functools import partial
from typing import Any

from kview.serve.apis.operations import NOT_ASKED, bits
from kview.serve.call import Api, Call, Steps, id_bytes, shortened, topic_uuid
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import ErrorCode
from kview.simulate.features import GROUP_VERSION
from kview.simulate.groups.consumer_group import ConsumerMember
from kview.simulate.groups.consumer_records import Partitions
from kview.simulate.groups.consumer_results import (
    ConsumerHeartbeat,
    ConsumerHeartbeatResult,
    DescribedConsumerGroup,
)
from kview.wire.group_messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

REGEX_FROM = MAKES_ITS_ID_FROM = 1
CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1
HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


def heartbeat(call: Call) -> None:
    """Let a member join, stay or leave, and answer when that is committed."""
    request, version = call.request, call.version

    def answer(result: ConsumerHeartbeatResult) -> None:
        call.answer(heartbeat_response(ConsumerGroupHeartbeatResponse, version, result))

    refused = heartbeat_refusal(call, GROUP_VERSION)
    if refused is not ErrorCode.NONE:
        answer(ConsumerHeartbeatResult(refused))
        return
    topics = request.subscribed_topic_names
    call.is_from_member(request.group_id, request.member_id)
    call.cluster.groups(call.broker).consumer_heartbeat(
        ConsumerHeartbeat(
            request.group_id,
            request.member_id,
            request.member_epoch,
            call.client_id,
            call.client_host,
            request.instance_id,
            request.rack_id,
            request.rebalance_timeout_ms,
            None if topics is None else tuple(topics),
            request.subscribed_topic_regex if version >= REGEX_FROM else None,
            request.server_assignor,
            _owned(request.topic_partitions),
            version >= MAKES_ITS_ID_FROM,
            None if call.cluster.authorizer is None else partial(_may_describe, call),
        ),
        call.later(answer),
    )


def _may_describe(call: Call, topic: str) -> bool:
    return call.may(AclOperation.DESCRIBE, ResourceType.TOPIC, topic)


def heartbeat_refusal(call: Call, feature: str) -> ErrorCode:
    """Return why a heartbeat of a group with these members is refused, or NONE. The feature is the one that
    such groups need."""
    request = call.request
    if not call.image.features.get(feature):
        return ErrorCode.UNSUPPORTED_VERSION
    if not call.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    if not all(_may_describe(call, topic) for topic in request.subscribed_topic_names or ()):
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.NONE


def heartbeat_response(response: Any, version: int, result: Any) -> Any:
    """Return the answer of the class `response` to a heartbeat of a member of a consumer or share group."""
    assignment = None
    if result.assignment is not None:
        of_topic = response.Assignment.TopicPartitions
        assignment = response.Assignment(
            version=version,
            topic_partitions=[
                of_topic(version=version, topic_id=topic_uuid(topic_id), partitions=sorted(partitions))
                for topic_id, partitions in result.assignment.items()
            ],
        )
    return response(
        version=version,
        error_code=result.error_code,
        error_message=None if result.message is None else shortened(result.message),
        member_id=result.member_id,
        member_epoch=result.member_epoch,
        heartbeat_interval_ms=result.heartbeat_interval_ms,
        assignment=assignment,
    )


def _owned(topics: Any) -> Partitions | None:
    if topics is None:
        return None
    owned: dict[bytes, set[int]] = {}
    for topic in topics:
        owned.setdefault(id_bytes(topic.topic_id), set()).update(topic.partitions)
    return {topic_id: frozenset(partitions) for topic_id, partitions in owned.items()}


def describe(call: Call) -> Steps:
    """Answer with the state of each group and with what its members have and are to have."""
    coordinator, groups = call.cluster.groups(call.broker), []
    for name in sorted(dict.fromkeys(call.request.group_ids), key=bool):  # '' first, as in Kafka
        if not call.image.features.get(GROUP_VERSION):
            off = DescribedConsumerGroup(name, ErrorCode.UNSUPPORTED_VERSION)
            groups.append(_described(call, off, []))
            continue
        if not call.may(AclOperation.DESCRIBE, ResourceType.GROUP, name):
            groups.append(
                _described(call, DescribedConsumerGroup(name, ErrorCode.GROUP_AUTHORIZATION_FAILED), [])
            )
            continue
        group = coordinator.describe_consumer_group(name)
        if not _may_describe_topics(call, group):
            hidden = DescribedConsumerGroup(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, HIDDEN_TOPICS)
            groups.append(_described(call, hidden, []))
            continue
        members = []
        for member in group.members:
            members.append(_member(call, member, group.targets.get(member.member_id, {})))
            yield
        groups.append(_described(call, group, members))
        yield
    call.answer(ConsumerGroupDescribeResponse(version=call.version, groups=groups))


def _may_describe_topics(call: Call, group: DescribedConsumerGroup) -> bool:
    """Return whether the client may know all topics that the members have and are to have."""
    if call.cluster.authorizer is None:
        return True
    ids = {
        topic_id
        for member in group.members
        for topic_id in (*_has(member), *group.targets.get(member.member_id, {}))
    }
    names = [call.image.topic_names[topic_id] for topic_id in ids if topic_id in call.image.topic_names]
    return all(call.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name) for name in names)


def _described(call: Call, group: DescribedConsumerGroup, members: list[Any]) -> Any:
    version = call.version
    asked = call.request.include_authorized_operations and not group.error_code
    return ConsumerGroupDescribeResponse.DescribedGroup(
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


def _member(call: Call, member: ConsumerMember, target: Partitions) -> Any:
    metadata, version = member.metadata, call.version
    return ConsumerGroupDescribeResponse.DescribedGroup.Member(
        version=version,
        member_id=member.member_id,
        instance_id=metadata.instance_id,
        rack_id=metadata.rack_id,
        member_epoch=member.current.epoch,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        subscribed_topic_names=list(metadata.topics),
        subscribed_topic_regex=metadata.regex,
        assignment=_assignment(call, _has(member)),
        target_assignment=_assignment(call, target),
        member_type=CONSUMER_MEMBER if metadata.classic is None else CLASSIC_MEMBER,
    )


def _has(member: ConsumerMember) -> Partitions:
    """Return what a member has, including what it must revoke."""
    assigned, revoking = member.current.assigned, member.current.revoking
    return {
        topic: frozenset((*assigned.get(topic, ()), *revoking.get(topic, ())))
        for topic in dict.fromkeys((*assigned, *revoking))
    }


def _assignment(call: Call, assigned: Partitions) -> Any:
    """Return partitions with the names of their topics. Those of deleted topics are left out."""
    names = call.image.topic_names
    per_member = ConsumerGroupDescribeResponse.DescribedGroup.Member.Assignment
    return per_member(
        version=call.version,
        topic_partitions=[
            per_member.TopicPartitions(
                version=call.version,
                topic_id=topic_uuid(topic_id),
                topic_name=names[topic_id],
                partitions=sorted(partitions),
            )
            for topic_id, partitions in assigned.items()
            if topic_id in names
        ],
    )


APIS = (
    Api(68, ConsumerGroupHeartbeatRequest, (0, 1), heartbeat),
    Api(69, ConsumerGroupDescribeRequest, (0, 1), describe),
)
