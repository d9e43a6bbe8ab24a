"""A simulated producer, which creates records at a rate, buffers them by partition, sends and retries them.

The producer has the defaults of Kafka's producer: five requests in flight per broker, buffer.memory, request
and delivery timeouts. Without transactions it is not idempotent, so a bunch that was written but not answered
is written again. With transactions, a partition has one bunch in flight, which keeps its sequence number.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec.structs import replace

from kview.simulate.codes import ErrorCode
from kview.simulate.metadata import NO_LEADER
from kview.simulate.nodes import ProcessState
from kview.simulate.partitioner import StickyPartitioner, weights_for_keys
from kview.simulate.requests.records import Acks, ProduceDone, nobody
from kview.simulate.results import ProduceResult
from kview.simulate.stream import NewRun, Run
from kview.simulate.traffic.connections import Connections
from kview.simulate.traffic.coordinator_link import REQUEST_TIMEOUT_US
from kview.simulate.traffic.keys import KEY_PREFIX, keys_of
from kview.simulate.traffic.metadata import RETRY_BACKOFF_US, ClientMetadata
from kview.simulate.traffic.transactions import Phase, Transactions
from kview.simulate.world import ProducerSpec

BUNCH_US = 50_000
"""Interval at which a producer creates and sends records. Fewer, larger appends keep the engine fast."""
IN_FLIGHT_MAX = 5
"""max.in.flight.requests.per.connection."""
REQUEST_BYTES_MAX = 1_048_576
"""max.request.size."""
BUFFER_BYTES = 33_554_432
"""buffer.memory. When the buffer is full, the producing application blocks."""
DELIVERY_TIMEOUT_US = 120_000_000
"""delivery.timeout.ms. Older records expire."""
BUNCHES_MAX = 16
"""Limit of bunches of one partition per request. Further bunches wait for the next request."""


TRANSACTION_BATCH_BYTES = 131_072
"""batch.size of a transactional producer, which sends one batch of a partition at a time."""
NO_SEQUENCE = -1


class Bunch(NamedTuple):
    """Records of one partition, with record i created at first_us + i·step_us.

    `sequence` is the sequence number of the first in a transaction, NO_SEQUENCE until the bunch is sent.
    """

    partition: int
    records: int
    first_us: int
    step_us: int
    sequence: int = NO_SEQUENCE


@dataclass(slots=True)
class ProducerCounters:
    """A producer's records by partition. A created record is acknowledged, expired or still buffered."""

    created: list[int]
    sent: list[int]
    """Records sent, including retries."""
    acknowledged: list[int]
    """Records acknowledged or, with acks=0, passed to a connection."""
    expired: list[int]
    """Records that exceeded delivery.timeout.ms or, with acks=0, were lost on the way, or that had not been
    written when their transaction had to be aborted."""
    blocked: int = 0
    """Records that were never created, because the buffer was full."""


@dataclass(slots=True, eq=False)
class _Request:
    """A produce request to one broker. `settled` contains the indexes of the bunches that have been
    answered."""

    broker: int
    sent_us: int
    bunches: list[Bunch]
    delivered: bool = False
    open: int = 0
    over: bool = False
    settled: set[int] = field(default_factory=set)


