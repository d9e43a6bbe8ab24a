"""Streams: the appends of one leader epoch to a partition, stored once for all its replicas."""

from array import array
from bisect import bisect_right
from typing import NamedTuple

from kview.simulate.records import BatchHeader, decode_batch, header

COLUMNS = ("base", "first_us", "step_us", "cumulative", "latest_us", "record_bytes", "producer")
"""The parallel columns of a stream, with one value per entry."""

ENTRIES_MAX = 16384
"""Entries of a stream before its older runs are thinned: an hour of 5 appends a second, 1 MB."""


class Run(NamedTuple):
    """Simulated records from `base_offset` on, of which record i was created at first_us + i·step_us."""

    base_offset: int
    records: int
    first_us: int
    step_us: int
    record_bytes: int
    producer: int


class Stream:
    """The appends of one epoch's leader in parallel columns. An entry is a run or a client's batch.

    For a client's batch, record_bytes is 0.
    """

    __slots__ = (*COLUMNS, "batches", "end", "end_cumulative", "epoch")

    def __init__(self, epoch: int, start: int) -> None:
        self.epoch = epoch
        self.base = array("q")
        self.first_us = array("q")
        self.step_us = array("q")
        self.cumulative = array("q")  # bytes before the entry
        # The latest time up to the entry's end. Times in this column never fall, so they can be searched.
        self.latest_us = array("q")
        self.record_bytes = array("q")
        self.producer = array("q")
        self.batches: dict[int, bytes] = {}
        self.end = start
        self.end_cumulative = 0

    def append_run(self, count: int, first_us: int, step_us: int, record_bytes: int, producer: int) -> None:
        """Append simulated records, which extend the last run if they continue its rhythm."""
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
            self._entry(first_us, step_us, record_bytes, producer, last_us)
        self.end += count
        self.end_cumulative += count * record_bytes

    def append_batch(self, batch: bytes, head: BatchHeader) -> None:
        """Append a client's batch with its parsed header.

        The base offset of the batch is the stream's end.
        """
        self._entry(head.base_time_ms * 1000, 0, 0, -1, head.max_time_ms * 1000)
        self.batches[self.end] = batch
        self.end += head.records
        self.end_cumulative += len(batch)

    def _entry(self, first_us: int, step_us: int, record_bytes: int, producer: int, last_us: int) -> None:
        if len(self.base) >= ENTRIES_MAX:
            self._thin()
        latest = self.latest_us
        self.base.append(self.end)
        self.first_us.append(first_us)
        self.step_us.append(step_us)
        self.cumulative.append(self.end_cumulative)
        latest.append(last_us if not latest or last_us > latest[-1] else latest[-1])
        self.record_bytes.append(record_bytes)
        self.producer.append(producer)

    def _thin(self) -> None:
        """Join neighbouring runs in the older half.

        The time of a record then lies between the times of its neighbours. Offsets and sizes stay the same.
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
        """Return the offset, up to `stop`, to which complete batches from `start` fit into `size` bytes.

        If no batch fits, this is `start`.
        """
        limit = self.bytes_before(start) + size
        if stop >= self.end and limit >= self.end_cumulative:
            return stop
        at = bisect_right(self.cumulative, limit) - 1
        if at < 0:
            return start
        if self.record_bytes[at]:
            found = self.base[at] + (limit - self.cumulative[at]) // self.record_bytes[at]
        else:
            found = self.base[at]
        return max(start, min(stop, found))

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
        """Drop entries that end at or below `offset`, and return the bytes of clients' batches freed."""
        at = bisect_right(self.base, offset) - 1
        if self.end <= offset:
            at = len(self.base)
        if at <= 0:
            return 0
        freed = 0
        for base in self.base[:at]:
            batch = self.batches.pop(base, None)
            freed += len(batch) if batch is not None else 0
        for name in COLUMNS:
            column: array[int] = getattr(self, name)
            del column[:at]
        return freed

    def first_in_entry(self, at: int, time_us: int, lowest: int) -> tuple[int, int]:
        """Return (offset, time in µs) of the first record in entry `at` created at `time_us` or later.

        Only records from offset `lowest` on count. Returns (−1, −1) if there is none.
        """
        base, end = max(self.base[at], lowest), self.entry_end(at)
        batch = self.batches.get(self.base[at])
        if batch is not None:
            head = header(batch)
            if head.max_time_ms * 1000 < time_us:
                return -1, -1
            return _in_batch(batch, head, self.base[at], time_us)
        first, step = self.first_us[at] + (base - self.base[at]) * self.step_us[at], self.step_us[at]
        if first >= time_us:
            return base, first
        if step == 0:
            return -1, -1
        skip = -(-(time_us - first) // step)
        return (base + skip, first + skip * step) if base + skip < end else (-1, -1)


def _in_batch(batch: bytes, head: BatchHeader, base: int, time_us: int) -> tuple[int, int]:
    for record in decode_batch(batch):
        if record.timestamp_ms * 1000 >= time_us:
            return base + record.offset_delta, record.timestamp_ms * 1000
    return base, head.base_time_ms * 1000
