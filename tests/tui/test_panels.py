"""A panel that cannot be drawn says so, its traceback is logged once, and everything else goes on."""

import logging
import re
from typing import Any, cast

import pytest
from msgspec.structs import replace
from textual.binding import Binding
from textual.pilot import Pilot

from kview.model.events import Severity
from kview.tui.app import KviewApp
from kview.tui.keys import DEFAULT_KEYS
from kview.tui.screens.commands import Command, CommandScreen
from kview.tui.screens.help import HelpScreen
from kview.tui.widgets.bottom import StatusMessage
from kview.tui.widgets.drawn import Drawn
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.table import Table
from tests.tui.broken import Broken, without
from tests.tui.harness import (
    HEALTHY,
    LOG_FILE,
    FakeFeed,
    FakeLab,
    dashboard,
    lines,
    press,
    running,
    script,
    state,
    text,
    until,
)
from tests.tui.test_screens import fits
from tests.tui.throughput_states import RUNNING, throughput_state

APOLOGY = "this panel could not be drawn"

SCREENS: dict[str, tuple[list[str], str]] = {
    "overview": (["1"], "EVENTS"),
    "placement": (["2"], "leads  copies"),
    "topic": (["3", "enter"], "log start"),
    "groups": (["5"], "write/s"),
    "group": (["5", "enter"], "MEMBERS"),
    "throughput": (["6"], "Spark"),
}

BROKEN: list[tuple[str, str, set[str]]] = [
    ("overview", "brokers", {"brokers", "header"}),
    ("overview", "partitions", {"brokers", "partitions", "topic_strips"}),
    ("overview", "groups", {"groups"}),
    ("overview", "events", {"events", "groups"}),
    ("overview", "headline", {"header", "headline"}),
    ("overview", "aggregates", {"throughput"}),
    ("placement", "topics", {"topics", "placed"}),
    ("topic", "partitions", {"heading", "partitions"}),
    ("groups", "groups", {"groups"}),
    ("group", "offsets", {"offsets", "selected"}),
    ("group", "groups", {"heading", "offsets", "selected", "over_time"}),
]
"""A screen, the part of a view that is broken, and the panels that need it there."""


def failing(app: KviewApp) -> set[str]:
    """The panels that say that they could not be drawn."""
    drawn = {panel.id or type(panel).__name__ for panel in app.screen.query(Drawn) if not panel.is_drawn}
    return drawn | {str(panel.id) for panel in app.screen.query(Panel) if not panel.is_entitled}


async def see(app: KviewApp, pilot: Pilot[int], screen: str) -> None:
    """Go to a screen."""
    keys, shows = SCREENS[screen]
    for key in keys:
        await press(pilot, [key])
    await until(pilot, lambda: shows in text(app), shows)


