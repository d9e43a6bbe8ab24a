"""Logs: what each leader epoch wrote, kept once, and which part of it each replica holds.

In a leader epoch a partition has one writer. So what an epoch wrote is one `Stream`, and a replica's log is
a list of spans
(epoch, first offset, stream) with an end: copying moves an end, truncating moves it back.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from kview.simulate.records import BatchHeader, decode_batch, header

ENTRIES_MAX = 16384
"""Runs and batches of a stream before its older runs are thinned: an hour of 5 appends a second, 1 MB."""


class Run(NamedTuple):
    """Simulated records: `records` of them from `base_offset`, record i created at first_us + i·step_us."""

    base_offset: int
    records: int
    first_us: int
    step_us: int
    record_bytes: int
    producer: int


class Stream:
    """What the leader of one epoch appended, in parallel columns: an entry is a run, or a client's batch
    (record_bytes 0)."""

    __slots__ = (
        "base",
        "batches",
        "cumulative",
        "end",
        "end_cumulative",
        "epoch",
        "first_us",
        "latest_us",
        "producer",
        "record_bytes",
        "step_us",
    )

    def __init__(self, epoch: int, start: int) -> None:
        self.epoch = epoch
        self.base = array("q")
        self.first_us = array("q")
        self.step_us = array("q")
        self.cumulative = array("q")  # bytes before the entry
        self.latest_us = array(
            "q"
        )  # the latest time up to the entry's end: never falls, so that it can be searched
        self.record_bytes = array("q")
        self.producer = array("q")
        self.batches: dict[int, bytes] = {}
        self.end = start
        self.end_cumulative = 0

    def append_run(self, count: int, first_us: int, step_us: int, record_bytes: int, producer: int) -> None:
        """Append simulated records; they lengthen the last run where they go on in its rhythm."""
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
        """Append a client's batch, its header read already; its base offset is the stream's end."""
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
        """Join neighbouring runs in the older half: a record's time is then within its neighbours', offsets
        and sizes stay."""
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
        for name in ("base", "first_us", "step_us", "cumulative", "latest_us", "record_bytes", "producer"):
            column: array[int] = getattr(self, name)
            setattr(self, name, array("q", [column[i] for i in keep]))

    def bytes_before(self, offset: int) -> int:
        """Bytes of the stream below `offset`; a batch counts from its first offset on."""
        if offset >= self.end:
            return self.end_cumulative
        at = bisect_right(self.base, offset) - 1
        if at < 0:
            return self.cumulative[0]
        size = self.cumulative[at]
        return size + (offset - self.base[at]) * self.record_bytes[at]

    def fit(self, start: int, stop: int, size: int) -> int:
        """The largest offset up to `stop` so that [start, it) is at most `size` bytes, in whole batches;
        `start` if none fits."""
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
        """The offset after entry `at`."""
        return self.base[at + 1] if at + 1 < len(self.base) else self.end

    def entry_at(self, offset: int) -> int:
        """The number of the entry that holds `offset`, which is in the stream."""
        return max(0, bisect_right(self.base, offset) - 1)

    def run(self, at: int, start: int, stop: int) -> Run:
        """The part [start, stop) of entry `at`, a run."""
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
        """Forget entries that end at or below `offset`; returns the bytes of clients' batches that this
        frees."""
        at = bisect_right(self.base, offset) - 1
        if self.end <= offset:
            at = len(self.base)
        if at <= 0:
            return 0
        freed = 0
        for base in self.base[:at]:
            batch = self.batches.pop(base, None)
            freed += len(batch) if batch is not None else 0
        for name in ("base", "first_us", "step_us", "cumulative", "latest_us", "record_bytes", "producer"):
            column: array[int] = getattr(self, name)
            del column[:at]
        return freed


class Span(NamedTuple):
    """A stretch of a log: the leader epoch, its first offset here, and what that epoch's leader wrote."""

    epoch: int
    start: int
    stream: Stream


