"""Idempotent producers, whose last batches are read from a replica's log.

Source: Kafka's ProducerStateManager.
"""

from collections import OrderedDict, deque
from typing import NamedTuple

from kview.simulate.codes import ErrorCode
from kview.simulate.log import Log
from kview.simulate.records import BatchHeader, header

BATCHES_KEPT = 5
"""Batches remembered per producer: the number that a client may have in flight."""
PRODUCERS_MAX = 10_000
"""Producer ids remembered per partition. The id idle for longest is forgotten first."""
SEQUENCES = 2**31


class _Batch(NamedTuple):
    base_sequence: int
    last_sequence: int
    base_offset: int


class _Producer:
    __slots__ = ("batches", "epoch")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: deque[_Batch] = deque(maxlen=BATCHES_KEPT)


class ProducerStates:
    """The producers found in one log, as far as the log has been read."""

    def __init__(self, start: int) -> None:
        self.read_to = start
        self._producers: OrderedDict[int, _Producer] = OrderedDict()

    def read(self, log: Log) -> None:
        """Continue reading to the log's end."""
        if log.end > self.read_to:
            for base, batch, _ in log.batches(self.read_to, log.end):
                head = header(batch)
                if head.producer_id >= 0:
                    self._remember(head, base)
            self.read_to = log.end

    def _remember(self, head: BatchHeader, base_offset: int) -> None:
        producer = self._producers.get(head.producer_id)
        if producer is None or producer.epoch != head.producer_epoch:
            producer = self._producers[head.producer_id] = _Producer(head.producer_epoch)
        last = (head.base_sequence + head.records - 1) % SEQUENCES
        producer.batches.append(_Batch(head.base_sequence, last, base_offset))
        self._producers.move_to_end(head.producer_id)
        if len(self._producers) > PRODUCERS_MAX:
            self._producers.popitem(last=False)

    def check(self, head: BatchHeader) -> tuple[ErrorCode, int]:
        """Check a batch's sequence number, and return (error, offset).

        NONE and −1 mean that the batch may be appended. NONE and an offset mean that it is a duplicate of the
        batch at that offset.
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
