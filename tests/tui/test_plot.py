"""Plots with their axes."""

import math

from kview.model.ports import TimeMark
from kview.model.units import UNKNOWN
from kview.tui.plot import AXIS_CELLS, Frame, Trace, banded, framed, legend, marks_between, mirrored
from kview.tui.text import SHADES, Line, Role, Span, content

IN = Trace("in", [2.0] * 40, Span("", series=0))
OUT = Trace("out", [8.0] * 40, Span("", series=1))
SIZE = 30, 9
FRAME = Frame("40 s")


def colours(row: Line) -> set[int]:
    return {span.series for span in row if span.series >= 0 and span.text.strip()}


def test_two_areas_mirror_each_other_on_one_scale() -> None:
    drawn = mirrored(IN, OUT, *SIZE, FRAME)
    assert [colours(row) for row in drawn] == [set(), set(), set(), {0}, {1}, {1}, {1}, set(), set()]
    assert [content(row)[: AXIS_CELLS - 1].strip() for row in drawn] == [
        "10",
        "",
        "",
        "0",
        "",
        "",
        "",
        "10",
        "",
    ]
    assert content(drawn[-1]).endswith("now")
    assert content(legend(("↑", IN), ("↓", OUT))).split() == ["↑", "in", "↓", "out"]


def test_a_part_is_a_band_below_the_whole_of_another_sign() -> None:
    drawn = banded(OUT, IN, *SIZE, FRAME)
    assert [colours(row) for row in drawn[:-1]] == [set(), {1}, {1}, {1}, {1}, {1}, {0}, {0}]
    assert "▒" in content(drawn[-2]) and "▒" not in content(drawn[1])


def test_an_area_is_brighter_the_higher_it_is() -> None:
    drawn = framed(IN._replace(values=[10.0] * 40), *SIZE, FRAME)
    shades = [span.shade for row in drawn[:-1] for span in row if span.series >= 0]
    assert shades == sorted(shades, reverse=True) and shades[0] == SHADES - 1 and shades[-1] < 2


def test_an_unknown_stretch_is_a_gap() -> None:
    half = IN._replace(values=[math.nan] * 20 + [2.0] * 20)
    row = content(framed(half, 29, 9, FRAME)[-2])
    assert row[AXIS_CELLS:18].strip() == "" and row[20:].strip() == row[20:]


def test_a_plot_without_data_says_why_in_its_middle_and_has_no_figures() -> None:
    drawn = [
        content(row) for row in framed(IN._replace(values=[math.nan]), 40, 7, FRAME._replace(why="asleep"))
    ]
    assert "asleep" in drawn[3] and not any("0" in row for row in drawn[:-1])
    assert abs(drawn[3].index("asleep") - AXIS_CELLS - (40 - AXIS_CELLS - len("asleep")) // 2) <= 1


def test_an_incident_stands_on_the_axis_of_time() -> None:
    marks = marks_between(
        [TimeMark(60_000, 61_000, 80_000, 90_000), TimeMark(1_000, 1_000, UNKNOWN, UNKNOWN)], 20_000, 100_000
    )
    assert [(place, sign.text) for place, sign in marks] == [(0.5, "✕"), (0.75, "▲")]
    axis = framed(IN, 50, 6, Frame("80 s", marks=marks))[-1]
    text = content(axis)[AXIS_CELLS:]
    assert (text.index("✕"), text.index("▲")) == (20, 30)
    assert {span.role for span in axis if span.text == "✕"} == {Role.RISK}
    at_its_end = framed(IN, 50, 6, Frame("80 s", marks=((1.0, Span("✕", Role.RISK)),)))[-1]
    assert content(at_its_end).endswith("✕now"), "a mark does not hide an end of the axis"


def test_a_plot_without_room_is_left_out() -> None:
    assert framed(IN, 30, 2, FRAME) == mirrored(IN, OUT, AXIS_CELLS + 1, 9, FRAME) == []
