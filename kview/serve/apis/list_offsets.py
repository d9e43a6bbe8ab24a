"""ListOffsets (2), versions 1–11: returns offsets by time, the earliest, the latest, or a replica's log end.

v2 adds the isolation level, v4 leader epochs, v5 OFFSET_NOT_AVAILABLE instead of LEADER_NOT_AVAILABLE
(KIP-207), v6 is flexible, v7 adds −3 (the record with the latest timestamp), v8 −4 (earliest on the leader's
own disk, here simply the earliest), v9 −5 and v11 −6 (tiered storage, which is left out, so the answer has no
offset), v10 the client's timeout. With replica id −2 (the debugging replica), every replica answers with its
own log end, even a follower. The response is packed by hand, because an observer asks for every replica of
every partition.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from struct import Struct
from typing import Any, NamedTuple

from kafka.protocol.consumer.offsets import ListOffsetsRequest

from kview.serve.call import NEVER, READ_COMMITTED, Api, Call, Steps
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import ErrorCode
from kview.simulate.requests.offset_lookup import LATEST
from kview.simulate.requests.records import DEBUGGING_REPLICA
from kview.simulate.results import OffsetResult
from kview.wire.kafka_requests import MAX_ELEMENTS
from kview.wire.primitives import INT32, MalformedBytes, Reader, array_length, string

EARLIEST, EARLIEST_LOCAL = -2, -4
TIERED = (-5, -6)
OFFSET_NOT_AVAILABLE_FROM = 5
ROWS_PER_STEP = 64
"""A time is looked up in a step of its own: it may decompress a batch."""
MEANT_FROM = {-1: 0, -2: 0, -3: 7, -4: 8, -5: 9, -6: 11}
"""Negative timestamps, which stand for something, and the versions that give them this meaning. Others are
answered with UNSUPPORTED_VERSION."""

_PARTITION_V1 = Struct(">ihqq")  # index, error, timestamp, offset
_PARTITION_V4 = Struct(">ihqqi")  # with the leader epoch
_PARTITION_V6 = Struct(">ihqqiB")  # with empty tagged fields
_ROW_V2 = Struct(">iq")  # index, timestamp
_ROW_V4 = Struct(">iiq")  # with the leader epoch in the middle

NO_EPOCH = -1


class Asked(NamedTuple):
    """A request: topics with rows of (partition, leader epoch known to the client, timestamp)."""

    replica_id: int
    committed: bool
    """Whether the last stable offset is asked for in place of the high watermark (isolation level 1)."""
    topics: Sequence[tuple[str, Sequence[tuple[int, int, int]]]]


def decode(version: int, frame: memoryview, begin: int) -> tuple[Asked, int] | None:
    """Decode a request of versions 2 to 5 and return it with its end, or None for another version.

    The codec would make an object of each of the 40,000 rows that an observer of 10,000 partitions asks for.
    Raises MalformedBytes for what the codec refuses.
    """
    if not 2 <= version <= 5:
        return None
    reader, row = Reader(frame, begin), _ROW_V4 if version >= 4 else _ROW_V2
    replica_id, committed, length = reader.int32(), reader.int8() == READ_COMMITTED, reader.int32()
    if not 0 <= length <= MAX_ELEMENTS:
        raise MalformedBytes(f"{length} topics")
    topics, left = [], MAX_ELEMENTS - length
    for name, rows in reader.rows_by_topic(length, row.size):
        left -= len(rows) // row.size
        if left < 0:
            raise MalformedBytes(f"more than {MAX_ELEMENTS} elements")
        unpacked = list(row.iter_unpack(rows))
        topics.append((name, unpacked if version >= 4 else [(index, NO_EPOCH, at) for index, at in unpacked]))
    return Asked(replica_id, committed, topics), reader.position


def asked_of(request: Any, version: int) -> Asked:
    """Return what a request asks for, which the codec or `decode` has decoded."""
    if isinstance(request, Asked):
        return request
    has_epochs = version >= 4
    return Asked(
        request.replica_id,
        version >= 2 and request.isolation_level == READ_COMMITTED,
        [
            (
                entry.name,
                [
                    (p.partition_index, p.current_leader_epoch if has_epochs else NO_EPOCH, p.timestamp)
                    for p in entry.partitions
                ],
            )
            for entry in request.topics
        ],
    )


def list_offsets(call: Call) -> Steps:
    """Answer for each partition from this broker's own log."""
    version, topics = call.version, call.image.topics
    asked = asked_of(call.request, version)
    flexible = version >= 6
    merges = call.cluster.world.release.merges_look_ups
    times = Counter() if merges else Counter((name, row[0]) for name, rows in asked.topics for row in rows)
    by_topic = list(_merged(asked.topics).items()) if merges else asked.topics
    pieces = [INT32.pack(0) if version >= 2 else b"", array_length(len(by_topic), flexible)]
    answer, done = _answers(call, asked), 0
    for name, rows in by_topic:
        done += 1
        if done >= ROWS_PER_STEP:
            done = 0
            yield
        pieces.append(string(name, flexible))
        if not call.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            refused = OffsetResult(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            pieces.append(array_length(len(rows), flexible))
            pieces += [pack_partition(version, index, refused) for index, _, _ in rows]
            pieces.append(b"\0" if flexible else b"")
            continue
        rows, twice = _unique(rows) if merges else _unique_of_all(name, rows, times)
        pieces.append(array_length(len(rows) + len(twice), flexible))
        pieces += [pack_partition(version, index, OffsetResult(ErrorCode.INVALID_REQUEST)) for index in twice]
        if name in topics:
            for row in rows:
                pieces.append(answer(name, row))
                done += 1
                if row[2] >= 0 or done >= ROWS_PER_STEP:
                    done = 0
                    yield
        else:
            unknown = OffsetResult(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            pieces += [pack_partition(version, index, unknown) for index, _, _ in rows]
        if flexible:
            pieces.append(b"\0")
    if flexible:
        pieces.append(b"\0")
    call.answer_packed(pieces)


Rows = Sequence[tuple[int, int, int]]


def _merged(topics: Sequence[tuple[str, Rows]]) -> Mapping[str, Rows]:
    """Return the rows of each topic that has any, as Kafka answers them."""
    merged: dict[str, list[tuple[int, int, int]]] = {}
    for name, rows in topics:
        if rows:
            merged.setdefault(name, []).extend(rows)
    return merged


def _unique(rows: Rows) -> tuple[Rows, Sequence[int]]:
    """Return the rows of partitions that occur once, and the partitions that occur more often."""
    if len(rows) == len({row[0] for row in rows}):
        return rows, ()
    times = Counter(row[0] for row in rows)
    return [row for row in rows if times[row[0]] == 1], [index for index, n in times.items() if n > 1]


def _unique_of_all(
    topic: str, rows: Rows, times: Mapping[tuple[str, int], int]
) -> tuple[Rows, Sequence[int]]:
    """Do the same with an entry of a request that is not merged. `times` says how often the request names
    each partition. Those that occur more often are returned as often."""
    once = [row for row in rows if times[topic, row[0]] == 1]
    return once, [row[0] for row in rows if times[topic, row[0]] > 1]


def _answers(call: Call, asked: Asked) -> Callable[[str, tuple[int, int, int]], bytes]:
    """Return a function that answers a row of a topic.

    Almost every row asks for the latest offset without an epoch, and that is answered without an object.
    """
    version, records, broker = call.version, call.cluster.records, call.broker
    replica_id, committed = asked.replica_id, asked.committed
    latest = records.latest_offsets(broker, replica_id == DEBUGGING_REPLICA, committed)
    tags = b"\0" if version >= 6 else b""
    pack = _PARTITION_V4.pack

    def answer(topic: str, row: tuple[int, int, int]) -> bytes:
        index, epoch, timestamp = row
        if timestamp == LATEST and epoch < 0 and version >= 4:
            newest = latest(topic, index)
            if newest is not None:
                return pack(index, 0, -1, *newest) + tags
        if timestamp < 0 and version < MEANT_FROM.get(timestamp, NEVER):
            result = OffsetResult(ErrorCode.UNSUPPORTED_VERSION)
        elif timestamp in TIERED:
            result = OffsetResult(ErrorCode.NONE)
        else:
            at = EARLIEST if timestamp == EARLIEST_LOCAL else timestamp
            result = records.list_offset(broker, topic, index, at, replica_id, epoch, committed)
        return pack_partition(version, index, result)

    return answer


def pack_partition(version: int, index: int, result: OffsetResult) -> bytes:
    """Return one partition of a response, byte for byte as the codec would encode it."""
    error: Any = result.error_code
    if error == ErrorCode.OFFSET_NOT_AVAILABLE and version < OFFSET_NOT_AVAILABLE_FROM:
        error = ErrorCode.LEADER_NOT_AVAILABLE
    _, timestamp, offset, epoch = result
    if version >= 6:
        return _PARTITION_V6.pack(index, error, timestamp, offset, epoch, 0)
    if version >= 4:
        return _PARTITION_V4.pack(index, error, timestamp, offset, epoch)
    return _PARTITION_V1.pack(index, error, timestamp, offset)


APIS = (Api(2, ListOffsetsRequest, (1, 11), list_offsets, decode=decode, throttle_from=2),)
