"""OffsetCommit (8) 2–10 and OffsetFetch (9) 1–10: store and return the offsets that a group has committed.

OffsetCommit: v3 adds the throttle time, v5 removes the retention time, v6 adds the leader epoch, v7 static
members, v8 is flexible, v10 has topic ids.

OffsetFetch: v2 returns all partitions if none are named and adds a top-level error, v5 adds the leader epoch,
v6 is flexible, v7 can wait for stable offsets, v8 takes several groups, v9 adds the member of the new
consumer protocol, v10 topic ids.

Left out on purpose: the retention time of a commit, and member epochs (groups of the new protocol).
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any
from uuid import UUID

from kafka.protocol.consumer import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)

from kview.serve.apis.gather import ask_in_parts, in_parts
from kview.serve.call import Api, Call, Steps, topic_uuid
from kview.simulate.codes import ErrorCode
from kview.simulate.groups.results import CommitRequest, FetchedOffset, OffsetToCommit

TOPIC_IDS_FROM = 10
ERROR_OF_THE_WHOLE_FROM = 2
SEVERAL_GROUPS_FROM = 8


def commit(call: Call) -> Steps:
    """Commit the offsets of partitions that exist, and answer the others with an error."""
    request, version = call.request, call.version
    errors: list[list[int]] = []
    offsets: list[OffsetToCommit] = []
    places: list[tuple[int, int]] = []
    for t, entry in enumerate(request.topics):
        topic = call.topic(entry, ids_from=TOPIC_IDS_FROM)
        missing = (
            ErrorCode.UNKNOWN_TOPIC_ID
            if version >= TOPIC_IDS_FROM and topic is None
            else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        errors.append([missing] * len(entry.partitions))
        for p, data in enumerate(entry.partitions):
            yield
            if topic is not None and 0 <= data.partition_index < len(topic.partitions):
                places.append((t, p))
                offsets.append(
                    OffsetToCommit(
                        topic.name,
                        data.partition_index,
                        data.committed_offset,
                        data.committed_leader_epoch,
                        data.committed_metadata or "",
                    )
                )

    def ask(part: Sequence[OffsetToCommit], done: Callable[[Sequence[int]], None]) -> None:
        call.cluster.groups(call.broker).commit(
            CommitRequest(
                request.group_id,
                tuple(part),
                request.generation_id_or_member_epoch,
                request.member_id,
                request.group_instance_id,
            ),
            call.later(lambda result: done(result.error_codes)),
        )

    def committed(codes: Sequence[int]) -> None:
        for (t, p), error in zip(places, codes, strict=True):
            errors[t][p] = error
        call.run(_answer_commit(call, errors))

    yield from ask_in_parts(offsets, ask, committed)


def _answer_commit(call: Call, errors: list[list[int]]) -> Steps:
    per_topic = OffsetCommitResponse.OffsetCommitResponseTopic
    version = call.version
    topics = []
    for entry, topic_errors in zip(call.request.topics, errors, strict=True):
        partitions = [
            per_topic.OffsetCommitResponsePartition(
                version=version, partition_index=data.partition_index, error_code=error
            )
            for data, error in zip(entry.partitions, topic_errors, strict=True)
        ]
        topics.append(
            per_topic(version=version, name=entry.name, topic_id=entry.topic_id, partitions=partitions)
        )
        yield
    call.answer(OffsetCommitResponse(version=version, topics=topics))


def fetch_offsets(call: Call) -> Steps:
    """Answer with the committed offsets of each group, either for the partitions requested or for all."""
    request, version = call.request, call.version
    if version >= SEVERAL_GROUPS_FROM:
        groups = []
        for entry in request.groups:
            groups.append((yield from _group(call, entry)))
            yield
        call.answer(OffsetFetchResponse(version=version, groups=groups))
        return
    error, topics = yield from _fetched(
        call, request.group_id, request.topics, OffsetFetchResponse.OffsetFetchResponseTopic
    )
    call.answer(OffsetFetchResponse(version=version, topics=topics, error_code=error))


def _group(call: Call, entry: Any) -> Generator[None, None, Any]:
    per_group = OffsetFetchResponse.OffsetFetchResponseGroup
    error, topics = yield from _fetched(
        call, entry.group_id, entry.topics, per_group.OffsetFetchResponseTopics
    )
    return per_group(version=call.version, group_id=entry.group_id, topics=topics, error_code=error)


def _fetched(
    call: Call, group: str, asked: Any, per_topic: Any
) -> Generator[None, None, tuple[int, list[Any]]]:
    """Return one group's error code and its topics with committed offsets.

    `asked` lists the requested topics. If it is null, all topics for which the group has committed offsets
    are returned.
    """
    version, image = call.version, call.image
    partitions = unknown = None
    if asked is not None:
        named = [(call.topic(entry, ids_from=TOPIC_IDS_FROM), entry) for entry in asked]
        unknown = [entry for topic, entry in named if topic is None and version >= TOPIC_IDS_FROM]
        partitions = [
            (topic.name if topic is not None else entry.name, p)
            for topic, entry in named
            for p in entry.partition_indexes
            if topic is not None or version < TOPIC_IDS_FROM
        ]
    coordinator, stable = call.cluster.groups(call.broker), bool(call.request.require_stable)
    fetched = coordinator.fetch_offsets(group, None if partitions is None else (), stable)
    offsets = list(fetched.offsets)
    for part in in_parts(partitions or ()):
        offsets += coordinator.fetch_offsets(group, part, stable).offsets
        yield
    if fetched.error_code and version < ERROR_OF_THE_WHOLE_FROM and partitions:
        offsets = [FetchedOffset(t, p, -1, error_code=fetched.error_code) for t, p in partitions]
    by_topic: dict[str, list[FetchedOffset]] = {}
    for offset in offsets:
        by_topic.setdefault(offset.topic, []).append(offset)
    topics = []
    for name, rows in by_topic.items():
        yield
        if version < TOPIC_IDS_FROM:
            topics.append(_topic(call, per_topic, rows, name=name))
        elif name in image.topics:
            topics.append(_topic(call, per_topic, rows, topic_id=topic_uuid(image.topics[name].topic_id)))
    for entry in unknown or ():
        rows = [
            FetchedOffset("", p, -1, error_code=ErrorCode.UNKNOWN_TOPIC_ID) for p in entry.partition_indexes
        ]
        topics.append(_topic(call, per_topic, rows, topic_id=entry.topic_id or UUID(int=0)))
    return fetched.error_code, topics


def _topic(call: Call, per_topic: Any, rows: list[FetchedOffset], **names: Any) -> Any:
    version = call.version
    grouped = version >= SEVERAL_GROUPS_FROM
    per_partition = (
        per_topic.OffsetFetchResponsePartitions if grouped else per_topic.OffsetFetchResponsePartition
    )
    partitions = []
    for row in rows:
        partitions.append(
            per_partition(
                version=version,
                partition_index=row.partition,
                committed_offset=row.offset,
                committed_leader_epoch=row.leader_epoch,
                metadata=row.metadata,
                error_code=row.error_code,
            )
        )
    return per_topic(version=version, partitions=partitions, **names)


APIS = (Api(8, OffsetCommitRequest, (2, 10), commit), Api(9, OffsetFetchRequest, (1, 10), fetch_offsets))
