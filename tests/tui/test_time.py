"""Time: which moment is shown, and the keys that change it."""

import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from datetime import UTC

import pytest
from msgspec.structs import replace
from textual.pilot import Pilot

from kview.derive.view import View
from kview.model.ports import Moment
from kview.model.units import UNKNOWN
from kview.tui.app import KviewApp
from kview.tui.faults import FAULTS_BY_KEY
from kview.tui.text import Role
from kview.tui.widgets.header import header_line, shown_moment
from tests.tui.cells import GOLDEN_SIZE, Size, misplaced
from tests.tui.harness import (
    AGO_MS,
    CRASH,
    HEALTHY,
    FakeFeed,
    FakeLab,
    FakeTimeline,
    dashboard,
    drawn_lines,
    drawn_text,
    press,
    running,
    state,
    text,
    until,
)
from tests.tui.moments import DAY_MS, FIRST_MS, PAUSED, PLAYED, REPLAY, paused, reading
from tests.tui.test_screens import agrees, at_other_sizes, shows_the_same, update

__all__ = ["update"]

MOMENTS: dict[str, Callable[[], View]] = {
    "paused": paused,
    "playing": lambda: paused(moment=PLAYED),
}

KEYS = {
    "left_square_bracket": ("step", -1),
    "right_square_bracket": ("step", 1),
    "left_curly_bracket": ("seek_event", -1),
    "right_curly_bracket": ("seek_event", 1),
}


# -- the moment on the screen


def shown(name: str, size: Size) -> AbstractAsyncContextManager[tuple[KviewApp, Pilot[int]]]:
    """The dashboard at one of the moments."""
    view, replay = MOMENTS[name](), name == "playing"
    options = {"source": REPLAY} if replay else {"lab": FakeLab()}
    return dashboard(view, size=size, timeline=FakeTimeline(replay), **options)


@pytest.mark.parametrize("name", MOMENTS)
@running
async def test_overview(name: str, update: bool) -> None:
    async with shown(name, GOLDEN_SIZE) as (app, _):
        shows_the_same(f"overview-{name}", app, GOLDEN_SIZE)
        agrees(f"overview-{name}-120x40", drawn_text(app), update)


@at_other_sizes
@pytest.mark.parametrize("name", MOMENTS)
@running
async def test_overview_at_other_sizes(name: str, size: Size) -> None:
    async with shown(name, size) as (app, _):
        shows_the_same(f"overview-{name}", app, size)
        assert not misplaced(drawn_lines(app), size), text(app)


@running
async def test_in_ascii() -> None:
    async with dashboard(paused(), timeline=FakeTimeline(), ascii_only=True) as (app, pilot):
        app.session.feed.show(reading())  # type: ignore[attr-defined]
        await until(pilot, lambda: "reading" in text(app), "what is being read")
        drawn = text(app)
        assert drawn.isascii()
        assert re.search(r" 4 x silent 3 s ", drawn)
        assert "reading 08:54:10 $" in drawn.splitlines()[0]


@running
async def test_while_a_moment_is_read_the_last_one_stays() -> None:
    async with dashboard(paused(), timeline=FakeTimeline()) as (app, pilot):
        assert isinstance(app.session.feed, FakeFeed)
        before = text(app)
        app.arrivals.wait_s = 600.0
        app.session.feed.show(reading())
        await until(pilot, lambda: app.arrivals.waits, "the news that another moment is read")
        app.screen.tick(True)  # type: ignore[attr-defined]
        assert text(app) == before, "nothing flickers if it is read soon"
        app.session.feed.show(paused(HEALTHY))
        await until(pilot, lambda: "4 ● 2 ms" in text(app), "the other moment")
        assert not app.arrivals.waits


