"""Answers with an error that a request asked for nothing of: each of Kafka's messages has its own places for
error codes.

Where partitions have them, those that are to fail are taken out of the request, which is handled without
them, and come back in the answer. Elsewhere the whole request fails, and is not handled. What has only rows
of what was read is handled, and its rows are overwritten.
"""

from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

from kafka.protocol.api_header import ResponseClassRegistry

from kview.wire.kafka_responses import response_encoder

UNKNOWN = -1


class Shape(NamedTuple):
    """Where the topics and partitions of a request are, and their rows in its answer: names of fields and,
    for rows, of kafka-python's classes. Without `number` the partitions are plain numbers."""

    topics: str
    partitions: str
    number: str
    answer_topics: str
    topic_row: str
    answer_partitions: str
    partition_row: str
    answer_number: str = "partition_index"
    error: str = "error_code"


_SAME = "topics", "partitions", "partition_index", "topics"

PARTITIONED: Mapping[int, Shape] = {
    0: Shape(
        "topic_data", "partition_data", "index",
        "responses", "TopicProduceResponse", "partition_responses", "PartitionProduceResponse", "index",
    ),
    1: Shape(
        "topics", "partitions", "partition",
        "responses", "FetchableTopicResponse", "partitions", "PartitionData",
    ),
    2: Shape(*_SAME, "ListOffsetsTopicResponse", "partitions", "ListOffsetsPartitionResponse"),
    8: Shape(*_SAME, "OffsetCommitResponseTopic", "partitions", "OffsetCommitResponsePartition"),
    21: Shape(*_SAME, "DeleteRecordsTopicResult", "partitions", "DeleteRecordsPartitionResult"),
    23: Shape(
        "topics", "partitions", "partition",
        "topics", "OffsetForLeaderTopicResult", "partitions", "EpochEndOffset", "partition",
    ),
    24: Shape(
        "v3_and_below_topics", "partitions", "",
        "results_by_topic_v3_and_below", "AddPartitionsToTxnTopicResult",
        "results_by_partition", "AddPartitionsToTxnPartitionResult", error="partition_error_code",
    ),
    28: Shape(*_SAME, "TxnOffsetCommitResponseTopic", "partitions", "TxnOffsetCommitResponsePartition"),
}  # fmt: skip
"""By API: Produce, Fetch, ListOffsets, OffsetCommit, DeleteRecords, OffsetForLeaderEpoch, AddPartitionsToTxn,
TxnOffsetCommit."""

_UNKNOWN_FIELDS = {
    "base_offset",
    "end_offset",
    "high_watermark",
    "last_stable_offset",
    "leader_epoch",
    "log_append_time_ms",
    "log_start_offset",
    "low_watermark",
    "offset",
    "timestamp",
}
"""Fields of a row that are −1 with an error."""

READS = frozenset({3, 9, 10, 15, 32, 61, 65, 69, 75, 77, 84, 87, 89, 90})
"""Metadata, OffsetFetch, FindCoordinator and what else only describes: their rows are overwritten."""

BY_TOPIC = frozenset({3, 9, *PARTITIONED})
"""The APIs whose requests name topics, so that only those about one of them can fail."""


class Rows(NamedTuple):
    """Where the entries of a request are that each get a row with an error, and which fields they share."""

    entries: str
    answer_rows: str
    row: str
    shared: tuple[str, ...]


LISTED: Mapping[int, Rows] = {
    19: Rows("topics", "topics", "CreatableTopicResult", ("name",)),
    20: Rows("topics", "responses", "DeletableTopicResult", ("name", "topic_id")),
    33: Rows("resources", "responses", "AlterConfigsResourceResponse", ("resource_type", "resource_name")),
    37: Rows("topics", "results", "CreatePartitionsTopicResult", ("name",)),
    42: Rows("groups_names", "results", "DeletableGroupResult", ("group_id",)),
    44: Rows("resources", "responses", "AlterConfigsResourceResponse", ("resource_type", "resource_name")),
}
"""By API: CreateTopics, DeleteTopics, AlterConfigs, CreatePartitions, DeleteGroups, IncrementalAlterConfigs,
which fail whole, with an error for each topic, group or resource."""


class Place(NamedTuple):
    """A partition in a request: its topic's entry, and its number."""

    entry: Any
    partition: int


def can_fail(api: int, version: int) -> bool:
    """Return whether an answer of that API and version has a place for an error."""
    fields = response_class(api, version)._struct._fields
    whole = any(field.name == "error_code" and field.for_version_q(version) for field in fields)
    return whole or api in PARTITIONED or api in READS or api in LISTED


