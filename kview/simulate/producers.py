"""The state of idempotent producers and of their transactions, which is read from a replica's log.

Source: Kafka's ProducerStateManager.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from kview.simulate.codes import ErrorCode
from kview.simulate.log import Log
from kview.simulate.producer_snapshots import NO_OFFSET, Producer, Sent, Snapshot
from kview.simulate.records import CONTROL, TRANSACTIONAL, BatchHeader, Marker, decode_marker, header
from kview.simulate.results import ActiveProducer

BATCHES_KEPT = 5
"""Batches remembered per producer: the number that a client may have in flight."""
PRODUCERS_MAX = 10_000
"""Producer ids remembered per partition. The id idle for longest is forgotten first."""
SEQUENCES = 2**31
NO_EPOCH = -1
"""The epoch of a producer whose sequence numbers are not checked, as in Kafka."""

SNAPSHOT_BATCHES = 1_000
"""Batches between two snapshots, unless there are more producers than that. A new leader reads about as
many."""
SNAPSHOTS_KEPT = 4
"""Snapshots kept per stream. Older ones serve a leader whose log is far behind that of the one before."""


class Ended(NamedTuple):
    """A transaction in a partition that has ended: its first offset, and that of its marker."""

    start: int
    marker: int


class ProducerStates:
    """The producers found in one log, as far as the log has been read."""

    def __init__(self, read_to: int, producers: OrderedDict[int, Producer] | None = None) -> None:
        self.read_to = read_to
        self._producers: OrderedDict[int, Producer] = producers if producers is not None else OrderedDict()
        self._since_snapshot = 0
        began = {id: one.txn_start for id, one in self._producers.items() if one.txn_start != NO_OFFSET}
        self._open = dict(sorted(began.items(), key=lambda pair: pair[1]))
        """Producer → where its open transaction begins, in the order of these offsets."""
        self._ended: deque[Ended] = deque()
        """The transactions whose markers may lie above the high watermark, in the order of the markers."""

    @classmethod
    def load(cls, log: Log, high_watermark: int) -> "ProducerStates":
        """Return the state as of the last snapshot below the high watermark that applies to this log.

        Without a snapshot, the state is read from the first batch of an idempotent producer on.
        """
        for span, end in reversed(list(log.spans_with_ends())):
            for snapshot in reversed(span.stream.snapshots):
                if log.start <= snapshot.offset <= min(end, high_watermark):
                    return cls(snapshot.offset, snapshot.producers.copy())
        firsts = [span.stream.sequenced_from for span in log.spans if span.stream.sequenced_from >= 0]
        return cls(max(log.start, min([*firsts, log.end])))

    def read(self, log: Log) -> None:
        """Read the batches that were appended since the last call."""
        if log.end > self.read_to:
            for base, batch, _ in log.batches(self.read_to, log.end):
                head = header(batch)
                if head.attributes & CONTROL:
                    self._end(head, base, decode_marker(batch))
                elif head.producer_id >= 0:
                    self._remember(head, base)
                self._since_snapshot += 1
                if self._since_snapshot >= max(SNAPSHOT_BATCHES, len(self._producers)):
                    self._keep(log, base, base + head.last_offset_delta + 1)
            self.read_to = log.end

    def _keep(self, log: Log, base: int, offset: int) -> None:
        span = log.span_of(base)
        assert span is not None
        snapshots = span.stream.snapshots
        if not snapshots or snapshots[-1].offset < offset:
            snapshots.append(Snapshot(offset, self._producers.copy()))
            del snapshots[:-SNAPSHOTS_KEPT]
        self._since_snapshot = 0

    def _remember(self, head: BatchHeader, base_offset: int) -> None:
        producer = self._producers.get(head.producer_id)
        last = (head.base_sequence + head.last_offset_delta) % SEQUENCES
        sequence, time_ms = head.base_sequence, head.max_time_ms
        sent = [Sent(sequence, last, base_offset, time_ms)] if sequence >= 0 else []
        before = producer.batches if producer is not None and producer.epoch == head.producer_epoch else ()
        if head.attributes & TRANSACTIONAL:
            self._open.setdefault(head.producer_id, base_offset)
        self._put(
            head.producer_id,
            Producer(
                head.producer_epoch,
                (*before, *sent)[-BATCHES_KEPT:],
                head.max_time_ms,
                self._open.get(head.producer_id, NO_OFFSET),
                producer.coordinator_epoch if producer is not None else -1,
                producer.marker if producer is not None else NO_OFFSET,
            ),
        )

    def _end(self, head: BatchHeader, offset: int, marker: Marker | None) -> None:
        """Remember that a marker at `offset` ends a producer's transaction."""
        if marker is None:
            return
        producer = self._producers.get(head.producer_id)
        start = self._open.pop(head.producer_id, NO_OFFSET)
        if start != NO_OFFSET:
            self._ended.append(Ended(start, offset))
        same = producer is not None and producer.epoch == head.producer_epoch
        batches = producer.batches if producer is not None and same else ()
        after = Producer(
            head.producer_epoch, batches, head.max_time_ms, NO_OFFSET, marker.coordinator_epoch, offset
        )
        self._put(head.producer_id, after)

    def _put(self, producer_id: int, producer: Producer) -> None:
        self._producers[producer_id] = producer
        self._producers.move_to_end(producer_id)
        if len(self._producers) > PRODUCERS_MAX:
            idle = (id for id, one in self._producers.items() if one.txn_start == NO_OFFSET)
            if (longest := next(idle, None)) is not None:
                del self._producers[longest]

    def open_from(self, producer_id: int) -> int:
        """Return where a producer's open transaction begins, NO_OFFSET without one."""
        return self._open.get(producer_id, NO_OFFSET)

    def marker_of(self, producer_id: int) -> int:
        """Return the offset of a producer's last marker, NO_OFFSET if none is known."""
        producer = self._producers.get(producer_id)
        return NO_OFFSET if producer is None else producer.marker

    def epoch_of(self, producer_id: int) -> tuple[int, int]:
        """Return a producer's epoch, and that of the coordinator that wrote its last marker, −1 each if they
        are not known."""
        producer = self._producers.get(producer_id)
        return (-1, -1) if producer is None else (producer.epoch, producer.coordinator_epoch)

    def last_offsets(self) -> Iterator[tuple[int, int, int]]:
        """Yield (producer, offset after which nothing of it is known, −1 if only a marker is, its epoch)."""
        for number, producer in self._producers.items():
            sent = producer.batches[-1] if producer.batches else None
            records = (sent.last_sequence - sent.base_sequence) % SEQUENCES if sent is not None else 0
            yield number, sent.base_offset + records if sent is not None else NO_OFFSET, producer.epoch

    def undecided_from(self, end: int) -> int:
        """Return where the first open transaction of a log begins that ends at `end`, `end` without one."""
        return min([end, *islice(self._open.values(), 1)])

    def last_stable(self, high_watermark: int) -> int:
        """Return the last stable offset: where the first transaction begins that is open, or of which the
        marker is not below the high watermark, and at most the high watermark.

        Source: ProducerStateManager.firstUnstableOffset.
        """
        while self._ended and self._ended[0].marker < high_watermark:
            self._ended.popleft()
        starts = [*(ended.start for ended in self._ended), *islice(self._open.values(), 1)]
        return min([high_watermark, *starts])

    def active(self) -> tuple[ActiveProducer, ...]:
        """Return all producers that are remembered, ordered by id."""
        return tuple(
            ActiveProducer(
                number,
                producer.epoch,
                producer.batches[-1].last_sequence if producer.batches else -1,
                producer.last_time_ms,
                producer.coordinator_epoch,
                producer.txn_start,
            )
            for number, producer in sorted(self._producers.items())
        )

    def check(self, head: BatchHeader) -> tuple[ErrorCode, Sent | None]:
        """Check a batch's sequence number, and return an error code and the batch of which it is a duplicate,
        if any.

        With any other code than NONE, the batch is refused.
        """
        producer = self._producers.get(head.producer_id)
        if producer is None:
            return ErrorCode.NONE, None  # As in Kafka, an unknown producer may begin with any sequence.
        if head.producer_epoch < producer.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH, None
        if producer.txn_start != NO_OFFSET and not head.attributes & TRANSACTIONAL:
            return ErrorCode.INVALID_TXN_STATE, None
        first = head.base_sequence == 0
        begins = ErrorCode.NONE if first else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if head.producer_epoch > producer.epoch:
            return begins, None
        last = (head.base_sequence + head.records - 1) % SEQUENCES
        for batch in producer.batches:
            if batch.base_sequence == head.base_sequence and batch.last_sequence == last:
                return ErrorCode.NONE, batch
        if not producer.batches:  # Only a marker is known of this epoch.
            return begins, None
        follows = (producer.batches[-1].last_sequence + 1) % SEQUENCES == head.base_sequence
        if not follows and head.producer_epoch != NO_EPOCH:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, None
        return ErrorCode.NONE, None
