"""Fetch (1), versions 4–10, of the records of a topic's partitions as a consumer that waits for nothing.

kafka-python's codec encodes and decodes the messages. But its connections log an answer that cannot be
decoded, with all its bytes, and nobody's records may get into a log. So decoding here never fails, and the
answer is a type of its own, whose repr has no records.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kafka.protocol.consumer.fetch import FetchRequest, FetchResponse

from kview.wire.kafka_internals import Message

API_KEY = 1
VERSIONS = (4, 10)
"""4 has the isolation level, 10 zstd. From version 11 on, followers answer, too. Kafka 0.11 to 4.3 support
one of these versions."""
A = TypeVar("A")
CONSUMER = -1
"""The replica id of a client that is not a broker. A follower's fetches count for the ISR."""


@dataclass(frozen=True, slots=True)
class FetchAnswer:
    """The answer about the partition asked for, whose error is None if it is not in the answer.

    `aborted` are the aborted transactions as (producer, first offset). `malformed`: it cannot be decoded. A
    broker that enforces a quota may answer without records, and wants to be left alone for `throttle_ms`.
    """

    error: int = 0
    malformed: bool = False
    partition_error: int | None = None
    aborted: tuple[tuple[int, int], ...] = ()
    records: bytes = field(default=b"", repr=False)
    throttle_ms: int = 0
    high_watermark: int = -1
    last_stable: int = -1


@dataclass(frozen=True, slots=True)
class PartitionsAnswer:
    """The answer about several partitions, by number. `malformed`: it cannot be decoded."""

    error: int = 0
    malformed: bool = False
    partitions: dict[int, FetchAnswer] = field(default_factory=dict)


class FetchMessage(Message[A]):
    """A Fetch request. `replica_id` says who fetches."""

    replica_id = CONSUMER


def request(
    version: int, topic: str, partition: int, offset: int, most_bytes: int, isolation: int
) -> FetchMessage[FetchAnswer]:
    """Build a request for records from `offset` on.

    A broker answers with at most `most_bytes` of them, but with at least one batch if there is one.
    """
    message = _encoded(version, topic, [(partition, offset)], most_bytes, most_bytes, isolation)

    def decode(data: memoryview) -> FetchAnswer:
        try:
            return from_library(FetchResponse[version].decode(data), topic, partition)
        except Exception:  # The codec raises whatever comes of trusting its bytes.
            return FetchAnswer(malformed=True)

    return FetchMessage(API_KEY, version, False, message, decode)


def request_all(
    version: int,
    topic: str,
    positions: Sequence[tuple[int, int]],
    partition_bytes: int,
    most_bytes: int,
    isolation: int,
) -> FetchMessage[PartitionsAnswer]:
    """Build a request for records of several partitions, each from its offset on.

    Of the first one with records, a broker answers with at least one batch. Of the others, a batch may be cut
    off.
    """
    message = _encoded(version, topic, positions, partition_bytes, most_bytes, isolation)

    def decode(data: memoryview) -> PartitionsAnswer:
        try:
            answer = FetchResponse[version].decode(data)
            error = getattr(answer, "error_code", 0) or 0
            return PartitionsAnswer(error, partitions=dict(_partitions(answer, error, topic)))
        except Exception:  # as above
            return PartitionsAnswer(malformed=True)

    return FetchMessage(API_KEY, version, False, message, decode)


def _encoded(
    version: int,
    topic: str,
    positions: Sequence[tuple[int, int]],
    partition_bytes: int,
    most_bytes: int,
    isolation: int,
) -> bytes:
    per_topic = FetchRequest.FetchTopic
    asked = [
        per_topic.FetchPartition(
            version=version,
            partition=partition,
            current_leader_epoch=-1,
            fetch_offset=offset,
            log_start_offset=-1,
            partition_max_bytes=partition_bytes,
        )
        for partition, offset in positions
    ]
    message = FetchRequest(
        version=version,
        replica_id=CONSUMER,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=most_bytes,
        isolation_level=isolation,
        session_id=0,
        session_epoch=-1,
        topics=[per_topic(version=version, topic=topic, partitions=asked)],
        forgotten_topics_data=[],
    )
    return bytes(message.encode())


def from_library(answer: Any, topic: str, partition: int) -> FetchAnswer:
    """Return what kafka-python's response object says about one partition."""
    error = getattr(answer, "error_code", 0) or 0
    return dict(_partitions(answer, error, topic)).get(partition, FetchAnswer(error))


def _partitions(answer: Any, error: int, topic: str) -> Iterator[tuple[int, FetchAnswer]]:
    for entry in answer.responses or ():
        for row in entry.partitions if entry.topic == topic else ():
            yield (
                row.partition_index,
                FetchAnswer(
                    error,
                    False,
                    row.error_code,
                    tuple((a.producer_id, a.first_offset) for a in row.aborted_transactions or ()),
                    bytes(row.records or b""),
                    answer.throttle_time_ms or 0,
                    row.high_watermark,
                    row.last_stable_offset,
                ),
            )
