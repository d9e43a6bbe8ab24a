"""Controlled shutdown, in which a broker hands over its leaderships before its process ends."""

from collections.abc import Mapping

from kview.simulate.brokers.broker import Broker
from kview.simulate.brokers.isr_changes import RETRY_US
from kview.simulate.brokers.replication import Replication
from kview.simulate.controllers.controller import Controller
from kview.simulate.kernel import Kernel
from kview.simulate.nodes import Nodes, ProcessState

SHUTDOWN_LIMIT_US = 300_000_000
"""Longest time a controlled shutdown waits for a controller (Kafka: 5 minutes)."""


class ControlledShutdown:
    """Shuts brokers down cleanly."""

    def __init__(
        self,
        kernel: Kernel,
        nodes: Nodes,
        controller: Controller,
        brokers: Mapping[int, Broker],
        replication: Replication,
    ) -> None:
        self._kernel = kernel
        self._nodes = nodes
        self._controller = controller
        self._brokers = brokers
        self._replication = replication

    def begin(self, broker: int) -> None:
        """Let a broker hand over its leaderships and leave its ISRs, and then end its process."""
        node = self._nodes.by_id[broker]
        node.stopping = True
        self._kernel.trace("stopping", broker)
        self._attempt(self._brokers[broker], self._kernel.now_us)

    def _attempt(self, broker: Broker, since_us: int) -> None:
        """Ask the controller, again and again while there is none. `since_us` is when the first attempt was
        made."""
        if not broker.node.running or not broker.node.stopping:
            return
        waited_us = self._kernel.now_us - since_us
        if self._controller.begin_shutdown(broker.id):
            # After this delay, every broker knows the new leaders.
            slowest_us = max(other.node.slow_us for other in self._brokers.values())
            broker.process.after(
                4 * broker.latency_us + 2 * slowest_us + broker.heartbeat_us // 4, self.complete, broker.id
            )
        elif waited_us >= SHUTDOWN_LIMIT_US or broker.node.broker_epoch < 0:
            self.complete(broker.id)
        else:
            broker.process.after(RETRY_US, self._attempt, broker, since_us)

    def complete(self, broker: int) -> None:
        """Complete a controlled shutdown by ending the process and fencing the broker."""
        node = self._nodes.by_id[broker]
        node.stopping = False
        self._nodes.set_state(node, ProcessState.STOPPED)
        self._brokers[broker].died(clean=True)
        self._replication.stop_fetching(broker)
        if self._controller.reached_by(broker):
            self._controller.end_session(broker)
