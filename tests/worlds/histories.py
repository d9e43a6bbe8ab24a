"""Histories for hypothesis: a default world in which things happen at chosen moments."""

from collections.abc import Callable
from dataclasses import dataclass

from hypothesis import strategies as st

from kview.model.snapshot import Snapshot
from kview.model.states import GroupState
from kview.model.units import NO_BROKER
from tests.worlds.parts import Log, topic
from tests.worlds.world import World, lean_world

EXTRA_TOPIC = "checkout"


def _stop(world: World) -> None:
    group = world.group("billing")
    group.members, group.state = 0, GroupState.EMPTY


def _rebalance(world: World) -> None:
    group = world.group("billing")
    group.members, group.state = group.members % 4 + 1, GroupState.STABLE


def _rewind(world: World) -> None:
    group = world.group("reporting")
    group.committed = {key: max(0, at - 50_000) for key, at in group.committed.items()}
    group.read = {}


def _truncate(world: World) -> None:
    for log in world.logs:
        if log.topic == "audit-log":
            log.ends = {broker: max(0.0, end - 2_000) for broker, end in log.ends.items()}
            log.watermark = min(log.watermark, *log.ends.values())


def _create_again(world: World) -> None:
    for log in world.logs:
        if log.topic == "audit-log":
            log.topic_id, log.start, log.watermark = log.topic_id + "'", 0, 10.0
            log.ends = dict.fromkeys(log.ends, 10.0)


def _come_or_go(world: World) -> None:
    if any(log.topic == EXTRA_TOPIC for log in world.logs):
        world.logs = [log for log in world.logs if log.topic != EXTRA_TOPIC]
    else:
        made: list[Log] = topic(EXTRA_TOPIC, 3, 2, 20.0)
        world.add(made)


def _idle(world: World) -> None:
    for log in world.logs:
        if log.topic == "invoice" and log.partition % 2:
            log.rate = 0.0 if log.rate else 440.0


def _other_seeds(world: World) -> None:
    if all(log.leader != NO_BROKER for log in world.logs):
        world.time_points = None


def _crash(broker: int) -> Callable[[World], None]:
    return lambda world: world.crash(broker)


def _back(broker: int) -> Callable[[World], None]:
    return lambda world: world.back(broker)


def _skip(world: World) -> None:
    world.skip(40)


def _clock_back(ms: int) -> Callable[[World], None]:
    def set_back(world: World) -> None:
        world.now_ms -= ms
        world.next_ms -= ms

    return set_back


HAPPENINGS: dict[str, Callable[[World], None]] = {
    "nothing": lambda world: None,
    "crash 4": _crash(4),
    "back 4": _back(4),
    "crash 1": _crash(1),
    "back 1": _back(1),
    "stop": _stop,
    "rebalance": _rebalance,
    "rewind": _rewind,
    "truncate": _truncate,
    "create again": _create_again,
    "come or go": _come_or_go,
    "idle": _idle,
    "skip": _skip,
    "clock back": _clock_back(3_600_000),
    "clock back 10 s": _clock_back(10_000),
    "other seeds": _other_seeds,
}


@dataclass(frozen=True)
class Plan:
    """What happens at which observations."""

    happenings: tuple[tuple[int, str], ...]

    def snapshots(self, interval_s: int, observations: int) -> list[Snapshot]:
        """Return the first `observations` snapshots of this history."""
        world = lean_world()
        world.interval_ms = interval_s * 1000
        made = []
        for number in range(observations):
            for at, what in self.happenings:
                if at == number:
                    HAPPENINGS[what](world)
            made.append(world.tick())
        return made


def plans(observations: int, most: int = 12) -> st.SearchStrategy[Plan]:
    """Return a strategy for plans in which at most `most` things happen during `observations`
    observations."""
    at = st.integers(1, observations - 1)
    happenings = st.lists(st.tuples(at, st.sampled_from(sorted(HAPPENINGS))), max_size=most)
    return st.builds(Plan, happenings.map(tuple))
