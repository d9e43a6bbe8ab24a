"""ListOffsets (2), versions 2–5, as arrays. Other versions use kafka-python's codec.

v4 adds leader epochs, v5 the error OFFSET_NOT_AVAILABLE. v6 is flexible, which costs a byte per record and
adds nothing that kview needs. Every broker from Kafka 2.2 to 4.3 supports v5.
"""

import struct
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
from kafka.protocol.consumer.offsets import ListOffsetsRequest, ListOffsetsResponse
from msgspec import Struct
from numpy.typing import NDArray

from kview.wire.kafka_internals import Message
from kview.wire.primitives import INT16, INT32, Reader

API_KEY = 2
LATEST = -1
"""Asks for the high watermark, with read_committed for the last stable offset, and with DEBUGGING_REPLICA for
the log end."""
EARLIEST = -2
CONSUMER = -1
DEBUGGING_REPLICA = -2
"""With this replica id, every replica answers with its own log end."""

_ARRAY_VERSIONS = range(2, 6)
_EPOCHS_FROM = 4


def _request_type(version: int) -> np.dtype[np.void]:
    epoch = [("epoch", ">i4")] if version >= _EPOCHS_FROM else []
    return np.dtype([("partition", ">i4"), *epoch, ("timestamp", ">i8")])


def _answer_type(version: int) -> np.dtype[np.void]:
    epoch = [("epoch", ">i4")] if version >= _EPOCHS_FROM else []
    return np.dtype([("partition", ">i4"), ("error", ">i2"), ("timestamp", ">i8"), ("offset", ">i8"), *epoch])


class TopicOffsets(Struct, frozen=True):
    """One topic of an answer, as arrays of equal length in the broker's own order."""

    topic: str
    partition: NDArray[np.int32]
    error: NDArray[np.int16]
    timestamp: NDArray[np.int64]
    offset: NDArray[np.int64]


class ListOffsetsAnswer(Struct, frozen=True):
    """A decoded answer, with topics in the broker's own order.

    The arrays have the partitions of all topics, one topic after the other: arrays of their own for each of
    9,000 topics are 100 MB for the answers to one observation.
    """

    throttle_time_ms: int
    names: tuple[str, ...]
    counts: tuple[int, ...]
    """The number of rows of each topic."""
    partition: NDArray[np.int32]
    error: NDArray[np.int16]
    timestamp: NDArray[np.int64]
    offset: NDArray[np.int64]

    @property
    def topics(self) -> tuple[TopicOffsets, ...]:
        """The answer for each topic, made of slices."""
        bounds = pairwise((0, *accumulate(self.counts)))
        return tuple(
            TopicOffsets(name, self.partition[a:b], self.error[a:b], self.timestamp[a:b], self.offset[a:b])
            for name, (a, b) in zip(self.names, bounds, strict=True)
        )


def best_version(lowest: int, highest: int) -> int:
    """Return the version to use with a broker that supports `lowest` to `highest`, which is 5 if possible."""
    return min(highest, max(lowest, _ARRAY_VERSIONS[-1]))


def request(
    version: int,
    topics: Sequence[tuple[str, NDArray[np.int32]]],
    timestamp: int,
    replica_id: int = CONSUMER,
    read_committed: bool = False,
) -> Message[ListOffsetsAnswer]:
    """Build a request for the offset at `timestamp` in each partition of `topics`."""
    if version not in _ARRAY_VERSIONS:
        return _library_request(version, topics, timestamp, replica_id, read_committed)
    layout = _request_type(version)
    parts = [struct.pack(">ibi", replica_id, read_committed, len(topics))]
    ends = list(accumulate(len(partitions) for _, partitions in topics))
    records = np.empty(ends[-1] if ends else 0, layout)
    if ends:
        records["partition"] = np.concatenate([partitions for _, partitions in topics])
    records["timestamp"] = timestamp
    if version >= _EPOCHS_FROM:
        records["epoch"] = -1
    rows, size = records.tobytes(), layout.itemsize
    begin = 0
    for (topic, _), end in zip(topics, ends, strict=True):
        name = topic.encode()
        parts += (INT16.pack(len(name)), name, INT32.pack(end - begin), rows[begin * size : end * size])
        begin = end
    return Message(API_KEY, version, False, b"".join(parts), lambda data: decode(version, data))


def decode(version: int, data: memoryview) -> ListOffsetsAnswer:
    """Decode the body of a version 2–5 answer. Raises MalformedBytes if the bytes are not such an answer."""
    layout = _answer_type(version)
    reader = Reader(data)
    throttle_time_ms = reader.int32()
    names, counts, parts = [], [], []
    for name, rows in reader.rows_by_topic(reader.array_length(), layout.itemsize):
        names.append(name)
        counts.append(len(rows) // layout.itemsize)
        parts.append(rows)
    reader.end()
    records = np.frombuffer(b"".join(parts), layout)
    return ListOffsetsAnswer(
        throttle_time_ms,
        tuple(names),
        tuple(counts),
        records["partition"].astype(np.int32),
        records["error"].astype(np.int16),
        records["timestamp"].astype(np.int64),
        records["offset"].astype(np.int64),
    )


def _library_request(
    version: int,
    topics: Sequence[tuple[str, NDArray[np.int32]]],
    timestamp: int,
    replica_id: int,
    read_committed: bool,
) -> Message[ListOffsetsAnswer]:
    topic_class = ListOffsetsRequest.ListOffsetsTopic
    message = ListOffsetsRequest(
        version=version,
        replica_id=replica_id,
        isolation_level=int(read_committed),
        topics=[
            topic_class(
                version=version,
                name=topic,
                partitions=[
                    topic_class.ListOffsetsPartition(
                        version=version, partition_index=p, current_leader_epoch=-1, timestamp=timestamp
                    )
                    for p in partitions.tolist()
                ],
            )
            for topic, partitions in topics
        ],
    )
    flexible = ListOffsetsRequest.flexible_version_q(version)

    def decode_answer(data: memoryview) -> ListOffsetsAnswer:
        return from_library(ListOffsetsResponse[version].decode(data))

    return Message(API_KEY, version, flexible, message.encode(), decode_answer)


def from_library(answer: Any) -> ListOffsetsAnswer:
    """Convert kafka-python's response object to arrays."""
    partitions = [p for topic in answer.topics for p in topic.partitions]
    return ListOffsetsAnswer(
        answer.throttle_time_ms,
        tuple(topic.name for topic in answer.topics),
        tuple(len(topic.partitions) for topic in answer.topics),
        np.array([p.partition_index for p in partitions], np.int32),
        np.array([p.error_code for p in partitions], np.int16),
        np.array([p.timestamp for p in partitions], np.int64),
        np.array([p.offset for p in partitions], np.int64),
    )
