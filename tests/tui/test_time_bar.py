"""The time bar: where the moment shown lies, the incidents around it, and what happened then."""

from datetime import UTC

import pytest
from msgspec.structs import replace

from kview.derive.incidents.time_marks import time_marks
from kview.derive.view import View
from kview.model.ports import Moment, TimeMark
from kview.model.units import UNKNOWN
from kview.tui.text import Role
from kview.tui.widgets.time_bar import bar_line
from tests.tui.harness import (
    BACK,
    CRASH,
    FENCED,
    HEALTHY,
    FakeTimeline,
    dashboard,
    lines,
    running,
    script,
    state,
)
from tests.tui.moments import PAUSED, REPLAY, paused

CELLS = 120


def at(view: View, before_ms: int = 60_000, after_ms: int = 60_000, **moment: object) -> View:
    """The view as a moment between the first and the last one that can be shown."""
    shown_ms = view.snapshot.observation.ended_ms
    ends = {"first_ms": shown_ms - before_ms, "last_ms": shown_ms + after_ms}
    return replace(view, moment=replace(PAUSED, **ends, **moment))


def drawn(view: View, replay: bool = False, cells: int = CELLS) -> str:
    return "".join(span.text for span in bar_line(view, replay, UTC, cells))


def bar(view: View) -> str:
    """The part between the ends."""
    return drawn(view).partition("├")[2].partition("┤")[0]


def test_it_says_which_moment_of_which_time_is_shown() -> None:
    view = at(state(HEALTHY))
    assert drawn(view).startswith(" ❚❚ 08:54:10.1 ├") and drawn(view).rstrip().endswith(
        "┤ live  audit-export stopped"
    )
    shown = bar(view)
    assert abs(shown.index("●") - len(shown) // 2) <= 1 and set(shown) == {"─", "●"}
    assert bar(at(state(HEALTHY), before_ms=0)).startswith("●")
    assert bar(at(state(HEALTHY), after_ms=0)).endswith("●")
    assert "┤ 08:55:10" in drawn(view, replay=True)
    playing = replace(view, moment=replace(view.moment, playing=True))
    assert drawn(playing, replay=True).startswith(" ► 08:54:10.1")


def test_an_incident_has_a_beginning_a_turn_and_an_end() -> None:
    marks = time_marks(state(BACK).incidents)
    (mark,) = marks
    assert mark.began_ms < mark.healing_ms < mark.ended_ms
    shown = bar(at(state(HEALTHY), marks=marks))
    begin, turn, end = shown.index("✕"), shown.index("▲"), shown.rindex("┅")
    assert shown.index("●") < begin < turn < end < len(shown) - 1
    assert set(shown[begin + 1 : turn]) == {"━"}
    going = bar(at(state(CRASH), marks=time_marks(state(CRASH).incidents)))
    assert going.endswith("━") and "▲" not in going


def test_what_lies_outside_is_not_drawn() -> None:
    shown_ms = state(HEALTHY).snapshot.observation.ended_ms
    outside = (
        TimeMark(shown_ms - 900_000, shown_ms - 900_000, UNKNOWN, shown_ms - 800_000),
        TimeMark(shown_ms + 900_000, shown_ms + 900_000, UNKNOWN, UNKNOWN),
    )
    assert set(bar(at(state(HEALTHY), marks=outside))) == {"─", "●"}
    before = (TimeMark(shown_ms - 900_000, shown_ms - 900_000, UNKNOWN, UNKNOWN),)
    assert (
        "✕" not in bar(at(state(HEALTHY), marks=before)) and bar(at(state(HEALTHY), marks=before))[0] == "━"
    )


def test_it_has_the_text_of_what_happened_at_that_moment() -> None:
    first = next(view for view in script() if view.incidents)
    assert drawn(at(first)).rstrip().endswith("┤ live  broker 4 silent")
    fenced = next(view for view in script() if any(e.kind == "leader_lost" for e in view.new_events))
    assert "1 partition now has no leader" in drawn(at(fenced)) and "more" in drawn(at(fenced))


@pytest.mark.parametrize("cells", [60, 80, 97, 120, 200])
def test_it_fits_every_width(cells: int) -> None:
    for view in (at(state(FENCED)), at(next(v for v in script() if v.incidents))):
        for moment in (
            view.moment,
            Moment(live=False, playing=False),
            replace(view.moment, first_ms=UNKNOWN),
        ):
            shown = drawn(replace(view, moment=moment), cells=cells)
            assert len(shown) <= cells and "08:54" in shown


@pytest.mark.parametrize("size", [(60, 15), (80, 24), (120, 40), (200, 50)])
@running
async def test_it_stands_there_only_while_time_is_not_live(size: tuple[int, int]) -> None:
    async with dashboard(state(CRASH), size=size, timeline=FakeTimeline()) as (app, pilot):

        def bars() -> list[str]:
            return [one for one in lines(app) if "├─" in one and "┤" in one and "live" in one]

        assert not bars()
        before = app.screen.query_one("#partitions").size.height
        app.session.feed.show(at(state(CRASH)))  # type: ignore[attr-defined]
        await pilot.pause()
        assert len(bars()) == 1 and bars()[0].rstrip().endswith("+3.4 s"), "with the stopwatch"
        assert app.screen.query_one("#partitions").size.height == before, "no panel moves"
        app.session.feed.show(state(CRASH))  # type: ignore[attr-defined]
        await pilot.pause()
        assert not bars()
    async with dashboard(paused(), size=size, timeline=FakeTimeline(True), source=REPLAY) as (app, pilot):
        assert all(len(one) <= size[0] for one in lines(app))


def test_the_moment_shown_is_marked_by_more_than_a_colour() -> None:
    roles = [span.role for span in bar_line(at(state(HEALTHY)), False, UTC, CELLS) if span.text == "●"]
    assert roles == [Role.MOMENT]
