"""Areas, sparklines and their axes."""

import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kview.language import words
from kview.language.curves import area, hanging, nice_top, sparkline, tick

VALUES = st.lists(st.one_of(st.floats(0, 1e9), st.just(math.nan)), max_size=80)


def test_a_sparkline_goes_from_zero_to_a_round_number() -> None:
    assert sparkline([0, 10, 20], 3) == "▁▅█"
    assert sparkline([8, math.nan, 4], 5) == "  ▇ ▄"
    assert sparkline([0, 0], 2) == "▁▁"
    assert sparkline([], 3) == "   "


def test_an_axis_does_not_jump_with_every_sample() -> None:
    tops = [nice_top(value) for value in (0, 1, 1.2, 4_600, 5_000, 7_900, math.nan)]
    assert tops == [1, 1, 1.5, 5_000, 5_000, 10_000, 1]


@pytest.mark.parametrize("top", [0.1, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 15.0, 150.0, 1_500.0, 5e6])
def test_the_figures_of_an_axis_differ_and_are_exact(top: float) -> None:
    half, end = tick(top / 2), tick(top)
    assert half != end and "0" not in (half, end)
    scales = {"": 1.0, "k": 1e3, "M": 1e6}
    number, _, prefix = half.partition(" ")
    assert float(number) * scales[prefix] == pytest.approx(top / 2, rel=0.07)


def test_sizes_are_worded_as_sizes() -> None:
    assert tick(1_500.0, lambda value: words.size(round(value))) == "1.5 kB"


def test_a_flat_area_is_flat_and_full() -> None:
    assert area([4, 4, 4, 4], 4, 2, 8) == ["    ", "████"]
    assert area([5, 5, 5, 5], 4, 2, 8) == ["▂▂▂▂", "████"]
    assert area([0, 0], 3, 2, 10) == ["   ", "▁▁▁"], "what is known to be 0 is not a gap"


def test_a_rise_has_no_holes() -> None:
    assert area([0, 10], 4, 4, 10) == ["   █", "  ▅█", " ▃██", "▁███"]
    steep = area([0, 0, 10, 10], 4, 4, 10)
    assert steep[0].endswith("██") and all(row.endswith("██") for row in steep)


def test_an_area_hangs_in_halves() -> None:
    assert hanging([10, 5, 2.5, 0], 4, 2, 10) == ["██▀▀", "█   "]


def test_what_is_not_known_is_a_gap() -> None:
    (row,) = area([5, math.nan, math.nan, 5], 4, 1, 10)
    assert row == "▄  ▄"


def test_the_last_value_is_at_the_right_edge_and_a_spike_is_not_lost() -> None:
    assert area([0] * 199 + [10], 20, 1, 10) == ["▁" * 19 + "█"]
    assert "█" in area([0] * 60 + [10] + [0] * 139, 20, 1, 10)[0]


def test_no_terminal_limits_an_area() -> None:
    assert area([1.0] * 10, 300, 90, 1.0) == ["█" * 300] * 90


@given(VALUES, st.integers(0, 200), st.integers(0, 10))
def test_every_area_has_its_size(values: list[float], cells: int, rows: int) -> None:
    for drawn in (area(values, cells, rows, 1e9), hanging(values, cells, rows, 1e9)):
        assert all(len(row) == cells for row in drawn)
        assert len(drawn) == (rows if cells else 0)
    assert len(sparkline(values, cells)) == cells


def test_nothing_known_is_drawn_without_plotext(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "plotext", None)  # importing it raises
    assert area([math.nan] * 3, 4, 2, 1.0) == ["    ", "    "]
    with pytest.raises(ImportError):
        area([1.0] * 3, 4, 2, 1.0)
