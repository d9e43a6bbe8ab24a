"""ConsumerGroupHeartbeat (68) 0–1, ConsumerGroupDescribe (69) 0–1: members of consumer groups (KIP-848).

ConsumerGroupHeartbeat: v1 adds regular expressions, and a member makes its id itself. ConsumerGroupDescribe:
v1 adds whether a member uses the consumer protocol or the classic one.
"""

from collections.abc import Callable, Generator, Iterable
from functools import partial
from typing import Any, NamedTuple

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
from kview.simulate.releases import REBALANCE_PROTOCOLS
from kview.simulate.setting import items
from kview.simulate.world import CONSUMER
from kview.wire.group_messages import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse
from kview.wire.member_messages import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse

REGEX_FROM = MAKES_ITS_ID_FROM = 1
CLASSIC_MEMBER, CONSUMER_MEMBER = 0, 1
HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


def heartbeat(call: Call) -> None:
    """Let a member join, stay or leave, and answer when that is committed."""
    request, version = call.request, call.version

    def answer(result: ConsumerHeartbeatResult) -> None:
        call.answer(heartbeat_response(ConsumerGroupHeartbeatResponse, version, result))

    topics = request.subscribed_topic_names
    refused = heartbeat_refusal(call, GROUP_VERSION, topics)
    if refused is not ErrorCode.NONE:
        answer(ConsumerHeartbeatResult(refused))
        return
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


def offered(call: Call, feature: str) -> bool:
    """Return whether there are groups of the kind that needs this feature. Before Kafka 4.0, a setting of
    brokers is in the place of the feature of consumer groups."""
    level = call.image.features.get(feature)
    if level or feature != GROUP_VERSION or feature in call.cluster.world.release.features:
        return bool(level)
    return CONSUMER in items(call.cluster.settings.text(REBALANCE_PROTOCOLS))


def heartbeat_refusal(call: Call, feature: str, topics: Iterable[str] | None) -> ErrorCode:
    """Return why a heartbeat of a member that reads these topics is refused, or NONE. The feature is the one
    that such groups need."""
    if not offered(call, feature):
        return ErrorCode.UNSUPPORTED_VERSION
    if not call.may(AclOperation.READ, ResourceType.GROUP, call.request.group_id):
        return ErrorCode.GROUP_AUTHORIZATION_FAILED
    if not all(_may_describe(call, topic) for topic in topics or ()):
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


class GroupKind(NamedTuple):
    """How groups of a kind are described: what `described` says about one, the topics that its client must be
    allowed to describe, and what is answered for a member and for the group."""

    feature: str
    described: Any
    topics: Callable[[Call, Any], Iterable[str]]
    member: Callable[[Call, Any, Any], Any]
    row: Callable[[Call, Any, list[Any]], Any]


def described_groups(
    call: Call, kind: GroupKind, describe: Callable[[str], Any]
) -> Generator[None, None, list[Any]]:
    """Return what is answered for each group that is asked for, which the coordinator describes."""
    groups = []
    for name in sorted(dict.fromkeys(call.request.group_ids), key=bool):  # '' first, as in Kafka
        if not offered(call, kind.feature):
            group = kind.described(name, ErrorCode.UNSUPPORTED_VERSION)
        elif not call.may(AclOperation.DESCRIBE, ResourceType.GROUP, name):
            group = kind.described(name, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        else:
            group = describe(name)
            knows = call.cluster.authorizer is None
            if not knows and not all(_may_describe(call, topic) for topic in kind.topics(call, group)):
                group = kind.described(name, ErrorCode.TOPIC_AUTHORIZATION_FAILED, HIDDEN_TOPICS)
        members = []
        for member in group.members:
            members.append(kind.member(call, group, member))
            yield
        groups.append(kind.row(call, group, members))
        yield
    return groups


def describe(call: Call) -> Steps:
    """Answer with the state of each group and with what its members have and are to have."""
    coordinator = call.cluster.groups(call.broker)
    groups = yield from described_groups(call, _KIND, coordinator.describe_consumer_group)
    call.answer(ConsumerGroupDescribeResponse(version=call.version, groups=groups))


def _topics(call: Call, group: DescribedConsumerGroup) -> set[str]:
    """Return all topics that the members have and are to have."""
    names = call.image.topic_names
    return {
        names[topic_id]
        for member in group.members
        for topic_id in (*_has(member), *group.targets.get(member.member_id, {}))
        if topic_id in names
    }


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


def _member(call: Call, group: DescribedConsumerGroup, member: ConsumerMember) -> Any:
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
        target_assignment=_assignment(call, group.targets.get(member.member_id, {})),
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


_KIND = GroupKind(GROUP_VERSION, DescribedConsumerGroup, _topics, _member, _described)

APIS = (
    Api(68, ConsumerGroupHeartbeatRequest, (0, 1), heartbeat),
    Api(69, ConsumerGroupDescribeRequest, (0, 1), describe),
)
