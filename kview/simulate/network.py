"""The network between the nodes of a cluster: whose packets arrive where. Clients reach every node."""

from collections.abc import Callable, Collection
from enum import StrEnum
from typing import NamedTuple

from kview.simulate.kernel import Kernel

CutListener = Callable[[int, int], None]


class Connection(StrEnum):
    """What a node keeps a connection to another node for. Each of them has one request in flight."""

    METADATA = "metadata"
    HEARTBEAT = "heartbeat"
    ALTER_PARTITION = "alter-partition"
    FORWARDING = "forwarding"
    COORDINATION = "coordination"


class Cut(NamedTuple):
    """A cut between two nodes. With `one_way`, only the packets of `a` to `b` are lost."""

    a: int
    b: int
    one_way: bool


class Network:
    """Knows whose packets are lost between these nodes.

    TCP needs both ways. If only the way back is cut, the request in flight still arrives, and its answer is
    lost; after its timeout no new connection comes about.
    """

    def __init__(self, kernel: Kernel, nodes: Collection[int]) -> None:
        self._kernel = kernel
        self._nodes = nodes
        self._lost: dict[tuple[int, int], None] = {}
        self.isolated: set[int] = set()
        """Nodes between which and all others no packet arrives."""
        self._stuck: set[tuple[int, int, Connection]] = set()
        """Connections whose request in flight has arrived, while its answer is lost."""
        self._listeners: list[CutListener] = []

    def on_change(self, listener: CutListener) -> None:
        """Call `listener(a, b)` whenever the network between two nodes was cut or joined."""
        self._listeners.append(listener)

    def carries(self, a: int, b: int) -> bool:
        """Return whether the packets of node `a` arrive at node `b`."""
        return (a, b) not in self._lost and a not in self.isolated and b not in self.isolated

    def connects(self, a: int, b: int) -> bool:
        """Return whether packets arrive both ways, so that requests are answered."""
        lost, isolated = self._lost, self.isolated
        if isolated and (a in isolated or b in isolated):
            return False
        return not lost or ((a, b) not in lost and (b, a) not in lost)

    def send(self, a: int, b: int, connection: Connection) -> bool:
        """Send a request of node `a`, and return whether it arrives at node `b`. If its answer is lost, it is
        the last one that does."""
        if self.connects(a, b):
            return True
        if not self.carries(a, b) or (a, b, connection) in self._stuck:
            return False
        self._stuck.add((a, b, connection))
        return True

    def reconnect(self, node: int) -> None:
        """Let a node connect to all others again, because its process has started, or now leads. None comes
        about over a cut."""
        for a, b in self._lost:
            if node in (a, b):
                self._stuck |= {(*ends, kind) for ends in ((a, b), (b, a)) for kind in Connection}

    def cut(self, a: int, b: int, one_way: bool = False) -> None:
        """Lose the packets between two nodes, or with `one_way` only those of `a` to `b`, whatever is lost
        already."""
        self._lost[a, b] = None
        if not one_way:
            self._lost[b, a] = None
        self._changed("cut", a, b, *(["one-way"] if one_way else []))

    def isolate(self, node: int) -> None:
        """Lose the packets between a node and every other node."""
        self.isolated.add(node)
        for other in self._others(node):
            self._forget(node, other)
            self._changed("cut", node, other)

    def join(self, a: int, b: int) -> None:
        """Let packets arrive again, both ways. Between an isolated one of them and the others, none do."""
        for node, joined in ((a, b), (b, a)):
            if node in self.isolated:
                self.isolated.discard(node)
                self._lost |= {
                    ends: None
                    for other in self._others(node)
                    if other != joined and other not in self.isolated
                    for ends in ((node, other), (other, node))
                }
        self._forget(a, b)
        self._changed("join", a, b)

    def restore(self, node: int) -> None:
        """End a node's isolation and its cuts. Another isolated node stays isolated."""
        before = [other for other in self._others(node) if not self.connects(node, other)]
        self.isolated.discard(node)
        for other in before:
            self._forget(node, other)
            self._changed("join", node, other)

    def _others(self, node: int) -> list[int]:
        return [other for other in self._nodes if other != node]

    def _forget(self, a: int, b: int) -> None:
        for ends in ((a, b), (b, a)):
            self._lost.pop(ends, None)

    def cuts(self) -> list[Cut]:
        """Return the cuts between two nodes, ordered by node, without those of isolated ones."""
        lost = self._lost
        return sorted(Cut(a, b, (b, a) not in lost) for a, b in lost if (b, a) not in lost or a < b)

    def _changed(self, word: str, a: int, b: int, *more: str) -> None:
        self._stuck = {stuck for stuck in self._stuck if {*stuck[:2]} != {a, b}}
        self._kernel.trace(word, a, b, *more)
        for listener in self._listeners:
            listener(a, b)
