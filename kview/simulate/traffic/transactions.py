"""The transactions of a simulated producer, which it begins, ends, and begins again when its coordinator
allows.

It follows its coordinator as Kafka's client of version 2 does (KIP-890): brokers add partitions to the
transaction with the first batch, and each end of a transaction gives the producer a new epoch, in which its
sequence numbers start at 0. With brokers before KIP-890, it keeps its epoch, unless it has lost records.
Sources: org.apache.kafka.clients.producer.internals.TransactionManager.
"""

from collections.abc import Callable
from enum import Enum
from typing import TypeVar

from kview.simulate.codes import ErrorCode
from kview.simulate.records import Sender
from kview.simulate.requests.records import Acks
from kview.simulate.results import ProducerIdResult
from kview.simulate.stream import Run
from kview.simulate.traffic.connections import Connections
from kview.simulate.traffic.coordinator_link import ANSWER_US, REQUEST_TIMEOUT_US, CoordinatorLink
from kview.simulate.traffic.metadata import RETRY_BACKOFF_US, ClientMetadata
from kview.simulate.transactions.coordinator import BUMPS_FROM
from kview.simulate.transactions.records import NO_PRODUCER_ID
from kview.simulate.transactions.results import EndResult
from kview.simulate.world import TRANSACTION_MS_MAX, ProducerSpec

TIMEOUT_MS = 2 * TRANSACTION_MS_MAX
"""transaction.timeout.ms."""
NOBODY = (-1, -1)

_SEARCH_AGAIN = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
_FENCED = frozenset(
    {ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_ID_MAPPING}
)
_MUST_ABORT = _FENCED | {
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.TRANSACTION_ABORTABLE,
}
"""Errors of an append after which a transaction can only be aborted."""
_FATAL = _FENCED | {ErrorCode.INVALID_TXN_STATE}
"""Errors of the coordinator with which a program ends, as one with Java's producer does."""


R = TypeVar("R")


class Phase(Enum):
    """What a producer does with its transaction."""

    STARTING = "starting"
    """It waits for its id and epoch."""
    OPEN = "open"
    FLUSHING = "flushing"
    """It creates no more records, and waits until those of the transaction are acknowledged."""
    ENDING = "ending"
    """It waits until its coordinator has decided to commit or to abort."""
    FENCED = "fenced"
    """A second instance has its transactional id. It does nothing more."""


