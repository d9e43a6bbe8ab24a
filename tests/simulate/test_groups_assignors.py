"""Kafka's assignors, compared with the tables in its documentation, and properties that any group must
have."""

from hypothesis import given
from hypothesis import strategies as st

from kview.simulate.groups.assignors import (
    ASSIGNORS,
    Assignment,
    assign_range,
    assign_round_robin,
    assign_sticky,
)
from kview.simulate.groups.consumer_protocol import Subscription, by_topic

THREE = {name: Subscription(("t",), {}) for name in "abc"}
TEN = {"t": 10}


def numbers(assignment: Assignment) -> list[list[int]]:
    return [[partition for _, partition in pairs] for pairs in assignment.values()]


def test_range_of_ten_partitions_on_three_members() -> None:
    assert numbers(assign_range(THREE, TEN)) == [[0, 1, 2, 3], [4, 5, 6], [7, 8, 9]]


def test_round_robin_of_ten_partitions_on_three_members() -> None:
    assert numbers(assign_round_robin(THREE, TEN)) == [[0, 3, 6, 9], [1, 4, 7], [2, 5, 8]]


def test_range_goes_topic_by_topic() -> None:
    members = {name: Subscription(("t", "u"), {}) for name in "ab"}
    assignment = assign_range(members, {"t": 3, "u": 3})
    assert assignment == {
        "a": [("t", 0), ("t", 1), ("u", 0), ("u", 1)],
        "b": [("t", 2), ("u", 2)],
    }


def test_sticky_keeps_what_it_can_when_a_member_leaves() -> None:
    before = assign_sticky(THREE, TEN)
    left = {name: Subscription(("t",), by_topic(before[name]), 1) for name in "ab"}
    after = assign_sticky(left, TEN)
    for name in "ab":
        assert set(before[name]) <= set(after[name])
        assert len(after[name]) == 5


def test_sticky_moves_no_more_than_a_newcomer_needs() -> None:
    before = assign_sticky({name: THREE[name] for name in "ab"}, TEN)
    members = {name: Subscription(("t",), by_topic(before[name]), 1) for name in "ab"} | {"c": THREE["c"]}
    after = assign_sticky(members, TEN)
    assert sorted(len(pairs) for pairs in after.values()) == [3, 3, 4]
    assert all(set(after[name]) <= set(before[name]) for name in "ab")


def test_of_two_claims_the_later_generation_holds() -> None:
    members = {
        "a": Subscription(("t",), {"t": [0, 1]}, 4),
        "b": Subscription(("t",), {"t": [0, 1]}, 5),
    }
    assert assign_sticky(members, {"t": 4})["b"][:2] == [("t", 0), ("t", 1)]


topics = st.sampled_from(["t", "u", "v"])
subscriptions = st.builds(
    Subscription,
    st.lists(topics, min_size=1, max_size=3, unique=True).map(tuple),
    st.dictionaries(topics, st.lists(st.integers(0, 9), unique=True)),
    st.integers(-1, 3),
)
groups = st.dictionaries(st.text("abcdef", min_size=1, max_size=2), subscriptions, min_size=1, max_size=6)


@given(groups, st.dictionaries(topics, st.integers(0, 9)))
def test_every_wanted_partition_has_one_owner_that_wants_it(
    members: dict[str, Subscription], partitions: dict[str, int]
) -> None:
    wanted = {topic for subscription in members.values() for topic in subscription.topics}
    every = sorted((topic, p) for topic in wanted for p in range(partitions.get(topic, 0)))
    for assign in ASSIGNORS.values():
        assignment = assign(members, partitions)
        assert sorted(pair for pairs in assignment.values() for pair in pairs) == every
        for member, pairs in assignment.items():
            assert all(topic in members[member].topics for topic, _ in pairs)


@given(st.integers(1, 7), st.integers(0, 30), st.data())
def test_sticky_is_as_even_as_can_be(count: int, partitions: int, data: st.DataObject) -> None:
    owned = data.draw(st.lists(st.lists(st.integers(0, 30), unique=True), min_size=count, max_size=count))
    members = {str(i): Subscription(("t",), {"t": owned[i]}, 1) for i in range(count)}
    sizes = [len(pairs) for pairs in assign_sticky(members, {"t": partitions}).values()]
    assert max(sizes) - min(sizes) <= 1
