"""DescribeShareGroupOffsets (90) 0–1, AlterShareGroupOffsets (91) 0 and DeleteShareGroupOffsets (92) 0: where
share groups start in partitions.

v1 of 90 adds the lag. The offsets of a group that has members are not changed.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from kview.serve.apis.gather import Gather
from kview.serve.call import Api, Call, Steps, topic_uuid
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import MESSAGES, ErrorCode
from kview.simulate.features import SHARE_VERSION
from kview.simulate.groups.share_offsets import NO_ID, StartOffset, TopicCode, TopicRows
from kview.wire.group_messages import DescribeShareGroupOffsetsRequest, DescribeShareGroupOffsetsResponse
from kview.wire.member_messages import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)

LAG_FROM = 1
GROUP_MESSAGES = {
    ErrorCode.UNKNOWN_SERVER_ERROR: (
        "The server experienced an unexpected error when processing the request."
    ),
}
UNSUPPORTED = "The version of API is not supported."
HIDDEN = ErrorCode.TOPIC_AUTHORIZATION_FAILED, MESSAGES[ErrorCode.TOPIC_AUTHORIZATION_FAILED]


def describe(call: Call) -> Steps:
    """Answer with where each group starts in the partitions that it reads."""
    response, version = DescribeShareGroupOffsetsResponse, call.version
    gather = Gather(call, lambda groups: response(version=version, groups=groups))
    for asked in call.request.groups:
        yield
        _describe_group(call, asked, partial(gather.put, gather.place()))
    gather.close()


def _describe_group(call: Call, asked: Any, put: Callable[[Any], None]) -> None:
    """Describe one group. Topics that the client may not know are left out unless it has named them."""
    per_group = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup

    def may_describe(topic: str) -> bool:
        return call.may(AclOperation.DESCRIBE, ResourceType.TOPIC, topic)

    topics: list[tuple[str, Sequence[int]]] | None = None
    hidden: list[TopicRows] = []
    if asked.topics is not None:
        named = [(topic.topic_name, topic.partitions) for topic in asked.topics]
        topics = [one for one in named if may_describe(one[0])]
        hidden = [
            TopicRows(name, NO_ID, tuple(StartOffset(number, -1, 0, -1, HIDDEN) for number in numbers))
            for name, numbers in named
            if not may_describe(name)
        ]

    def described(code: ErrorCode, rows: Sequence[TopicRows]) -> None:
        if code is ErrorCode.NONE:
            rows = [*(topic for topic in rows if topics is not None or may_describe(topic.topic)), *hidden]
        put(
            per_group(
                version=call.version,
                group_id=asked.group_id,
                topics=[_described(call.version, per_group, topic) for topic in rows],
                error_code=code,
                error_message=GROUP_MESSAGES.get(code),
            )
        )

    if not call.image.features.get(SHARE_VERSION):
        described(ErrorCode.UNSUPPORTED_VERSION, ())
    elif not call.may(AclOperation.DESCRIBE, ResourceType.GROUP, asked.group_id):
        described(ErrorCode.GROUP_AUTHORIZATION_FAILED, ())
    elif topics is not None and any(not partitions for _, partitions in topics):
        described(ErrorCode.UNKNOWN_SERVER_ERROR, ())  # as in Kafka, where nobody expects it
    else:
        coordinator = call.cluster.groups(call.broker)
        coordinator.describe_share_offsets(asked.group_id, topics, call.later(described))


def _described(version: int, per_group: Any, topic: TopicRows) -> Any:
    per_topic = per_group.DescribeShareGroupOffsetsResponseTopic
    rows = []
    for row in topic.rows:
        assert isinstance(row, StartOffset)
        lag = {"lag": row.lag} if version >= LAG_FROM else {}
        rows.append(
            per_topic.DescribeShareGroupOffsetsResponsePartition(
                version=version,
                partition_index=row.partition,
                start_offset=row.offset,
                leader_epoch=row.leader_epoch,
                error_code=row.code[0],
                error_message=row.code[1],
                **lag,
            )
        )
    return per_topic(
        version=version, topic_name=topic.topic, topic_id=topic_uuid(topic.topic_id), partitions=rows
    )


def _refusal(call: Call, operation: AclOperation) -> tuple[ErrorCode, str | None] | None:
    """Return why the client cannot do this with the group, None if it can."""
    code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    if not call.image.features.get(SHARE_VERSION):
        code = ErrorCode.UNSUPPORTED_VERSION
    elif call.may(operation, ResourceType.GROUP, call.request.group_id):
        return None
    return code, MESSAGES.get(code, UNSUPPORTED)


def alter(call: Call) -> None:
    """Let a group start elsewhere, and answer once the share coordinators have written that."""
    response, version = AlterShareGroupOffsetsResponse, call.version
    per_topic = response.AlterShareGroupOffsetsResponseTopic
    asked: list[tuple[str, list[tuple[int, int]]]] = []
    hidden: list[TopicRows] = []

    def altered(code: ErrorCode, message: str | None, topics: Sequence[TopicRows]) -> None:
        rows = [*hidden, *topics] if code is ErrorCode.NONE else topics
        call.answer(
            response(
                version=version,
                error_code=code,
                error_message=message,
                responses=[
                    per_topic(
                        version=version,
                        topic_name=topic.topic,
                        topic_id=topic_uuid(topic.topic_id),
                        partitions=[
                            per_topic.AlterShareGroupOffsetsResponsePartition(
                                version=version,
                                partition_index=row[0],
                                error_code=row[1][0],
                                error_message=row[1][1],
                            )
                            for row in topic.rows
                            if not isinstance(row, StartOffset)
                        ],
                    )
                    for topic in rows
                ],
            )
        )

    if refused := _refusal(call, AclOperation.READ):
        altered(*refused, ())
        return
    for topic in call.request.topics:
        if call.may(AclOperation.READ, ResourceType.TOPIC, topic.topic_name):
            asked.append((topic.topic_name, [(p.partition_index, p.start_offset) for p in topic.partitions]))
        else:
            codes = tuple((p.partition_index, HIDDEN) for p in topic.partitions)
            hidden.append(TopicRows(topic.topic_name, NO_ID, codes))
    call.cluster.groups(call.broker).alter_share_offsets(call.request.group_id, asked, call.later(altered))


def delete(call: Call) -> None:
    """Forget where a group starts in topics, and answer once the share coordinators have written that."""
    response, version = DeleteShareGroupOffsetsResponse, call.version
    names: list[str] = []
    hidden: list[TopicCode] = []

    def deleted(code: ErrorCode, message: str | None, topics: Sequence[TopicCode]) -> None:
        rows = [*hidden, *topics] if code is ErrorCode.NONE else topics
        call.answer(
            response(
                version=version,
                error_code=code,
                error_message=message,
                responses=[
                    response.DeleteShareGroupOffsetsResponseTopic(
                        version=version,
                        topic_name=topic.topic,
                        topic_id=topic_uuid(topic.topic_id),
                        error_code=topic.code[0],
                        error_message=topic.code[1],
                    )
                    for topic in rows
                ],
            )
        )

    if refused := _refusal(call, AclOperation.DELETE):
        deleted(*refused, ())
        return
    for topic in call.request.topics:
        if call.may(AclOperation.READ, ResourceType.TOPIC, topic.topic_name):
            names.append(topic.topic_name)
        else:
            hidden.append(TopicCode(topic.topic_name, NO_ID, HIDDEN))
    if hidden and not names:
        deleted(ErrorCode.NONE, None, ())
        return
    call.cluster.groups(call.broker).delete_share_offsets(call.request.group_id, names, call.later(deleted))


APIS = (
    Api(90, DescribeShareGroupOffsetsRequest, (0, 1), describe),
    Api(91, AlterShareGroupOffsetsRequest, (0, 0), alter),
    Api(92, DeleteShareGroupOffsetsRequest, (0, 0), delete),
)
