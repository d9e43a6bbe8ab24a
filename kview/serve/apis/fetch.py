"""Fetch (1), versions 4–18: returns record batches below the high watermark, or waits until there are some.

v4 adds the isolation level and the last stable offset, v5 the log start offset, v7 a top-level error and
sessions, v9 the leader epoch that the client knows, v11 racks and the preferred replica, v12 is flexible, and
has the last epoch that the client has read, v13 has topic ids instead of names, v15 makes the replica state a
tagged field, v16 names the leader to a client that asks another broker. The response is packed by hand,
because the codec takes 6.4 µs per partition, and a consumer of many partitions would keep the process busy.
From v11 on, a follower answers, too. In a session, client and broker name only the partitions that have
changed. Followers in the simulated cluster do not fetch over the network.
"""

from collections.abc import Generator, Sequence
from itertools import groupby
from math import isnan
from struct import Struct
from typing import Any, NamedTuple

from kafka.protocol.consumer.fetch import FetchRequest

from kview.serve.call import READ_COMMITTED, Api, Call, Steps, id_bytes
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.brokers.fetch_sessions import (
    FIRST_EPOCH,
    LAST_EPOCH,
    NO_SESSION,
    FetchSession,
    PartitionKey,
    Wanted,
    next_epoch,
)
from kview.simulate.client_quotas import CONSUMER, WINDOW_MS, WINDOWS
from kview.simulate.codes import ErrorCode
from kview.simulate.requests.records import Reader
from kview.simulate.results import ReadResult
from kview.simulate.setting import INT_MAX
from kview.wire.primitives import INT32, array_length, string, uvarint

FOLLOWERS_FROM = 11
"""The first version in which a consumer may read from a follower (KIP-392)."""

TOPIC_IDS_FROM = 13
LEADERS_FROM = 16

MAX_ANSWER_BYTES = 2 << 20
"""Limit of the records in a response, which limits the memory for a client that does not read it. As in
Kafka, a client that wants more gets the rest with its next fetches. The kernel takes as much at once. More
costs three times the processor time per byte, because asyncio copies what the kernel leaves."""

PARTITIONS_PER_STEP = 16

_THROTTLE_ERROR_SESSION = Struct(">ihi")
_PARTITION_V4 = Struct(">ihqqi")  # index, error, high watermark, last stable offset, aborted transactions
_PARTITION_V5 = Struct(">ihqqqi")  # with the log start offset before the last field
_PARTITION_V12 = Struct(">ihqqq")  # without aborted transactions, which are a compact array
_ABORTED = Struct(">qq")  # producer id, first offset
_DIVERGING = Struct(">BBiqB")  # tag 0, its size, epoch, end offset, no tags
_LEADER = Struct(">BBiiB")  # tag 1, its size, id, epoch, no tags
NOT_READ = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
)
MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
NULL_ARRAY = NO_TAGS = b"\0"


class FetchedPartition(NamedTuple):
    """One partition of a response. `leader` is (id, epoch) if the client has asked the wrong broker."""

    partition: int
    result: ReadResult
    leader: tuple[int, int] | None = None


class Endpoint(NamedTuple):
    """Where a leader is, that the response names."""

    broker: int
    host: str
    port: int
    rack: str | None


class FetchedTopic(NamedTuple):
    """One topic of a response. `key` is its name or, from v13 on, the 16 bytes of its id."""

    key: str | bytes
    partitions: list[FetchedPartition]


Read = tuple[Wanted, ReadResult]


class Fetching(NamedTuple):
    """What a request fetches. `unknown` are the partitions that this broker's metadata does not have."""

    session: FetchSession | None
    begins_session: bool
    known: Sequence[Wanted]
    unknown: Sequence[Read]


