"""A simulated producer, which makes records at a rate, buffers them by partition, sends and retries them.

The producer has the defaults of Kafka's producer: five requests in flight per broker, buffer.memory, request
and delivery timeouts. It is not idempotent, so a bunch that was written but not answered is written again.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kview.simulate.cluster import Cluster, ProduceDone
from kview.simulate.codes import ErrorCode
from kview.simulate.metadata import NO_LEADER
from kview.simulate.nodes import ProcessState
from kview.simulate.partitioner import StickyPartitioner, partition_for_key, weights_for_keys
from kview.simulate.results import ProduceResult
from kview.simulate.traffic.metadata import RETRY_BACKOFF_US, ClientMetadata
from kview.simulate.world import ProducerSpec

BUNCH_US = 50_000
"""Interval at which a producer sends. With one append per partition and bunch, the engine stays fast."""
IN_FLIGHT_MAX = 5
"""max.in.flight.requests.per.connection."""
REQUEST_BYTES_MAX = 1_048_576
"""max.request.size."""
BUFFER_BYTES = 33_554_432
"""buffer.memory. When the buffer is full, the producing application blocks."""
REQUEST_TIMEOUT_US = 30_000_000
"""request.timeout.ms."""
DELIVERY_TIMEOUT_US = 120_000_000
"""delivery.timeout.ms. Older records expire."""
BUNCHES_MAX = 16
"""Appends of one partition per request. The rest waits for the next request."""
KEY_PREFIX = "key-"
KEYS_SHOWN_MAX = 1_000
"""Different keys per partition in a producer's records: enough variety, and bounded memory."""


class Bunch(NamedTuple):
    """Records of one partition, of which record i was created at first_us + i·step_us."""

    partition: int
    records: int
    first_us: int
    step_us: int


@dataclass(slots=True)
class ProducerCounters:
    """A producer's records by partition. A created record is acknowledged, expired or still buffered."""

    created: list[int]
    sent: list[int]
    """Records sent, including retries."""
    acknowledged: list[int]
    """Records acknowledged or, with acks=0, passed to a connection."""
    expired: list[int]
    """Records that exceeded delivery.timeout.ms or, with acks=0, were lost on the way."""
    blocked: int = 0
    """Records that were never created, because the buffer was full."""


@dataclass(slots=True, eq=False)
class _Request:
    """Bunches on their way to one broker. `settled` has the numbers of the bunches that are done."""

    broker: int
    sent_us: int
    bunches: list[Bunch]
    delivered: bool = False
    open: int = 0
    over: bool = False
    settled: set[int] = field(default_factory=set)


