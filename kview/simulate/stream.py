"""Streams, which store the appends of one leader epoch to a partition once for all its replicas."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kview.simulate.producer_snapshots import Snapshot
from kview.simulate.record_check import Refused
from kview.simulate.records import (
    DELETE_HORIZON,
    TIMESTAMP_TYPE,
    TRANSACTIONAL,
    BatchHeader,
    body,
    decode_batch,
    header,
    last_offset_delta,
)
from kview.wire.primitives import VARINT_BYTES, MalformedBytes, read_varint

COLUMNS = ("base", "first_us", "step_us", "cumulative", "latest_us", "record_bytes", "producer")
"""The parallel columns of a stream, with one value per entry."""

ENTRIES_MAX = 16384
"""Entries of a stream before its older runs are merged: about an hour of 5 appends a second, in 1 MB."""

BATCH_OVERHEAD_BYTES = 128
"""Memory that a client's batch takes besides its bytes: its row in the columns, and Python's object."""

NO_TIME_US = -1
TIME_MAX_US = 2**62
"""Limit of a creation time, either way. A client may send a time that does not fit into 64 bits of µs."""


class Run(NamedTuple):
    """Simulated records from `base_offset` on, with record i created at first_us + i·step_us."""

    base_offset: int
    records: int
    first_us: int
    step_us: int
    record_bytes: int
    producer: int


class NewRun(NamedTuple):
    """Simulated records to append, with record i created at first_us + i·step_us.

    `record_bytes` is the size of a complete record on disk. `producer` comes from `register_producer`.
    """

    records: int
    first_us: int
    step_us: int
    record_bytes: int
    producer: int


class Aborted(NamedTuple):
    """An aborted transaction in a partition. `last` is the offset of its marker, and `stable` the last stable
    offset when it was written."""

    producer_id: int
    first: int
    last: int
    stable: int


class Stream:
    """Everything that one leader appended in its epoch, as parallel columns.

    An entry is a run or a client's batch. For a client's batch, record_bytes is 0, and `batches` has its
    bytes. An entry begins where the one before it ends, so a batch that the cleaner has left covers the
    offsets that are missing before it, too. What the cleaner has left of the last offsets of a stream may be
    an entry without bytes. Streams of one `lineage` have the same offsets, some of them from before a
    cleaning. Those of one `content` have the same batches, too, as far as both go. `held_bytes` is the
    memory that clients' batches take. `sequenced_from` is the offset of the first batch of an idempotent
    producer, or −1, and `transactional_from` that of the first in a transaction. `aborted` are the
    transactions that its markers end, ordered by these.
    """

    __slots__ = (
        *COLUMNS,
        "_thin_at",
        "aborted",
        "batches",
        "content",
        "end",
        "end_cumulative",
        "epoch",
        "held_bytes",
        "lineage",
        "sequenced_from",
        "snapshots",
        "transactional_from",
    )

    def __init__(self, epoch: int, start: int) -> None:
        self.epoch = epoch
        self.base = array("q")
        self.first_us = array("q")
        self.step_us = array("q")
        self.cumulative = array("q")  # bytes before the entry
        # The latest creation time up to the entry's end. This column never falls, so it can be searched.
        self.latest_us = array("q")
        self.record_bytes = array("q")
        self.producer = array("q")
        self.batches: list[bytes | None] = []
        self.held_bytes = 0
        self.lineage = object()
        self.content = object()
        self.sequenced_from = self.transactional_from = -1
        self.aborted: list[Aborted] = []
        self.snapshots: list[Snapshot] = []
        self.end = start
        self.end_cumulative = 0
        self._thin_at = ENTRIES_MAX

    def append_run(self, count: int, first_us: int, step_us: int, record_bytes: int, producer: int) -> None:
        """Append simulated records. They extend the last run if they have its producer, size and interval."""
        last_us = first_us + step_us * (count - 1)
        if (
            self.base
            and self.record_bytes[-1] == record_bytes
            and self.producer[-1] == producer
            and self.step_us[-1] == step_us
            and self.first_us[-1] + step_us * (self.end - self.base[-1]) == first_us
        ):
            if last_us > self.latest_us[-1]:
                self.latest_us[-1] = last_us
        else:
            self._entry(first_us, step_us, record_bytes, producer, last_us, None)
        self.end += count
        self.end_cumulative += count * record_bytes

    def append_batch(self, batch: bytes, head: BatchHeader) -> None:
        """Append a client's batch with its parsed header.

        The base offset of the batch is the stream's end.
        """
        first_ms = head.max_time_ms if head.attributes & TIMESTAMP_TYPE else head.base_time_ms
        self._entry(_us(first_ms), 0, 0, -1, _us(head.max_time_ms), batch)
        self.held_bytes += len(batch) + BATCH_OVERHEAD_BYTES
        if head.producer_id >= 0 and self.sequenced_from < 0:
            self.sequenced_from = self.end
        if head.attributes & TRANSACTIONAL and self.transactional_from < 0:
            self.transactional_from = self.end
        self.end += head.records
        self.end_cumulative += len(batch)

    def append_kept(self, end: int, batch: bytes) -> None:
        """Append what a disk has kept up to offset `end`: a batch, before which offsets may be missing, or
        nothing (b"")."""
        if not batch:
            self._entry(NO_TIME_US, 0, 0, -1, -TIME_MAX_US, batch)
            self.end = end
            return
        head = header(batch)
        base = end - 1 - head.last_offset_delta
        starts_late = head.attributes & (TIMESTAMP_TYPE | DELETE_HORIZON) or not head.records
        first_ms = head.max_time_ms if starts_late else head.base_time_ms
        self._entry(_us(first_ms), 0, 0, -1, _us(head.max_time_ms), batch)
        self.held_bytes += len(batch) + BATCH_OVERHEAD_BYTES
        if head.producer_id >= 0 and self.sequenced_from < 0:
            self.sequenced_from = base
        if head.attributes & TRANSACTIONAL and self.transactional_from < 0:
            self.transactional_from = base
        self.end = end
        self.end_cumulative += len(batch)

    def _entry(
        self,
        first_us: int,
        step_us: int,
        record_bytes: int,
        producer: int,
        last_us: int,
        batch: bytes | None,
    ) -> None:
        if len(self.base) >= self._thin_at:
            self._thin()
            # Clients' batches cannot be merged. The more of them there are, the rarer the attempts, so that
            # an append costs the same however long the stream is.
            self._thin_at = max(ENTRIES_MAX, len(self.base) * 5 // 4)
        latest = self.latest_us
        self.base.append(self.end)
        self.first_us.append(first_us)
        self.step_us.append(step_us)
        self.cumulative.append(self.end_cumulative)
        latest.append(last_us if not latest or last_us > latest[-1] else latest[-1])
        self.record_bytes.append(record_bytes)
        self.producer.append(producer)
        self.batches.append(batch)

    def _thin(self) -> None:
        """Merge neighbouring runs in the older half to save memory.

        A merged run has a single interval between its records, so their times become approximate. Offsets and
        sizes stay exact.
        """
        old = len(self.base) // 2
        keep: list[int] = []
        at = 0
        while at < old:
            keep.append(at)
            joined = (
                at + 1 < old
                and self.record_bytes[at] == self.record_bytes[at + 1] > 0
                and self.producer[at] == self.producer[at + 1]
            )
            if joined:
                count = self.base[at + 2] - self.base[at]
                last_count = self.base[at + 2] - self.base[at + 1]
                last_us = self.first_us[at + 1] + self.step_us[at + 1] * (last_count - 1)
                self.step_us[at] = max(0, last_us - self.first_us[at]) // max(1, count - 1)
                self.latest_us[at] = self.latest_us[at + 1]
            at += 2 if joined else 1
        keep.extend(range(old, len(self.base)))
        for name in COLUMNS:
            column: array[int] = getattr(self, name)
            setattr(self, name, array("q", [column[i] for i in keep]))
        self.batches = [self.batches[i] for i in keep]

    def bytes_before(self, offset: int) -> int:
        """Return the size in bytes of the stream below `offset`. A batch counts from its first offset on."""
        if offset >= self.end:
            return self.end_cumulative
        at = bisect_right(self.base, offset) - 1
        if at < 0:
            return self.cumulative[0]
        size = self.cumulative[at]
        return size + (offset - self.base[at]) * self.record_bytes[at]

    def fit(self, start: int, stop: int, size: int) -> int:
        """Return the offset up to which complete batches from `start` fit into `size` bytes, at most `stop`.

        Returns `start` if no batch fits.
        """
        limit = self.bytes_before(start) + size
        if stop >= self.end and limit >= self.end_cumulative:
            return stop
        at = bisect_right(self.cumulative, limit) - 1
        if at < 0:
            return start
        if self.record_bytes[at]:
            fits_until = self.base[at] + (limit - self.cumulative[at]) // self.record_bytes[at]
        else:
            fits_until = self.base[at]
        return max(start, min(stop, fits_until))

    def entry_end(self, at: int) -> int:
        """Return the offset after entry `at`."""
        return self.base[at + 1] if at + 1 < len(self.base) else self.end

    def entry_at(self, offset: int) -> int:
        """Return the index of the entry that contains `offset`, which must be in the stream."""
        return max(0, bisect_right(self.base, offset) - 1)

    def run(self, at: int, start: int, stop: int) -> Run:
        """Return the part [start, stop) of entry `at`, which must be a run."""
        base, step = self.base[at], self.step_us[at]
        return Run(
            start,
            stop - start,
            self.first_us[at] + (start - base) * step,
            step,
            self.record_bytes[at],
            self.producer[at],
        )

    def drop_before(self, offset: int) -> int:
        """Drop entries that end at or below `offset`, and return the memory of clients' batches freed."""
        at = bisect_right(self.base, offset) - 1
        if self.end <= offset:
            at = len(self.base)
        if at <= 0:
            return 0
        gone = bisect_left(self.aborted, offset, key=lambda aborted: aborted.last)
        del self.aborted[:gone]
        freed = memory_of(batch for batch in self.batches[:at] if batch is not None)
        self.held_bytes -= freed
        del self.batches[:at]
        for name in COLUMNS:
            column: array[int] = getattr(self, name)
            del column[:at]
        return freed

    def batch_base(self, at: int, batch: bytes) -> int:
        """Return the offset at which a client's batch begins, which is entry `at`."""
        return self.entry_end(at) - 1 - last_offset_delta(batch)

    def copy(self) -> "Stream":
        """Return a stream of the same lineage and content, which will not change."""
        other = Stream(self.epoch, self.end)
        for name in self.__slots__:
            value = getattr(self, name)
            setattr(other, name, value[:] if isinstance(value, array | list) else value)
        return other

    def replace(self, first: int, stop: int, batches: Sequence[tuple[int, bytes]]) -> int:
        """Put what the cleaner has left in place of the entries from number `first` up to offset `stop`.

        `batches` are (offset after the last of the batch, bytes). Returns by how much the memory of clients'
        batches grows.
        """
        self.content = object()
        self._split(stop)
        after = bisect_left(self.base, stop) if stop < self.end else len(self.base)
        entries = list(batches)
        if not entries or entries[-1][0] < stop:
            entries.append((stop, b""))
        columns: dict[str, array[int]] = {name: array("q") for name in COLUMNS}
        base, size = self.base[first], self.cumulative[first]
        latest = self.latest_us[first - 1] if first else -TIME_MAX_US
        for end, batch in entries:
            first_us = NO_TIME_US
            if batch:
                head = header(batch)
                starts_late = head.attributes & (TIMESTAMP_TYPE | DELETE_HORIZON) or not head.records
                first_us = _us(head.max_time_ms if starts_late else head.base_time_ms)
                latest = max(latest, _us(head.max_time_ms))
            row = (base, first_us, 0, size, latest, 0, -1)
            for name, value in zip(COLUMNS, row, strict=True):
                columns[name].append(value)
            base, size = end, size + len(batch)
        old_size = self.cumulative[after] if after < len(self.base) else self.end_cumulative
        old_batches = [batch for batch in self.batches[first:after] if batch is not None]
        for name in COLUMNS:
            column: array[int] = getattr(self, name)
            column[first:after] = columns[name]
        self.batches[first:after] = [batch for _, batch in entries]
        moved = size - old_size
        for at in range(first + len(entries), len(self.base)):
            self.cumulative[at] += moved
        for at in range(first + len(entries), len(self.base)):
            latest = max(latest, self.latest_in_entry(at))
            if self.latest_us[at] == latest:
                break
            self.latest_us[at] = latest
        self.end_cumulative += moved
        self._thin_at = max(ENTRIES_MAX, len(self.base) * 5 // 4)
        grown = memory_of(batch for _, batch in entries) - memory_of(old_batches)
        self.held_bytes += grown
        return grown

    def _split(self, offset: int) -> None:
        """Make two runs of the one that goes over `offset`, if any does."""
        if not self.base or not self.base[0] < offset < self.end:
            return
        at = self.entry_at(offset)
        if self.base[at] == offset:
            return
        before, size = offset - self.base[at], self.record_bytes[at]
        row = (
            offset,
            self.first_us[at] + before * self.step_us[at],
            self.step_us[at],
            self.cumulative[at] + before * size,
            self.latest_us[at],
            size,
            self.producer[at],
        )
        for name, value in zip(COLUMNS, row, strict=True):
            getattr(self, name).insert(at + 1, value)
        self.batches.insert(at + 1, None)

    def latest_in_entry(self, at: int) -> int:
        """Return the latest creation time in entry `at`, in µs, or −1 if it has no records."""
        batch = self.batches[at]
        if batch is not None:
            return _us(header(batch).max_time_ms) if batch else NO_TIME_US
        return self.first_us[at] + self.step_us[at] * (self.entry_end(at) - self.base[at] - 1)

    def first_in_entry(self, at: int, time_us: int, lowest: int) -> tuple[int, int]:
        """Return (offset, time in µs) of the first record in entry `at` created at `time_us` or later.

        Only records from offset `lowest` on count. Returns (−1, −1) if there is none.
        """
        base, end = max(self.base[at], lowest), self.entry_end(at)
        batch = self.batches[at]
        if batch is not None:
            if not batch:
                return -1, -1
            head = header(batch)
            if head.max_time_ms * 1000 < time_us:
                return -1, -1
            return _in_batch(batch, head, self.batch_base(at, batch), time_us, lowest)
        first, step = self.first_us[at] + (base - self.base[at]) * self.step_us[at], self.step_us[at]
        if first >= time_us:
            return base, first
        if step == 0:
            return -1, -1
        skip = -(-(time_us - first) // step)
        return (base + skip, first + skip * step) if base + skip < end else (-1, -1)


def memory_of(batches: Iterable[bytes]) -> int:
    """Return the memory in bytes that clients' batches take."""
    return sum(len(batch) + BATCH_OVERHEAD_BYTES for batch in batches)


def _us(time_ms: int) -> int:
    return max(-TIME_MAX_US, min(TIME_MAX_US, time_ms * 1000))


def _in_batch(batch: bytes, head: BatchHeader, base: int, time_us: int, lowest: int) -> tuple[int, int]:
    if head.records <= head.last_offset_delta:
        for record in decode_batch(batch):
            offset, record_us = base + record.offset_delta, record.timestamp_ms * 1000
            if offset >= lowest and record_us >= time_us:
                return offset, record_us
        return -1, -1
    skipped = max(0, lowest - base)
    if head.attributes & TIMESTAMP_TYPE:
        return base + skipped, _us(head.max_time_ms)
    try:
        data, at = body(batch, head)
        if not skipped:  # as almost always, and much quicker
            _, attributes_at = read_varint(data, at, VARINT_BYTES)  # after the length of the first record
            delta, _ = read_varint(data, attributes_at + 1)
            if (head.base_time_ms + delta) * 1000 >= time_us:
                return base, (head.base_time_ms + delta) * 1000
        from kview.simulate.many_records import fields

        deltas = fields(data, at, head.records).time_deltas
    except (Refused, MalformedBytes):
        return base + skipped, _us(head.base_time_ms)
    late = (deltas[skipped:] >= -(-time_us // 1000) - head.base_time_ms).nonzero()[0]
    if not len(late):
        return -1, -1
    first_late = skipped + int(late[0])
    return base + first_late, (head.base_time_ms + int(deltas[first_late])) * 1000
