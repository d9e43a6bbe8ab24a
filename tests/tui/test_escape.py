"""Escape, on every screen in the same order: the question, the filter, the screen, the moment."""

import pytest

from tests.tui.harness import HEALTHY, FakeTimeline, dashboard, press, running, text, until
from tests.tui.moments import paused

SCREENS: dict[str, tuple[list[str], str, bool]] = {
    "overview": ([], "EVENTS", False),
    "placement": (["2"], "leads  copies", False),
    "topics": (["3"], "worst lag", False),
    "partitions": (["4"], "under-replicated", False),
    "events": (["7"], "INCIDENTS", False),
    "groups": (["5"], "write/s", False),
    "group": (["5", "enter"], "MEMBERS", True),
    "throughput": (["6"], "  cluster", False),
}
"""The keys that lead to a screen, a text on it, and whether Escape leaves it."""


@pytest.mark.quick(3)
@pytest.mark.parametrize("screen", SCREENS)
@running
async def test_the_order_is_the_same_on_every_screen(screen: str) -> None:
    keys, shows, leaves = SCREENS[screen]
    timeline = FakeTimeline()
    async with dashboard(paused(HEALTHY), timeline=timeline) as (app, pilot):
        await press(pilot, keys)
        await until(pilot, lambda: shows in text(app), "the screen")
        await press(pilot, ["slash", *"invoice", "enter", "at", *"14"])
        assert "14" in text(app).splitlines()[-2]
        await press(pilot, ["escape"])
        assert "14" not in text(app).splitlines()[-2] and app.options.filter == "invoice"
        await press(pilot, ["slash", *"x", "escape"])
        assert app.options.filter == "" and timeline.asked == []
        if leaves:
            assert shows in text(app)
            await press(pilot, ["escape"])
            await until(pilot, lambda: shows not in text(app), "the screen before")
        assert timeline.asked == []
        await press(pilot, ["escape"])
        assert timeline.asked == [("live",)]


@pytest.mark.parametrize("over", ["question_mark", "ctrl+p"])
@running
async def test_help_and_commands_are_left_before_anything_else(over: str) -> None:
    timeline = FakeTimeline()
    async with dashboard(paused(HEALTHY), timeline=timeline) as (app, pilot):
        await press(pilot, ["slash", *"invoice", "enter", over, "escape"])
        assert app.options.filter == "invoice" and len(app.screen_stack) == 1 and timeline.asked == []
