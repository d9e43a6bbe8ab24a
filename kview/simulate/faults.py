"""Faults that crash, stop, hang or slow down processes, and the ways to undo them."""

from collections.abc import Mapping

from kview.model.lab import ActiveFault, FaultState, NodeRole
from kview.simulate.brokers.broker import Broker
from kview.simulate.brokers.controlled_shutdown import ControlledShutdown
from kview.simulate.brokers.replication import Replication
from kview.simulate.controllers.controller import Controller
from kview.simulate.controllers.quorum import Quorum
from kview.simulate.kernel import Kernel
from kview.simulate.nodes import Nodes, ProcessState

_STATES = {
    ProcessState.CRASHED: FaultState.CRASHED,
    ProcessState.STOPPED: FaultState.STOPPED,
    ProcessState.HUNG: FaultState.HUNG,
}


class Faults:
    """The faults of a cluster's nodes. Brokers have the ids 0, 1, 2…, controllers 101, 102…"""

    def __init__(
        self,
        kernel: Kernel,
        nodes: Nodes,
        quorum: Quorum,
        brokers: Mapping[int, Broker],
        replication: Replication,
        shutdown: ControlledShutdown,
        controller: Controller,
    ) -> None:
        self._kernel = kernel
        self._nodes = nodes
        self._quorum = quorum
        self._brokers = brokers
        self._replication = replication
        self._shutdown = shutdown
        self._controller = controller

    def crash(self, node: int) -> None:
        """Kill the process (kill −9). What it wrote survives, because the page cache belongs to the operating
        system."""
        process = self._nodes.by_id[node]
        if process.state not in (ProcessState.RUNNING, ProcessState.HUNG):
            return
        process.slow_us = 0
        process.stopping = False
        self._nodes.set_state(process, ProcessState.CRASHED)
        if process.is_controller:
            self._quorum.node_changed(node, ProcessState.CRASHED)
        else:
            self._brokers[node].died(clean=False)
            self._replication.cut(node)

    def stop(self, node: int) -> None:
        """End the process cleanly. A broker first hands over its leaderships and leaves its ISRs."""
        process = self._nodes.by_id[node]
        if not process.running or process.stopping:
            return
        process.slow_us = 0
        if process.is_controller:
            self._nodes.set_state(process, ProcessState.STOPPED)
            self._quorum.node_changed(node, ProcessState.STOPPED)
        else:
            self._shutdown.begin(node)

    def hang(self, node: int) -> None:
        """Freeze the process, which then does nothing while its sockets stay open."""
        process = self._nodes.by_id[node]
        if not process.running:
            return
        self._nodes.set_state(process, ProcessState.HUNG)
        if process.is_controller:
            self._quorum.node_changed(node, ProcessState.HUNG)
            return
        self._replication.hang(node)

    def slow(self, node: int, latency_ms: int) -> None:
        """Add this latency to each of the node's answers and fetches. A latency of 0 removes the fault."""
        process = self._nodes.by_id[node]
        if process.state in (ProcessState.RUNNING, ProcessState.HUNG):
            process.slow_us = latency_ms * 1000
            self._kernel.trace("slow", node, latency_ms)

    def start(self, node: int) -> None:
        """End every fault of the node: start a dead process, resume a hung one, remove added latency."""
        process = self._nodes.by_id[node]
        process.slow_us = 0
        if process.stopping:
            self._shutdown.complete(node)
        was = process.state
        if was is ProcessState.RUNNING:
            return
        self._nodes.set_state(process, ProcessState.RUNNING)
        if process.is_controller:
            self._quorum.resumed()
        elif was is ProcessState.HUNG:
            self._replication.resume(node)
            self._brokers[node].resume()
        else:
            self._brokers[node].start()

    def lose_rack(self, rack: str) -> tuple[int, ...]:
        """Crash every broker in the rack that is running or hung, and return their ids."""
        hit = tuple(
            node.id
            for node in self._nodes.by_id.values()
            if not node.is_controller
            and node.rack == rack
            and node.state in (ProcessState.RUNNING, ProcessState.HUNG)
        )
        for node in hit:
            self.crash(node)
        return hit

    def crash_controller(self) -> int:
        """Crash the active controller, and return its id, or −1 if there is none."""
        leader = self._quorum.leader
        if leader < 0 or not self._nodes.by_id[leader].running:
            return -1
        self.crash(leader)
        return leader

    def fence_now(self, broker: int) -> bool:
        """End a broker's session, as when it lasts too long without a heartbeat. Return whether there is a
        controller that can."""
        if not self._controller.ready():
            return False
        self._controller.end_session(broker)
        return True

    def undo(self) -> tuple[int, ...]:
        """End every fault, and return the nodes that had one."""
        nodes = tuple(dict.fromkeys(fault.node for fault in self.active()))
        for node in sorted(nodes, reverse=True):  # Controllers first, because brokers register with one.
            self.start(node)
        return nodes

    def active(self) -> list[ActiveFault]:
        """Return the faults in force, ordered by node."""
        faults: list[ActiveFault] = []
        for node in self._nodes.by_id.values():
            role = NodeRole.CONTROLLER if node.is_controller else NodeRole.BROKER
            if node.state is not ProcessState.RUNNING:
                faults.append(ActiveFault(node.id, _STATES[node.state], role=role))
            elif node.stopping:
                faults.append(ActiveFault(node.id, FaultState.STOPPING, role=role))
            if node.slow_us:
                faults.append(ActiveFault(node.id, FaultState.SLOW, node.slow_us // 1000, role))
        return faults
