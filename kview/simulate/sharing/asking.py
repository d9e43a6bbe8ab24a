"""The way from brokers to share coordinators, and back (DefaultStatePersister, PersisterStateManager)."""

from collections.abc import Callable, Mapping
from typing import TypeVar

from kview.simulate.brokers.broker import Broker
from kview.simulate.codes import ErrorCode
from kview.simulate.coordination.of_cluster import Coordinators
from kview.simulate.coordination.share_states import (
    ReadState,
    SharePartition,
    Summary,
    Written,
    WrittenState,
)
from kview.simulate.network import Connection
from kview.simulate.nodes import Nodes, ProcessState
from kview.simulate.sharing.coordinator import ShareCoordinator

TIMEOUT_US = 30_000_000
"""request.timeout.ms of the brokers."""
BACKOFF_US, BACKOFF_MAX_US = 1_000_000, 30_000_000
TRIES_MAX = 5
"""How often a broker asks, with waits that double, while there is no coordinator."""
_TRY_AGAIN = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)

R = TypeVar("R")
Answer = Callable[[R], None]
CodeAndMessage = tuple[ErrorCode, str | None]


class ShareAsking:
    """What all brokers need to ask share coordinators. `create_topic` has a broker create their topic."""

    def __init__(
        self,
        nodes: Nodes,
        brokers: Mapping[int, Broker],
        coordinators: Coordinators[ShareCoordinator],
        create_topic: Callable[[int], None],
    ) -> None:
        self.brokers = brokers
        self.coordinators = coordinators
        self.create_topic = create_topic
        self._network = nodes.network
        self._open: dict[int, dict[int, Callable[[], None]]] = {b: {} for b in brokers}
        """Coordinator's broker → what it has been asked, by number: what to do if its process ends."""
        self._number = 0
        nodes.on_process_change(self._process_changed)

    def _process_changed(self, node: int, state: ProcessState) -> None:
        if state in (ProcessState.CRASHED, ProcessState.STOPPED) and node in self._open:
            for lost in list(self._open[node].values()):
                lost()

    def of(self, b: int) -> "StatesOfBroker":
        """Return the way of broker b."""
        return StatesOfBroker(self, b)

    def ask(
        self,
        b: int,
        key: SharePartition,
        what: Callable[[ShareCoordinator, Answer[R]], None],
        code_of: Callable[[R], ErrorCode],
        lost: R,
        then: Answer[R],
        tries: int = 1,
    ) -> None:
        """Ask the coordinator of a partition for broker b, and again while there is none.

        `lost` is the answer if none comes.
        """
        broker = self.brokers[b]
        node = self.coordinators.of(b).find(key.coordinator_key)

        def answered(result: R) -> None:
            if code_of(result) not in _TRY_AGAIN or tries >= TRIES_MAX:
                then(result)
                return
            wait_us = min(BACKOFF_MAX_US, BACKOFF_US << (tries - 1))
            broker.process.after(wait_us, lambda: self.ask(b, key, what, code_of, lost, then, tries + 1))

        if node < 0:
            self.create_topic(b)
            answered(lost)
            return
        self._send(broker, node, what, lost, answered)

    def _send(
        self,
        broker: Broker,
        node: int,
        what: Callable[[ShareCoordinator, Answer[R]], None],
        lost: R,
        then: Answer[R],
    ) -> None:
        other = self.brokers[node]
        way_us = 0 if other is broker else broker.latency_us + broker.node.slow_us + other.node.slow_us
        self._number += 1
        number, asked = self._number, self._open[node]

        def answer(result: R) -> None:
            if asked.pop(number, None) is not None:
                broker.kernel.cancel(timer)
                then(result)

        def back(result: R) -> None:
            if self._network.carries(node, broker.id):
                broker.process.after(way_us, lambda: answer(result))

        def arrived() -> None:
            if self._network.send(broker.id, node, Connection.COORDINATION):
                handled()

        def handled() -> None:
            if other.node.running:
                what(self.coordinators.of(node), back)
            elif other.node.state is ProcessState.HUNG:
                other.process.after(0, handled)  # when it goes on
            else:
                back(lost)

        timer = broker.process.after(TIMEOUT_US, lambda: answer(lost))
        asked[number] = lambda: answer(lost)
        broker.kernel.after(way_us, arrived)


class StatesOfBroker:
    """One broker's way to the share coordinators (implements ShareStates)."""

    def __init__(self, asking: ShareAsking, broker: int) -> None:
        self._asking = asking
        self._broker = broker

    def _ask_code(
        self,
        key: SharePartition,
        what: Callable[[ShareCoordinator, Written], None],
        done: Written,
    ) -> None:
        def ask(coordinator: ShareCoordinator, answer: Answer[CodeAndMessage]) -> None:
            what(coordinator, lambda code, message: answer((code, message)))

        lost: CodeAndMessage = (ErrorCode.COORDINATOR_NOT_AVAILABLE, None)
        self._asking.ask(self._broker, key, ask, lambda result: result[0], lost, lambda result: done(*result))

    def initialize(self, key: SharePartition, state_epoch: int, start_offset: int, done: Written) -> None:
        def ask(coordinator: ShareCoordinator, answer: Written) -> None:
            coordinator.initialize(key, state_epoch, start_offset, answer)

        self._ask_code(key, ask, done)

    def write(self, key: SharePartition, state: WrittenState, done: Written) -> None:
        self._ask_code(key, lambda coordinator, answer: coordinator.write(key, state, answer), done)

    def delete(self, key: SharePartition, done: Written) -> None:
        self._ask_code(key, lambda coordinator, answer: coordinator.delete(key, answer), done)

    def read(self, key: SharePartition, leader_epoch: int, done: Callable[[ReadState], None]) -> None:
        self._asking.ask(
            self._broker,
            key,
            lambda coordinator, answer: coordinator.read(key, leader_epoch, answer),
            lambda result: result.error_code,
            ReadState(ErrorCode.COORDINATOR_NOT_AVAILABLE),
            done,
        )

    def summarize(self, key: SharePartition, done: Callable[[Summary], None]) -> None:
        self._asking.ask(
            self._broker,
            key,
            lambda coordinator, answer: answer(coordinator.summarize(key)),
            lambda result: result.error_code,
            Summary(ErrorCode.COORDINATOR_NOT_AVAILABLE),
            done,
        )
