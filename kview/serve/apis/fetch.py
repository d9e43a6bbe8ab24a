"""Fetch (1), versions 4–18: returns record batches below the high watermark, or waits until there are some.

v4 adds the isolation level and the last stable offset, v5 the log start offset, v7 a top-level error and
sessions, v9 the leader epoch that the client knows, v11 racks and the preferred replica, v12 is flexible, v13
has topic ids instead of names, v15 makes the replica state a tagged field. The response is packed by hand,
because the codec takes 6.4 µs per partition, and a consumer of many partitions would keep the process busy.
From v11 on, a follower answers, too. As in Kafka with `max.incremental.fetch.session.cache.slots=0`, there
are no sessions: a client that asks for one gets all it named and session id 0, which satisfies every client.
Left out on purpose: the preferred replica (as in Kafka without a replica selector), and the new leader in the
response (clients request metadata instead). Followers in the simulated cluster do not fetch over the network.
"""

from collections.abc import Generator, Sequence
from struct import Struct
from typing import NamedTuple

from kafka.protocol.consumer import FetchRequest

from kview.serve.call import READ_COMMITTED, Api, Call, Steps, id_bytes
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.client_quotas import CONSUMER, WINDOW_MS, WINDOWS
from kview.simulate.codes import ErrorCode
from kview.simulate.results import ReadResult
from kview.simulate.setting import INT_MAX
from kview.wire.primitives import INT32, array_length, string, uvarint

FOLLOWERS_FROM = 11
"""The first version in which a consumer may read from a follower (KIP-392)."""

TOPIC_IDS_FROM = 13

MAX_ANSWER_BYTES = 2 << 20
"""Limit of the records in a response, which limits the memory for a client that does not read it. As in
Kafka, a client that wants more gets the rest with its next fetches. The kernel takes as much at once. More
costs three times the processor time per byte, because asyncio copies what the kernel leaves."""

NEW_SESSION, NO_SESSION = 0, -1
"""The session epochs of a fetch that names all its partitions. Other epochs continue a session."""
FETCH_SESSION_ID_NOT_FOUND = 70
PARTITIONS_PER_STEP = 16

_THROTTLE_ERROR_SESSION = Struct(">ihi")
_PARTITION_V4 = Struct(">ihqqi")  # index, error, high watermark, last stable offset, aborted transactions
_PARTITION_V5 = Struct(">ihqqqi")  # with the log start offset before the last field
_PARTITION_V12 = Struct(">ihqqq")  # without aborted transactions, which are a compact array
_ABORTED = Struct(">qq")  # producer id, first offset
NO_REPLICA = -1
NOT_READ = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)
NULL_ARRAY = NO_TAGS = b"\0"


class FetchedPartition(NamedTuple):
    """One partition of a response."""

    partition: int
    result: ReadResult


class FetchedTopic(NamedTuple):
    """One topic of a response. `key` is its name or, from v13 on, the 16 bytes of its id."""

    key: str | bytes
    partitions: Sequence[FetchedPartition]


def fetch(call: Call) -> Steps:
    """Answer when enough records can be read.

    Errors, and requests that do not wait, are answered at once.
    """
    request = call.request
    if request.session_epoch not in (NEW_SESSION, NO_SESSION):
        call.answer_packed(pack_response(call.version, False, (), FETCH_SESSION_ID_NOT_FOUND))
        return
    topics, size, failed = yield from _read(call)
    min_bytes = min(request.min_bytes, _quota_bytes(call))
    if failed or size >= min_bytes or request.max_wait_ms <= 0:
        _answer(call, topics)
        return
    positions = []
    for entry in request.topics:
        topic = call.topic(entry, "topic", TOPIC_IDS_FROM)
        if topic is not None:
            positions += [(topic.name, p.partition, p.fetch_offset) for p in entry.partitions]
        yield

    def readable() -> None:
        call.run(_read_and_answer(call))

    handle = call.cluster.records.when_readable(
        call.broker,
        positions,
        min_bytes,
        request.max_wait_ms,
        call.later(readable),
        request.isolation_level == READ_COMMITTED,
    )
    call.when_client_leaves(lambda: call.cluster.records.cancel(handle))


def _quota_bytes(call: Call) -> int:
    """Return how many bytes a response may have without being throttled by itself."""
    limit = call.limit(CONSUMER)
    return INT_MAX if limit is None else int(limit.value * (WINDOWS - 1) * WINDOW_MS / 1000)


def _read_and_answer(call: Call) -> Steps:
    topics, _, _ = yield from _read(call)
    _answer(call, topics)


def _answer(call: Call, topics: Sequence[FetchedTopic]) -> None:
    """Answer with what was read, or with nothing if the client has to wait for its quota.

    What is not sent does not count. Source: KafkaApis.handleFetchRequest.
    """
    committed = call.request.isolation_level == READ_COMMITTED
    pieces = pack_response(call.version, committed, topics)
    limit = call.limit(CONSUMER)
    if limit is not None:
        size = sum(map(len, pieces))
        throttle_ms = call.used(CONSUMER, size)
        if throttle_ms:
            call.used(CONSUMER, -size)
            call.mute(throttle_ms)
            pieces = pack_response(call.version, committed, (), throttle_ms=throttle_ms)
    call.answer_packed(pieces)