def fetch(call: Call) -> Steps:
    """Answer when enough records can be read.

    Errors, and requests that do not wait, are answered at once.
    """
    request = call.request
    fetching = yield from _begin(call)
    if fetching is None:
        return
    read, size, is_final = yield from _read(call, fetching.known)
    min_bytes = min(request.min_bytes, _quota_bytes(call))
    if is_final or size >= min_bytes or request.max_wait_ms <= 0 or not fetching.known:
        yield from _answer(call, fetching, read)
        return

    def readable() -> None:
        call.run(_read_and_answer(call, fetching))

    handle = call.cluster.records.when_readable(
        call.broker,
        [(one.topic or "", one.key[1], one.offset) for one in fetching.known],
        min_bytes,
        request.max_wait_ms,
        call.later(readable),
        request.isolation_level == READ_COMMITTED,
    )
    call.when_client_leaves(lambda: call.cluster.records.cancel(handle))


def _quota_bytes(call: Call) -> int:
    """Return how many bytes a response may have without being throttled by itself.

    A quota may be NaN, which is 0 bytes, as in Java. At least one batch is returned.
    """
    limit = call.limit(CONSUMER)
    if limit is None or isnan(limit.value):
        return INT_MAX if limit is None else 0
    return int(limit.value * (WINDOWS - 1) * WINDOW_MS / 1000)


def _begin(call: Call) -> Generator[None, None, Fetching | None]:
    """Return what the request fetches, or answer with the error of its session."""
    request, epoch = call.request, call.request.session_epoch
    sessions = call.cluster.brokers[call.broker].fetch_sessions
    asked: dict[PartitionKey, Wanted] = {}
    for entry in request.topics:
        topic = call.topic(entry, "topic", TOPIC_IDS_FROM)
        name = entry.topic if call.version < TOPIC_IDS_FROM else topic.name if topic is not None else None
        of_topic = _topic_key(call, entry)
        yield
        for number, p in enumerate(entry.partitions, 1):
            key = of_topic, p.partition
            asked[key] = Wanted(
                key,
                name,
                p.fetch_offset,
                p.partition_max_bytes,
                p.current_leader_epoch,
                p.last_fetched_epoch,
            )
            if not number % PARTITIONS_PER_STEP:
                yield
    session, wanted = None, list(asked.values())
    if epoch in (FIRST_EPOCH, LAST_EPOCH):
        sessions.close(request.session_id)
    else:
        forgotten: list[PartitionKey] = []
        for entry in request.forgotten_topics_data:
            forgotten += [(_topic_key(call, entry), index) for index in entry.partitions]
            yield
        by_id = call.version >= TOPIC_IDS_FROM
        error, session = sessions.resume(request.session_id, epoch, by_id, wanted, forgotten)
        if error is not ErrorCode.NONE:
            call.answer_packed(pack_response(call.version, False, (), error))
            return None
        if session is not None:
            wanted = list(session.partitions.values())
    known, unknown = [], []
    may_read: dict[str, bool] = {}
    for number, one in enumerate(wanted):
        error = _error_of(call, one, may_read)
        if error is ErrorCode.NONE:
            known.append(one)
        else:
            unknown.append((one, ReadResult(error)))
        if not number % PARTITIONS_PER_STEP:
            yield
    return Fetching(session, epoch == FIRST_EPOCH, known, unknown)


def _topic_key(call: Call, entry: Any) -> str | bytes:
    """Return the name or id by which a request names a topic."""
    return id_bytes(entry.topic_id) if call.version >= TOPIC_IDS_FROM else str(entry.topic)


def _error_of(call: Call, one: Wanted, may_read: dict[str, bool]) -> ErrorCode:
    """Return why the client gets nothing of a partition, or NONE. `may_read` are the topics judged so far."""
    image, (of_topic, index) = call.image, one.key
    if one.topic is None:
        topic = image.topic_by_id(of_topic) if isinstance(of_topic, bytes) else None
        if topic is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        one.topic = topic.name
    if one.topic not in may_read:
        may_read[one.topic] = call.may(AclOperation.READ, ResourceType.TOPIC, one.topic)
    if not may_read[one.topic]:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    found = image.partition(one.topic, index)
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if found is None else ErrorCode.NONE


def _read_and_answer(call: Call, fetching: Fetching) -> Steps:
    read, _, _ = yield from _read(call, fetching.known)
    yield from _answer(call, fetching, read)


