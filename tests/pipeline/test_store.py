"""Roll-ups are added up correctly in whatever pieces they arrive."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kview.model.aggregates import SET_BACK_MS, Block, Key, Rollups
from kview.model.sums import BLOCK_S, SUMS, Kind
from kview.model.units import UNKNOWN
from kview.pipeline.store import RollupStore
from tests.pipeline.arrivals import (
    CLUSTER,
    START_S,
    Hottest,
    Row,
    Seen,
    arrival,
    assert_same,
    at,
    read,
    stored,
)
from tests.pipeline.figures import Cell, of_rollups, of_table, total

KEYS = (
    CLUSTER,
    Key(Kind.INTERNAL),
    Key(Kind.TOPIC, "invoice"),
    Key(Kind.TOPIC, "payment"),
    Key(Kind.BROKER, "4"),
    Key(Kind.RACK, ""),
    Key(Kind.GROUP, "invoice"),
)


@st.composite
def histories(draw: st.DrawFn) -> list[Seen]:
    """Observations a second or more apart, each with rows for seconds up to its end."""
    history, second = [], 30
    for _ in range(draw(st.integers(1, 6))):
        second += draw(st.sampled_from((1, 1, 2, 40)))
        row = st.builds(
            Row,
            second=st.integers(second - 3, second),
            key=st.sampled_from(KEYS),
            sums=st.dictionaries(st.sampled_from(SUMS), st.integers(0, 2**40), min_size=1, max_size=4),
            hottest=st.none()
            | st.tuples(st.integers(0, 3), st.sampled_from(("a", "b")), st.integers(0, 2))
            | st.tuples(st.integers(0, 2**38), st.just("c"), st.just(7)),
            topic_partitions=st.none() | st.integers(1, 9),
        )
        history.append(at(second + draw(st.integers(0, 999)) / 1000, *draw(st.lists(row, max_size=6))))
    return history


@st.composite
def pieces(draw: st.DrawFn) -> tuple[list[Seen], list[int]]:
    """A history, with the indices at which it is cut into arrivals."""
    history = draw(histories())
    return history, sorted(draw(st.sets(st.integers(1, len(history)))) | {len(history)})


@settings(max_examples=50)
@given(pieces())
def test_pieces_add_up_whatever_their_grouping(made: tuple[list[Seen], list[int]]) -> None:
    history, cuts = made
    whole = arrival(history)
    store = stored(arrival(history[a:b], a) for a, b in zip([0, *cuts], cuts, strict=False))
    assert of_rollups(store.rollups) == of_table(whole)
    assert store.last_sequence == len(history) - 1
    assert store.rollups.from_ms == history[0].ended_ms
    assert store.rollups.until_ms == history[-1].ended_ms
    minutes = [block.minute for block in store.rollups.blocks]
    assert minutes == sorted({(START_S + row.second) // BLOCK_S for seen in history for row in seen.rows})


def test_nothing_yet() -> None:
    store = RollupStore()
    assert store.rollups == Rollups() and store.last_sequence == -1
    assert store.rollups.from_ms == store.rollups.until_ms == UNKNOWN


def copied(rollups: Rollups) -> list[Block]:
    return [
        replace(
            block,
            sums=block.sums.copy(),
            hottest_rate=block.hottest_rate.copy(),
            hottest=block.hottest.copy(),
            topic_partitions=block.topic_partitions.copy(),
        )
        for block in rollups.blocks
    ]


@settings(max_examples=50)
@given(histories())
def test_a_result_never_changes_afterwards(history: list[Seen]) -> None:
    store, handed_out = RollupStore(), []
    # At the end of the last observation, the clock has been set back into a time that is already covered.
    back = Seen(history[-1].ended_ms - SET_BACK_MS - 1, history[-1].rows)
    for number, seen in enumerate([*history, back]):
        store.add(arrival([seen], number))
        handed_out.append((store.rollups, store.rollups.keys, copied(store.rollups)))
    for rollups, keys, blocks in handed_out:
        assert rollups.keys == keys == store.rollups.keys[: len(keys)]
        assert rollups.partitions == store.rollups.partitions[: len(rollups.partitions)]
        assert_same(rollups.blocks, blocks)


def test_a_minute_in_which_nothing_changed_is_shared() -> None:
    store = stored([arrival([at(59, read(59)), at(60, read(60))])])
    before = store.rollups.blocks
    store.add(arrival([at(61, read(61, key=KEYS[2]))], 2))
    assert store.rollups.blocks[0] is before[0] and store.rollups.blocks[1] is not before[1]


def test_keys_that_come_later_have_rows_from_then_on() -> None:
    store = RollupStore()
    for number, key in enumerate(KEYS):
        second = number * 20
        store.add(arrival([at(second, read(second, 100 + number, key))], number))
    assert store.rollups.keys == KEYS
    counts = [block.topic_partitions.shape[0] for block in store.rollups.blocks]
    assert counts == [3, 6, 7]
    figures = of_rollups(store.rollups)
    for number, key in enumerate(KEYS):
        assert total(figures, "records_in", str(key.kind), key.name) == 100 + number
    # If a late part arrives for a minute from before the key was known, that minute gets a row for the key.
    store.add(arrival([at(121, read(3, 7, KEYS[6]))], 9))
    assert store.rollups.blocks[0].topic_partitions.shape[0] == 7
    assert total(of_rollups(store.rollups), "records_in", "group", "invoice") == 106 + 7


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        ((5, "a", 1), (6, "a", 0), (6, "a", 0)),
        ((6, "a", 0), (5, "z", 9), (6, "a", 0)),
        ((5, "a", 1), (5, "a", 2), (5, "a", 2)),
        ((5, "a", 9), (5, "b", 0), (5, "b", 0)),
        ((5, "b", 0), (5, "a", 9), (5, "b", 0)),
        ((5, "a", 10), (5, "a", 9), (5, "a", 10)),
        ((0, "a", 1), None, (0, "a", 1)),
        (None, (0, "a", 1), (0, "a", 1)),
        ((0, "a", 2), (0, "a", 1), (0, "a", 2)),
    ],
)
def test_of_two_that_are_equally_hot_the_greater_name_is_kept(
    first: Hottest | None, second: Hottest | None, kept: Hottest
) -> None:
    store = stored(
        [
            arrival([at(3, read(3, key=KEYS[2], hottest=first))]),
            arrival([at(4, read(3, key=KEYS[2], hottest=second))], 1),
        ]
    )
    (figures,) = [cell for (second, kind, _), cell in of_rollups(store.rollups).items() if kind == "topic"]
    assert figures["hottest"] == kept


def test_the_greatest_number_of_partitions_is_kept() -> None:
    counts = (3, 5, 4, None)
    store = stored(
        arrival([at(3, read(3, key=KEYS[2], topic_partitions=count))], number)
        for number, count in enumerate(counts)
    )
    assert of_rollups(store.rollups)[Cell(START_S + 3, "topic", "invoice")]["topic_partitions"] == 5
