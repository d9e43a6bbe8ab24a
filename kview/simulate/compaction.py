"""What the log cleaner leaves of a log: the last record of each key, for a while also those without a value.

Batches keep their first and last offsets, so that offsets have gaps. Sources: kafka.log.Cleaner,
CleanedTransactionMetadata and MemoryRecords.filterTo.
"""

from collections import deque
from collections.abc import Generator, Iterable, Mapping
from hashlib import blake2b
from typing import NamedTuple, TypeVar

from kview.simulate.records import (
    COMPRESSION_MASK,
    CONTROL,
    DELETE_HORIZON,
    HEADER_BYTES,
    TIMESTAMP_TYPE,
    TRANSACTIONAL,
    BatchHeader,
    Marker,
    body,
    decode_marker,
    header,
    pack_batch,
)
from kview.simulate.setting import LONG_MAX
from kview.simulate.stream import Aborted
from kview.wire.compression import deflated
from kview.wire.primitives import VARINT_BYTES, read_varint, varint

KEYS_MAX = 500_000
"""Keys that one pass looks at, in 60 MB (Kafka: log.cleaner.dedupe.buffer.size). The rest waits for the next
pass."""
RECORDS_PER_STEP = 1_000
"""Records that a step looks at, in about 4 ms."""
LONG_KEY_BYTES = 32
"""Longer keys are remembered by their hash, as in Kafka."""

NO_TIME = -1

T = TypeVar("T")


class LastRecord(NamedTuple):
    """The last batch of a producer that is still known: its last offset, −1 if only a marker is known."""

    offset: int
    epoch: int


class _Record(NamedTuple):
    """A record in its batch: what the cleaner looks at, and its bytes after the time delta."""

    key: bytes | None
    has_value: bool
    offset_delta: int
    time_ms: int
    attributes: bytes
    rest: bytes


class _Transactions:
    """Follows the transactions of a log from batch to batch."""

    def __init__(self, aborted: Iterable[Aborted]) -> None:
        self._coming = deque(sorted(aborted, key=lambda one: one.first))
        self._aborted: dict[int, tuple[Aborted, bool]] = {}
        """Producer → its aborted transaction, and whether a batch of that has been seen."""
        self._committed: set[int] = set()
        self.kept: list[Aborted] = []
        """The aborted transactions of which something has been seen."""

    def _advance(self, last: int) -> None:
        while self._coming and self._coming[0].first <= last:
            one = self._coming.popleft()
            self._aborted.setdefault(one.producer_id, (one, False))

    def is_aborted(self, head: BatchHeader, last: int) -> bool:
        """Return whether a batch of records that ends at offset `last` is part of an aborted transaction."""
        self._advance(last)
        if not head.attributes & TRANSACTIONAL:
            return False
        known = self._aborted.get(head.producer_id)
        if known is None:
            self._committed.add(head.producer_id)
            return False
        self._aborted[head.producer_id] = known[0], True
        return True

    def is_done(self, head: BatchHeader, last: int, marker: Marker | None) -> bool:
        """Return whether a marker is all that is left of its transaction."""
        self._advance(last)
        if not head.records:
            return True
        if marker is None:
            return False
        if marker.is_commit:
            seen = head.producer_id in self._committed
            self._committed.discard(head.producer_id)
            return not seen
        aborted, seen = self._aborted.pop(head.producer_id, (None, False))
        if aborted is not None and seen:
            self.kept.append(aborted)
            return False
        return True


class OffsetMap:
    """The last offset of each key in the part of a log that has not been cleaned yet.

    `end` is the offset below which everything has been looked at.
    """

    def __init__(self, aborted: Iterable[Aborted], start: int) -> None:
        self.end = start
        self._start = start
        self._latest: dict[bytes, int] = {}
        self._transactions = _Transactions(aborted)

    def add(self, base: int, batch: bytes) -> Generator[None, None, bool]:
        """Look at a batch that begins at offset `base`, in steps, and return whether there was room for its
        keys."""
        head = header(batch)
        last = base + head.last_offset_delta
        if head.attributes & CONTROL:
            self._transactions.is_done(head, last, decode_marker(batch))
        elif not self._transactions.is_aborted(head, last):
            if len(self._latest) + head.records > KEYS_MAX and self.end > self._start:
                return False
            for number, record in enumerate(_records(batch, head), 1):
                if record.key is not None:
                    self._latest[_name(record.key)] = base + record.offset_delta
                if not number % RECORDS_PER_STEP:
                    yield
        self.end = last + 1
        return True

    def add_keys(self, last_offsets: Mapping[bytes, int], end: int) -> bool:
        """Do the same for simulated records up to `end`, given the last offset of each key."""
        if len(self._latest) + len(last_offsets) > KEYS_MAX and self.end > self._start:
            return False
        for key, offset in last_offsets.items():
            self._latest[_name(key)] = offset
        self.end = end
        return True

    def is_last(self, key: bytes, offset: int) -> bool:
        """Return whether no record that has been looked at replaces the one at `offset`."""
        return offset >= self._latest.get(_name(key), -1)


