"""A partition whose replicas are moved, copied as fast as a test says."""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from kview.derive.brokers.throttles import FOLLOWER, LEADER
from kview.derive.fold import State, step
from kview.derive.view import View
from kview.model.failures import Part
from kview.model.snapshot import BrokerConfigs, Reassignments, Snapshot, TopicConfigs, empty
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
        self.state, self.moves = State(), MOVES
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


LEADERS, FOLLOWERS = f"{LEADER}.replicas", f"{FOLLOWER}.replicas"
RATES = {0: {f"{LEADER}.rate": "70000"}, 1: {f"{FOLLOWER}.rate": "50000"}}
NONE: Mapping[int, Mapping[str, str]] = {}


def throttled(
    snapshot: Snapshot,
    topics: Mapping[str, str] | None,
    rates: Mapping[int, Mapping[str, str]] = NONE,
    told: tuple[int, ...] = (0, 1, 2),
) -> Snapshot:
    """The snapshot with these settings of the topic `orders` (None: not known) and of the brokers `told`."""
    rows = [
        {"topic": TOPIC, "name": name, "value": (topics or {}).get(name, ""), "source": "DEFAULT_CONFIG"}
        for name in (FOLLOWERS, LEADERS)
    ]
    brokers = [
        {"broker": id, "name": name, "value": rates.get(id, {}).get(name, ""), "source": ""}
        for id in told
        for name in (f"{FOLLOWER}.rate", f"{LEADER}.rate")
    ]
    asked = (*snapshot.observation.asked, Part.REASSIGNMENTS)
    return replace(
        snapshot,
        observation=replace(snapshot.observation, asked=asked),
        topic_configs=empty(TopicConfigs) if topics is None else table(TopicConfigs, rows),
        broker_configs=table(BrokerConfigs, brokers),
    )
