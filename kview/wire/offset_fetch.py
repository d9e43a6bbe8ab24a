"""OffsetFetch (9), versions 8 and 9, as arrays. Versions 2–7 use kafka-python's codec.

A request always asks for all committed offsets of a group. v8 takes several groups, v9 adds a member id and
epoch (sent as null and −1). v10 names topics only by id and is not used.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from kafka.protocol.consumer.group import OffsetFetchRequest, OffsetFetchResponse
from msgspec import Struct
from numpy.typing import NDArray

from kview.wire.kafka_internals import Message
from kview.wire.primitives import MalformedBytes, Reader, array_length, string

API_KEY = 9
BATCHED_FROM = 8
"""The first version that takes several groups."""
HIGHEST = 9

_RECORD = np.dtype([
    ("partition", ">i4"), ("offset", ">i8"), ("epoch", ">i4"), ("metadata", "u1"), ("error", ">i2"),
    ("tags", "u1"),
])  # fmt: skip
_NULL_OR_EMPTY = 1
"""The length byte of a compact string is 0 for null and 1 for ''."""


class TopicCommits(Struct, frozen=True):
    """The offsets that one group has committed for one topic."""

    topic: str
    partition: NDArray[np.int32]
    offset: NDArray[np.int64]
    error: NDArray[np.int16]


class GroupCommits(Struct, frozen=True):
    """The offsets that one group has committed, or the error for that group."""

    group: str
    error: int
    topics: tuple[TopicCommits, ...]


class OffsetFetchAnswer(Struct, frozen=True):
    """A decoded answer for one or more groups."""

    throttle_time_ms: int
    groups: tuple[GroupCommits, ...]


def request(version: int, groups: Sequence[str]) -> Message[OffsetFetchAnswer]:
    """Build a request for every committed offset of `groups`.

    Below version 8, there must be exactly one group.
    """
    if version < BATCHED_FROM:
        (group,) = groups
        message = OffsetFetchRequest(version=version, group_id=group, topics=None, require_stable=False)
        flexible = OffsetFetchRequest.flexible_version_q(version)
        return Message(
            API_KEY, version, flexible, message.encode(), lambda data: _single(version, group, data)
        )
    # A null topic list means all topics. Empty tagged fields follow.
    member = b"\x00\xff\xff\xff\xff" if version >= 9 else b""
    body = array_length(len(groups), True) + b"".join(string(g, True) + member + b"\x00\x00" for g in groups)
    require_stable, tags = b"\x00", b"\x00"
    return Message(API_KEY, version, True, body + require_stable + tags, lambda data: decode(version, data))


def decode(version: int, data: memoryview) -> OffsetFetchAnswer:
    """Decode the body of a version 8 or 9 answer, with kafka-python's codec if a commit has metadata."""
    try:
        return decode_arrays(data)
    except MalformedBytes:
        return from_library(OffsetFetchResponse[version].decode(data))


def decode_arrays(data: memoryview) -> OffsetFetchAnswer:
    """Decode the body of a version 8 or 9 answer. Groups share arrays that are equal.

    Raises MalformedBytes if the answer has metadata or tagged fields.
    """
    reader = Reader(data)
    throttle_time_ms = reader.int32()
    groups: list[tuple[str, int, list[tuple[str, int]]]] = []
    rows = []
    for _ in range(reader.array_length(compact=True)):
        group = reader.nullable_compact_string()
        topics = []
        for _ in range(reader.array_length(compact=True)):
            topic, count = reader.nullable_compact_string(), reader.array_length(compact=True)
            topics.append((topic or "", count))
            rows.append(reader.take(count * _RECORD.itemsize))
            reader.no_tagged_fields()
        groups.append((group or "", reader.int16(), topics))
        reader.no_tagged_fields()
    reader.no_tagged_fields()
    reader.end()
    records = np.frombuffer(b"".join(rows), _RECORD)
    if records["tags"].any() or (records["metadata"] > _NULL_OR_EMPTY).any():
        raise MalformedBytes("metadata or tagged fields")
    return OffsetFetchAnswer(throttle_time_ms, _of_groups(groups, records))


def _of_groups(
    groups: Sequence[tuple[str, int, Sequence[tuple[str, int]]]], records: NDArray[Any]
) -> tuple[GroupCommits, ...]:
    """Return the commits of (group, error, its topics with their numbers of records).

    Groups share arrays that are equal. None is a part of a larger one, which would stay for as long as the
    commits of any group.
    """
    partitions, errors = records["partition"].astype(np.int32), records["error"].astype(np.int16)
    offsets = records["offset"].astype(np.int64)
    shared: dict[bytes, tuple[NDArray[np.int32], NDArray[np.int16]]] = {}
    out, begin = [], 0
    for group, error, topics in groups:
        commits = []
        for topic, count in topics:
            end = begin + count
            key = partitions[begin:end].tobytes() + errors[begin:end].tobytes()
            if key not in shared:
                shared[key] = partitions[begin:end].copy(), errors[begin:end].copy()
            partition, code = shared[key]
            commits.append(TopicCommits(topic, partition, offsets[begin:end].copy(), code))
            begin = end
        out.append(GroupCommits(group, error, tuple(commits)))
    return tuple(out)


def _topics(topics: Any) -> tuple[TopicCommits, ...]:
    return tuple(
        TopicCommits(
            topic.name,
            np.array([p.partition_index for p in topic.partitions], np.int32),
            np.array([p.committed_offset for p in topic.partitions], np.int64),
            np.array([p.error_code for p in topic.partitions], np.int16),
        )
        for topic in topics
    )


def from_library(answer: Any) -> OffsetFetchAnswer:
    """Convert kafka-python's response object of version 8 or 9 to arrays."""
    return OffsetFetchAnswer(
        answer.throttle_time_ms,
        tuple(GroupCommits(g.group_id, g.error_code, _topics(g.topics)) for g in answer.groups),
    )


def _single(version: int, group: str, data: memoryview) -> OffsetFetchAnswer:
    answer = OffsetFetchResponse[version].decode(data)
    return OffsetFetchAnswer(
        answer.throttle_time_ms, (GroupCommits(group, answer.error_code, _topics(answer.topics)),)
    )
