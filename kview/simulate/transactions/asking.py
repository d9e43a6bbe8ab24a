"""What brokers ask transaction coordinators on behalf of their clients (AddPartitionsToTxnManager)."""

from collections.abc import Callable, Mapping

from kview.simulate.brokers.broker import Broker
from kview.simulate.codes import ErrorCode
from kview.simulate.coordination.of_cluster import Coordinators
from kview.simulate.metadata import TopicPartition
from kview.simulate.network import Connection
from kview.simulate.nodes import Nodes, ProcessState
from kview.simulate.transactions.coordinator import BUMPS_FROM, TransactionCoordinator

TIMEOUT_US = 30_000_000
"""request.timeout.ms of the brokers."""
RETRY_BACKOFF_US, RETRY_BACKOFF_MAX_US = 20_000, 100_000
"""add.partitions.to.txn.retry.backoff.ms and .max.ms: how long a broker tries to add a partition while the
transaction before is being completed, or another partition is being added."""


class Asking:
    """The way from a broker to the coordinator of a transactional id, and back."""

    def __init__(
        self,
        nodes: Nodes,
        brokers: Mapping[int, Broker],
        coordinators: Coordinators[TransactionCoordinator],
    ) -> None:
        self._brokers = brokers
        self._coordinators = coordinators
        self._network = nodes.network
        self._open: dict[int, dict[int, Callable[[ErrorCode], None]]] = {b: {} for b in brokers}
        """Coordinator's broker → what it has been asked, by number: how to answer that."""
        self._number = 0
        nodes.on_process_change(self._process_changed)

    def _process_changed(self, node: int, state: ProcessState) -> None:
        """Answer what a process was asked that has ended: its connections are closed."""
        if state in (ProcessState.CRASHED, ProcessState.STOPPED) and node in self._open:
            for answer in list(self._open[node].values()):
                answer(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def admit(
        self,
        b: int,
        name: str,
        producer: tuple[int, int],
        key: TopicPartition,
        adds: bool,
        then: Callable[[ErrorCode], None],
        knows_abortable: bool = True,
    ) -> None:
        """Ask for broker b whether a partition is part of the producer's transaction, or to add it.

        `then` gets an error that its client knows: not every one knows TRANSACTION_ABORTABLE.
        """
        broker, node = self._brokers[b], self._coordinators.of(b).find(name)
        if node < 0:
            then(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return
        other = self._brokers[node]
        way_us = 0 if other is broker else broker.latency_us + broker.node.slow_us + other.node.slow_us
        timer = broker.process.after(TIMEOUT_US, lambda: answer(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        self._number += 1
        number, asked = self._number, self._open[node]
        tries_until_us = broker.kernel.now_us + RETRY_BACKOFF_MAX_US

        def answer(code: ErrorCode) -> None:
            if asked.pop(number, None) is None:
                return
            broker.kernel.cancel(timer)
            if code is ErrorCode.PRODUCER_FENCED:
                code = ErrorCode.INVALID_PRODUCER_EPOCH
            elif code is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
                code = ErrorCode.INVALID_TXN_STATE
            then(code)

        def back(code: ErrorCode) -> None:
            if code is ErrorCode.CONCURRENT_TRANSACTIONS and adds and broker.kernel.now_us < tries_until_us:
                broker.process.after(2 * way_us + RETRY_BACKOFF_US, arrived)
            elif self._network.carries(node, b):
                broker.process.after(way_us, answer, code)

        def arrived() -> None:
            if self._network.send(b, node, Connection.COORDINATION):
                handled()

        def handled() -> None:
            if not other.node.running:
                if other.node.state is ProcessState.HUNG:
                    other.process.after(0, handled)  # when it goes on
                else:
                    back(ErrorCode.COORDINATOR_NOT_AVAILABLE)
                return
            coordinator = self._coordinators.of(node)
            if adds:
                coordinator.add_partitions(name, producer, (key,), BUMPS_FROM, back)
            else:
                back(coordinator.verify(name, producer, (key,))[0])

        asked[number] = answer
        broker.kernel.after(way_us, arrived)
