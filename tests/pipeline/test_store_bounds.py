"""Limits of the stored roll-ups: an hour, and a number of bytes."""

from collections.abc import Iterable

import pyarrow as pa
import pytest

from kview.model.aggregates import Key, no_rows
from kview.model.sums import BLOCK_S, Kind, Sum
from kview.pipeline.store import LEAST_MINUTES, MAX_BYTES, MAX_MINUTES, RollupStore
from tests.pipeline.arrivals import CLUSTER, START_MS, START_S, Row, Seen, arrival, at, read, stored
from tests.pipeline.figures import Cell, of_rollups, size_of, total


def minutes(count: int, keys: int, first: int = 0) -> Iterable[pa.Table]:
    """Yield one arrival a minute with `keys` − 1 topics, observed in the middle of the minute."""
    for minute in range(first, first + count):
        second = minute * BLOCK_S + 30
        rows = [read(second, 1, Key(Kind.TOPIC, str(number))) for number in range(keys - 1)]
        yield arrival([at(second, *rows)], minute)


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


@pytest.mark.slow  # the other bounds are asked with fewer rows
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
