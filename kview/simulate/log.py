"""Replicas' logs, which share the records of each leader epoch instead of storing copies.

In a leader epoch a partition has only one writer. So the records of an epoch are one `Stream`, and a
replica's log is a list of spans (epoch, first offset, stream) with an end. Copying moves the end forward,
truncating moves it back. What the log cleaner removes is removed from the stream, for all replicas that have
the cleaned part. Others keep the stream as it was until they have copied all of that part. In the meantime,
two of their spans may have the same epoch.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from kview.simulate.records import CONTROL, TRANSACTIONAL, BatchHeader, decode_batch, header
from kview.simulate.stream import Aborted, Stream


class Span(NamedTuple):
    """The part of a log that begins at offset `start` and contains what the leader of `epoch` wrote."""

    epoch: int
    start: int
    stream: Stream


class Log:
    """One replica's log: offsets from `start` up to, but not including, `end`.

    The log cleaner has not cleaned it from offset `dirty_from` on. From `cleaned_to` on it has no gaps. In
    between, it may have a copy of what another replica has cleaned.
    """

    __slots__ = ("cleaned_to", "dirty_from", "end", "spans", "start")

    def __init__(self, start: int = 0) -> None:
        self.spans: list[Span] = []
        self.start = start
        self.end = start
        self.dirty_from = self.cleaned_to = start

    def begin_epoch(self, epoch: int) -> Stream:
        """Begin writing in `epoch` and return its stream."""
        stream = Stream(epoch, self.end)
        while self.spans and self.spans[-1].start >= self.end:
            self.spans.pop()  # Nothing was written in that earlier epoch.
        self.spans.append(Span(epoch, self.end, stream))
        return stream

    def last_epoch(self) -> int:
        """Return the leader epoch of the last record, or −1 if there is none."""
        for span in reversed(self.spans):
            if span.start < self.end:
                return span.epoch
        return -1

    def copy(self, leader: "Log", to: int) -> None:
        """Copy the leader's records from this log's end up to offset `to`.

        Both logs must already agree up to this log's end.
        """
        if not self.spans or self.spans[-1].stream is not leader.spans[-1].stream:
            self.spans = _joined(self.spans, leader._part(self.end, to))
        self.end = to
        if self.cleaned_to < leader.cleaned_to:
            if leader.cleaned_to <= to:
                self.adopt(leader, to)
            else:
                self.cleaned_to = max(self.cleaned_to, to)

    def adopt(self, leader: "Log", to: int) -> None:
        """Store what the leader stores below offset `to`, up to which both agree.

        Only then may what the leader has removed be removed here, because the records that replace it are
        there.
        """
        mine = self._part(self.start, leader.start)
        self.spans = _joined(mine, leader._part(leader.start, to), self._part(to, self.end + 1))
        self.dirty_from = max(self.dirty_from, min(leader.dirty_from, to))
        self.cleaned_to = max(self.cleaned_to, min(leader.cleaned_to, to))

    def _part(self, start: int, stop: int) -> list[Span]:
        """Return the spans that have [start, stop). The last one may be empty and begin at `start`."""
        return [
            span._replace(start=max(span.start, start))
            for span, end in self.spans_with_ends()
            if span.start < stop and (end > start or span.start == start)
        ]

    def keep_as_it_is(self, streams: Mapping[int, Stream]) -> None:
        """Store copies in place of `streams`, which are by the ids of the originals."""
        for number, span in enumerate(self.spans):
            if id(span.stream) in streams:
                self.spans[number] = span._replace(stream=streams[id(span.stream)])

    def around(self, offset: int) -> tuple[int, int]:
        """Return where what the cleaner has left around `offset` begins and ends.

        Both are `offset` if a log may end there.
        """
        if self.start < offset < self.cleaned_to:
            for span, end in self.spans_with_ends():
                if span.start < offset < end:
                    stream, at = span.stream, span.stream.entry_at(offset)
                    first = max(self.start, span.start, stream.base[at])
                    if first < offset and stream.batches[at] is not None:
                        return first, min(end, stream.entry_end(at))
        return offset, offset

    def size_between(self, start: int, stop: int) -> int:
        """Return the size in bytes of the records in [start, stop)."""
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
        """Return the offset up to which complete batches from `start` fit into `size` bytes, within one span.

        See `Stream.fit`.
        """
        for at, span in enumerate(self.spans):
            span_end = self.spans[at + 1].start if at + 1 < len(self.spans) else self.end
            if start < span_end:
                return span.stream.fit(start, min(stop, span_end), size)
        return start

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """Return (the last known epoch ≤ `epoch`, the offset at which it ends).

        If `epoch` is older than every known epoch, return it with the start of the first known one. If no
        later epoch is known, return (−1, −1). Source: LeaderEpochFileCache.endOffsetFor.
        """
        later = next((at for at, span in enumerate(self.spans) if span.epoch > epoch), None)
        if epoch < 0 or later is None:
            return -1, -1
        known = self.spans[later - 1].epoch if later else epoch
        return known, max(self.start, self.spans[later].start)

    def span_of(self, offset: int) -> Span | None:
        """Return the span that contains `offset`. At the log's end, this is the last span."""
        for span in reversed(self.spans):
            if span.start <= offset:
                return span
        return None

    def epoch_at(self, offset: int) -> int:
        """Return the leader epoch at `offset`. At the log's end this is the last epoch, in an empty log
        −1."""
        span = self.span_of(offset)
        return span.epoch if span is not None else -1

    def agreement(self, other: "Log") -> int:
        """Return the offset up to which this log agrees with `other`, a leader's.

        As in Kafka it may be below this log's start, from which records were deleted that `other` never had.
        """
        theirs = {span.epoch: at for at, span in enumerate(other.spans)}
        end = self.end
        for span in reversed(self.spans):
            if span.start < self.end:
                at = theirs.get(span.epoch)
                if at is not None and other.spans[at].stream.lineage is span.stream.lineage:
                    other_end = other.spans[at + 1].start if at + 1 < len(other.spans) else other.end
                    return min(end, other_end)
            end = span.start
        first = other.spans[0].start if other.spans else other.end
        return min(self.end, max(other.start, first))

    def truncate(self, to: int) -> None:
        """Cut the log at `to` or at the begin of the batch there, and drop epochs that are left without
        records."""
        self.end = min(self.end, self.around(to)[0])
        self.start = min(self.start, self.end)
        self.dirty_from = min(self.dirty_from, self.end)
        self.cleaned_to = min(self.cleaned_to, self.end)
        while self.spans and self.spans[-1].start >= self.end:
            self.spans.pop()

    def reset(self, start: int) -> None:
        """Empty the log and set its start to `start`."""
        self.spans.clear()
        self.start = self.end = self.dirty_from = self.cleaned_to = start

    def advance_start(self, start: int) -> None:
        """Drop the records below `start`."""
        if start <= self.start:
            return
        self.start = start
        self.dirty_from = max(self.dirty_from, start)
        self.cleaned_to = max(self.cleaned_to, start)
        while len(self.spans) > 1 and self.spans[1].start <= start:
            self.spans.pop(0)

    def entries(self, start: int, stop: int) -> Iterator[tuple[Span, int, int, int]]:
        """Yield the entries that overlap [start, stop) as (span, index in the span's stream, first offset,
        end)."""
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
        """Yield (base offset, original bytes, leader epoch) of the clients' batches in [start, stop)."""
        for span, at, _, _ in self.entries(start, stop):
            batch = span.stream.batches[at]
            if batch and (base := span.stream.batch_base(at, batch)) >= start:
                yield base, batch, span.epoch

    @property
    def is_transactional(self) -> bool:
        """Whether a record of the log may be part of a transaction."""
        return any(0 <= span.stream.transactional_from < end for span, end in self.spans_with_ends())

    def aborted(self, start: int, stop: int) -> Iterator[Aborted]:
        """Yield the aborted transactions with records in [start, stop), as Kafka's TransactionIndex does."""
        for span, end in self.spans_with_ends():
            aborted, first = span.stream.aborted, max(start, span.start)
            for one in aborted[bisect_left(aborted, first, key=lambda aborted: aborted.last) :]:
                if one.last >= end:
                    break
                if one.first < stop:
                    yield one
                if one.stable >= stop:
                    return

    def control_records(self, start: int, stop: int) -> int:
        """Return how many markers of transactions are in [start, stop)."""
        return sum(
            records for _, records, head in self._in_transactions(start, stop) if head.attributes & CONTROL
        )

    def aborted_records(self, start: int, stop: int) -> int:
        """Return how many records in [start, stop) belong to transactions that have been aborted."""
        aborted = list(self.aborted(start, stop))
        if not aborted:
            return 0
        return sum(
            records
            for base, records, head in self._in_transactions(start, stop)
            if not head.attributes & CONTROL
            and any(one.producer_id == head.producer_id and one.first <= base < one.last for one in aborted)
        )

    def missing_records(self, start: int, stop: int) -> int:
        """Return how many offsets in [start, stop) have no record any more, because the log was cleaned."""
        if start >= self.cleaned_to:
            return 0
        return sum(
            end - first - records_between(span.stream, at, first, end)
            for span, at, first, end in self.entries(start, min(stop, self.cleaned_to))
        )

    def _in_transactions(self, start: int, stop: int) -> Iterator[tuple[int, int, BatchHeader]]:
        """Yield (base offset, records in [start, stop), header) of the batches that transactions have
        written, markers included."""
        if not self.is_transactional:
            return
        for span, at, first, end in self.entries(start, stop):
            batch = span.stream.batches[at]
            if batch and (head := header(batch)).attributes & TRANSACTIONAL:
                base = span.stream.batch_base(at, batch)
                yield base, records_between(span.stream, at, first, end), head

    def time_at(self, offset: int) -> int:
        """Return the creation time in µs of the record at `offset`, or −1.

        For a batch, this is the time of its first record.
        """
        for span, at, start, _ in self.entries(offset, offset + 1):
            return span.stream.first_us[at] + (start - span.stream.base[at]) * span.stream.step_us[at]
        return -1

    def first_at_or_after(self, time_us: int, stop: int) -> tuple[int, int]:
        """Find the first record below offset `stop` that was created at `time_us` or later.

        Returns (offset, time in µs), or (−1, −1) if there is none.
        """
        for span, end in self.spans_with_ends():
            stream, span_end = span.stream, min(stop, end)
            lowest = max(self.start, span.start)
            at = max(bisect_left(stream.latest_us, time_us), stream.entry_at(lowest))
            while at < len(stream.base) and stream.base[at] < span_end:
                first = stream.first_in_entry(at, time_us, lowest)
                if first[0] >= 0 and first[0] < span_end:
                    return first
                at += 1
        return -1, -1

    def latest(self, stop: int) -> tuple[int, int]:
        """Find the record below offset `stop` with the latest creation time.

        Returns (offset, time in µs), or (−1, −1) if there is none.
        """
        best = max(
            (
                span.stream.latest_us[span.stream.entry_at(min(stop, end) - 1)]
                for span, end in self.spans_with_ends()
                if span.start < stop and len(span.stream.base)
            ),
            default=-1,
        )
        newest = self.first_at_or_after(best, stop) if best >= 0 else (-1, -1)
        if newest[0] < 0 and best >= 0:
            # The latest of all records is below the log start. Then every entry must be looked at.
            left = [
                latest
                for span, at, _, _ in self.entries(self.start, stop)
                if (latest := span.stream.latest_in_entry(at)) >= 0
            ]
            newest = self.first_at_or_after(max(left), stop) if left else newest
        return newest

    def spans_with_ends(self) -> Iterator[tuple[Span, int]]:
        """Yield each span with the offset at which it ends."""
        for number, span in enumerate(self.spans):
            yield span, self.spans[number + 1].start if number + 1 < len(self.spans) else self.end


def _joined(*parts: list[Span]) -> list[Span]:
    """Return the spans of all parts. What follows in the same stream is one span."""
    spans: list[Span] = []
    for span in chain(*parts):
        if not spans or span.stream is not spans[-1].stream:
            spans.append(span)
    return spans


def records_between(stream: Stream, at: int, first: int, end: int) -> int:
    """Return how many records entry `at` of a stream has in [first, end), which is a part of it."""
    batch = stream.batches[at]
    if batch is None:
        return end - first
    if not batch:
        return 0
    head, base = header(batch), stream.batch_base(at, batch)
    if head.records > head.last_offset_delta:
        return end - max(first, base)
    if first <= base and end == stream.entry_end(at):
        return head.records
    return sum(first <= base + record.offset_delta < end for record in decode_batch(batch))
