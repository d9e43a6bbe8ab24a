"""Faults that crash, stop, hang or slow down processes, and the ways to undo them."""

from kview.model.faults import ActiveFault, FaultState
from kview.simulate.core import ClusterCore
from kview.simulate.nodes import ProcessState

_STATES = {
    ProcessState.CRASHED: FaultState.CRASHED,
    ProcessState.STOPPED: FaultState.STOPPED,
    ProcessState.HUNG: FaultState.HUNG,
}


class Faults(ClusterCore):
    """A cluster's faults by node id: brokers are 0…, controllers are 101…"""

    def crash(self, node: int) -> None:
        """Kill the process (kill −9). What it wrote stays on disk, as it would in the page cache."""
        found = self.nodes[node]
        if found.state not in (ProcessState.RUNNING, ProcessState.HUNG):
            return
        found.slow_us = 0
        found.stopping = False
        self.set_process(found, ProcessState.CRASHED)
        if found.is_controller:
            self.quorum_state.node_changed(node, ProcessState.CRASHED)
        else:
            self.brokers[node].died(clean=False)
            self.drop_connections(node)

    def stop(self, node: int) -> None:
        """End the process cleanly. A broker first hands over its leaderships and leaves its ISRs."""
        found = self.nodes[node]
        if not found.running or found.stopping:
            return
        found.slow_us = 0
        if found.is_controller:
            self.set_process(found, ProcessState.STOPPED)
            self.quorum_state.node_changed(node, ProcessState.STOPPED)
        else:
            found.stopping = True
            self.kernel.trace("stopping", node)
            self.brokers[node].shut_down(self.kernel.now_us)

    def hang(self, node: int) -> None:
        """Freeze the process, which then does nothing while its sockets stay open."""
        found = self.nodes[node]
        if not found.running:
            return
        self.set_process(found, ProcessState.HUNG)
        if found.is_controller:
            self.quorum_state.node_changed(node, ProcessState.HUNG)
            return
        for other, theirs in self.brokers.items():
            if other != node:
                theirs.unreachable(node)
                self.pairs[node][other].cut()
                self.pairs[other][node].cut()

    def slow(self, node: int, latency_ms: int) -> None:
        """Add this latency to each of the node's answers and fetches. A latency of 0 removes the fault."""
        found = self.nodes[node]
        if found.state in (ProcessState.RUNNING, ProcessState.HUNG):
            found.slow_us = latency_ms * 1000
            self.kernel.trace("slow", node, latency_ms)

    def start(self, node: int) -> None:
        """End every fault of the node: start a dead process, resume a hung one, remove added latency."""
        found = self.nodes[node]
        found.slow_us = 0
        if found.stopping:
            self.stopped(node)
        was = found.state
        if was is ProcessState.RUNNING:
            return
        self.set_process(found, ProcessState.RUNNING)
        if found.is_controller:
            self.quorum_state.resumed()
        elif was is ProcessState.HUNG:
            for other in self.brokers:
                if other != node:
                    self.pairs[node][other].resume()
                    self.pairs[other][node].resume()
            self.brokers[node].resume()
        else:
            self.brokers[node].start()

    def lose_rack(self, rack: str) -> tuple[int, ...]:
        """Crash every broker in the rack, and return the brokers that were up."""
        hit = tuple(
            node.id
            for node in self.nodes.values()
            if not node.is_controller
            and node.rack == rack
            and node.state in (ProcessState.RUNNING, ProcessState.HUNG)
        )
        for node in hit:
            self.crash(node)
        return hit

    def crash_controller(self) -> int:
        """Crash the active controller, and return its id, or −1 if there is none."""
        leader = self.quorum_state.leader
        if leader < 0 or not self.nodes[leader].running:
            return -1
        self.crash(leader)
        return leader

    def undo(self) -> tuple[int, ...]:
        """End every fault, and return the nodes that had one."""
        nodes = tuple(dict.fromkeys(fault.node for fault in self.faults()))
        for node in sorted(nodes, reverse=True):  # Controllers first: brokers need one to come back.
            self.start(node)
        return nodes

    def faults(self) -> list[ActiveFault]:
        """Return the faults in force, ordered by node."""
        found: list[ActiveFault] = []
        for node in self.nodes.values():
            if node.state is not ProcessState.RUNNING:
                found.append(ActiveFault(node.id, _STATES[node.state]))
            elif node.stopping:
                found.append(ActiveFault(node.id, FaultState.STOPPING))
            if node.slow_us:
                found.append(ActiveFault(node.id, FaultState.SLOW, node.slow_us // 1000))
        return found
