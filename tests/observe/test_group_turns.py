"""Groups by the thousand are described, and their commits read, in turn."""

from collections import Counter
from functools import partial
from typing import cast

import pytest

from kview.model.states import GroupType
from kview.observe import apis
from kview.observe.groups.facts import GROUPS_AN_OBSERVATION, GroupFacts, rounds_of_groups
from kview.observe.groups.requests import GroupRequests
from kview.observe.groups.rounds import GroupRounds
from kview.observe.link import Link
from kview.observe.links import Links
from kview.observe.loop import Loop
from kview.observe.state import State

COORDINATORS = 3


class Coordinator:
    """A connection to a broker of Kafka 4.3."""

    def __init__(self, offset_fetch: tuple[int, int] = (1, 9)) -> None:
        self.versions = {apis.OFFSET_FETCH: offset_fetch, apis.DESCRIBE_GROUPS: (0, 6)}


def asked(groups: int, observations: int) -> list[dict[str, list[str]]]:
    """The groups that are asked about in each observation, by the name of the request."""
    state = State()
    for number in range(groups):
        name = f"job-{number:05}"
        state.groups[name] = GroupFacts(name, GroupType.SIMPLE, "Empty", number % COORDINATORS)
    rounds = GroupRounds(state, GroupRequests(cast(Loop, None), state), cast(Links, None), 3, 1.0)
    links = {broker: cast(Link, Coordinator()) for broker in range(COORDINATORS)}
    out = []
    for sequence in range(observations):
        names: dict[str, list[str]] = {}
        for _, ask in rounds.details(links, sequence):
            assert isinstance(ask, partial)
            names.setdefault(ask.func.__name__, []).extend(ask.args[-1])
        out.append(names)
    return out


def test_all_groups_are_asked_about_in_every_observation_up_to_a_limit() -> None:
    (once,) = asked(GROUPS_AN_OBSERVATION, 1)
    assert {name: len(set(names)) for name, names in once.items()} == dict.fromkeys(
        ("commits", "describe"), GROUPS_AN_OBSERVATION
    )


@pytest.mark.parametrize("request_", ["commits", "describe"])
def test_more_groups_are_asked_about_in_turn_each_as_often_as_the_others(request_: str) -> None:
    groups = 3 * GROUPS_AN_OBSERVATION
    rounds = rounds_of_groups(groups)
    seen = [each[request_] for each in asked(groups, 2 * rounds)]
    assert max(map(len, seen)) <= GROUPS_AN_OBSERVATION + COORDINATORS, "each has a part that is rounded up"
    counts = Counter(name for names in seen for name in names)
    assert len(counts) == groups and set(counts.values()) == {2}


def test_something_is_heard_of_a_group_more_often_than_once_in_a_turn() -> None:
    first, *_ = asked(3 * GROUPS_AN_OBSERVATION, 1)
    assert not set(first["commits"]) & set(first["describe"])
