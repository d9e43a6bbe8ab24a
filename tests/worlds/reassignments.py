"""A partition whose replicas are moved, copied as fast as a test says."""

from collections.abc import Callable

from msgspec.structs import replace

from kview.derive.fold import State, step
from kview.derive.view import View
from kview.model.snapshot import Reassignments, Snapshot
from tests.worlds.parts import Node, topic
from tests.worlds.tables import table
from tests.worlds.world import World

TOPIC, SIZE = "orders", 100_000
MOVES = table(Reassignments, [{"topic": TOPIC, "partition": 0, "adding": [1, 2], "removing": [0]}])


class Moving:
    """A world in which `orders-0` is moved from broker 0 to brokers 1 and 2, and what kview makes of it."""

    def __init__(self, rate: float = 0.0) -> None:
        nodes = [Node(id, "R1") for id in range(6)]
        self.world = World(nodes, topic(TOPIC, 2, 3, rate, size=SIZE), ())
        self.log = self.world.log(TOPIC, 0)
        self.log.replicas, self.log.isr, self.log.stalled = [1, 2, 0], [0], frozenset({1, 2})
        self.log.leader, self.log.start = 0, 0
        self.log.ends = {0: float(SIZE), 1: 0.0, 2: 0.0}
        self.state = State()
        self.snapshot: Callable[[Snapshot], Snapshot] = lambda snapshot: snapshot

    def look(self) -> View:
        """Return the view of the next observation."""
        snapshot = replace(self.world.tick(), reassignments=MOVES)
        self.state, view = step(self.state, self.snapshot(snapshot))
        return view

    def copy(self, seconds: int, per_second: float = 0.0) -> View:
        """Let both new replicas copy so many records per second, and return the last view."""
        for _ in range(seconds):
            for broker in (1, 2):
                self.log.ends[broker] = min(self.log.ends[0], self.log.ends[broker] + per_second)
            view = self.look()
        return view