def _read(call: Call, known: Sequence[Wanted]) -> Generator[None, None, tuple[list[Read], int, bool]]:
    """Read what is available.

    Returns the results, the bytes of records in them, and whether the client has to know one of them at once.
    The first partition with records returns at least one batch, however large. The others stay within the
    limits.
    """
    request, read, broker = call.request, call.cluster.records.read, call.broker
    from_followers = call.version >= FOLLOWERS_FROM
    rack = request.rack_id if from_followers else ""
    reader = Reader(from_followers, request.isolation_level == READ_COMMITTED, rack)
    left = min(request.max_bytes, MAX_ANSWER_BYTES, _quota_bytes(call))
    size, is_final = 0, False
    results: list[Read] = []
    for one in known:
        topic, (of_topic, index) = one.topic or "", one.key
        if isinstance(of_topic, bytes) and _other_id(call, topic, of_topic):
            result = ReadResult(ErrorCode.INCONSISTENT_TOPIC_ID)
        else:
            limit = max(0, min(one.max_bytes, left))
            result = read(broker, topic, index, one.offset, limit, reader, one.leader_epoch, one.last_epoch)
            if size and len(result.records) > limit:
                # Only the first partition may exceed the limit, so that at least one batch is returned.
                result = result._replace(records=b"")
        size += len(result.records)
        left -= len(result.records)
        is_final = is_final or result.error_code != 0 or result.sends_away
        results.append((one, result))
        if not len(results) % PARTITIONS_PER_STEP:
            yield
    return results, size, is_final


def _other_id(call: Call, topic: str, topic_id: bytes) -> bool:
    """Return whether a topic has been deleted and created again since the client learned its id."""
    image = call.image.topics.get(topic)
    return image is not None and image.topic_id != topic_id


def _answer(call: Call, fetching: Fetching, read: Sequence[Read]) -> Steps:
    """Send the response. In a session it has only what has changed."""
    request, session = call.request, fetching.session
    results: list[Read] = [*read, *fetching.unknown]
    committed = request.isolation_level == READ_COMMITTED
    session_id = NO_SESSION
    if session is not None:
        session_id = session.id
        if session.epoch != next_epoch(request.session_epoch):  # A later request has been faster.
            error = ErrorCode.INVALID_FETCH_SESSION_EPOCH
            call.answer_packed(pack_response(call.version, committed, (), error, session_id))
            return
    sent = results if session is None else [one for one in results if session.selects(*one)]
    throttle_ms = _throttle_ms(call, sent)
    if throttle_ms:
        call.mute(throttle_ms)
        call.answer_packed(pack_response(call.version, committed, (), 0, session_id, throttle_ms=throttle_ms))
        return
    if session is not None:
        results = list(session.changed(results))
    elif fetching.begins_session:
        sessions = call.cluster.brokers[call.broker].fetch_sessions
        session_id = sessions.begin(call.version >= TOPIC_IDS_FROM, results)
    yield
    topics: list[FetchedTopic] = []
    leaders: set[int] = set()
    for number, (one, result) in enumerate(results):
        of_topic, index = one.key
        leader = _leader(call, one) if call.version >= LEADERS_FROM and result.error_code in MOVED else None
        if leader is not None:
            leaders.add(leader[0])
        row = FetchedPartition(index, result, leader)
        if topics and topics[-1].key == of_topic:
            topics[-1].partitions.append(row)
        else:
            topics.append(FetchedTopic(of_topic, [row]))
        if not number % PARTITIONS_PER_STEP:
            yield
    endpoints = [
        Endpoint(broker, *call.wire.endpoint(broker), call.image.brokers[broker].rack)
        for broker in sorted(leaders)
        if broker in call.image.brokers
    ]
    body = pack_response(call.version, committed, topics, 0, session_id, endpoints)
    disk_us = call.cluster.nodes.by_id[call.broker].disk_us
    if disk_us and topics:
        call.cluster.kernel.after(disk_us, call.later(call.answer_packed), body)
    else:
        call.answer_packed(body)


