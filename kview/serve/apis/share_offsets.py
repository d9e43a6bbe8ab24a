"""DescribeShareGroupOffsets (90) 0–1, AlterShareGroupOffsets (91) 0 and DeleteShareGroupOffsets (92) 0: where
share groups start in partitions.

v1 of 90 adds the lag. The offsets of a group that has members are not changed.
"""

from collections.abc import Sequence
from typing import Any

from kview.serve.apis.gather import Gather
from kview.serve.call import Api, Call, Steps, topic_uuid
from kview.simulate.codes import ErrorCode
from kview.simulate.groups.share_offsets import StartOffset, TopicCode, TopicRows
from kview.wire.group_messages import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)

LAG_FROM = 1
UNEXPECTED = "The server experienced an unexpected error when processing the request."


def describe(call: Call) -> Steps:
    """Answer with where each group starts in the partitions that it reads."""
    response, version = DescribeShareGroupOffsetsResponse, call.version
    per_group = response.DescribeShareGroupOffsetsResponseGroup
    gather = Gather(call, lambda groups: response(version=version, groups=groups))
    for asked in call.request.groups:
        yield
        place = gather.place()
        topics = None
        if asked.topics is not None:
            topics = [(topic.topic_name, topic.partitions) for topic in asked.topics]

        def described(
            code: ErrorCode, rows: Sequence[TopicRows], place: int = place, group: str = asked.group_id
        ) -> None:
            gather.put(
                place,
                per_group(
                    version=version,
                    group_id=group,
                    topics=[_described(version, per_group, topic) for topic in rows],
                    error_code=code,
                    error_message=UNEXPECTED if code is ErrorCode.UNKNOWN_SERVER_ERROR else None,
                ),
            )

        if topics is not None and any(not partitions for _, partitions in topics):
            described(ErrorCode.UNKNOWN_SERVER_ERROR, ())  # as in Kafka, where nobody expects it
            continue
        call.cluster.groups(call.broker).describe_share_offsets(asked.group_id, topics, call.later(described))
    gather.close()


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


def alter(call: Call) -> None:
    """Let a group start elsewhere, and answer once the share coordinators have written that."""
    response, version = AlterShareGroupOffsetsResponse, call.version
    per_topic = response.AlterShareGroupOffsetsResponseTopic

    def altered(code: ErrorCode, message: str | None, topics: Sequence[TopicRows]) -> None:
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
                    for topic in topics
                ],
            )
        )

    asked = [
        (topic.topic_name, [(p.partition_index, p.start_offset) for p in topic.partitions])
        for topic in call.request.topics
    ]
    call.cluster.groups(call.broker).alter_share_offsets(call.request.group_id, asked, call.later(altered))


def delete(call: Call) -> None:
    """Forget where a group starts in topics, and answer once the share coordinators have written that."""
    response, version = DeleteShareGroupOffsetsResponse, call.version

    def deleted(code: ErrorCode, message: str | None, topics: Sequence[TopicCode]) -> None:
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
                    for topic in topics
                ],
            )
        )

    names = [topic.topic_name for topic in call.request.topics]
    call.cluster.groups(call.broker).delete_share_offsets(call.request.group_id, names, call.later(deleted))


APIS = (
    Api(90, DescribeShareGroupOffsetsRequest, (0, 1), describe),
    Api(91, AlterShareGroupOffsetsRequest, (0, 0), alter),
    Api(92, DeleteShareGroupOffsetsRequest, (0, 0), delete),
)
