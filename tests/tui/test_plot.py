"""Curves and sparklines."""

import math

from hypothesis import given
from hypothesis import strategies as st

from kview.tui.plot import curve, nice_top, sparkline

VALUES = st.lists(st.one_of(st.floats(0, 1e9), st.just(math.nan)), max_size=80)


def test_a_sparkline_goes_from_zero_to_a_round_number() -> None:
    assert sparkline([0, 10, 20], 3) == "▁▅█"
    assert sparkline([8, math.nan, 4], 5) == "  ▇ ▄"
    assert sparkline([0, 0], 2) == "▁▁"
    assert sparkline([], 3) == "   "


def test_an_axis_does_not_jump_with_every_sample() -> None:
    tops = [nice_top(value) for value in (0, 1, 1.2, 4_600, 5_000, 7_900, math.nan)]
    assert tops == [1, 1, 1.5, 5_000, 5_000, 10_000, 1]


def test_a_flat_curve_is_flat_and_filled() -> None:
    assert curve([4, 4, 4, 4], 4, 2, 10, braille=True) == ["    ", "⣿⣿⣿⣿"]
    assert curve([0, 0], 3, 2, 10, braille=False) == ["   ", "***"]


def test_a_rise_is_filled_without_holes() -> None:
    rows = curve([0, 10], 4, 4, 10, braille=False)
    assert rows == ["   *", "  **", " ***", "****"]
    steep = curve([0, 0, 10, 10], 4, 4, 10, braille=False)
    assert all("*" in row for row in steep)


def test_what_is_not_known_is_a_gap() -> None:
    (row,) = curve([5, math.nan, math.nan, 5], 4, 1, 10, braille=False)
    assert row == "*  *"


@given(VALUES, st.integers(0, 60), st.integers(0, 10), st.booleans())
def test_every_curve_has_its_size(values: list[float], cells: int, rows: int, braille: bool) -> None:
    drawn = curve(values, cells, rows, 1e9, braille)
    assert all(len(row) == cells for row in drawn)
    assert len(drawn) == (rows if cells else 0)
    assert len(sparkline(values, cells)) == cells