class SimulatedProducer:
    """A producer that writes to one topic."""

    def __init__(self, cluster: Cluster, spec: ProducerSpec) -> None:
        self.spec = spec
        self._cluster = cluster
        self._kernel = cluster.kernel
        random = cluster.kernel.random(f"producer/{spec.client_id}")
        self._metadata = ClientMetadata(cluster, (spec.topic,), random)
        count = self._metadata.partitions(spec.topic)
        self.counters = ProducerCounters([0] * count, [0] * count, [0] * count, [0] * count)
        self._buffers: list[deque[Bunch]] = [deque() for _ in range(count)]
        self._buffered = 0
        self._retry_us = [0] * count
        self._in_flight: dict[int, list[_Request]] = {}
        self._lost: dict[int, int] = {}
        """Broker whose connection broke → metadata refreshes up to then. After another refresh it is used
        again."""
        self._sticky = StickyPartitioner(count, random) if not spec.keys else None
        weights = weights_for_keys(spec.keys, count, spec.skew, KEY_PREFIX) if spec.keys else [1.0]
        rates = [spec.records_per_second * weight for weight in weights]
        self._steps_us = [max(1, round(1_000_000 / rate)) if rate > 0 else 0 for rate in rates]
        self._next_us: list[int] = [cluster.kernel.now_us] * len(rates)
        self._producer = cluster.register_producer(spec.client_id, keys_of(spec, count))
        cluster.on_process_change(self._process_changed)
        self._kernel.after(random.randrange(BUNCH_US), self._tick)

    @property
    def buffered_records(self) -> int:
        """The number of created records that are neither acknowledged nor expired."""
        counters = self.counters
        return sum(counters.created) - sum(counters.acknowledged) - sum(counters.expired)

    # --- creating

    def _tick(self) -> None:
        self._kernel.after(BUNCH_US, self._tick)
        self._create(self._kernel.now_us)
        self._time_out(self._kernel.now_us)
        self._send()

    def _create(self, now_us: int) -> None:
        """Create the records that are due, at each partition's own rate."""
        room = BUFFER_BYTES // self.spec.record_bytes - self._buffered
        for i, step_us in enumerate(self._steps_us):
            first_us = self._next_us[i]
            if not step_us or first_us > now_us:
                continue
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
            if buffer and self._retry_us[partition] <= now_us:
                leader = self._metadata.leader(self.spec.topic, partition)
                by_leader.setdefault(leader, []).append(partition)
        for leader, partitions in by_leader.items():
            if leader == NO_LEADER or not self._connected(leader):
                self._metadata.refresh()
            elif len(self._in_flight.setdefault(leader, [])) < IN_FLIGHT_MAX:
                self._request(leader, partitions)

    def _connected(self, broker: int) -> bool:
        if self._lost.get(broker, -1) >= self._metadata.refreshes:
            return False
        return self._cluster.process(broker) in (ProcessState.RUNNING, ProcessState.HUNG)

    def _request(self, leader: int, partitions: list[int]) -> None:
        room = max(1, REQUEST_BYTES_MAX // self.spec.record_bytes)
        share = max(1, room // len(partitions))
        bunches = [bunch for partition in partitions for bunch in self._draw(partition, share)]
        request = _Request(leader, self._kernel.now_us, bunches)
        self._in_flight[leader].append(request)
        if self._cluster.process(leader) is ProcessState.RUNNING:
            self._deliver(request)

    def _draw(self, partition: int, most: int) -> list[Bunch]:
        """Return the next records in a partition's buffer, up to `most`."""
        buffer = self._buffers[partition]
        drawn: list[Bunch] = []
        while buffer and most > 0 and len(drawn) < BUNCHES_MAX:
            bunch = buffer.popleft()
            if bunch.records > most:
                buffer.appendleft(_without_first(bunch, most))
                bunch = bunch._replace(records=most)
            drawn.append(bunch)
            most -= bunch.records
        return drawn

    def _deliver(self, request: _Request) -> None:
        """Pass the request to the broker, as if the broker read it from its socket."""
        request.delivered = True
        request.open = len(request.bunches)
        spec, counters = self.spec, self.counters
        for number, bunch in enumerate(request.bunches):
            counters.sent[bunch.partition] += bunch.records
            self._cluster.append_run(
                request.broker,
                spec.topic,
                bunch.partition,
                bunch.records,
                bunch.first_us,
                bunch.step_us,
                spec.record_bytes,
                self._producer,
                spec.acks,
                REQUEST_TIMEOUT_US // 1000,
                None if spec.acks == 0 else self._answer_to(request, number),
            )
            if spec.acks == 0:
                self._settle(request, number, ErrorCode.NONE)

    def _answer_to(self, request: _Request, number: int) -> ProduceDone:
        def answer(result: ProduceResult) -> None:
            slow_ms = self._cluster.slow_ms(request.broker)
            if slow_ms:
                self._kernel.after(slow_ms * 1000, self._settle, request, number, result.error_code)
            else:
                self._settle(request, number, result.error_code)

        return answer

    def _settle(self, request: _Request, number: int, code: ErrorCode) -> None:
        """Handle the answer to one bunch. The request ends with its last bunch, as in a real response."""
        if request.over:
            return
        bunch = request.bunches[number]
        if code is ErrorCode.NONE:
            self.counters.acknowledged[bunch.partition] += bunch.records
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

    # --- failing

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
                bunch = buffer.popleft()
                late = (now_us - DELIVERY_TIMEOUT_US - bunch.first_us - 1) // max(1, bunch.step_us) + 1
                late = min(late, bunch.records)
                self._give_up(bunch._replace(records=late))
                if late < bunch.records:
                    buffer.appendleft(_without_first(bunch, late))

    def _give_up(self, bunch: Bunch) -> None:
        self.counters.expired[bunch.partition] += bunch.records
        self._buffered -= bunch.records


def _without_first(bunch: Bunch, records: int) -> Bunch:
    first_us = bunch.first_us + records * bunch.step_us
    return bunch._replace(records=bunch.records - records, first_us=first_us)


def keys_of(spec: ProducerSpec, partitions: int) -> Callable[[str, int], Sequence[bytes]] | None:
    """Return the possible keys of a producer's records by (topic, partition), or None for null keys."""
    if not spec.keys:
        return None

    def keys(topic: str, partition: int) -> Sequence[bytes]:
        every = (f"{KEY_PREFIX}{i}".encode() for i in range(spec.keys))
        return [key for key in every if partition_for_key(key, partitions) == partition][:KEYS_SHOWN_MAX]

    return keys
