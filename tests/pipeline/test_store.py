"""Roll-ups added up as they arrive: in whatever pieces, within bounds, and each second once."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kview.model.aggregates import BLOCK_S, SET_BACK_MS, SUMS, Block, Key, Kind, Rollups, Sum, no_rows
from kview.model.units import UNKNOWN
from kview.pipeline.store import LEAST_MINUTES, MAX_BYTES, MAX_MINUTES, RollupStore
from tests.pipeline.figures import Cell, of_rollups, of_table, total

START_S = 29_000_000 * BLOCK_S
START_MS = START_S * 1000

CLUSTER = Key(Kind.CLUSTER)

Hottest = tuple[int, str, int]
"""Rate, topic, partition."""

ARRIVAL = pa.schema(
    [
        ("second", pa.int64()),
        ("kind", pa.string()),
        ("name", pa.string()),
        *((str(column), pa.int64()) for column in SUMS),
        ("hottest", pa.struct([("rate", pa.int64()), ("topic", pa.string()), ("partition", pa.int32())])),
        ("topic_partitions", pa.int32()),
        ("last_sequence", pa.int64()),
        ("first_ms", pa.int64()),
        ("last_ms", pa.int64()),
    ]
)
"""The columns of `kview.pipeline.rollup.rolled`."""


@dataclass(frozen=True)
class Row:
    """What one observation adds to a second of a key."""

    second: int
    """After START_S."""
    key: Key = CLUSTER
    sums: dict[Sum, int] = field(default_factory=dict)
    hottest: Hottest | None = None
    topic_partitions: int | None = None


@dataclass(frozen=True)
class Seen:
    """An observation and what it adds."""

    ended_ms: int
    rows: tuple[Row, ...]


def arrival(seen: Sequence[Seen], first: int = 0) -> pa.Table:
    """The roll-ups of some observations, the first of which has that number, as Spark sums them up, and in
    as little an order."""
    merged: dict[tuple[int, Key], list[tuple[int, Seen, Row]]] = {}
    for number, observation in enumerate(seen, first):
        for row in observation.rows:
            merged.setdefault((row.second, row.key), []).append((number, observation, row))
    out = []
    for (second, key), parts in merged.items():
        hottest = max((row.hottest for _, _, row in parts if row.hottest), default=None)
        known = [row.topic_partitions for _, _, row in parts if row.topic_partitions is not None]
        times = [observation.ended_ms for _, observation, _ in parts]
        out.append(
            {
                "second": START_S + second,
                "kind": str(key.kind),
                "name": key.name,
                **{str(name): sum(row.sums.get(name, 0) for _, _, row in parts) for name in SUMS},
                "hottest": dict(zip(("rate", "topic", "partition"), hottest, strict=True))
                if hottest
                else None,
                "topic_partitions": max(known, default=None),
                "last_sequence": max(number for number, _, _ in parts),
                "first_ms": min(times),
                "last_ms": max(times),
            }
        )
    random.Random(len(out)).shuffle(out)
    return pa.Table.from_pylist(out, schema=ARRIVAL)


def stored(arrivals: Iterable[pa.Table]) -> RollupStore:
    store = RollupStore()
    for table in arrivals:
        store.add(table)
    return store


def at(second: float, *rows: Row) -> Seen:
    """An observation so many seconds after the start; it always has a row of the cluster's, if with nothing
    in it."""
    return Seen(START_MS + int(second * 1000), (Row(int(second)), *rows))


def read(second: int, records: int = 1, key: Key = CLUSTER, **others: object) -> Row:
    return Row(second, key, {Sum.RECORDS_IN: records}, **others)  # type: ignore[arg-type]


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
    """Observations a second or two apart, each with rows of seconds at and before its end."""
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
    """A history, and the places where it is cut into arrivals."""
    history = draw(histories())
    return history, sorted(draw(st.sets(st.integers(1, len(history)))) | {len(history)})


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


def assert_same(blocks: Sequence[Block], others: Sequence[Block]) -> None:
    assert [block.minute for block in blocks] == [block.minute for block in others]
    for a, b in zip(blocks, others, strict=True):
        for name in ("sums", "hottest_rate", "hottest", "topic_partitions"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name), name)


@given(histories())
def test_what_was_handed_out_never_changes(history: list[Seen]) -> None:
    store, handed_out = RollupStore(), []
    # The last one comes after the clock was set back into what there is.
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
    # A late part for a minute from before a key was known makes the row there, too.
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


def minutes(count: int, keys: int, first: int = 0) -> Iterable[pa.Table]:
    """An arrival a minute, of so many topics; observed at half past."""
    for minute in range(first, first + count):
        second = minute * BLOCK_S + 30
        rows = [read(second, 1, Key(Kind.TOPIC, str(number))) for number in range(keys - 1)]
        yield arrival([at(second, *rows)], minute)


def size_of(rollups: Rollups) -> int:
    return sum(
        block.sums.nbytes + block.hottest.nbytes + block.hottest_rate.nbytes + block.topic_partitions.nbytes
        for block in rollups.blocks
    )


def kept_minutes(store: RollupStore) -> list[int]:
    return [block.minute - START_S // BLOCK_S for block in store.rollups.blocks]


def test_an_hour_is_kept() -> None:
    store = stored(minutes(MAX_MINUTES, 3))
    assert kept_minutes(store) == list(range(MAX_MINUTES))
    assert store.rollups.from_ms == START_MS + 30_000
    for table in minutes(2, 3, MAX_MINUTES):
        store.add(table)
    assert kept_minutes(store) == list(range(2, MAX_MINUTES + 2))
    assert store.rollups.from_ms == START_MS + 2 * BLOCK_S * 1000
    assert total(of_rollups(store.rollups), "records_in", "topic", "1") == MAX_MINUTES


A_KEY_BYTES = no_rows(0, 1).sums.nbytes + 3 * no_rows(0, 1).hottest.nbytes
FITTING = 10
MANY = MAX_BYTES // A_KEY_BYTES // FITTING


def test_the_oldest_go_where_many_keys_need_the_room() -> None:
    store = RollupStore()
    for table in minutes(FITTING, MANY):
        store.add(table)
        assert size_of(store.rollups) <= MAX_BYTES
    assert kept_minutes(store) == list(range(FITTING))
    for table in minutes(3, MANY, FITTING):
        store.add(table)
        assert size_of(store.rollups) <= MAX_BYTES
    assert kept_minutes(store) == list(range(3, FITTING + 3))
    assert store.rollups.from_ms == START_MS + 3 * BLOCK_S * 1000


def test_the_longest_window_is_kept_however_many_keys() -> None:
    store = stored(minutes(LEAST_MINUTES + 2, 4 * MANY))
    assert kept_minutes(store) == list(range(2, LEAST_MINUTES + 2))
    assert size_of(store.rollups) > MAX_BYTES
    assert store.rollups.from_ms == START_MS + 2 * BLOCK_S * 1000


class Clock:
    """A cluster that is observed once a second, by a clock that can be set back: `per_ms` records come in
    each millisecond."""

    def __init__(self) -> None:
        self.now_ms = START_MS + 200_000
        self.number = 0
        self.counted: dict[int, int] = {}
        """What must be there: records by second."""

    def arrival(self, count: int, per_ms: int, from_gap: bool = False) -> pa.Table:
        """The roll-ups of so many observations. `from_gap`: the first follows no other."""
        seen = []
        for number in range(count):
            before_ms, self.now_ms = self.now_ms, self.now_ms + 1000 * (number > 0 or not from_gap)
            rows = [Row((self.now_ms - START_MS) // 1000, sums={Sum.RECORDS_IN_GAP: 1})]
            for second in range(before_ms // 1000, (self.now_ms - 1) // 1000 + 1):
                records = per_ms * (min(self.now_ms, second * 1000 + 1000) - max(before_ms, second * 1000))
                hottest = (records, "invoice", per_ms)
                rows.append(read(second - START_S, records, hottest=hottest, topic_partitions=per_ms))
                self.counted[second - START_S] = self.counted.get(second - START_S, 0) + records
            seen.append(Seen(self.now_ms, tuple(rows)))
        self.number += count
        return arrival(seen, self.number - count)

    def set_back(self, by_ms: int) -> None:
        """What was counted of later seconds must go."""
        self.now_ms -= by_ms
        until = (self.now_ms - START_MS) // 1000
        self.counted = {second: records for second, records in self.counted.items() if second < until}


def assert_nothing_after(ms: int, rollups: Rollups) -> None:
    for block in rollups.blocks:
        rows = block.hottest.shape[0]
        rest = slice(max(0, ms // 1000 + 1 - block.minute * BLOCK_S), None)
        nothing = no_rows(block.minute, rows)
        assert_same(
            [_only(block, rest)],
            [_only(nothing, rest)],
        )


def _only(block: Block, seconds: slice) -> Block:
    return Block(
        block.minute,
        block.sums[..., seconds],
        block.hottest_rate[:, seconds],
        block.hottest[:, seconds],
        block.topic_partitions[:, seconds],
    )


PHASES = st.lists(
    st.tuples(st.integers(SET_BACK_MS + 1, 200_000), st.integers(1, 90), st.integers(1, 90)), max_size=3
)


@given(PHASES)
def test_no_second_is_counted_twice_after_a_clock_was_set_back(phases: list[tuple[int, int, int]]) -> None:
    clock = Clock()
    store = stored([clock.arrival(80, 4, from_gap=True)])
    first_ms = clock.now_ms - 79_000
    for per_ms, (by_ms, at_first, later) in zip((3, 5, 1), phases, strict=False):
        clock.set_back(by_ms)
        first_ms = min(first_ms, clock.now_ms)
        store.add(clock.arrival(at_first, per_ms, from_gap=True))
        assert_nothing_after(clock.now_ms, store.rollups)
        store.add(clock.arrival(later, per_ms))
    found = {
        cell.second - START_S: figures
        for cell, figures in of_rollups(store.rollups).items()
        if cell.kind == "cluster" and "records_in" in figures
    }
    assert {second: figures["records_in"] for second, figures in found.items()} == clock.counted
    # Nothing of what went is left in the others, either: each second's is of the last who counted it.
    for figures in found.values():
        per_ms = figures["topic_partitions"]
        assert figures["hottest"][2] == per_ms and figures["hottest"][0] <= 1000 * per_ms
    assert store.rollups.from_ms == max(first_ms, store.rollups.blocks[0].minute * BLOCK_S * 1000)
    assert store.rollups.until_ms == clock.now_ms
    assert store.last_sequence == clock.number - 1


def test_what_is_older_than_the_new_time_stays() -> None:
    clock = Clock()
    store = stored([clock.arrival(80, 1, from_gap=True)])
    before = store.rollups
    clock.set_back(30_400)
    store.add(clock.arrival(1, 2, from_gap=True))
    figures = of_rollups(store.rollups)
    until = (clock.now_ms - START_MS) // 1000
    assert [cell.second - START_S for cell in figures] == list(range(200, until + 1))
    assert total(figures, "records_in") == 1000 * (until - 200)
    assert total(of_rollups(before), "records_in") == 79_000


def test_a_clock_that_was_hardly_set_back_takes_nothing_away() -> None:
    clock = Clock()
    store = stored([clock.arrival(10, 1, from_gap=True)])
    clock.now_ms -= SET_BACK_MS
    store.add(clock.arrival(5, 1, from_gap=True))
    assert total(of_rollups(store.rollups), "records_in") == 9_000 + 4_000


def test_topics_that_come_and_go_for_days_leave_no_rows() -> None:
    store = RollupStore()
    minutes = 4 * MAX_MINUTES
    for minute in range(minutes):
        passing = f"passing-{minute}"
        second = minute * BLOCK_S
        rows = (
            Row(second, CLUSTER, {Sum.RECORDS_IN: 7}, (7, passing, 0)),
            Row(second, Key(Kind.TOPIC, passing), {Sum.RECORDS_IN: 7}, (7, passing, 0), 1),
        )
        store.add(arrival([Seen(START_MS + second * 1000 + 500, rows)], minute))
    rollups = store.rollups
    assert len(rollups.blocks) == MAX_MINUTES
    assert len(rollups.keys) < 1.5 * MAX_MINUTES and len(rollups.partitions) < 1.5 * MAX_MINUTES
    figures = of_rollups(rollups)
    for minute in range(minutes - MAX_MINUTES, minutes):
        second, passing = START_S + minute * BLOCK_S, f"passing-{minute}"
        expected = {"records_in": 7, "hottest": (7, passing, 0)}
        assert figures.pop(Cell(second, "cluster", "")) == expected
        assert figures.pop(Cell(second, "topic", passing)) == {**expected, "topic_partitions": 1}
    assert not figures
