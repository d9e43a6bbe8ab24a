"""OffsetCommit (8) 2–10 and OffsetFetch (9) 1–10: store and return the offsets that a group has committed.

OffsetCommit: v3 adds the throttle time, v5 removes the retention time, v6 adds the leader epoch, v7 static
members, v8 is flexible, v10 has topic ids.

OffsetFetch: v2 returns all partitions if none are named and adds a top-level error, v5 adds the leader epoch,
v6 is flexible, v7 can wait for stable offsets, v8 takes several groups, v9 adds the member of a consumer
group, v10 topic ids.

Left out on purpose: the retention time of a commit.
"""

from collections.abc import Callable, Generator, Sequence
from struct import Struct
from typing import Any, NamedTuple

from kafka.protocol.consumer.group import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)

from kview.serve.apis.gather import ask_in_parts, in_parts
from kview.serve.call import NO_ID, Api, Call, Steps, id_bytes
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import ErrorCode
from kview.simulate.groups.results import NO_MEMBER, CommitRequest, FetchedOffset, OffsetToCommit
from kview.simulate.metadata import TopicImage
from kview.wire.primitives import INT16, INT32, array_length, string

TOPIC_IDS_FROM = 10
ERROR_OF_THE_WHOLE_FROM = 2
SEVERAL_GROUPS_FROM = 8
MEMBERS_FROM = 9

PARTITIONS_PER_STEP = 32
NO_TAGS = b"\0"
EMPTY = string("", compact=True)

_PARTITION = Struct(">iqi")  # index, committed offset, leader epoch; the metadata and the error follow


