"""Real controllers that crash or hang: how soon the headline says so, and that nothing is said too early.

How soon is counted in observations, a second or more apart: a busy machine makes them longer, not more.
"""

import time

import pytest

from kview.derive.brokers.controllers import controllers
from kview.derive.view import View
from kview.model.findings import FindingKind
from kview.observe.observer import ObserveSettings
from tests.observe.observing import Watched, headline, observing
from tests.real_kafka.cluster import START_TIMEOUT_S, RealKafka
from tests.waiting import paced

SOON = 4
"""The observations after a crash in which it must be said. The first may come too soon to ask the controllers
again, and the one after the request may come too soon to expect an answer."""
WATCHED_S = 6.0
FETCHED_LOOKS = 2
"""The observations until the last fetch of a voter, which is at most half a second old when it stops, is two
seconds old."""
MISSING = {FindingKind.NO_CONTROLLER, FindingKind.QUORUM_SILENT, FindingKind.QUORUM_LOST}


def missing(view: View) -> bool:
    """Whether the headline says that there is no working quorum."""
    return bool(MISSING & {finding.kind for finding in view.headline.findings})


def watch(watched: Watched, seconds: float) -> None:
    """Observe once a second, as kview does, for so long."""
    ends_s = time.monotonic() + seconds
    for _ in paced(1.0):
        watched.look()
        if time.monotonic() >= ends_s:
            return


def looks_until_missing(watched: Watched) -> int:
    """Observe once a second until the headline says that there is no working quorum, and count."""
    for looks, _ in enumerate(paced(1.0), 1):
        if missing(watched.look()):
            return looks
        assert looks < 2 * WATCHED_S, headline(watched.views[-1])
    raise AssertionError("unreachable")


@pytest.fixture
def three_controllers(shared_quorum: RealKafka) -> RealKafka:
    """Brokers and three controllers, all up."""
    shared_quorum.heal()
    return shared_quorum


@pytest.mark.slow  # the fold's tests guard what is said; this one guards how soon
def test_a_sole_controllers_crash_is_said_in_the_fourth_observation_at_the_latest(
    real_kafka: RealKafka,
) -> None:
    with observing([real_kafka.address(0)], ObserveSettings()) as observer:
        watched = Watched(observer)
        watched.until(lambda v: v.snapshot.observation.controller_id == 101, "the controller is seen")
        watch(watched, WATCHED_S)
        assert not any(map(missing, watched.views))
        real_kafka.kill(101)
        assert looks_until_missing(watched) <= SOON
        assert any("no word from the controllers" in sentence for sentence in headline(watched.views[-1]))
        watch(watched, WATCHED_S)
        assert all(map(missing, watched.views[-int(WATCHED_S) :]))
        real_kafka.restart(101)
        watched.until(lambda v: not missing(v), "the controller is back", START_TIMEOUT_S)


@pytest.mark.slow
def test_of_three_controllers_one_may_be_lost_and_two_are_a_lost_majority(
    three_controllers: RealKafka,
) -> None:
    kafka = three_controllers
    with observing([kafka.address(0)], ObserveSettings()) as observer:
        watched = Watched(observer)
        seen = watched.until(lambda v: v.snapshot.observation.controller_id > 100, "a controller is active")
        active = seen.snapshot.observation.controller_id
        others = [node for node in kafka.controller_ids if node != active]
        kafka.pause(others[0])
        watch(watched, WATCHED_S)
        assert not any(map(missing, watched.views))
        assert any(
            f"controller {others[0]} is down or not fetching" in said for said in headline(watched.views[-1])
        )
        kafka.pause(others[1])
        assert looks_until_missing(watched) <= FETCHED_LOOKS + SOON
        hears = f"controller {active} hears no majority of the 3 voters"
        assert any(hears in said for said in headline(watched.views[-1]))
        for node in others:
            kafka.resume(node)
        watched.until(lambda v: not missing(v), "the quorum is back", START_TIMEOUT_S)


@pytest.mark.slow
def test_a_dead_voter_is_never_shown_as_well_whoever_leads(three_controllers: RealKafka) -> None:
    kafka = three_controllers
    with observing([kafka.address(0)], ObserveSettings(interval_s=0.3)) as observer:
        watched = Watched(observer)
        seen = watched.until(
            lambda v: len(states(v)) == 3 and set(states(v).values()) == {"active", "follows"},
            "all voters follow",
            START_TIMEOUT_S,
        )
        active = seen.snapshot.observation.controller_id
        dead, heir = (node for node in kafka.controller_ids if node != active)
        kafka.kill(dead)
        watched.until(lambda v: states(v)[dead] == "lost", "the dead voter is lost")
        first = len(watched.views)
        kafka.kill(active)
        watched.until(missing, "nobody leads")
        kafka.restart(active)
        watched.until(
            lambda v: not missing(v) and v.snapshot.observation.controller_id in (heir, active),
            "one of the others leads",
            START_TIMEOUT_S,
        )
        watched.until(
            lambda v: set(states(v).values()) == {"active", "follows", "lost"},
            "the others are well",
            START_TIMEOUT_S,
        )
        shown = {states(view)[dead] for view in watched.views[first:]}
        assert shown <= {"lost", "unknown"}, shown
        kafka.restart(dead)
        watched.until(lambda v: states(v)[dead] == "follows", "the dead voter is back", START_TIMEOUT_S)


def states(view: View) -> dict[int, str]:
    """What is shown of each controller."""
    return {one.node: one.state.value for one in controllers(view)}
