"""Groups by the thousand are described, and their commits read, in turn."""

from collections import Counter
from functools import partial
from typing import NamedTuple, cast

import pytest

from kview.model.failures import FailureKind
from kview.model.states import GroupType
from kview.model.turns import GROUPS_AN_OBSERVATION, rounds_of_groups
from kview.observe import apis
from kview.observe.groups.facts import (
    SINGLE_FETCHES,
    GroupFacts,
    rounds_of_commits,
)
from kview.observe.groups.requests import GroupRequests
from kview.observe.groups.rounds import LATE_LEAST_S, LATE_ROUNDS, GroupRounds
from kview.observe.link import Link
from kview.observe.links import Links
from kview.observe.loop import Loop
from kview.observe.state import State

COORDINATORS = 3


KAFKA_2 = (0, 7)
"""The versions of OffsetFetch of brokers that take one group per request."""


class Coordinator:
    """A connection to a broker, by default of Kafka 4.3."""

    failing = False
    owed_s = 0.0

    def __init__(self, offset_fetch: tuple[int, int] = (1, 9)) -> None:
        self.versions = {apis.OFFSET_FETCH: offset_fetch, apis.DESCRIBE_GROUPS: (0, 6)}


class OfOneBroker(NamedTuple):
    """Links of which only the coordinator 0 has one."""

    fast: dict[int, Link]


def rounds_of(groups: int, coordinators: int, links: Links | None = None) -> GroupRounds:
    """Rounds over so many simple groups, which were listed at the moment 0."""
    state = State()
    for number in range(groups):
        name = f"job-{number:05}"
        coordinator = number % coordinators
        state.groups[name] = GroupFacts(name, GroupType.SIMPLE.value, "Empty", coordinator, listed_ms=0)
    return GroupRounds(state, GroupRequests(cast(Loop, None), state), cast(Links, links), 3, 1.0)


def asked(
    rounds: GroupRounds, observations: int, offset_fetch: tuple[int, int] = (1, 9), every: int = 1
) -> list[dict[str, list[str]]]:
    """The groups that are asked about in each observation, by the name of the request. The first coordinator
    can be asked in every observation of that number."""
    links = {broker: cast(Link, Coordinator(offset_fetch)) for broker in range(COORDINATORS)}
    out = []
    for at in range(observations):
        askable = {broker: link for broker, link in links.items() if broker or at % every == 0}
        names: dict[str, list[str]] = {}
        for _, ask in rounds.details(askable):
            assert isinstance(ask, partial)
            names.setdefault(ask.func.__name__, []).extend(ask.args[-1])
        out.append(names)
    return out


def test_all_groups_are_asked_about_in_every_observation_up_to_a_limit() -> None:
    (once,) = asked(rounds_of(GROUPS_AN_OBSERVATION, COORDINATORS), 1)
    assert {name: len(set(names)) for name, names in once.items()} == dict.fromkeys(
        ("commits", "describe"), GROUPS_AN_OBSERVATION
    )


@pytest.mark.parametrize("request_", ["commits", "describe"])
def test_more_groups_are_asked_about_in_turn_each_as_often_as_the_others(request_: str) -> None:
    groups = 3 * GROUPS_AN_OBSERVATION
    rounds = rounds_of_groups(groups)
    seen = [each[request_] for each in asked(rounds_of(groups, COORDINATORS), 2 * rounds)]
    assert max(map(len, seen)) <= GROUPS_AN_OBSERVATION + COORDINATORS, "each has a part that is rounded up"
    counts = Counter(name for names in seen for name in names)
    assert len(counts) == groups and set(counts.values()) <= {2, 3}, "as a part is rounded up"


def test_something_is_heard_of_a_group_more_often_than_once_in_a_turn() -> None:
    first, *_ = asked(rounds_of(3 * GROUPS_AN_OBSERVATION, COORDINATORS), 1)
    assert not set(first["commits"]) & set(first["describe"])


@pytest.mark.parametrize("request_", ["commits", "describe"])
def test_a_broker_that_can_be_asked_now_and_then_gets_to_all_its_groups(request_: str) -> None:
    groups, every = 2 * GROUPS_AN_OBSERVATION, 2
    seen = asked(rounds_of(groups, 1), 2 * every, every=every)
    assert len({name for names in seen for name in names.get(request_, ())}) == groups


@pytest.mark.parametrize("groups", [48, GROUPS_AN_OBSERVATION + 10])
def test_brokers_that_take_one_group_per_request_get_to_all_their_groups(groups: int) -> None:
    observations = 48 // SINGLE_FETCHES
    seen = [each["commits"] for each in asked(rounds_of(groups, 1), observations, KAFKA_2)]
    assert {len(names) for names in seen} == {SINGLE_FETCHES}
    assert len({name for names in seen for name in names}) == 48


@pytest.mark.parametrize("offset_fetch", [KAFKA_2, (1, 9)])
def test_a_group_whose_turn_never_comes_is_late_after_some_rounds(offset_fetch: tuple[int, int]) -> None:
    groups = GROUPS_AN_OBSERVATION + 1
    links = cast(Links, OfOneBroker({0: cast(Link, Coordinator(offset_fetch))}))
    rounds = rounds_of(groups, 1, links)
    late_ms = 1000 * LATE_ROUNDS * rounds_of_commits(links.fast[0].versions, groups, groups)
    late_ms = max(late_ms, int(1000 * LATE_LEAST_S))
    for now_ms, kind in ((late_ms, FailureKind.NONE), (late_ms + 1, FailureKind.OVERDUE)):
        rounds.update(now_ms)
        assert {known.cause.kind for known in rounds.state.groups.values()} == {kind}
