"""Roll-ups of a cluster whose clock is set back count each second once."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from kview.model.aggregates import SET_BACK_MS, Block, Rollups, no_rows
from kview.model.sums import BLOCK_S, Sum
from tests.pipeline.arrivals import START_MS, START_S, Row, Seen, arrival, assert_same, read, stored
from tests.pipeline.figures import of_rollups, total


class Clock:
    """A cluster that is observed once a second, with a clock that can be set back. `per_ms` records arrive in
    each millisecond."""

    def __init__(self) -> None:
        self.now_ms = START_MS + 200_000
        self.number = 0
        self.counted: dict[int, int] = {}
        """The expected result, as second → number of records."""

    def arrival(self, count: int, per_ms: int, from_gap: bool = False) -> pa.Table:
        """Return the roll-ups of `count` observations. With `from_gap`, the first observation has no
        predecessor."""
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
        """Set the clock back, and forget what was counted for later seconds."""
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


@settings(max_examples=50)
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
    # Nothing is left of the earlier counts: each second's figures are those of its last count.
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