@running
async def test_a_moment_that_takes_long_is_announced_however_many_are_asked_for() -> None:
    async with dashboard(paused(), timeline=FakeTimeline()) as (app, pilot):
        before = text(app)

        def announced() -> bool:
            app.session.feed.show(reading())  # type: ignore[attr-defined]
            return "reading 08:54:10 …" in text(app).splitlines()[0]

        await until(pilot, announced, "what is being read")
        assert text(app).splitlines()[1:] == before.splitlines()[1:]


@running
async def test_ages_are_of_the_moment_shown_and_the_header_counts_on() -> None:
    async with dashboard(paused(), timeline=FakeTimeline()) as (app, pilot):
        before = text(app)
        assert "❚❚ 08:54:23 · 3 m 20 s ago" in before
        assert "seen" not in before.splitlines()[0]
        assert "4 ✕ silent 3 s" in before and "broker 4 silent 3.1 s" in before
        app.wall_ms.now_ms += 60_000  # type: ignore[attr-defined]
        await until(pilot, lambda: "4 m 20 s ago" in text(app), "the header")
        assert text(app).splitlines()[1:] == before.splitlines()[1:]


@running
async def test_back_at_the_live_moment_the_header_says_how_fresh_it_is() -> None:
    async with dashboard(paused(), timeline=FakeTimeline()) as (app, pilot):
        assert isinstance(app.session.feed, FakeFeed)
        app.wall_ms = app.clock_ms
        app.session.feed.show(state(CRASH))
        await until(pilot, lambda: "5 of 6 answer" in text(app).splitlines()[0], "the freshness")
        assert "❚❚" not in text(app)


@running
async def test_a_search_for_an_event_is_said_until_it_has_found_one() -> None:
    async with dashboard(paused(), timeline=FakeTimeline()) as (app, pilot):
        assert isinstance(app.session.feed, FakeFeed) and app.view is not None
        await press(pilot, ["left_curly_bracket"])
        assert "looking for the event before 08:54:23" in text(app)
        app.session.feed.show(app.view)
        await pilot.pause()
        assert "looking for the event" in text(app), "the moment is the one where it began"
        observation = app.view.snapshot.observation
        earlier = replace(observation, ended_ms=observation.ended_ms - 5_000)
        app.session.feed.show(replace(app.view, snapshot=replace(app.view.snapshot, observation=earlier)))
        await until(pilot, lambda: "looking for" not in text(app), "the end of the search")


@pytest.mark.parametrize("cells", range(60, 140, 7))
def test_the_moment_fits_whole_at_every_width(cells: int) -> None:
    for view, replay in ((paused(), False), (paused(moment=PLAYED), True)):
        for later_ms in (AGO_MS, 3 * DAY_MS):
            wall_ms = view.snapshot.observation.ended_ms + later_ms
            made = header_line(view, REPLAY, replay, wall_ms, wall_ms, UTC, cells)
            (moment,) = [span for span in made if span.role is Role.MOMENT]
            assert "08:54:23" in moment.text and "…" not in moment.text
            assert sum(len(span.text) for span in made) == cells
            if cells >= 80:
                assert ("of 08:53–09:54" if replay else "ago") in moment.text


def test_the_moment_in_words() -> None:
    view = paused()
    shown_ms = view.snapshot.observation.ended_ms

    def words(moment: Moment = PAUSED, replay: bool = False, later_ms: int = AGO_MS) -> str:
        return shown_moment(replace(view, moment=moment), replay, shown_ms + later_ms, UTC, 60)

    assert words() == "❚❚ 08:54:23 · 3 m 20 s ago"
    assert words(later_ms=DAY_MS) == "❚❚ 2025-10-09 08:54:23 · 1 d ago"
    assert words(replay=True) == "❚❚ 08:54:23 of 08:53–09:54"
    assert words(replace(PAUSED, speed=2), replay=True) == "❚❚ ×2 08:54:23 of 08:53–09:54"
    assert words(PLAYED, replay=True) == "► ×4 08:54:23 of 08:53–09:54"
    short = replace(PLAYED, last_ms=FIRST_MS + 90_000)
    assert words(short, replay=True) == "► ×4 08:54:23 of 08:53:20–08:54:50"
    long = replace(PAUSED, last_ms=PAUSED.last_ms + DAY_MS)
    assert words(long, replay=True) == "❚❚ 08:54:23 of 2025-10-09 08:53–2025-10-10 09:54"
    assert words(replace(PAUSED, first_ms=UNKNOWN), replay=True) == "❚❚ 08:54:23"


