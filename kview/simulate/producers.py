"""The state of idempotent producers, which is read from a replica's log.

Source: Kafka's ProducerStateManager.
"""

from collections import OrderedDict

from kview.simulate.codes import ErrorCode
from kview.simulate.log import Log
from kview.simulate.producer_snapshots import Producer, Sent, Snapshot
from kview.simulate.records import BatchHeader, header
from kview.simulate.results import ActiveProducer

BATCHES_KEPT = 5
"""Batches remembered per producer: the number that a client may have in flight."""
PRODUCERS_MAX = 10_000
"""Producer ids remembered per partition. The id idle for longest is forgotten first."""
SEQUENCES = 2**31

SNAPSHOT_BATCHES = 1_000
"""Batches between two snapshots, unless there are more producers than that. A new leader reads about as
many."""
SNAPSHOTS_KEPT = 4
"""Snapshots kept per stream. Older ones serve a leader whose log is far behind that of the one before."""


class ProducerStates:
    """The producers found in one log, as far as the log has been read."""

    def __init__(self, read_to: int, producers: OrderedDict[int, Producer] | None = None) -> None:
        self.read_to = read_to
        self._producers: OrderedDict[int, Producer] = producers if producers is not None else OrderedDict()
        self._since_snapshot = 0

    @classmethod
    def load(cls, log: Log) -> "ProducerStates":
        """Return the state as of the last snapshot that applies to this log.

        Without a snapshot, the state is read from the first batch of an idempotent producer on.
        """
        for span, end in reversed(list(log.spans_with_ends())):
            for snapshot in reversed(span.stream.snapshots):
                if log.start <= snapshot.offset <= end:
                    return cls(snapshot.offset, snapshot.producers.copy())
        firsts = [span.stream.sequenced_from for span in log.spans if span.stream.sequenced_from >= 0]
        return cls(max(log.start, min([*firsts, log.end])))

    def read(self, log: Log) -> None:
        """Read the batches that were appended since the last call."""
        if log.end > self.read_to:
            for base, batch, _ in log.batches(self.read_to, log.end):
                head = header(batch)
                if head.producer_id >= 0:
                    self._remember(head, base)
                self._since_snapshot += 1
                if self._since_snapshot >= max(SNAPSHOT_BATCHES, len(self._producers)):
                    self._keep(log, base, base + head.records)
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
        last = (head.base_sequence + head.records - 1) % SEQUENCES
        sent = Sent(head.base_sequence, last, base_offset)
        before = producer.batches if producer is not None and producer.epoch == head.producer_epoch else ()
        self._producers[head.producer_id] = Producer(
            head.producer_epoch, (*before[1 - BATCHES_KEPT :], sent), head.max_time_ms
        )
        self._producers.move_to_end(head.producer_id)
        if len(self._producers) > PRODUCERS_MAX:
            self._producers.popitem(last=False)

    def active(self) -> tuple[ActiveProducer, ...]:
        """Return all producers that are remembered, ordered by id."""
        return tuple(
            ActiveProducer(number, producer.epoch, producer.batches[-1].last_sequence, producer.last_time_ms)
            for number, producer in sorted(self._producers.items())
            if producer.batches
        )

    def check(self, head: BatchHeader) -> tuple[ErrorCode, int]:
        """Check a batch's sequence number, and return (error, offset).

        NONE and −1 mean that the batch may be appended. NONE and an offset mean that it is a duplicate of the
        batch at that offset. Any other error means that the batch is refused.
        """
        producer = self._producers.get(head.producer_id)
        if producer is None:
            return ErrorCode.NONE, -1  # As in Kafka, an unknown producer may begin with any sequence.
        if head.producer_epoch < producer.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH, -1
        if head.producer_epoch > producer.epoch:
            return (ErrorCode.NONE if head.base_sequence == 0 else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), -1
        last = (head.base_sequence + head.records - 1) % SEQUENCES
        for batch in producer.batches:
            if batch.base_sequence == head.base_sequence and batch.last_sequence == last:
                return ErrorCode.NONE, batch.base_offset
        if producer.batches and (producer.batches[-1].last_sequence + 1) % SEQUENCES != head.base_sequence:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        return ErrorCode.NONE, -1
