"""The processes of a cluster's brokers and controllers, with their faults and the network between them."""

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from kview.simulate.kernel import Kernel
from kview.simulate.network import Network


class ProcessState(StrEnum):
    """The state of a node's process. A hung process does nothing while its sockets stay open."""

    RUNNING = "running"
    CRASHED = "crashed"
    STOPPED = "stopped"
    HUNG = "hung"


ProcessListener = Callable[[int, ProcessState], None]
PortListener = Callable[[int], None]


class Node:
    """A process of the cluster.

    `slow_us` is the latency that a fault adds to each of its answers and fetches, `disk_us` what one adds to
    what its disks do. `incarnation` changes when
    a broker's process ends, so that timers of the ended process can be ignored. `broker_epoch` is −1 until a
    broker's process has registered. `port_open` is False from the end of a broker's process until the broker
    is unfenced again, so it never answers from old metadata.
    """

    __slots__ = (
        "broker_epoch",
        "disk_us",
        "id",
        "incarnation",
        "is_controller",
        "port_open",
        "rack",
        "slow_us",
        "state",
        "stopping",
    )

    def __init__(self, node: int, rack: str, is_controller: bool) -> None:
        self.id = node
        self.rack = rack
        self.is_controller = is_controller
        self.state = ProcessState.RUNNING
        self.port_open = True
        self.slow_us = 0
        self.disk_us = 0
        self.incarnation = 0
        self.broker_epoch = -1
        self.stopping = False

    @property
    def running(self) -> bool:
        """Whether the process is running, that is, it has not ended and does not hang."""
        return self.state is ProcessState.RUNNING

    @property
    def booting(self) -> bool:
        """Whether this is a broker whose process has not registered yet."""
        return not self.is_controller and self.broker_epoch < 0


class Nodes:
    """All processes, by id: the brokers 0, 1, 2… of these racks, and the controllers."""

    def __init__(self, kernel: Kernel, racks: Mapping[int, str], controllers: Sequence[int]) -> None:
        self.by_id = {b: Node(b, rack, False) for b, rack in racks.items()}
        self.by_id |= {c: Node(c, "", True) for c in controllers}
        self.broker_ids = tuple(racks)
        self.network = Network(kernel, self.by_id)
        self._kernel = kernel
        self._listeners: list[ProcessListener] = []
        self._port_listeners: list[PortListener] = []

    def state(self, node: int) -> ProcessState:
        return self.by_id[node].state

    def slow_ms(self, node: int) -> int:
        """Return the latency in ms that a fault adds to each of the node's answers."""
        return self.by_id[node].slow_us // 1000

    def serves(self, broker: int) -> bool:
        """Return whether a broker answers requests: its process runs and its port is open."""
        node = self.by_id[broker]
        return node.running and node.port_open

    def refuses(self, broker: int) -> bool:
        """Return whether a broker's port refuses connections. A hung broker's port does not."""
        return not self.by_id[broker].port_open

    def open_port(self, broker: int) -> None:
        """Let a started broker accept connections, because it is unfenced, and notify the listeners."""
        self.by_id[broker].port_open = True
        self._kernel.trace("port-open", broker)
        for listener in self._port_listeners:
            listener(broker)

    def on_port_open(self, listener: PortListener) -> None:
        """Call `listener(broker)` whenever a started broker opens its port."""
        self._port_listeners.append(listener)

    def on_process_change(self, listener: ProcessListener) -> None:
        """Call `listener(node, state)` whenever the process of a broker or controller changes."""
        self._listeners.append(listener)

    def set_state(self, node: Node, state: ProcessState) -> None:
        """Change the state of a process and notify the listeners."""
        node.state = state
        if state in (ProcessState.CRASHED, ProcessState.STOPPED):
            node.port_open = False
        self._kernel.trace("process", node.id, state.value)
        for listener in self._listeners:
            listener(node.id, state)