def response_class(api: int, version: int) -> Any:
    """Return kafka-python's class of an answer in one version."""
    asked = SimpleNamespace(request_api_key=api, request_api_version=version)
    return ResponseClassRegistry.get_response_class(asked)


def places(api: int, request: Any) -> Iterator[Place]:
    """Yield the partitions in a request, none if its API is not about partitions."""
    shape = PARTITIONED.get(api)
    if shape is None:
        return
    for entry in getattr(request, shape.topics) or ():
        for row in getattr(entry, shape.partitions) or ():
            yield Place(entry, _number(row, shape))


def take_out(api: int, request: Any, fails: Callable[[Place], bool]) -> list[Place]:
    """Take partitions out of a request, and return them."""
    shape, taken = PARTITIONED[api], [place for place in places(api, request) if fails(place)]
    gone = {(id(place.entry), place.partition) for place in taken}
    entries = getattr(request, shape.topics) or ()
    for entry in entries:
        rows = getattr(entry, shape.partitions) or ()
        kept = [row for row in rows if (id(entry), _number(row, shape)) not in gone]
        setattr(entry, shape.partitions, kept)
    setattr(request, shape.topics, [entry for entry in entries if getattr(entry, shape.partitions)])
    return taken


def _number(row: Any, shape: Shape) -> int:
    return int(getattr(row, shape.number) if shape.number else row)


def put_in(api: int, version: int, body: bytes, taken: list[Place], error: int) -> bytes:
    """Return an answer's body with an error for each of these partitions, too."""
    shape, answer = PARTITIONED[api], response_class(api, version).decode(body)
    topic_class = getattr(type(answer), shape.topic_row)
    by_topic: dict[int, list[Place]] = {}
    for place in taken:
        by_topic.setdefault(id(place.entry), []).append(place)
    for places_of in by_topic.values():
        topic = topic_class(
            version=version, **_shared(places_of[0].entry, topic_class, ("name", "topic", "topic_id"))
        )
        kind = getattr(topic_class, shape.partition_row)
        rows = [_row(kind, version, shape, place.partition, error) for place in places_of]
        setattr(topic, shape.answer_partitions, rows)
        getattr(answer, shape.answer_topics).append(topic)
    return _encoded(answer, version)


def _shared(entry: Any, row: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a request's entry that its row in the answer has, too."""
    there = {field.name for field in row._struct._fields}
    return {name: getattr(entry, name) for name in names if name in there and hasattr(entry, name)}


def _encoded(answer: Any, version: int) -> bytes:
    kind: Any = type(answer)
    steps = response_encoder(kind, version)(answer)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return bytes(done.value)


def _row(kind: Any, version: int, shape: Shape, number: int, error: int) -> Any:
    row = kind(version=version)
    for name in _UNKNOWN_FIELDS:
        if hasattr(row, name):
            setattr(row, name, UNKNOWN)
    setattr(row, shape.answer_number, number)
    setattr(row, shape.error, error)
    return row


def overwrite(api: int, version: int, body: bytes, topic: str, error: int) -> bytes:
    """Return an answer's body in which every row, or every row of a topic, has an error."""
    answer = response_class(api, version).decode(body)
    _mark(answer, topic, error)
    return _encoded(answer, version)


def _mark(message: Any, topic: str, error: int) -> None:
    for field in message._struct._fields:
        value = getattr(message, field.name, None)
        if field.name == "error_code" and not topic:
            message.error_code = error
        elif isinstance(value, list):
            for row in value:
                if hasattr(row, "_struct"):
                    is_it = topic in ("", getattr(row, "name", None), getattr(row, "topic", None))
                    _mark(row, "" if is_it else topic, error)


def whole(api: int, version: int, request: Any, error: int) -> Any:
    """Return an answer to a request that has nothing but an error."""
    answer = response_class(api, version)()
    listed = LISTED.get(api)
    if listed is None:
        answer.error_code = error
        return answer
    kind = getattr(response_class(api, version)[None], listed.row)
    entries = getattr(request, listed.entries, None) or getattr(request, "topic_names", None) or ()
    rows = getattr(answer, listed.answer_rows)
    for entry in entries:
        shared = {listed.shared[0]: entry} if isinstance(entry, str) else _shared(entry, kind, listed.shared)
        rows.append(kind(version=version, error_code=error, **shared))
    return answer