class Commits:
    """The offsets in a request, of partitions that exist, and the errors of all that it names."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self.offsets: list[OffsetToCommit] = []
        self._errors: list[list[int]] = []
        self._places: list[tuple[int, int]] = []

    def read(self) -> Steps:
        """Read the request, OffsetCommit or TxnOffsetCommit."""
        version = self._call.version
        for t, entry in enumerate(self._call.request.topics):
            topic = self._call.topic(entry, ids_from=TOPIC_IDS_FROM)
            missing = (
                ErrorCode.UNKNOWN_TOPIC_ID
                if version >= TOPIC_IDS_FROM and topic is None
                else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
            if missing != ErrorCode.UNKNOWN_TOPIC_ID:
                name = entry.name if topic is None else topic.name
                if not self._call.may(AclOperation.READ, ResourceType.TOPIC, name):
                    topic, missing = None, ErrorCode.TOPIC_AUTHORIZATION_FAILED
            self._errors.append([missing] * len(entry.partitions))
            for p, data in enumerate(entry.partitions):
                yield
                if topic is not None and 0 <= data.partition_index < len(topic.partitions):
                    self._places.append((t, p))
                    self.offsets.append(
                        OffsetToCommit(
                            topic.name,
                            data.partition_index,
                            data.committed_offset,
                            data.committed_leader_epoch,
                            data.committed_metadata or "",
                        )
                    )

    def all_errors(self, code: ErrorCode) -> list[list[int]]:
        """Return the same error for every partition."""
        return [[code] * len(errors) for errors in self._errors]

    def errors(self, codes: Sequence[int]) -> list[list[int]]:
        """Return the errors by topic and partition. `codes` are those of the offsets."""
        for (t, p), error in zip(self._places, codes, strict=True):
            self._errors[t][p] = error
        return self._errors


def commit(call: Call) -> Steps:
    """Commit the offsets of partitions that exist, and answer the others with an error."""
    request, commits = call.request, Commits(call)
    yield from commits.read()
    if not call.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        yield from _answer_commit(call, commits.all_errors(ErrorCode.GROUP_AUTHORIZATION_FAILED))
        return

    def ask(part: Sequence[OffsetToCommit], done: Callable[[Sequence[int]], None]) -> None:
        call.cluster.groups(call.broker).commit(
            CommitRequest(
                request.group_id,
                tuple(part),
                request.generation_id_or_member_epoch,
                request.member_id,
                request.group_instance_id,
                knows_epochs=call.version >= MEMBERS_FROM,
            ),
            call.later(lambda result: done(result.error_codes)),
        )

    def committed(codes: Sequence[int]) -> None:
        call.run(_answer_commit(call, commits.errors(codes)))

    yield from ask_in_parts(commits.offsets, ask, committed)


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


class FetchedTopic(NamedTuple):
    """The committed offsets of one topic. `topic_id` is its id, or NO_ID before version 10."""

    name: str
    topic_id: bytes
    rows: Sequence[FetchedOffset]


def fetch_offsets(call: Call) -> Steps:
    """Answer with the committed offsets of each group, either for the partitions requested or for all."""
    request, version = call.request, call.version
    if version >= SEVERAL_GROUPS_FROM:
        pieces = [INT32.pack(0), array_length(len(request.groups), compact=True)]
        for entry in request.groups:
            error, offsets = yield from _fetched(call, entry)
            yield from pack_group(version, entry.group_id, error, offsets, pieces)
        call.answer_packed([*pieces, NO_TAGS])
        return
    error, offsets = yield from _fetched(call, request)
    topics = []
    for each in offsets:
        topics.append(_topic(version, each))
        yield
    call.answer(OffsetFetchResponse(version=version, topics=topics, error_code=error))


def pack_group(
    version: int, group: str, error: int, topics: Sequence[FetchedTopic], pieces: list[bytes]
) -> Steps:
    """Add one group of a response of version 8 or later to `pieces`, byte for byte as the codec encodes it.

    The codec makes an object of each partition, which is most of the time that an answer takes.
    """
    pieces += (string(group, compact=True), array_length(len(topics), compact=True))
    for topic in topics:
        pieces.append(topic.topic_id if version >= TOPIC_IDS_FROM else string(topic.name, compact=True))
        pieces.append(array_length(len(topic.rows), compact=True))
        for done, row in enumerate(topic.rows, start=1):
            head = _PARTITION.pack(row.partition, row.offset, row.leader_epoch)
            metadata = string(row.metadata, compact=True) if row.metadata else EMPTY
            pieces.append(head + metadata + INT16.pack(row.error_code) + NO_TAGS)
            if not done % PARTITIONS_PER_STEP:
                yield
        pieces.append(NO_TAGS)
        yield
    pieces += (INT16.pack(error), NO_TAGS)


def _fetched(call: Call, wanted: Any) -> Generator[None, None, tuple[int, list[FetchedTopic]]]:
    """Return the error code of the group in `wanted`, and its topics with committed offsets.

    If the list of topics in `wanted` is null, all topics for which the group has committed offsets are
    returned.
    """
    version, image = call.version, call.image
    group, asked = wanted.group_id, wanted.topics
    member = (wanted.member_id, wanted.member_epoch) if version >= MEMBERS_FROM else NO_MEMBER
    partitions = unknown = None
    hidden: list[FetchedTopic] = []
    refused = not call.may(AclOperation.DESCRIBE, ResourceType.GROUP, group)
    if asked is not None:
        named = [(call.topic(entry, ids_from=TOPIC_IDS_FROM), entry) for entry in asked]
        if not refused:
            named, hidden = _without_hidden(call, named)
        unknown = [entry for topic, entry in named if topic is None and version >= TOPIC_IDS_FROM]
        partitions = [
            (topic.name if topic is not None else entry.name, p)
            for topic, entry in named
            for p in entry.partition_indexes
            if topic is not None or version < TOPIC_IDS_FROM
        ]
    if refused:
        error = ErrorCode.GROUP_AUTHORIZATION_FAILED
        if version >= ERROR_OF_THE_WHOLE_FROM:
            return error, []
        named_here = (partitions or ()) if call.cluster.world.release.tells_group_errors else ()
        rows = [FetchedOffset(t, p, -1, error_code=error) for t, p in named_here]
        return error, [FetchedTopic(name, NO_ID, of_topic) for name, of_topic in _by_topic(rows).items()]
    coordinator, stable = call.cluster.groups(call.broker), bool(call.request.require_stable)
    fetched = coordinator.fetch_offsets(group, None if partitions is None else (), stable, member)
    offsets = list(fetched.offsets)
    for part in in_parts(partitions or ()):
        offsets += coordinator.fetch_offsets(group, part, stable, member).offsets
        yield
    tells = call.cluster.world.release.tells_group_errors
    if fetched.error_code and version < ERROR_OF_THE_WHOLE_FROM and partitions and not tells:
        offsets = []
    elif fetched.error_code and version < ERROR_OF_THE_WHOLE_FROM and partitions:
        offsets = [FetchedOffset(t, p, -1, error_code=fetched.error_code) for t, p in partitions]
    topics = hidden
    for name, rows in _by_topic(offsets).items():
        if asked is None and not call.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            continue
        if version < TOPIC_IDS_FROM:
            topics.append(FetchedTopic(name, NO_ID, rows))
        elif name in image.topics:
            topics.append(FetchedTopic(name, image.topics[name].topic_id, rows))
    for entry in unknown or ():
        rows = [
            FetchedOffset("", p, -1, error_code=ErrorCode.UNKNOWN_TOPIC_ID) for p in entry.partition_indexes
        ]
        topics.append(FetchedTopic("", id_bytes(entry.topic_id), rows))
    return fetched.error_code, topics


def _by_topic(offsets: Sequence[FetchedOffset]) -> dict[str, list[FetchedOffset]]:
    by_topic: dict[str, list[FetchedOffset]] = {}
    for offset in offsets:
        by_topic.setdefault(offset.topic, []).append(offset)
    return by_topic


Named = list[tuple[TopicImage | None, Any]]


def _without_hidden(call: Call, named: Named) -> tuple[Named, list[FetchedTopic]]:
    """Return the topics that the client may describe, and the answers for the others."""
    kept, hidden = [], []
    for topic, entry in named:
        by_id = call.version >= TOPIC_IDS_FROM
        name = topic.name if topic is not None else entry.name
        if (topic is None and by_id) or call.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            kept.append((topic, entry))
            continue
        error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        rows = [FetchedOffset(name, p, -1, error_code=error) for p in entry.partition_indexes]
        hidden.append(FetchedTopic(name, topic.topic_id if by_id and topic is not None else NO_ID, rows))
    return kept, hidden


def _topic(version: int, topic: FetchedTopic) -> Any:
    per_topic = OffsetFetchResponse.OffsetFetchResponseTopic
    partitions = [
        per_topic.OffsetFetchResponsePartition(
            version=version,
            partition_index=row.partition,
            committed_offset=row.offset,
            committed_leader_epoch=row.leader_epoch,
            metadata=row.metadata,
            error_code=row.error_code,
        )
        for row in topic.rows
    ]
    return per_topic(version=version, name=topic.name, partitions=partitions)


APIS = (
    Api(8, OffsetCommitRequest, (2, 10), commit),
    Api(9, OffsetFetchRequest, (1, 10), fetch_offsets, throttle_from=8),
)
