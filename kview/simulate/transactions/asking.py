"""What brokers ask transaction coordinators on behalf of their clients (AddPartitionsToTxnManager)."""

from collections.abc import Callable, Mapping

from kview.simulate.brokers.broker import Broker
from kview.simulate.codes import ErrorCode
from kview.simulate.coordination.of_cluster import Coordinators
from kview.simulate.metadata import TopicPartition
from kview.simulate.transactions.coordinator import BUMPS_FROM, TransactionCoordinator

TIMEOUT_US = 30_000_000
"""request.timeout.ms of the brokers."""


class Asking:
    """The way from a broker to the coordinator of a transactional id, and back."""

    def __init__(
        self, brokers: Mapping[int, Broker], coordinators: Coordinators[TransactionCoordinator]
    ) -> None:
        self._brokers = brokers
        self._coordinators = coordinators

    def admit(
        self,
        b: int,
        name: str,
        producer: tuple[int, int],
        key: TopicPartition,
        adds: bool,
        then: Callable[[ErrorCode], None],
    ) -> None:
        """Ask for broker b whether a partition is part of the producer's transaction, or to add it."""
        broker, node = self._brokers[b], self._coordinators.of(b).find(name)
        if node < 0:
            then(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        other = self._brokers[node]
        way_us = 0 if other is broker else broker.latency_us + broker.node.slow_us + other.node.slow_us
        timer = broker.process.after(TIMEOUT_US, lambda: answer(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        is_open = True

        def answer(code: ErrorCode) -> None:
            nonlocal is_open
            if is_open:
                is_open = False
                broker.kernel.cancel(timer)
                then(code)

        def back(code: ErrorCode) -> None:
            broker.process.after(way_us, answer, code)

        def arrived() -> None:
            if not other.node.running:
                return
            coordinator = self._coordinators.of(node)
            if adds:
                coordinator.add_partitions(name, producer, (key,), BUMPS_FROM, back)
            else:
                back(coordinator.verify(name, producer, key))

        broker.kernel.after(way_us, arrived)
