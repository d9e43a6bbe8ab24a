"""Slow brokers: compared with their peers, or with their own past."""

import numpy as np
from msgspec.structs import replace

from kview.derive.brokers.slowness import Slowness, follow
from kview.derive.fold import State, step
from kview.derive.view import View
from kview.language.events import sentence as event_sentence
from kview.language.findings import sentence
from kview.model.events import EventKind, Severity
from kview.model.findings import Finding, FindingKind
from kview.model.snapshot import Brokers
from kview.model.units import UNKNOWN
from tests.worlds import World, default_world


def run(world: World, state: State, seconds: int) -> tuple[State, list[View]]:
    seen = []
    for _ in range(seconds):
        state, view = step(state, world.tick())
        seen.append(view)
    return state, seen


def slow(view: View) -> list[Finding]:
    return [finding for finding in view.headline.findings if finding.kind is FindingKind.BROKERS_SLOW]


def small(brokers: int) -> World:
    """A world of that many brokers with one partition."""
    world = default_world()
    world.nodes = {id: node for id, node in world.nodes.items() if id < brokers}
    world.logs, world.groups = [world.log("audit-log", 0)], []
    return world


def test_ten_times_its_peers_for_five_seconds_is_slow() -> None:
    world = default_world()
    state, _ = run(world, State(), 3)
    world.nodes[5].latency_us = 212_000
    state, seen = run(world, state, 8)
    assert [len(slow(view)) for view in seen] == [0] * 5 + [1] * 3
    (found,) = slow(seen[-1])
    now_ms = seen[-1].snapshot.observation.ended_ms
    assert sentence(found, now_ms) == "broker 5 slow for 7.0 s: answers take 212 ms"
    assert seen[-1].brokers.severity[5] is Severity.WARN and seen[-1].headline.severity is Severity.WARN
    (event,) = [event for view in seen for event in view.new_events]
    assert event_sentence(event) == "broker 5 became slow to answer: 212 ms"
    world.nodes[5].latency_us = 30_000
    state, seen = run(world, state, 3)
    assert slow(seen[-1]), "above half of the limit, it may go up again"
    world.nodes[5].latency_us = 20_000
    state, seen = run(world, state, 1)
    assert not slow(seen[0])
    (event,) = seen[0].new_events
    assert (event.kind, event_sentence(event)) == (
        EventKind.BROKER_NOT_SLOW,
        "broker 5 answers normally again: 20 ms",
    )


def test_what_is_a_little_slow_for_all_is_not_slow() -> None:
    world = default_world()
    state, _ = run(world, State(), 3)
    world.nodes[5].latency_us = 49_000
    state, seen = run(world, state, 10)
    assert not slow(seen[-1]), "27 times its peers, but hardly felt"
    for node in world.nodes.values():
        node.latency_us = 190_000
    state, seen = run(world, state, 10)
    assert not slow(seen[-1]), "kview's own machine may be busy"


def test_all_brokers_may_become_slow_together() -> None:
    world = default_world()
    state, _ = run(world, State(), 30)
    for number, node in enumerate(world.nodes.values()):
        node.latency_us = 351_000 + number * 100_000
    state, seen = run(world, state, 30)
    (found,) = slow(seen[-1])
    assert (found.brokers, found.count) == ((0, 1, 2, 3, 4, 5), 851)
    assert seen[-1].headline.severity is Severity.WARN
    for node in world.nodes.values():
        node.latency_us = 7_000
    _, seen = run(world, state, 1)
    assert not slow(seen[-1])


def test_a_long_way_to_the_cluster_is_not_slow() -> None:
    world = default_world()
    for node in world.nodes.values():
        node.latency_us = 300_000
    _, seen = run(world, State(), 60)
    assert not slow(seen[-1])


def test_one_of_two_brokers_is_compared_with_its_own_past() -> None:
    world = small(2)
    state, seen = run(world, State(), 60)
    world.nodes[1].latency_us = 212_000
    _, seen = run(world, state, 7)
    (found,) = slow(seen[-1])
    assert found.brokers == (1,)
    world = small(1)
    world.nodes[0].latency_us = 212_000
    _, seen = run(world, State(), 60)
    assert not slow(seen[-1]), "it was never faster"


def test_a_broker_that_does_not_answer_is_silent_and_not_slow() -> None:
    world = default_world()
    state, _ = run(world, State(), 3)
    world.nodes[5].latency_us = 212_000
    state, _ = run(world, state, 8)
    world.crash(5)
    state, seen = run(world, state, 1)
    assert not slow(seen[0]) and seen[0].snapshot.brokers.state[5] == "silent"
    assert EventKind.BROKER_NOT_SLOW not in {event.kind for event in seen[0].new_events}


def test_slowness_is_the_same_whenever_the_fold_began() -> None:
    """A latency between half of the limit and the limit keeps a verdict, but not beyond the look-back."""
    tables = latencies((300, 40), (50, 212), (950, 40))
    played = slow_since_s(tables)
    for last in (500, 900, 925, 940, 945, 949, 950, 951, 955, 1250):
        assert slow_since_s(tables[: last + 1], max(0, last - 600))[-1] == played[last], last
    assert played[900] is not None and played[1250] is None


def latencies(*of: tuple[int, int], brokers: int = 6) -> list[Brokers]:
    """The table of brokers at each second, of which broker 0 takes so many ms for so many seconds in turn."""
    table = small(brokers).tick().brokers if brokers < 3 else default_world().tick().brokers
    usual_us = table.latency_us[1:].tolist()
    return [
        replace(table, latency_us=np.array([took_ms * 1000, *usual_us]))
        for seconds, took_ms in of
        for _ in range(seconds)
    ]


def slow_since_s(tables: list[Brokers], first_s: int = 0) -> list[int | None]:
    """Since when broker 0 is slow at each second from `first_s` on, None while it is not."""
    seen, found = Slowness(), []
    for second, table in enumerate(tables[first_s:], first_s):
        seen = follow(seen, table, second * 1000)
        since_ms = int(seen.since_ms(table)[0])
        found.append(None if since_ms == UNKNOWN else since_ms // 1000)
    return found


def test_one_of_two_brokers_never_gets_used_to_its_own_slowness() -> None:
    found = slow_since_s(latencies((60, 2), (1_500, 212), (10, 2), brokers=2))
    assert found[:65] == [None] * 65
    assert None not in found[65:1_560] and found[65] == 60
    assert found[1_560:] == [None] * 10
    found = slow_since_s(latencies((60, 2), (900, 212), (30, 2), (20, 212), brokers=2))
    assert found[-15:] == [990] * 15, "nor has it learned from the first time"


def test_a_slow_time_begins_within_the_look_back_whenever_the_fold_began() -> None:
    """Three seconds over the limit at the beginning of the look-back prove nothing by themselves."""
    tables = latencies((10, 2), (33, 212), (97, 40), (10, 212), (510, 40))
    played, alone = slow_since_s(tables), slow_since_s(tables, 40)
    assert played[639] == alone[-21] == 140
    assert played[600] == 10, "while more of the first time is within the look-back"
