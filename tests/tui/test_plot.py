"""Curves and sparklines."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kview.tui.plot import Frame, Trace, curve, framed_lines, legend, nice_top, sparkline
from kview.tui.text import Span, content

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


FLAT = Trace("in", [2.0] * 40, Span("", series=0))
HIGHER = Trace("out", [8.0] * 40, Span("", series=1))


@pytest.mark.parametrize("braille", [True, False])
def test_two_lines_share_a_plot_and_its_scale(braille: bool) -> None:
    drawn = framed_lines([FLAT, HIGHER], 30, 9, braille, Frame("40 s"))
    drawn_in = [
        (span.series, span.text.strip())
        for row in drawn[:-1]
        for span in row
        if span.series >= 0 and span.text.strip()
    ]
    assert [series for series, _ in drawn_in] == [1, 0], "the higher line is above, each in its colour"
    assert drawn_in[0][1][:3] != drawn_in[1][1][:3], "without colours the lines differ, too"
    assert content(drawn[-1]).endswith("now")
    assert "in" in content(legend([FLAT, HIGHER], braille))


def test_lines_at_the_same_place_take_turns() -> None:
    drawn = framed_lines([FLAT, HIGHER._replace(values=FLAT.values)], 30, 9, True, Frame("40 s"))
    (row,) = [row for row in drawn[:-1] if any(span.series >= 0 and span.text.strip() for span in row)]
    assert {span.series for span in row if span.text.strip() and span.series >= 0} == {0, 1}


def test_an_unknown_stretch_is_a_gap() -> None:
    half = FLAT._replace(values=[math.nan] * 20 + [2.0] * 20)
    row = content(framed_lines([half], 29, 9, True, Frame("40 s"))[0])
    assert row[9:18].strip() == "" and row[20:].strip() == row[20:]