# -- the keys


@running
async def test_keys_ask_the_timeline_on_every_screen() -> None:
    timeline = FakeTimeline()
    async with dashboard(state(HEALTHY), timeline=timeline) as (app, pilot):
        for screen, shows in (("1", "EVENTS"), ("2", "leads  copies"), ("5", "write/s"), ("6", "Spark")):
            await press(pilot, [screen])
            await until(pilot, lambda shows=shows: shows in text(app), shows)  # type: ignore[misc]
            timeline.asked.clear()
            await press(pilot, ["space", *KEYS, "less_than_sign", "greater_than_sign"])
            assert timeline.asked == [("toggle",), *KEYS.values()], screen


@running
async def test_space_pauses_and_resumes_and_escape_returns_to_live() -> None:
    timeline = FakeTimeline()
    async with dashboard(state(HEALTHY), timeline=timeline) as (app, pilot):
        assert "space pause" in text(app)
        await press(pilot, ["escape", "space"])
        assert timeline.asked == [("toggle",)]
        assert isinstance(app.session.feed, FakeFeed)
        app.session.feed.show(paused(HEALTHY))
        await until(pilot, lambda: "space live" in text(app), "the way back")
        await press(pilot, ["space"])
        assert timeline.asked == [("toggle",), ("live",)]
        await press(pilot, ["tab", "enter"])
        await until(pilot, lambda: "log start" in text(app), "a deeper screen")
        await press(pilot, ["escape"])
        assert timeline.asked == [("toggle",), ("live",)]
        await press(pilot, ["escape"])
        assert timeline.asked == [("toggle",), ("live",), ("live",)]


@running
async def test_a_replay_is_played_and_has_a_speed() -> None:
    timeline = FakeTimeline(replay=True)
    async with dashboard(paused(moment=PLAYED), timeline=timeline) as (app, pilot):
        assert "space pause" in text(app)
        await press(pilot, ["space", "less_than_sign", "greater_than_sign", "escape"])
        assert timeline.asked == [("toggle",), ("faster", -1), ("faster", 1)]
        assert isinstance(app.session.feed, FakeFeed)
        app.session.feed.show(paused(moment=PAUSED))
        await until(pilot, lambda: "space play" in text(app), "the way on")
        await press(pilot, ["space"])
        assert timeline.asked[-1] == ("toggle",)
        await press(pilot, ["ctrl+p", *"end of recording", "enter"])
        await until(pilot, lambda: timeline.asked[-1] == ("live",), "the end of the recording")


@pytest.mark.parametrize("width", [80, 120])
@running
async def test_at_every_width_the_keys_of_time_are_there(width: int) -> None:
    async with dashboard(state(HEALTHY), size=(width, 24), lab=FakeLab(), timeline=FakeTimeline()) as (
        app,
        pilot,
    ):
        assert "space pause" in text(app).splitlines()[-1]
        assert isinstance(app.session.feed, FakeFeed)
        app.session.feed.show(paused())
        await until(pilot, lambda: "space live" in text(app), "the moment")
        last = text(app).splitlines()[-1]
        for key in ("space live", "[ ] step", "{ } event", "@ jump to time", "? help", "q quit"):
            assert key in last
        assert "K crash" not in last


