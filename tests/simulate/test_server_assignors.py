"""The assignors of consumer groups, with figures from Kafka's own tests and properties that hold for any
group."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from kview.simulate.groups.consumer_records import Partitions
from kview.simulate.groups.server_assignors import ASSIGNORS, Subscriber, Target, assign_range, assign_uniform

ONE, TWO, THREE = b"1", b"2", b"3"


def subscribers(**topics: bytes) -> dict[str, Subscriber]:
    """Members by their ids. Each subscribes to the topics whose bytes are given."""
    return {name: Subscriber(None, frozenset(bytes((t,)) for t in of)) for name, of in topics.items()}


def numbers(target: Target, topic: bytes) -> list[list[int]]:
    return [sorted(target[member].get(topic, ())) for member in sorted(target)]


def test_range_of_three_and_two_partitions_on_three_members() -> None:
    """RangeAssignorTest: topic 1 has three partitions, topic 3 two."""
    target = assign_range(subscribers(a=b"13", b=b"13", c=b"13"), {ONE: 3, THREE: 2}, {})
    assert numbers(target, ONE) == [[0], [1], [2]]
    assert numbers(target, THREE) == [[0], [1], []]


def test_range_with_different_subscriptions() -> None:
    """RangeAssignorTest: a reads 1 and 2, b 3, c 2 and 3."""
    target = assign_range(subscribers(a=b"12", b=b"3", c=b"23"), {ONE: 3, TWO: 3, THREE: 2}, {})
    assert numbers(target, ONE) == [[0, 1, 2], [], []]
    assert numbers(target, TWO) == [[0, 1], [], [2]]
    assert numbers(target, THREE) == [[], [0], [1]]


def test_range_takes_static_members_first() -> None:
    members = {
        "a": Subscriber(None, frozenset((ONE,))),
        "b": Subscriber("z", frozenset((ONE,))),
        "c": Subscriber("y", frozenset((ONE,))),
    }
    assert numbers(assign_range(members, {ONE: 4}, {}), ONE) == [[3], [2], [0, 1]]


def test_uniform_of_three_and_two_partitions_on_two_members() -> None:
    target = assign_uniform(subscribers(a=b"13", b=b"13"), {ONE: 3, THREE: 2}, {})
    assert sorted(len(pairs_of(target[member])) for member in "ab") == [2, 3]


def test_uniform_keeps_what_it_can_when_a_member_joins() -> None:
    before = assign_uniform(subscribers(a=b"12", b=b"12"), {ONE: 3, TWO: 3}, {})
    after = assign_uniform(subscribers(a=b"12", b=b"12", c=b"12"), {ONE: 3, TWO: 3}, before)
    assert [len(pairs_of(after[member])) for member in "abc"] == [2, 2, 2]
    assert all(pairs_of(after[member]) <= pairs_of(before[member]) for member in "ab")


def test_uniform_gives_a_leaving_members_part_to_the_others() -> None:
    members = subscribers(a=b"1", b=b"1", c=b"1")
    before = assign_uniform(members, {ONE: 9}, {})
    after = assign_uniform(subscribers(a=b"1", b=b"1"), {ONE: 9}, before)
    assert sorted(len(pairs_of(after[member])) for member in "ab") == [4, 5]
    assert all(pairs_of(before[member]) <= pairs_of(after[member]) for member in "ab")


def test_uniform_with_different_subscriptions_evens_out() -> None:
    """A can only have topic 1, so b gives it all of that."""
    before: Target = {"b": {ONE: frozenset(range(4)), TWO: frozenset(range(4))}}
    after = assign_uniform(subscribers(a=b"1", b=b"12"), {ONE: 4, TWO: 4}, before)
    assert numbers(after, ONE) == [[0, 1, 2, 3], []]
    assert numbers(after, TWO) == [[], [0, 1, 2, 3]]


def test_topics_that_do_not_exist_give_nothing() -> None:
    for assign in ASSIGNORS.values():
        assert assign(subscribers(a=b"", b=b""), {}, {}) == {"a": {}, "b": {}}


def pairs_of(partitions: Partitions) -> set[tuple[bytes, int]]:
    return {(topic, number) for topic, of in partitions.items() for number in of}


topics = st.sampled_from((ONE, TWO, THREE))
groups = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=2),
    st.builds(Subscriber, st.none() | st.text("xyz", min_size=1), st.frozensets(topics)),
    min_size=1,
    max_size=6,
)
counts = st.fixed_dictionaries(dict.fromkeys((ONE, TWO, THREE), st.integers(1, 9)))


@given(groups, groups, counts, counts)
def test_every_partition_has_one_subscriber_through_any_change(
    first: dict[str, Subscriber],
    second: dict[str, Subscriber],
    few: dict[bytes, int],
    more: dict[bytes, int],
) -> None:
    for assign in ASSIGNORS.values():
        before: Target = {}
        for members, sizes in ((first, few), (second, {t: few[t] + more[t] for t in few}), (first, few)):
            target = assign(members, sizes, before)
            wanted = frozenset[bytes]().union(*(member.topics for member in members.values()))
            given_out = [pair for partitions in target.values() for pair in pairs_of(partitions)]
            assert sorted(given_out) == sorted((t, n) for t in wanted for n in range(sizes[t]))
            assert all(members[name].topics >= partitions.keys() for name, partitions in target.items())
            before = target


@given(groups, counts)
def test_uniform_leaves_no_move_that_would_even_out(
    members: dict[str, Subscriber], sizes: dict[bytes, int]
) -> None:
    target = assign_uniform(members, sizes, {})
    count = {name: len(pairs_of(partitions)) for name, partitions in target.items()}
    for giver, partitions in target.items():
        for topic in partitions:
            for taker, member in members.items():
                assert topic not in member.topics or count[giver] - count[taker] < 2


@given(st.integers(1, 7), st.integers(1, 30), st.integers(1, 7))
def test_uniform_moves_no_more_than_it_must(members: int, partitions: int, others: int) -> None:
    """From one number of members to another, each keeps as much as its new share allows."""

    def group(size: int) -> Mapping[str, Subscriber]:
        return subscribers(**{f"m{n}": b"1" for n in range(size)})

    before = assign_uniform(group(members), {ONE: partitions}, {})
    after = assign_uniform(group(others), {ONE: partitions}, before)
    sizes = [len(pairs_of(after[name])) for name in after]
    assert max(sizes) - min(sizes) <= 1
    for name in before.keys() & after.keys():
        had, has = pairs_of(before[name]), pairs_of(after[name])
        assert len(had & has) == min(len(had), len(has))