def _read(call: Call) -> Generator[None, None, tuple[list[FetchedTopic], int, bool]]:
    """Read what is available.

    Returns the topics, the bytes of records in them, and whether any partition has an error. The first
    partition with records returns at least one batch, however large. The others stay within the limits.
    """
    request, read, broker = call.request, call.cluster.records.read, call.broker
    followers, committed = call.version >= FOLLOWERS_FROM, request.isolation_level == READ_COMMITTED
    left = min(request.max_bytes, MAX_ANSWER_BYTES, _quota_bytes(call))
    size, failed = 0, False
    topics = []
    for entry in request.topics:
        topic = call.topic(entry, "topic", TOPIC_IDS_FROM)
        key: str | bytes = entry.topic if call.version < TOPIC_IDS_FROM else id_bytes(entry.topic_id)
        partitions = []
        refused = (topic is not None or call.version < TOPIC_IDS_FROM) and not call.may(
            AclOperation.READ, ResourceType.TOPIC, entry.topic if topic is None else topic.name
        )
        for p in entry.partitions:
            if refused:
                result = ReadResult(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            elif topic is None:
                by_id = call.version >= TOPIC_IDS_FROM
                result = ReadResult(
                    ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                )
            else:
                limit = max(0, min(p.partition_max_bytes, left))
                result = read(
                    broker,
                    topic.name,
                    p.partition,
                    p.fetch_offset,
                    limit,
                    p.current_leader_epoch,
                    followers,
                    committed,
                )
                if (
                    size and len(result.records) > limit
                ):  # only the first partition may exceed the limit, so that at least one batch is returned
                    result = result._replace(records=b"")
            size += len(result.records)
            left -= len(result.records)
            failed = failed or result.error_code != 0
            partitions.append(FetchedPartition(p.partition, result))
            if not len(partitions) % PARTITIONS_PER_STEP:
                yield
        topics.append(FetchedTopic(key, partitions))
        yield
    return topics, size, failed


def pack_response(
    version: int,
    read_committed: bool,
    topics: Sequence[FetchedTopic],
    error_code: int = 0,
    throttle_ms: int = 0,
) -> list[bytes]:
    """Return the body of a FetchResponse in pieces, byte for byte as the codec would encode it."""
    head = _THROTTLE_ERROR_SESSION.pack(throttle_ms, error_code, 0)
    pieces = [head if version >= 7 else INT32.pack(throttle_ms)]
    if version >= 12:
        _pack_flexible(pieces, version, read_committed, topics)
    else:
        _pack_plain(pieces, version, read_committed, topics)
    return pieces


def lists_aborted(error: int, read_committed: bool) -> bool:
    """Return whether a partition's aborted transactions are a list, not null.

    As in Kafka, they are for a client with isolation level read_committed, and for a partition that the
    broker does not know or that the client may not read, but not if reading failed.
    """
    return error in NOT_READ or (read_committed and not error)


def _pack_plain(
    pieces: list[bytes], version: int, read_committed: bool, topics: Sequence[FetchedTopic]
) -> None:
    pieces.append(array_length(len(topics)))
    for key, partitions in topics:
        assert isinstance(key, str)
        pieces += (string(key), array_length(len(partitions)))
        for index, (error, watermark, stable, start, records, aborted) in partitions:
            listed = lists_aborted(error, read_committed)
            number = len(aborted) if listed else -1
            if version >= 5:
                pieces.append(_PARTITION_V5.pack(index, error, watermark, stable, start, number))
            else:
                pieces.append(_PARTITION_V4.pack(index, error, watermark, stable, number))
            if listed:
                pieces += [_ABORTED.pack(*each) for each in aborted]
            if version >= 11:
                pieces.append(INT32.pack(NO_REPLICA))
            pieces += (INT32.pack(len(records)), records)


def _pack_flexible(
    pieces: list[bytes], version: int, read_committed: bool, topics: Sequence[FetchedTopic]
) -> None:
    pieces.append(uvarint(len(topics) + 1))
    for key, partitions in topics:
        pieces.append(string(key, compact=True) if isinstance(key, str) else key)
        pieces.append(uvarint(len(partitions) + 1))
        for index, (error, watermark, stable, start, records, aborted) in partitions:
            pieces.append(_PARTITION_V12.pack(index, error, watermark, stable, start))
            listed = lists_aborted(error, read_committed)
            pieces.append(uvarint(len(aborted) + 1) if listed else NULL_ARRAY)
            if listed:
                pieces += [_ABORTED.pack(*each) + NO_TAGS for each in aborted]
            pieces += (INT32.pack(NO_REPLICA), uvarint(len(records) + 1), records, b"\0")
        pieces.append(b"\0")
    pieces.append(b"\0")


APIS = (Api(1, FetchRequest, (4, 18), fetch, throttle_from=4),)
