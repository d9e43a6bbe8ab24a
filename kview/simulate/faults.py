"""Faults of processes, of the network between them and of their disks, and the ways to undo them."""

from collections.abc import Mapping

from kview.model.lab import ActiveFault, FaultState, NodeRole
from kview.simulate.brokers.broker import Broker
from kview.simulate.brokers.controlled_shutdown import ControlledShutdown
from kview.simulate.brokers.replication import Replication
from kview.simulate.controllers.controller import Controller
from kview.simulate.controllers.quorum import Quorum
from kview.simulate.kernel import Kernel
from kview.simulate.nodes import Node, Nodes, ProcessState

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
        for broker in brokers.values():
            broker.on_halt(self.crash)

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
            self._replication.stop_fetching(node)

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

    def cut(self, a: int, b: int, one_way: bool = False) -> None:
        """Lose the packets between two nodes, or with `one_way` only those of `a` to `b`."""
        self._nodes.network.cut(a, b, one_way)

    def isolate(self, node: int) -> None:
        """Lose the packets between a node and every other node."""
        self._nodes.network.isolate(node)

    def join(self, a: int, b: int) -> bool:
        """Let packets between two nodes arrive again. Return whether there was a cut."""
        network = self._nodes.network
        if network.connects(a, b):
            return False
        network.join(a, b)
        return True

    def join_all(self) -> tuple[int, ...]:
        """End all cuts and isolations, and return the nodes that had one."""
        network = self._nodes.network
        nodes = sorted(network.isolated.union(*(cut[:2] for cut in network.cuts())))
        for node in nodes:
            network.restore(node)
        return tuple(nodes)

    def lose_disk(self, broker: int) -> None:
        """Lose the last log directory of a broker that works, with all that is in it.

        Without any other, or if it has the metadata log, the broker ends.
        """
        dirs = self._brokers[broker].dirs
        directory = dirs.working()[-1]
        dirs.lost.add(directory)
        self._brokers[broker].fail_dir(directory)

    def fill_disk(self, broker: int) -> None:
        """Leave no room in the last log directory of a broker that works: it fails within 5 s, or with
        the next append."""
        self._brokers[broker].fill_dir(self._brokers[broker].dirs.working()[-1])

    def slow_disk(self, broker: int, latency_ms: int) -> None:
        """Add this latency to each append to a broker's disks, and to each Fetch that a follower or a client
        outside sends it."""
        self._nodes.by_id[broker].disk_us = latency_ms * 1000
        self._kernel.trace("slow-disk", broker, latency_ms)

    def repair_disk(self, broker: int) -> None:
        """End the faults of a broker's disks.

        A lost one is replaced by an empty one. Kafka does not use a directory again that has failed, so the
        broker is then started again.
        """
        if self._repair(broker):
            self._start_process(broker)

    def _repair(self, broker: int) -> bool:
        """Repair a broker's disks. Return whether one had failed, so that the process had to end."""
        process, dirs = self._nodes.by_id[broker], self._brokers[broker].dirs
        process.disk_us = 0
        if not dirs.failed:
            dirs.full.clear()
            return False
        if process.state in (ProcessState.RUNNING, ProcessState.HUNG):
            self._shutdown.complete(broker)
        self._brokers[broker].repair_dirs()
        return True

    def start(self, node: int) -> None:
        """End every fault of the node: start a dead process, resume a hung one, remove added latency, repair
        its disks, and end its cuts."""
        self._nodes.network.restore(node)
        process = self._nodes.by_id[node]
        process.slow_us = 0
        if process.stopping:
            self._shutdown.complete(node)
        if not process.is_controller:
            self._repair(node)
        self._start_process(node)

    def _start_process(self, node: int) -> None:
        process = self._nodes.by_id[node]
        was = process.state
        if was is ProcessState.RUNNING:
            return
        if was is not ProcessState.HUNG:
            self._nodes.network.reconnect(node)
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
        nodes = tuple(dict.fromkeys(node for fault in self.active() for node in fault.nodes))
        for node in sorted(nodes, reverse=True):  # Controllers first, because brokers register with one.
            self.start(node)
        return nodes

    def active(self) -> list[ActiveFault]:
        """Return the faults in force, ordered by node, and then the cuts between two nodes."""
        faults: list[ActiveFault] = []
        for node in self._nodes.by_id.values():
            role = self._role(node.id)
            if node.state is not ProcessState.RUNNING:
                faults.append(ActiveFault(node.id, _STATES[node.state], role=role))
            elif node.stopping:
                faults.append(ActiveFault(node.id, FaultState.STOPPING, role=role))
            if node.slow_us:
                faults.append(ActiveFault(node.id, FaultState.SLOW, node.slow_us // 1000, role))
            faults += [ActiveFault(node.id, state, ms, role) for state, ms in self._of_disks(node)]
            if node.id in self._nodes.network.isolated:
                faults.append(ActiveFault(node.id, FaultState.ISOLATED, role=role))
        for a, b, one_way in self._nodes.network.cuts():
            state = FaultState.CUT_ONE_WAY if one_way else FaultState.CUT
            faults.append(ActiveFault(a, state, role=self._role(a), other=b))
        return faults

    def _of_disks(self, node: Node) -> list[tuple[FaultState, int]]:
        """Return the faults of a node's disks, with the latency in ms of slow ones."""
        if node.is_controller:
            return []
        dirs = self._brokers[node.id].dirs
        found = [
            (FaultState.DISK_LOST, 0, bool(dirs.lost)),
            (FaultState.DISK_FULL, 0, bool(dirs.full)),
            (FaultState.DISK_SLOW, node.disk_us // 1000, node.disk_us > 0),
        ]
        return [(state, ms) for state, ms, is_there in found if is_there]

    def _role(self, node: int) -> NodeRole:
        return NodeRole.CONTROLLER if self._nodes.by_id[node].is_controller else NodeRole.BROKER