class Cleaning:
    """Cleans the batches of a log from its start to the end of `latest`, one after another.

    `last_records` are the producers whose last batches stay, even without records, because they have the
    producers' sequence numbers.
    """

    def __init__(
        self,
        latest: OffsetMap,
        aborted: Iterable[Aborted],
        last_records: Mapping[int, LastRecord],
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        self._latest = latest
        self._transactions = _Transactions(aborted)
        self._last_records = last_records
        self._now_ms = now_ms
        self._horizon_ms = min(now_ms + delete_retention_ms, LONG_MAX)

    @property
    def aborted(self) -> list[Aborted]:
        """The aborted transactions of which something is left."""
        return self._transactions.kept

    def clean(self, base: int, batch: bytes) -> Generator[None, None, bytes]:
        """Return, in steps, what is left of a batch that begins at offset `base`: nothing, or a batch."""
        head = header(batch)
        last = base + head.last_offset_delta
        is_marker = bool(head.attributes & CONTROL)
        if is_marker:
            discarded = self._transactions.is_done(head, last, decode_marker(batch))
        else:
            discarded = self._transactions.is_aborted(head, last)
        horizon_ms = head.base_time_ms if head.attributes & DELETE_HORIZON else None
        is_over = horizon_ms is not None and horizon_ms <= self._now_ms
        keeps_empty = last + 1 == self._latest.end or self._is_last_of_producer(head, last)
        if discarded and (is_over or not is_marker):
            return _emptied(head) if keeps_empty else b""
        left: list[_Record] = []
        for number, record in enumerate(_records(batch, head), 1):
            if is_marker or self._stays(record, base, is_over):
                left.append(record)
            if not number % RECORDS_PER_STEP:
                yield
        if not left:
            return _emptied(head) if keeps_empty else b""
        begins_horizon = horizon_ms is None and (discarded or any(not one.has_value for one in left))
        if len(left) == head.records and not begins_horizon:
            return batch
        return (yield from _rebuilt(head, left, self._horizon_ms if begins_horizon else horizon_ms))

    def _stays(self, record: _Record, base: int, is_over: bool) -> bool:
        if record.key is None or not self._latest.is_last(record.key, base + record.offset_delta):
            return False
        return record.has_value or not is_over

    def _is_last_of_producer(self, head: BatchHeader, last: int) -> bool:
        known = self._last_records.get(head.producer_id)
        if known is None or head.producer_id < 0:
            return False
        if known.offset >= 0:
            return last == known.offset
        return bool(head.attributes & CONTROL) and head.producer_epoch == known.epoch


def finished(steps: Generator[None, None, T]) -> T:
    """Do all steps at once, and return what comes of them."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def _name(key: bytes) -> bytes:
    return key if len(key) <= LONG_KEY_BYTES else blake2b(key, digest_size=LONG_KEY_BYTES).digest()


def _records(batch: bytes, head: BatchHeader) -> Iterable[_Record]:
    data, at = body(batch, head)
    for _ in range(head.records):
        length, at = read_varint(data, at, VARINT_BYTES)
        end = at + length
        attributes = data[at : at + 1]
        time_delta, rest = read_varint(data, at + 1)
        offset_delta, place = read_varint(data, rest, VARINT_BYTES)
        key_bytes, place = read_varint(data, place, VARINT_BYTES)
        key = data[place : place + key_bytes] if key_bytes >= 0 else None
        value_bytes, _ = read_varint(data, place + max(0, key_bytes), VARINT_BYTES)
        time_ms = head.max_time_ms if head.attributes & TIMESTAMP_TYPE else head.base_time_ms + time_delta
        yield _Record(key, value_bytes >= 0, offset_delta, time_ms, attributes, data[rest:end])
        at = end


def _emptied(head: BatchHeader) -> bytes:
    attributes = head.attributes & (TIMESTAMP_TYPE | TRANSACTIONAL | CONTROL)
    empty = head._replace(attributes=attributes, size_bytes=HEADER_BYTES, base_time_ms=NO_TIME, records=0)
    return pack_batch(empty, b"")


def _rebuilt(
    head: BatchHeader, records: list[_Record], horizon_ms: int | None
) -> Generator[None, None, bytes]:
    """Return a batch of what is left. Its base time is the horizon, if it has one."""
    base_ms = records[0].time_ms if horizon_ms is None else horizon_ms
    pieces: list[bytes] = []
    for number, one in enumerate(records, 1):
        inner = b"".join((one.attributes, varint(one.time_ms - base_ms), one.rest))
        pieces += (varint(len(inner)), inner)
        if not number % RECORDS_PER_STEP:
            yield
    data = deflated(head.attributes & COMPRESSION_MASK, b"".join(pieces))
    rebuilt = head._replace(
        attributes=head.attributes | (DELETE_HORIZON if horizon_ms is not None else 0),
        size_bytes=HEADER_BYTES + len(data),
        base_time_ms=base_ms,
        max_time_ms=max(one.time_ms for one in records),
        records=len(records),
    )
    return pack_batch(rebuilt, data)