class Transactions:
    """The transactions of the producer `spec`, one after the other. Its owner calls `step` all the time."""

    def __init__(self, cluster: Connections, metadata: ClientMetadata, spec: ProducerSpec) -> None:
        self.phase = Phase.STARTING
        self.producer = NOBODY
        """Its id and epoch."""
        self.committed = 0
        self.aborted = 0
        self.is_replaced = False
        """Whether a second instance of the program takes its transactional id over."""
        self._spec = spec
        self._cluster = cluster
        self._kernel = cluster.kernel
        self.name = spec.transactional_id or spec.client_id
        self._link = CoordinatorLink(cluster, metadata, cluster.transactions, self.name, self._given_up)
        self._attempt = 0
        self._asked_us: int | None = None
        """When the request was sent that has not been answered yet."""
        self._retry_us = 0
        self._ends_us = 0
        self._aborts = False
        self._has_records = False
        self._has_lost = False
        """Whether records of this transaction were given up."""
        self._sequences: dict[int, int] = {}
        """Partition → the next sequence number."""
        self._batches: dict[int, tuple[int, bytes]] = {}
        """Partition → the sequence number and bytes of its last batch, which is sent until it is written."""

    @property
    def takes_records(self) -> bool:
        """Whether the program may create records now."""
        return self.phase is Phase.OPEN

    @property
    def sends(self) -> bool:
        """Whether records are sent now."""
        return self.phase in (Phase.OPEN, Phase.FLUSHING)

    def counters(self) -> dict[str, int]:
        """Return how many transactions it has committed and aborted, and whether it was fenced."""
        return {
            "transactions_committed": self.committed,
            "transactions_aborted": self.aborted,
            "fenced": int(self.phase is Phase.FENCED),
        }

    # --- records

    def sequence(self, partition: int, records: int) -> int:
        """Return the sequence number of the first of a partition's next `records`."""
        sequence = self._sequences.get(partition, 0)
        self._sequences[partition] = sequence + records
        return sequence

    def write(self, b: int, partition: int, run: Run, acks: Acks) -> None:
        """Send records to broker b, `run.base_offset` being the sequence number of the first."""
        topic = self._spec.topic
        sequence, batch = self._batches.get(partition, (-1, b""))
        if sequence != run.base_offset:
            sender = Sender(*self.producer, run.base_offset)
            batch = self._cluster.records.transactional_batch(topic, partition, run, sender)
            self._batches[partition] = run.base_offset, batch

        def admit(producer_id: int, epoch: int, then: Callable[[ErrorCode], None]) -> None:
            key = (topic, partition)
            self._cluster.asking.admit(b, self.name, (producer_id, epoch), key, True, then)

        self._cluster.records.produce(b, topic, partition, batch, acks, admit)

    def acknowledged(self) -> None:
        """Note that records of the transaction are written."""
        self._has_records = True

    def survives(self, code: ErrorCode) -> bool:
        """Return whether the records that had this error can be sent again."""
        return code not in _MUST_ABORT

    def abort(self, code: ErrorCode) -> None:
        """Abort the transaction, of which no more records are sent because one had this error.

        A program that has been replaced ends if its epoch is not valid any more. It could ask for the next
        one, again and again, and so keep its successor from beginning.
        """
        self.phase, self._aborts, self._has_lost = Phase.ENDING, True, True
        if self.is_replaced and code in _FENCED:
            self.phase = Phase.FENCED

    # --- the coordinator

    def step(self, is_flushed: bool) -> None:
        """Do what is due. `is_flushed` is whether no record waits for being sent or acknowledged."""
        now_us = self._kernel.now_us
        if self.phase is Phase.OPEN and now_us >= self._ends_us:
            self.phase = Phase.FLUSHING
        if self.phase is Phase.FLUSHING and is_flushed:
            if self._has_records:
                self.phase = Phase.ENDING
            else:
                self._begin()  # A transaction without records does not exist.
        if self.phase not in (Phase.STARTING, Phase.ENDING) or now_us < self._retry_us:
            return
        if self._asked_us is not None and now_us - self._asked_us >= REQUEST_TIMEOUT_US:
            self._link.drop()
        if not self._link.reachable() or self._asked_us is not None:
            return
        self._asked_us = now_us
        if self.phase is Phase.STARTING:
            self._link.coordinator().init_producer_id(
                self.name, TIMEOUT_MS, NOBODY, self._answer(self._started)
            )
        else:
            self._link.coordinator().end(
                self.name, self.producer, not self._aborts, BUMPS_FROM, self._answer(self._ended)
            )

    def _given_up(self) -> None:
        """Forget the request, because the connection has ended."""
        self._attempt += 1
        self._asked_us = None

    def _answer(self, take: Callable[[R], None]) -> Callable[[R], None]:
        """Return a callback for the request that is sent now. It calls `take` after the network's delay."""
        attempt = self._attempt

        def arrived(result: R) -> None:
            if attempt == self._attempt:
                self._asked_us = None
                take(result)

        def answered(result: R) -> None:
            self._kernel.after(ANSWER_US + self._link.slow_us(), arrived, result)

        return answered

    def _started(self, result: ProducerIdResult) -> None:
        if self._succeeded(result.error_code):
            self._is(result)
            self._begin()

    def _ended(self, result: EndResult) -> None:
        if not self._succeeded(result.error_code):
            return
        if self._aborts:
            self.aborted += 1
        else:
            self.committed += 1
        if result.producer_id != NO_PRODUCER_ID:
            self._is(result)
        elif self._has_lost:  # It does not know the sequence numbers that its next batches need.
            self.phase = Phase.STARTING
            return
        self._begin()

    def _is(self, result: ProducerIdResult | EndResult) -> None:
        """Take an id and epoch. Before KIP-890, sequence numbers go on over the ends of transactions."""
        self.producer = (result.producer_id, result.producer_epoch)
        self._has_lost = False
        self._sequences.clear()

    def _succeeded(self, code: ErrorCode) -> bool:
        """Return whether a request succeeded. If not, it is made again, unless the producer is fenced."""
        if code is ErrorCode.NONE:
            return True
        if code in _FATAL and self.is_replaced:
            self.phase = Phase.FENCED
        elif code in _FATAL:  # The coordinator has aborted what took too long, and the program starts again.
            self.aborted += self.phase is Phase.ENDING
            self.phase = Phase.STARTING
        elif code in _SEARCH_AGAIN:
            self._link.drop()
        self._retry_us = self._kernel.now_us + RETRY_BACKOFF_US
        return False

    def _begin(self) -> None:
        """Begin a transaction, in the epoch that the producer has now."""
        every = self._spec.abort_every
        self.phase, self._has_records = Phase.OPEN, False
        self._aborts = every > 0 and (self.committed + self.aborted + 1) % every == 0
        self._ends_us = self._kernel.now_us + self._spec.transaction_ms * 1000
        self._batches.clear()