class SimulatedProducer:
    """A producer that writes to one topic."""

    def __init__(self, cluster: Connections, spec: ProducerSpec) -> None:
        self.spec = spec
        self._cluster = cluster
        self._kernel = cluster.kernel
        random = cluster.kernel.random(f"producer/{spec.client_id}")
        self._metadata = ClientMetadata(cluster, (spec.topic,), random)
        self._random = random
        self.counters = ProducerCounters([], [], [], [])
        self._buffers: list[deque[Bunch]] = []
        self._buffered = 0
        self._retry_us: list[int] = []
        self._in_flight: dict[int, list[_Request]] = {}
        self._muted: set[int] = set()
        """The partitions that wait for an answer before a transaction sends them more (mutePartition)."""
        self._lost: dict[int, int] = {}
        """Broker whose connection broke → number of metadata refreshes at that time. The producer uses the
        broker again after another refresh."""
        self._next_us: list[int] = []
        self.transactions = Transactions(cluster, self._metadata, spec) if spec.transaction_ms else None
        """Its transactions, None if it writes without any."""
        self._spread_over(self._metadata.partitions(spec.topic))
        cluster.nodes.on_process_change(self._process_changed)
        self._kernel.tick(random.randrange(BUNCH_US), self._tick)

    def set_rate(self, records_per_second: float) -> None:
        """Create so many records per second from now on."""
        self.spec = replace(self.spec, records_per_second=records_per_second)
        self._next_us = []
        self._spread_over(self._partitions)

    def _spread_over(self, partitions: int) -> None:
        """Send records to so many partitions from now on: each to the partition of its key, or in turn.

        Without any, because no broker has told the producer of the topic yet, it creates no records.
        """
        spec, counters, now_us = self.spec, self.counters, self._kernel.now_us
        more = max(0, partitions - len(self._buffers))
        for column in (counters.created, counters.sent, counters.acknowledged, counters.expired):
            column += [0] * more
        self._buffers += [deque() for _ in range(more)]
        self._retry_us += [0] * more
        self._partitions = partitions
        self._sticky = None
        weights: Sequence[float] = ()
        if partitions and spec.keys:
            weights = weights_for_keys(spec.keys, partitions, spec.skew, KEY_PREFIX)
        elif partitions:
            self._sticky, weights = StickyPartitioner(partitions, self._random), (1.0,)
        rates = [spec.records_per_second * weight for weight in weights]
        self._steps_us = [max(1, round(1_000_000 / rate)) if rate > 0 else 0 for rate in rates]
        self._next_us = [*self._next_us, *[now_us] * len(rates)][: len(rates)]
        self._producer = self._cluster.records.register_producer(spec.client_id, keys_of(spec, partitions))

    @property
    def buffered_records(self) -> int:
        """The number of created records that are neither acknowledged nor expired."""
        counters = self.counters
        return sum(counters.created) - sum(counters.acknowledged) - sum(counters.expired)

    @property
    def is_fenced(self) -> bool:
        """Whether another producer has its transactional id, so that it has stopped."""
        return self.transactions is not None and self.transactions.phase is Phase.FENCED

    # --- creating records

    def _tick(self) -> None:
        transactions = self.transactions
        if transactions is not None:
            transactions.step(is_flushed=self._buffered == 0)
            if self.is_fenced:
                self._abandon()
                return
        self._kernel.tick(BUNCH_US, self._tick)
        self._metadata.renew()
        partitions = self._metadata.partitions(self.spec.topic)
        if not partitions:
            self._metadata.refresh()
        if partitions != self._partitions:
            self._spread_over(partitions)
        if transactions is None or transactions.takes_records:
            self._create(self._kernel.now_us)
        self._time_out(self._kernel.now_us)
        if transactions is None or transactions.sends:
            self._send()

    def _create(self, now_us: int) -> None:
        """Create the records that are due, at each partition's own rate.

        The program has not made those of which it could not do anything for long.
        """
        oldest_us = now_us - DELIVERY_TIMEOUT_US // 2
        room = BUFFER_BYTES // self.spec.record_bytes - self._buffered
        for i, step_us in enumerate(self._steps_us):
            first_us = self._next_us[i]
            if not step_us or first_us > now_us:
                continue
            missed = max(0, (oldest_us - first_us) // step_us)
            self.counters.blocked += missed
            first_us += missed * step_us
            due = (now_us - first_us) // step_us + 1
            self._next_us[i] = first_us + due * step_us
            count = min(due, max(0, room))
            self.counters.blocked += due - count
            room -= count
            if count and self._sticky is None:
                self._buffer(Bunch(i, count, first_us, step_us))
            elif count and self._sticky is not None:
                for partition, taken in self._sticky.spread(count, self.spec.record_bytes).items():
                    self._buffer(Bunch(partition, taken, first_us, step_us))
                    first_us += taken * step_us

    def _buffer(self, bunch: Bunch) -> None:
        self.counters.created[bunch.partition] += bunch.records
        self._buffered += bunch.records
        buffer = self._buffers[bunch.partition]
        if buffer:
            last = buffer[-1]
            if (
                last.step_us == bunch.step_us
                and last.sequence == NO_SEQUENCE
                and last.first_us + last.records * last.step_us == bunch.first_us
            ):
                buffer[-1] = last._replace(records=last.records + bunch.records)
                return
        buffer.append(bunch)

    # --- sending

    def _send(self) -> None:
        now_us = self._kernel.now_us
        by_leader: dict[int, list[int]] = {}
        for partition, buffer in enumerate(self._buffers):
            if buffer and self._retry_us[partition] <= now_us and partition not in self._muted:
                leader = self._metadata.leader(self.spec.topic, partition)
                by_leader.setdefault(leader, []).append(partition)
        for leader, partitions in by_leader.items():
            if self.transactions is not None and not self.transactions.sends:
                return
            if leader == NO_LEADER or not self._connected(leader):
                self._metadata.refresh()
            elif len(self._in_flight.setdefault(leader, [])) < IN_FLIGHT_MAX:
                self._request(leader, partitions)

    def _connected(self, broker: int) -> bool:
        if self._lost.get(broker, -1) >= self._metadata.refreshes:
            return False
        return not self._cluster.nodes.refuses(broker)

    def _request(self, leader: int, partitions: list[int]) -> None:
        room = max(1, REQUEST_BYTES_MAX // self.spec.record_bytes)
        share = max(1, room // len(partitions))
        if self.transactions is None:
            bunches = [bunch for partition in partitions for bunch in self._draw(partition, share)]
        else:
            bunches = [self._draw_sequenced(partition, self.transactions) for partition in partitions]
        request = _Request(leader, self._kernel.now_us, bunches)
        self._in_flight[leader].append(request)
        if self._cluster.nodes.serves(leader):
            self._deliver(request)

    def _draw(self, partition: int, most: int, bunches: int = BUNCHES_MAX) -> list[Bunch]:
        """Remove the next records, up to `most` in so many bunches, from a partition's buffer and return
        them."""
        buffer = self._buffers[partition]
        drawn: list[Bunch] = []
        while buffer and most > 0 and len(drawn) < bunches:
            bunch = buffer.popleft()
            if bunch.records > most:
                buffer.appendleft(_without_first(bunch, most))
                bunch = bunch._replace(records=most)
            drawn.append(bunch)
            most -= bunch.records
        return drawn

    def _draw_sequenced(self, partition: int, transactions: Transactions) -> Bunch:
        """Remove the bunch of a transaction that comes next in a partition. It is the only one in flight."""
        self._muted.add(partition)
        if self._buffers[partition][0].sequence != NO_SEQUENCE:
            return self._buffers[partition].popleft()
        most = max(1, TRANSACTION_BATCH_BYTES // self.spec.record_bytes)
        bunch = self._draw(partition, most, bunches=1)[0]
        return bunch._replace(sequence=transactions.sequence(partition, bunch.records))

    def _deliver(self, request: _Request) -> None:
        """Pass the request to the broker, as if the broker read it from its socket."""
        request.delivered = True
        request.open = len(request.bunches)
        spec, counters = self.spec, self.counters
        for number, bunch in enumerate(request.bunches):
            if request.over:
                return  # The answer to an earlier one has ended the transaction.
            counters.sent[bunch.partition] += bunch.records
            done = nobody if spec.acks == 0 else self._answer_to(request, number)
            acks = Acks(spec.acks, REQUEST_TIMEOUT_US // 1000, done)
            run = NewRun(bunch.records, bunch.first_us, bunch.step_us, spec.record_bytes, self._producer)
            if self.transactions is None:
                self._cluster.records.append_run(request.broker, spec.topic, bunch.partition, run, acks)
            else:
                self.transactions.write(request.broker, bunch.partition, Run(bunch.sequence, *run), acks)
            if spec.acks == 0:
                self._settle(request, number, ErrorCode.NONE)

    def _answer_to(self, request: _Request, number: int) -> ProduceDone:
        def answer(result: ProduceResult) -> None:
            slow_ms = self._cluster.nodes.slow_ms(request.broker)
            if slow_ms:
                self._kernel.after(slow_ms * 1000, self._settle, request, number, result.error_code)
            else:
                self._settle(request, number, result.error_code)

        return answer

    def _settle(self, request: _Request, number: int, code: ErrorCode) -> None:
        """Handle the answer to one bunch. The request ends when its last bunch is answered, as in a real
        response."""
        if request.over:
            return
        bunch = request.bunches[number]
        self._muted.discard(bunch.partition)
        if code is ErrorCode.NONE:
            self.counters.acknowledged[bunch.partition] += bunch.records
            self._buffered -= bunch.records
            if self.transactions is not None:
                self.transactions.acknowledged()
        elif self.transactions is not None and not self.transactions.survives(code):
            self._abort(self.transactions, code)
            return
        elif code is ErrorCode.INVALID_RECORD:  # A compacted topic takes no records without keys.
            self.counters.expired[bunch.partition] += bunch.records
            self._buffered -= bunch.records
        else:
            self._again(bunch)
            self._retry_us[bunch.partition] = self._kernel.now_us + RETRY_BACKOFF_US
            self._metadata.refresh()
        request.settled.add(number)
        request.open -= 1
        if request.open == 0:
            request.over = True
            self._in_flight[request.broker].remove(request)

    def _again(self, bunch: Bunch) -> None:
        """Put a bunch back into the buffer to be sent again, in order of creation."""
        buffer = self._buffers[bunch.partition]
        earlier = deque[Bunch]()
        while buffer and buffer[0].first_us < bunch.first_us:
            earlier.append(buffer.popleft())
        buffer.appendleft(bunch)
        buffer.extendleft(reversed(earlier))

    # --- failures

    def _process_changed(self, node: int, state: ProcessState) -> None:
        requests = self._in_flight.get(node)
        if not requests:
            return
        if state is ProcessState.RUNNING:
            for request in list(requests):
                if not request.delivered:
                    self._deliver(request)
        elif state is not ProcessState.HUNG:
            self._disconnected(node)

    def _disconnected(self, broker: int) -> None:
        """Handle a lost connection. Unanswered bunches are sent again or, with acks=0, are lost."""
        for request in self._in_flight.pop(broker):
            request.over = True
            for number, bunch in enumerate(request.bunches):
                if number in request.settled:
                    continue
                self._muted.discard(bunch.partition)
                if self.spec.acks == 0:
                    self._give_up(bunch)
                else:
                    self._again(bunch)
        self._lost[broker] = self._metadata.refreshes
        self._metadata.refresh()

    def _time_out(self, now_us: int) -> None:
        for broker, requests in list(self._in_flight.items()):
            if requests and now_us - requests[0].sent_us > REQUEST_TIMEOUT_US:
                self._disconnected(broker)
        for buffer in self._buffers:
            while buffer and now_us - buffer[0].first_us > DELIVERY_TIMEOUT_US:
                if self.transactions is not None:
                    self._abort(self.transactions, ErrorCode.REQUEST_TIMED_OUT)
                    return
                bunch = buffer.popleft()
                late = (now_us - DELIVERY_TIMEOUT_US - bunch.first_us - 1) // max(1, bunch.step_us) + 1
                late = min(late, bunch.records)
                self._give_up(bunch._replace(records=late))
                if late < bunch.records:
                    buffer.appendleft(_without_first(bunch, late))

    def _abort(self, transactions: Transactions, code: ErrorCode) -> None:
        """Give up all records of the transaction that are not written yet, and abort it."""
        self._abandon()
        transactions.abort(code)

    def _abandon(self) -> None:
        """Give up all records that are neither acknowledged nor expired, wherever they are."""
        for requests in self._in_flight.values():
            for request in requests:
                request.over = True
                for number, bunch in enumerate(request.bunches):
                    if number not in request.settled:
                        self._give_up(bunch)
        self._in_flight.clear()
        self._muted.clear()
        for buffer in self._buffers:
            while buffer:
                self._give_up(buffer.popleft())

    def _give_up(self, bunch: Bunch) -> None:
        self.counters.expired[bunch.partition] += bunch.records
        self._buffered -= bunch.records


def _without_first(bunch: Bunch, records: int) -> Bunch:
    first_us = bunch.first_us + records * bunch.step_us
    return bunch._replace(records=bunch.records - records, first_us=first_us)