class Log:
    """One replica's log: offsets from `start` up to, not including, `end`."""

    __slots__ = ("end", "spans", "start")

    def __init__(self, start: int = 0) -> None:
        self.spans: list[Span] = []
        self.start = start
        self.end = start

    def begin_epoch(self, epoch: int) -> Stream:
        """Become the writer of `epoch`: what is appended goes to its stream."""
        stream = Stream(epoch, self.end)
        while self.spans and self.spans[-1].start >= self.end:
            self.spans.pop()  # an epoch in which nothing was written
        self.spans.append(Span(epoch, self.end, stream))
        return stream

    def last_epoch(self) -> int:
        """The leader epoch of the last record, −1 when there is none."""
        for span in reversed(self.spans):
            if span.start < self.end:
                return span.epoch
        return -1

    def copy(self, leader: "Log", to: int) -> None:
        """Take the leader's records from this log's end up to `to`, where both logs agree up to here."""
        mine = self.spans[-1].epoch if self.spans else -1
        if leader.spans[-1].epoch != mine:
            self.spans += [s for s in leader.spans if s.epoch > mine and s.start < to]
        self.end = to

    def size_between(self, start: int, stop: int) -> int:
        """Bytes of the records in [start, stop)."""
        size = 0
        limit = stop
        for span in reversed(self.spans):
            if span.start < limit:
                size += span.stream.bytes_before(limit) - span.stream.bytes_before(max(start, span.start))
                limit = span.start
            if limit <= start:
                break
        return size

    def fit(self, start: int, stop: int, size: int) -> int:
        """As `Stream.fit`, over the whole log; within one span at a time."""
        for at, span in enumerate(self.spans):
            span_end = self.spans[at + 1].start if at + 1 < len(self.spans) else self.end
            if start < span_end:
                return span.stream.fit(start, min(stop, span_end), size)
        return start

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """The largest epoch not above `epoch` that has records here, and the offset after it; (−1, −1) when
        there is none."""
        end = self.end
        for span in reversed(self.spans):
            if span.epoch <= epoch and span.start < self.end:
                return span.epoch, end
            end = min(end, span.start)
        return -1, -1

    def span_of(self, offset: int) -> Span | None:
        """The span that `offset` falls into, the last one at the end."""
        for span in reversed(self.spans):
            if span.start <= offset:
                return span
        return None

    def epoch_at(self, offset: int) -> int:
        """The leader epoch of the record at `offset`, the last epoch at the end, −1 for an empty log."""
        span = self.span_of(offset)
        return span.epoch if span is not None else -1

    def agreement(self, other: "Log") -> int:
        """The offset up to which this log and `other` are the same."""
        theirs = {span.epoch: at for at, span in enumerate(other.spans)}
        end = self.end
        for span in reversed(self.spans):
            if span.start < self.end:
                at = theirs.get(span.epoch)
                if at is not None and other.spans[at].stream is span.stream:
                    other_end = other.spans[at + 1].start if at + 1 < len(other.spans) else other.end
                    return max(self.start, min(end, other_end))
            end = span.start
        return self.start

    def truncate(self, to: int) -> None:
        """Cut everything from `to` on, and epochs in which this log has nothing."""
        self.end = min(self.end, to)
        self.start = min(self.start, self.end)
        while self.spans and self.spans[-1].start >= self.end:
            self.spans.pop()

    def reset(self, start: int) -> None:
        """Begin anew, empty, at `start`."""
        self.spans.clear()
        self.start = self.end = start

    def advance_start(self, start: int) -> None:
        """Forget what is below `start`."""
        if start <= self.start:
            return
        self.start = start
        while len(self.spans) > 1 and self.spans[1].start <= start:
            self.spans.pop(0)

    def entries(self, start: int, stop: int) -> Iterator[tuple[Span, int, int, int]]:
        """The pieces of [start, stop), in order: (span, entry, from, to); to a batch belong all its
        offsets."""
        for number, span in enumerate(self.spans):
            span_end = min(stop, self.spans[number + 1].start if number + 1 < len(self.spans) else self.end)
            if span_end <= start or span.start >= stop:
                continue
            stream = span.stream
            at = stream.entry_at(max(start, span.start))
            while at < len(stream.base) and stream.base[at] < span_end:
                yield (
                    span,
                    at,
                    max(start, span.start, stream.base[at]),
                    min(span_end, stream.entry_end(at)),
                )
                at += 1

    def batches(self, start: int, stop: int) -> Iterator[tuple[int, bytes, int]]:
        """(base offset, bytes as they came, leader epoch) of the clients' batches in [start, stop)."""
        for span, at, _, _ in self.entries(start, stop):
            base = span.stream.base[at]
            batch = span.stream.batches.get(base)
            if batch is not None and base >= start:
                yield base, batch, span.epoch

    def time_at(self, offset: int) -> int:
        """The creation time in µs of the record at `offset` (of a batch: its first record), −1 where there
        is none."""
        for span, at, start, _ in self.entries(offset, offset + 1):
            return span.stream.first_us[at] + (start - span.stream.base[at]) * span.stream.step_us[at]
        return -1

    def first_at_or_after(self, time_us: int, stop: int) -> tuple[int, int]:
        """(offset, time in µs) of the first record below `stop` created at `time_us` or later; (−1, −1)
        when there is none."""
        for number, span in enumerate(self.spans):
            stream = span.stream
            span_end = min(stop, self.spans[number + 1].start if number + 1 < len(self.spans) else self.end)
            lowest = max(self.start, span.start)
            at = max(bisect_left(stream.latest_us, time_us), stream.entry_at(lowest))
            while at < len(stream.base) and stream.base[at] < span_end:
                found = self._in_entry(stream, at, time_us, lowest)
                if found[0] >= 0 and found[0] < span_end:
                    return found
                at += 1
        return -1, -1

    @staticmethod
    def _in_entry(stream: Stream, at: int, time_us: int, lowest: int) -> tuple[int, int]:
        base, end = max(stream.base[at], lowest), stream.entry_end(at)
        batch = stream.batches.get(stream.base[at])
        if batch is not None:
            head = header(batch)
            if head.max_time_ms * 1000 < time_us:
                return -1, -1
            return _in_batch(batch, head, stream.base[at], time_us)
        first, step = stream.first_us[at] + (base - stream.base[at]) * stream.step_us[at], stream.step_us[at]
        if first >= time_us:
            return base, first
        if step == 0:
            return -1, -1
        skip = -(-(time_us - first) // step)
        return (base + skip, first + skip * step) if base + skip < end else (-1, -1)

    def latest(self, stop: int) -> tuple[int, int]:
        """(offset, time in µs) of the record with the greatest time below `stop`; (−1, −1) for an empty
        log."""
        best = max(
            (
                span.stream.latest_us[span.stream.entry_at(min(stop, end) - 1)]
                for span, end in self._ends()
                if span.start < stop and len(span.stream.base)
            ),
            default=-1,
        )
        return self.first_at_or_after(best, stop) if best >= 0 else (-1, -1)

    def _ends(self) -> Iterator[tuple[Span, int]]:
        for number, span in enumerate(self.spans):
            yield span, self.spans[number + 1].start if number + 1 < len(self.spans) else self.end


def _in_batch(batch: bytes, head: BatchHeader, base: int, time_us: int) -> tuple[int, int]:
    for record in decode_batch(batch):
        if record.timestamp_ms * 1000 >= time_us:
            return base + record.offset_delta, record.timestamp_ms * 1000
    return base, head.base_time_ms * 1000