def _throttle_ms(call: Call, results: Sequence[Read]) -> int:
    """Return how long the client has to wait for its quota before it gets these results. What is not sent
    does not count. Source: KafkaApis.handleFetchRequest."""
    if call.limit(CONSUMER) is None:
        return 0
    topics = [
        FetchedTopic(key, [FetchedPartition(one.key[1], result) for one, result in of_topic])
        for key, of_topic in groupby(results, lambda each: each[0].key[0])
    ]
    size = sum(map(len, pack_response(call.version, call.request.isolation_level == READ_COMMITTED, topics)))
    throttle_ms = call.used(CONSUMER, size)
    if throttle_ms:
        call.used(CONSUMER, -size)
    return throttle_ms


def _leader(call: Call, one: Wanted) -> tuple[int, int] | None:
    partition = call.image.partition(one.topic or "", one.key[1])
    return None if partition is None else (partition.leader, partition.leader_epoch)


def pack_response(
    version: int,
    read_committed: bool,
    topics: Sequence[FetchedTopic],
    error_code: int = 0,
    session_id: int = NO_SESSION,
    endpoints: Sequence[Endpoint] = (),
    throttle_ms: int = 0,
) -> list[bytes]:
    """Return the body of a FetchResponse in pieces, byte for byte as the codec would encode it."""
    head = _THROTTLE_ERROR_SESSION.pack(throttle_ms, error_code, session_id)
    pieces = [head if version >= 7 else INT32.pack(throttle_ms)]
    if version >= 12:
        _pack_flexible(pieces, version, read_committed, topics)
        pieces.append(_node_endpoints(endpoints) if endpoints else NO_TAGS)
    else:
        _pack_plain(pieces, version, read_committed, topics)
    return pieces


def _node_endpoints(endpoints: Sequence[Endpoint]) -> bytes:
    """Return the tagged fields of a response that names leaders."""
    rows = [
        INT32.pack(one.broker)
        + string(one.host, compact=True)
        + INT32.pack(one.port)
        + string(one.rack, compact=True)
        + NO_TAGS
        for one in endpoints
    ]
    data = uvarint(len(rows) + 1) + b"".join(rows)
    return uvarint(1) + uvarint(0) + uvarint(len(data)) + data


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
        for index, result, _ in partitions:
            error, watermark, stable, start, records, aborted, _, preferred = result
            listed = lists_aborted(error, read_committed)
            number = len(aborted) if listed else -1
            if version >= 5:
                pieces.append(_PARTITION_V5.pack(index, error, watermark, stable, start, number))
            else:
                pieces.append(_PARTITION_V4.pack(index, error, watermark, stable, number))
            if listed:
                pieces += [_ABORTED.pack(*each) for each in aborted]
            if version >= 11:
                pieces.append(INT32.pack(preferred))
            pieces += (INT32.pack(len(records)), records)


def _pack_flexible(
    pieces: list[bytes], version: int, read_committed: bool, topics: Sequence[FetchedTopic]
) -> None:
    pieces.append(uvarint(len(topics) + 1))
    for key, partitions in topics:
        pieces.append(string(key, compact=True) if isinstance(key, str) else key)
        pieces.append(uvarint(len(partitions) + 1))
        for index, result, leader in partitions:
            error, watermark, stable, start, records, aborted, diverging, preferred = result
            pieces.append(_PARTITION_V12.pack(index, error, watermark, stable, start))
            listed = lists_aborted(error, read_committed)
            pieces.append(uvarint(len(aborted) + 1) if listed else NULL_ARRAY)
            if listed:
                pieces += [_ABORTED.pack(*each) + NO_TAGS for each in aborted]
            pieces += (INT32.pack(preferred), uvarint(len(records) + 1), records)
            if diverging is None and leader is None:
                pieces.append(NO_TAGS)
                continue
            pieces.append(uvarint((diverging is not None) + (leader is not None)))
            if diverging is not None:
                pieces.append(_DIVERGING.pack(0, _DIVERGING.size - 2, *diverging, 0))
            if leader is not None:
                pieces.append(_LEADER.pack(1, _LEADER.size - 2, *leader, 0))
        pieces.append(NO_TAGS)


APIS = (Api(1, FetchRequest, (4, 18), fetch, throttle_from=4),)
