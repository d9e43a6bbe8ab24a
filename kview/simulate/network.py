"""The network between the nodes of a cluster: whose packets arrive where. Clients reach every node."""

from collections.abc import Callable
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
    """Knows whose packets are lost.

    TCP needs both ways. If only the way back is cut, the request in flight still arrives, and its answer is
    lost; after its timeout no new connection comes about.
    """

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._lost: dict[tuple[int, int], None] = {}
        self._stuck: set[tuple[int, int, Connection]] = set()
        """Connections whose request in flight has arrived, while its answer is lost."""
        self._listeners: list[CutListener] = []

    def on_change(self, listener: CutListener) -> None:
        """Call `listener(a, b)` whenever the network between two nodes was cut or joined."""
        self._listeners.append(listener)

    def carries(self, a: int, b: int) -> bool:
        """Return whether the packets of node `a` arrive at node `b`."""
        return (a, b) not in self._lost

    def connects(self, a: int, b: int) -> bool:
        """Return whether packets arrive both ways, so that requests are answered."""
        lost = self._lost
        return not lost or ((a, b) not in lost and (b, a) not in lost)

    def delivers(self, a: int, b: int, connection: Connection) -> bool:
        """Return whether a request that node `a` sends now arrives at node `b`."""
        if self.connects(a, b):
            return True
        if not self.carries(a, b) or (a, b, connection) in self._stuck:
            return False
        self._stuck.add((a, b, connection))
        return True

    def cut(self, a: int, b: int, one_way: bool = False) -> None:
        """Lose the packets between two nodes, or with `one_way` only those of `a` to `b`."""
        self._lost[a, b] = None
        if one_way:
            self._lost.pop((b, a), None)
        else:
            self._lost[b, a] = None
        self._changed("cut", a, b, *(["one-way"] if one_way else []))

    def join(self, a: int, b: int) -> None:
        """Let packets arrive again, both ways."""
        for ends in ((a, b), (b, a)):
            self._lost.pop(ends, None)
        self._changed("join", a, b)

    def cuts(self) -> list[Cut]:
        """Return the cuts, ordered by node."""
        lost = self._lost
        return sorted(Cut(a, b, (b, a) not in lost) for a, b in lost if (b, a) not in lost or a < b)

    def _changed(self, word: str, a: int, b: int, *more: str) -> None:
        self._stuck = {stuck for stuck in self._stuck if {*stuck[:2]} != {a, b}}
        self._kernel.trace(word, a, b, *more)
        for listener in self._listeners:
            listener(a, b)
