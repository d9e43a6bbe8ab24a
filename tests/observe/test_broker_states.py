"""A broker's way through its states, without sockets."""

import numpy as np
from msgspec.structs import replace

from kview.language import brokers as words
from kview.model.failures import FailureKind
from kview.model.snapshot import Quorum
from kview.model.units import UNKNOWN
from kview.observe import brokers
from kview.observe.brokers import BrokerFacts, Health, Registered
from kview.wire.metadata import BrokerAddress
from tests.worlds import default_world, views

HERE, THERE = BrokerAddress(0, "h", 9092, "R1"), BrokerAddress(1, "h", 9093, "R2")
FINE = Health(UNKNOWN, 900, FailureKind.NONE, connected=True)
DEAD = Health(950, 900, FailureKind.REFUSED)
NEVER_UP = Health(950, UNKNOWN, FailureKind.REFUSED)


LED = frozenset({("invoice", 3, 5)})


def see(
    known: dict[int, BrokerFacts],
    listed: list[BrokerAddress],
    cluster: dict[int, Registered],
    health: dict[int, Health],
    now_ms: int,
    led: frozenset[tuple[str, int, int]] = LED,
) -> tuple[int, ...]:
    return brokers.update(known, listed, cluster, health, lambda broker: led, now_ms)


def states(known: dict[int, BrokerFacts]) -> tuple[str, int, bool]:
    return known[0].state, known[0].since_ms, known[0].answers


def test_a_brokers_way_through_its_states() -> None:
    known: dict[int, BrokerFacts] = {}
    registered = {0: Registered(HERE, False)}
    see(known, [HERE], registered, {0: FINE}, 1000)
    assert states(known) == ("up", 1000, True)
    see(known, [HERE], registered, {0: DEAD}, 2000)
    assert states(known) == ("silent", 950, False)
    see(known, [], {0: Registered(HERE, True)}, {0: DEAD}, 3000)
    assert states(known) == ("fenced", 3000, False)
    see(known, [], {0: Registered(HERE, True)}, {0: FINE}, 3500)
    assert states(known) == ("fenced", 3000, True)
    see(known, [], {}, {}, 4000)
    assert states(known) == ("gone", 4000, False)
    assert brokers.table(known).host.tolist() == ["h"]
    see(known, [HERE], registered, {0: FINE}, 5000)
    assert states(known) == ("up", 5000, True)


def test_a_broker_listed_again_is_starting_for_three_seconds_and_then_silent_since_its_return() -> None:
    known: dict[int, BrokerFacts] = {}
    see(known, [HERE], {}, {0: FINE}, 1000)
    see(known, [], {0: Registered(HERE, True)}, {0: DEAD}, 3000)
    assert see(known, [HERE], {}, {0: DEAD}, 5000) == (0,)
    assert states(known) == ("starting", 5000, False)
    assert see(known, [HERE], {}, {0: DEAD}, 7900) == ()
    assert states(known) == ("starting", 5000, False)
    see(known, [HERE], {}, {0: DEAD}, 8100)
    assert states(known) == ("silent", 5000, False)
    see(known, [HERE], {}, {0: FINE}, 8200)
    assert states(known) == ("up", 8200, True)
    see(known, [HERE], {}, {0: DEAD}, 9000)
    assert states(known) == ("silent", 950, False)


def test_a_silent_broker_whose_leaderships_were_all_taken_was_fenced_and_is_listed_again() -> None:
    known: dict[int, BrokerFacts] = {}
    see(known, [HERE], {}, {0: FINE}, 1000)
    assert see(known, [HERE], {}, {0: DEAD}, 2000) == ()
    assert see(known, [HERE], {}, {0: DEAD}, 3000, LED | {("invoice", 4, 1)}) == ()
    assert states(known) == ("silent", 950, False)
    assert see(known, [HERE], {}, {0: DEAD}, 4000, frozenset({("invoice", 3, 7)})) == (0,)
    assert states(known) == ("starting", 4000, False)


def test_a_silent_broker_whose_port_opens_again_is_starting_since_then() -> None:
    known: dict[int, BrokerFacts] = {}
    see(known, [HERE], {}, {0: FINE}, 1000)
    see(known, [HERE], {}, {0: DEAD}, 2000)
    open_again = Health(950, 900, FailureKind.REFUSED, accepted_ms=2500)
    assert see(known, [HERE], {}, {0: open_again}, 3000) == (0,)
    assert states(known) == ("starting", 2500, False)
    see(known, [HERE], {}, {0: open_again}, 5500)
    assert states(known) == ("silent", 2500, False)


def test_a_broker_is_not_up_before_it_has_answered() -> None:
    known: dict[int, BrokerFacts] = {}
    see(known, [HERE], {}, {0: Health()}, 1000)
    assert states(known) == ("starting", 1000, False)
    see(known, [HERE], {}, {0: DEAD}, 2500)
    assert states(known) == ("silent", 950, False)


def shown(known: dict[int, BrokerFacts], now_ms: int) -> str:
    """The state of broker 0 as every list of brokers says it."""
    snapshot = default_world().tick()
    seen = replace(snapshot.observation, began_ms=now_ms, ended_ms=now_ms)
    (view,) = views([replace(snapshot, observation=seen, brokers=brokers.table(known))])
    said = words.state(view.snapshot.brokers, view.brokers, 0, now_ms)
    return f"{said.sign} {said.text}"


def test_a_broker_that_was_fenced_before_kview_began_has_been_so_for_longer() -> None:
    fenced = {0: Registered(HERE, True), 1: Registered(THERE, False)}
    known: dict[int, BrokerFacts] = {}
    see(known, [THERE], fenced, {0: NEVER_UP, 1: FINE}, 1_000)
    assert shown(known, 1_000) == "✕ fenced ≥0 s"
    see(known, [THERE], fenced, {0: NEVER_UP, 1: FINE}, 13_000)
    assert shown(known, 13_000) == "✕ fenced ≥12 s"
    see(known, [THERE], fenced, {0: FINE, 1: FINE}, 14_000)
    assert shown(known, 14_000) == "◌ fenced –", "since when is not known"
    see(known, [HERE, THERE], {}, {0: FINE, 1: FINE}, 15_000)
    assert shown(known, 15_000) == "● up"
    see(known, [THERE], fenced, {0: FINE, 1: FINE}, 20_000)
    assert shown(known, 22_000) == "◌ fenced 2 s", "this time kview has seen it"


def test_a_brokers_last_fetch_is_what_the_quorum_saw_and_its_error_is_ours() -> None:
    known: dict[int, BrokerFacts] = {}
    see(known, [HERE], {}, {0: DEAD}, 1_000)
    for last_fetch_ms in (500, 700, 600):
        one = np.array([1], np.int64)
        nodes = Quorum(np.array([0], np.int32), np.array(["observer"], object), one, one * last_fetch_ms, one)
        brokers.saw_quorum(known, nodes)
    table = brokers.table(known)
    assert (table.last_fetch_ms.tolist(), table.error.tolist()) == ([700], ["refused"])
    see(known, [HERE], {}, {0: FINE}, 2_000)
    assert brokers.table(known).error.tolist() == [""]


def test_a_registered_broker_is_fenced_only_if_the_cluster_says_so() -> None:
    """Metadata and DescribeCluster are answered one after the other, and a broker may register in between."""
    known: dict[int, BrokerFacts] = {}
    see(known, [], {0: Registered(HERE, False)}, {0: FINE}, 1000)
    assert states(known) == ("up", 1000, True)
    see(known, [], {0: Registered(HERE, True)}, {0: FINE}, 2000)
    assert states(known) == ("fenced", 2000, True)