def tracebacks(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged with a traceback."""
    return [record.getMessage() for record in caplog.records if record.exc_info]


@pytest.mark.parametrize(("screen", "part", "panels"), BROKEN)
@running
async def test_a_broken_part_costs_only_the_panels_that_need_it(
    screen: str, part: str, panels: set[str]
) -> None:
    healthy = throughput_state(RUNNING)
    async with dashboard(healthy, lab=FakeLab()) as (app, pilot):
        await see(app, pilot, screen)
        before = text(app)
        assert not failing(app)
        assert isinstance(app.session.feed, FakeFeed)
        app.session.feed.show(without(healthy, part))
        await until(pilot, lambda: failing(app), "what cannot be drawn")
        assert failing(app) == panels
        assert text(app).count(APOLOGY[:16]) == len(panels)
        fits(lines(app), (120, 40))
        app.session.feed.show(healthy)
        await until(pilot, lambda: not failing(app), "the panels are back")
        assert text(app) == before


@running
async def test_the_panel_names_the_log_and_the_log_has_the_traceback_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    views = script()[50:58]
    async with dashboard(views[0]) as (app, pilot):
        assert isinstance(app.session.feed, FakeFeed)
        for number, view in enumerate(views):
            app.session.feed.show(without(view, "groups", f"bug {number}"))
            await until(pilot, lambda view=view: shown(app) == shown_at(view), "the view")  # type: ignore[misc]
            app.clock_ms.now_ms += 1_000  # type: ignore[attr-defined]
        shown_there = " ".join(line[66:].strip(" │") for line in lines(app))
        assert f"{APOLOGY}; the log has the details: {LOG_FILE}" in re.sub(" +", " ", shown_there)
        assert tracebacks(caplog) == ["the panel groups could not be drawn"]
        logged = caplog.records[0].exc_info
        assert logged and isinstance(logged[1], RuntimeError)
        app.session.feed.show(views[0])
        await until(pilot, lambda: not failing(app), "the panel is back")
        app.session.feed.show(without(views[1], "groups"))
        await until(pilot, lambda: failing(app), "it fails again")
        assert len(tracebacks(caplog)) == 2, "after it was drawn an error is logged again"


def shown(app: KviewApp) -> int:
    """Which observation is shown."""
    return app.view.snapshot.observation.sequence if app.view else -1


def shown_at(view: Any) -> int:
    """Which observation it is."""
    return int(view.snapshot.observation.sequence)


@running
async def test_keys_go_on_and_nothing_is_selected_in_what_cannot_be_seen() -> None:
    lab = FakeLab()
    async with dashboard(state(HEALTHY), lab=lab) as (app, pilot):
        await press(pilot, ["down", "down"])
        table = app.screen.query_one("#brokers", Table)
        chosen = table.selected
        assert isinstance(app.session.feed, FakeFeed)
        app.session.feed.show(without(state(HEALTHY), "brokers"))
        await until(pilot, lambda: "brokers" in failing(app), "no brokers")
        assert table.selected is None
        await press(pilot, ["K", "enter", "s", "i", "t", "escape"])
        assert lab.commands == []
        await press(pilot, ["tab", "K"])
        await until(pilot, lambda: lab.commands, "a fault from the next panel")
        await press(pilot, ["5"])
        await until(pilot, lambda: "write/s" in text(app), "another screen")
        await press(pilot, ["1"])
        app.session.feed.show(state(HEALTHY))
        await until(pilot, lambda: not failing(app), "the brokers")
        assert table.selected == chosen


@running
async def test_rows_that_raise_when_they_are_drawn_are_the_panels_too(
    caplog: pytest.LogCaptureFixture,
) -> None:
    view = state(HEALTHY)
    broken_cells = replace(view, brokers=replace(view.brokers, is_controller=cast(Any, None)))
    async with dashboard(view) as (app, pilot):
        assert isinstance(app.session.feed, FakeFeed)
        app.session.feed.show(broken_cells)
        await until(pilot, lambda: failing(app) == {"brokers"}, "no brokers")
        for _ in range(6):  # ages are drawn again and again
            app.clock_ms.now_ms += 1_000  # type: ignore[attr-defined]
            app.screen.tick(True)  # type: ignore[attr-defined]
        await pilot.resize_terminal(100, 30)
        await pilot.pause()
        assert tracebacks(caplog) == ["the panel brokers could not be drawn"]
        app.session.feed.show(view)
        await until(pilot, lambda: not failing(app), "the brokers")


@running
async def test_the_status_line_is_a_panel() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        app.say(StatusMessage("a severity that does not exist", severity="purple"))
        await until(pilot, lambda: failing(app) == {"status"}, "no status line")
        assert APOLOGY in text(app).splitlines()[-2]
        app.say(StatusMessage("kept", severity=Severity.GOOD))
        await until(pilot, lambda: "kept" in text(app).splitlines()[-2], "the next sentence")


@running
async def test_help_and_palette_are_panels(caplog: pytest.LogCaptureFixture) -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        app.push_screen(
            HelpScreen([Binding("x", "bell", "x", tooltip=cast(str, Broken()))], DEFAULT_KEYS, "Overview")
        )
        await until(pilot, lambda: APOLOGY in text(app), "help says it")
        await press(pilot, ["down", "escape"])
        await until(pilot, lambda: "EVENTS" in text(app), "the way back")
        app.push_screen(
            CommandScreen([Command("x", "", cast(str, Broken()), app.bell)], lambda typed: [], lambda: None)
        )
        await until(pilot, lambda: APOLOGY in text(app), "the palette says it")
        await press(pilot, ["y", "down", "enter"])
        await until(pilot, lambda: "EVENTS" in text(app), "the way back")
        assert tracebacks(caplog) == [
            "the panel help could not be drawn",
            "the panel commands could not be drawn",
        ]


@running
async def test_without_a_log_file_it_says_so() -> None:
    async with dashboard(without(state(HEALTHY), "events"), log_file="") as (app, _):
        assert f"{APOLOGY}, and kview.log is not writable" in text(app)


def test_a_bug_elsewhere_ends_the_dashboard(caplog: pytest.LogCaptureFixture) -> None:
    class BrokenLab(FakeLab):
        async def apply(self, command: Any) -> Any:
            raise RuntimeError("a bug in a key")

    @running
    async def crash() -> None:
        async with dashboard(state(HEALTHY), lab=BrokenLab()) as (app, pilot):
            await press(pilot, ["K"])
            await until(pilot, lambda: not app.is_running, "the end")

    with caplog.at_level(logging.WARNING), pytest.raises(Exception, match="a bug in a key"):
        crash()


@running
async def test_a_screen_that_is_being_taken_away_is_not_drawn() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        await press(pilot, ["4"])
        screen = app.shown()
        assert screen is not None
        await screen.query_one("#page").remove()
        screen.update()
        screen.say()
        screen.refit()
        await press(pilot, ["1"])
        await until(pilot, lambda: "EVENTS" in text(app), "the next screen")
