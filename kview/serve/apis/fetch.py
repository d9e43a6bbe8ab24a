"""Fetch (1), versions 4–18: reads record batches below the high watermark, or waits for some.

v4 adds the isolation level and the last stable offset, v5 the log start offset, v7 a top-level error and
sessions, v9 the leader epoch that the client knows, v11 racks and the preferred replica, v12 is flexible, v13
has topic ids instead of names, v15 makes the replica state a tagged field. The response is packed by hand,
because the codec takes 6.4 µs per partition, and a consumer of many partitions would keep the process busy.
Left out on purpose: sessions (session id 0 satisfies every client, and each fetch is a full one), reading
from the nearest replica, and the hint at the new leader (clients ask for metadata). Followers in the
simulated cluster do not fetch over the network.
"""

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from kafka.protocol.consumer import FetchRequest

from kview.serve.call import Api, Call
from kview.simulate.codes import ErrorCode
from kview.simulate.results import ReadResult

TOPIC_IDS_FROM = 13
READ_COMMITTED = 1

MAX_ANSWER_BYTES = 52_428_800
"""A client's default `fetch.max.bytes`. Requests for more get only this, which limits a response's memory."""

FETCH_SESSION_ID_NOT_FOUND = 70

_THROTTLE = Struct(">i")
_THROTTLE_ERROR_SESSION = Struct(">ihi")
_COUNT = Struct(">i")
_LENGTH = Struct(">h")
_PARTITION_V4 = Struct(">ihqqi")  # index, error, high watermark, last stable offset, aborted transactions
_PARTITION_V5 = Struct(">ihqqqi")  # with the log start offset before the last field
_PARTITION_V11 = Struct(">ihqqqii")  # with the preferred replica at the end
_PARTITION_V12 = Struct(">ihqqqBi")  # with aborted transactions as a compact array
NO_REPLICA = -1


class FetchedPartition(NamedTuple):
    """One partition of a response."""

    partition: int
    result: ReadResult


class FetchedTopic(NamedTuple):
    """One topic of a response. `key` is its name or, from v13 on, the 16 bytes of its id."""

    key: str | bytes
    partitions: Sequence[FetchedPartition]


def fetch(call: Call) -> None:
    """Answer once there is enough to read.

    Errors are answered at once, and so are clients that do not wait.
    """
    request = call.request
    if request.session_id:
        call.answer_packed(pack_response(call.version, False, (), FETCH_SESSION_ID_NOT_FOUND))
        return
    topics, size, failed = _read(call)
    if failed or size >= request.min_bytes or request.max_wait_ms <= 0:
        _answer(call, topics)
        return
    positions = []
    for entry in request.topics:
        topic = call.topic(entry, "topic", TOPIC_IDS_FROM)
        if topic is not None:
            positions += [(topic.name, p.partition, p.fetch_offset) for p in entry.partitions]

    def readable() -> None:
        _answer(call, _read(call)[0])

    handle = call.cluster.when_readable(
        call.broker, positions, request.min_bytes, request.max_wait_ms, readable
    )
    call.when_client_leaves(lambda: call.cluster.cancel(handle))


def _answer(call: Call, topics: Sequence[FetchedTopic]) -> None:
    call.answer_packed(pack_response(call.version, call.request.isolation_level == READ_COMMITTED, topics))


def _read(call: Call) -> tuple[list[FetchedTopic], int, bool]:
    """Read what is available.

    Returns the topics, the bytes of records in them, and whether any partition has an error. The first
    partition with records returns at least one batch, however large. The others stay within the limits.
    """
    request, read, broker = call.request, call.cluster.read, call.broker
    committed = request.isolation_level == READ_COMMITTED
    left = min(request.max_bytes, MAX_ANSWER_BYTES)
    size, failed = 0, False
    topics = []
    for entry in request.topics:
        topic = call.topic(entry, "topic", TOPIC_IDS_FROM)
        key: str | bytes = entry.topic if call.version < TOPIC_IDS_FROM else _id_bytes(entry.topic_id)
        partitions = []
        for p in entry.partitions:
            if topic is None:
                by_id = call.version >= TOPIC_IDS_FROM
                result = ReadResult(
                    ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                )
            else:
                limit = max(0, min(p.partition_max_bytes, left))
                result = read(
                    broker, topic.name, p.partition, p.fetch_offset, limit, p.current_leader_epoch, committed
                )
                if (
                    size and len(result.records) > limit
                ):  # only the first partition may exceed the limit, so that at least one batch is returned
                    result = result._replace(records=b"")
            size += len(result.records)
            left -= len(result.records)
            failed = failed or result.error_code != 0
            partitions.append(FetchedPartition(p.partition, result))
        topics.append(FetchedTopic(key, partitions))
    return topics, size, failed


def pack_response(
    version: int, read_committed: bool, topics: Sequence[FetchedTopic], error_code: int = 0
) -> list[bytes]:
    """Return the body of a FetchResponse in pieces, byte for byte as the codec would encode it.

    As in Kafka, aborted transactions are an empty list for a client with isolation level read_committed, and
    null for other clients.
    """
    pieces = [_THROTTLE.pack(0) if version < 7 else _THROTTLE_ERROR_SESSION.pack(0, error_code, 0)]
    if version >= 12:
        _pack_flexible(pieces, version, read_committed, topics)
    else:
        _pack_plain(pieces, version, read_committed, topics)
    return pieces


def _pack_plain(
    pieces: list[bytes], version: int, read_committed: bool, topics: Sequence[FetchedTopic]
) -> None:
    aborted = 0 if read_committed else -1
    pieces.append(_COUNT.pack(len(topics)))
    for key, partitions in topics:
        assert isinstance(key, str)
        name = key.encode()
        pieces += (_LENGTH.pack(len(name)), name, _COUNT.pack(len(partitions)))
        for index, (error, watermark, stable, start, records) in partitions:
            if version >= 11:
                head = _PARTITION_V11.pack(index, error, watermark, stable, start, aborted, NO_REPLICA)
            elif version >= 5:
                head = _PARTITION_V5.pack(index, error, watermark, stable, start, aborted)
            else:
                head = _PARTITION_V4.pack(index, error, watermark, stable, aborted)
            pieces += (head, _COUNT.pack(len(records)), records)


def _pack_flexible(
    pieces: list[bytes], version: int, read_committed: bool, topics: Sequence[FetchedTopic]
) -> None:
    aborted = 1 if read_committed else 0
    pieces.append(unsigned(len(topics) + 1))
    for key, partitions in topics:
        if isinstance(key, str):
            name = key.encode()
            pieces += (unsigned(len(name) + 1), name)
        else:
            pieces.append(key)
        pieces.append(unsigned(len(partitions) + 1))
        for index, (error, watermark, stable, start, records) in partitions:
            head = _PARTITION_V12.pack(index, error, watermark, stable, start, aborted, NO_REPLICA)
            pieces += (head, unsigned(len(records) + 1), records, b"\0")
        pieces.append(b"\0")
    pieces.append(b"\0")


def unsigned(value: int) -> bytes:
    """Encode an unsigned varint."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _id_bytes(topic_id: object) -> bytes:
    return topic_id.bytes if topic_id is not None else bytes(16)  # type: ignore[attr-defined]


APIS = (Api(1, FetchRequest, (4, 18), fetch),)
