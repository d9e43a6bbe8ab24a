"""Rates: per second between two readings of the same cell, whatever happened between."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kview.derive.align import Alignment
from kview.derive.partitions.rates import MIN_INTERVAL_MS, STALE_RATE_MS, Ends, advance, minus, sum_by, total
from kview.model.units import UNKNOWN

NOW = 1_760_000_000_000


def read(*pairs: tuple[int, int]) -> tuple[list[float], list[bool]]:
    """One partition's rates after each reading (log end, ms after NOW), and whether it fell."""
    ends, rates, falls = Ends.none(1), [], []
    for value, at in pairs:
        received = UNKNOWN if value == UNKNOWN else NOW + at
        ends, fell = advance(ends, np.array([value]), np.array([received]), NOW + at)
        rates.append(float(ends.per_second[0]))
        falls.append(bool(fell[0]))
    return rates, falls


def test_one_reading_has_no_rate() -> None:
    assert math.isnan(read((100, 0))[0][0])


def test_a_gap_is_averaged_over() -> None:
    assert read((0, 0), (1000, 1000), (61_000, 61_000))[0][1:] == [1000, 1000]


def test_a_log_that_fell_has_no_rate_and_is_reported() -> None:
    rates, falls = read((1000, 0), (900, 1000), (1000, 2000))
    assert math.isnan(rates[1]) and rates[2] == 100
    assert falls == [False, True, False]


def test_a_cell_that_is_unknown_for_a_while_goes_on_from_its_last_reading() -> None:
    rates, _ = read((0, 0), (100, 1000), (UNKNOWN, 2000), (300, 3000))
    assert rates[1:] == [100, 100, 100]


def test_readings_that_are_too_close_wait_for_the_next() -> None:
    rates, _ = read((0, 0), (5, MIN_INTERVAL_MS - 1), (1000, 1000))
    assert math.isnan(rates[1]) and rates[2] == 1000


def test_a_rate_gets_too_old() -> None:
    ends, _ = advance(Ends.none(1), np.array([0]), np.array([NOW]), NOW)
    ends, _ = advance(ends, np.array([10]), np.array([NOW + 1000]), NOW + 1000)
    same = np.array([10]), np.array([NOW + 1000])
    still, _ = advance(ends, *same, NOW + 1000 + STALE_RATE_MS)
    old, _ = advance(ends, *same, NOW + 1001 + STALE_RATE_MS)
    assert still.per_second[0] == 10 and math.isnan(old.per_second[0])


steps = st.lists(st.tuples(st.integers(200, 60_000), st.integers(0, 10**6)), min_size=1, max_size=30)


@given(steps, st.integers(0, 2**60))
@settings(max_examples=100)
def test_rates_add_up_to_what_was_written(gaps: list[tuple[int, int]], first: int) -> None:
    ends, _ = advance(Ends.none(1), np.array([first]), np.array([NOW]), NOW)
    at, value, written = NOW, first, 0.0
    for gap, grown in gaps:
        at, value = at + gap, value + grown
        ends, fell = advance(ends, np.array([value]), np.array([at]), at)
        assert not fell[0] and ends.per_second[0] >= 0
        written += float(ends.per_second[0]) * gap / 1000
    assert written == pytest.approx(value - first, rel=1e-9, abs=1e-6)


@given(st.permutations(range(8)), st.lists(st.integers(0, 10**9), min_size=16, max_size=16))
@settings(max_examples=50)
def test_a_rate_follows_its_row(order: list[int], values: list[int]) -> None:
    before, now = np.array(values[:8]), np.array(values[8:])
    rows = np.array(order)
    ends, _ = advance(Ends.none(8), before, np.full(8, NOW), NOW)
    straight, fell = advance(ends, now, np.full(8, NOW + 1000), NOW + 1000)
    moved, moved_fell = advance(
        ends.carried(Alignment(rows, 8)), now[rows], np.full(8, NOW + 1000), NOW + 1000
    )
    assert np.array_equal(straight.per_second[rows], moved.per_second, equal_nan=True)
    assert np.array_equal(fell[rows], moved_fell)


def test_sums_know_what_they_do_not_know() -> None:
    index, values = np.array([0, 0, 1, -1]), np.array([1.0, math.nan, math.nan, 5.0])
    sums = sum_by(index, values, 3)
    assert sums[0] == 1 and math.isnan(sums[1]) and sums[2] == 0
    assert math.isnan(total(np.array([math.nan]))) and total(np.array([math.nan, 2.0])) == 2


def test_a_difference_with_unknown_is_unknown() -> None:
    assert minus(np.array([5, UNKNOWN, 5]), np.array([3, 3, UNKNOWN])).tolist() == [2, UNKNOWN, UNKNOWN]