@running
async def test_without_a_timeline_there_are_no_keys_of_time() -> None:
    async with dashboard(state(HEALTHY), lab=FakeLab()) as (app, pilot):
        before = text(app)
        assert "pause" not in before
        for key in ("space", *KEYS, "at", "ctrl+s", "less_than_sign", "greater_than_sign"):
            await press(pilot, [key])
            assert "does nothing here" in text(app)
        assert text(app).splitlines()[:-2] == before.splitlines()[:-2]
        await press(pilot, ["question_mark"])
        assert "TIME" not in text(app)


@running
async def test_help_and_palette_have_the_keys_of_time() -> None:
    timeline = FakeTimeline()
    async with dashboard(state(HEALTHY), timeline=timeline, size=(99, 120)) as (app, pilot):
        await press(pilot, ["question_mark"])
        shown = text(app)
        assert "TIME" in shown and "speed" not in shown
        for key, name in (("space", "pause"), ("[", "step back"), ("}", "next event"), ("@", "jump to time")):
            assert re.search(rf"^ +{re.escape(key)} +{name}: ", shown, re.MULTILINE), name
        await press(pilot, ["space"])
        assert timeline.asked == [("toggle",)]
        assert isinstance(app.session.feed, FakeFeed)
        app.session.feed.show(paused())
        await until(pilot, lambda: "space live" in text(app).splitlines()[-1], "what space does now")
        await press(pilot, ["escape", "ctrl+p", *"step forward", "enter"])
        await until(pilot, lambda: timeline.asked[-1] == ("step", 1), "the command")
        await press(pilot, ["ctrl+p", *"jump", "enter"])
        await until(pilot, lambda: "14:05" in text(app), "the question")
        await press(pilot, ["-", "3", "s", "enter"])
        await until(pilot, lambda: timeline.asked[-1][0] == "seek", "the answer")


@running
async def test_faults_do_not_work_in_the_past() -> None:
    lab = FakeLab()
    async with dashboard(paused(), lab=lab, timeline=FakeTimeline()) as (app, pilot):
        for fault in FAULTS_BY_KEY.values():
            if fault.aims:
                await press(pilot, [fault.key])
                assert f"{fault.key} works only on the live view" in text(app)
        assert lab.commands == []
        await press(pilot, ["U"])
        await until(pilot, lambda: lab.commands, "what needs nothing selected")


@running
async def test_a_message_of_another_moment_goes_when_time_moves() -> None:
    async with dashboard(state(HEALTHY), lab=FakeLab(), timeline=FakeTimeline()) as (app, pilot):
        await press(pilot, ["K"])
        await until(pilot, lambda: "was killed" in text(app), "the reply")
        await press(pilot, ["left_square_bracket"])
        assert "was killed" not in text(app)
        app.session.feed.show(paused())  # type: ignore[attr-defined]
        await until(pilot, lambda: "space live" in text(app), "the moment")
        assert "faults in force: broker 0 crashed" not in text(app), (
            "the faults in force are not those of that moment"
        )
        app.session.feed.show(state(HEALTHY))  # type: ignore[attr-defined]
        await until(pilot, lambda: "faults in force: broker 0 crashed" in text(app), "live again")


@running
async def test_the_help_of_a_replay_does_not_speak_of_live() -> None:
    view = paused(moment=PLAYED)
    async with dashboard(view, timeline=FakeTimeline(replay=True), source=REPLAY, size=(99, 120)) as (
        app,
        pilot,
    ):
        await press(pilot, ["question_mark"])
        assert "TIME" in text(app) and "pause: freeze the view" in text(app)
        assert not re.search(r"\blive\b|recording continues", text(app))


@running
async def test_a_message_goes_away_while_time_is_paused() -> None:
    async with dashboard(paused(), lab=FakeLab(), timeline=FakeTimeline()) as (app, pilot):
        await press(pilot, ["K"])
        assert "works only on the live view" in text(app)
        app.wall_ms.now_ms += 60_000  # type: ignore[attr-defined]
        await until(pilot, lambda: "works only on the live view" not in text(app), "its end")
