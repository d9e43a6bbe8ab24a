"""A moment whose past is not read yet: figures that need it are pending, and nothing claims to know them."""

import re

import pytest

from kview.tui.app import KviewApp
from kview.tui.widgets.table import Table
from tests.tui.harness import HEALTHY, FakeFeed, FakeTimeline, dashboard, press, running, text, until
from tests.tui.moments import incomplete, paused


@running
async def test_what_needs_the_past_is_pending_and_what_the_snapshot_holds_is_shown() -> None:
    async with dashboard(incomplete(), size=(200, 50), timeline=FakeTimeline()) as (app, _):
        shown = text(app)
        assert re.search(r"^▸ R1 +0  ● up +4 +8 +… +… +1\.1 GB +… ", shown, re.MULTILINE)
        assert re.search(r"invoice +3 +4✕·5 +4✕ 2○ 5○ .* 1,229,461 .* ✕ 3 s", shown)
        assert re.search(r"invoice +2 +1·5 .* \+1,764 +… +▮ … +frozen", shown)
        assert re.search(r"invoice +0 +0·5 .* 1,228,182 +\+4 +… +… +… +│", shown)
        assert re.search(r"billing +Stable 3/3 +108 +… +… +…$", shown, re.MULTILINE)
        assert re.search(r"EVENTS +…", shown)
        for known in ("blocked", "stopped", "● ok", "none yet", "second observation"):
            assert known not in shown


@pytest.mark.parametrize(
    ("keys", "shows"), [(["2"], "LEADERS"), (["5", "enter"], "MEMBERS"), (["6"], "Spark")]
)
@running
async def test_other_screens_do_not_say_it_either(keys: list[str], shows: str) -> None:
    async with dashboard(incomplete(HEALTHY), timeline=FakeTimeline(), size=(160, 50)) as (app, pilot):
        assert "… loading the minutes before" in text(app)
        await press(pilot, keys)
        await until(pilot, lambda: shows in text(app), shows)
        shown = text(app)
        assert "…" in "".join(shown.splitlines()[3:-1])
        for known in (" ok", "all well", "stopped", "for ≥", "reads –"):
            assert known not in shown, known


@running
async def test_nothing_moves_when_the_past_is_there() -> None:
    async with dashboard(incomplete(), size=(200, 50), timeline=FakeTimeline()) as (app, pilot):
        before = heads(app)
        assert isinstance(app.feed, FakeFeed)
        app.feed.show(paused())
        await until(pilot, lambda: "blocked" in text(app), "the verdicts")
        assert heads(app) == before
        table = app.screen.query_one("#brokers", Table)
        assert table.selected == 0


@running
async def test_nothing_flickers_if_the_past_is_read_soon() -> None:
    async with dashboard(paused(), timeline=FakeTimeline()) as (app, pilot):
        assert isinstance(app.feed, FakeFeed)
        app.arrivals.wait_s = 600.0
        before = text(app)
        app.clock_ms.now_ms -= 13_000  # type: ignore[attr-defined]
        app.feed.show(incomplete(HEALTHY))
        await until(pilot, lambda: app.arrivals.waits, "the incomplete view")
        app.screen.tick(True)  # type: ignore[attr-defined]
        assert text(app) == before
        app.feed.show(paused(HEALTHY))
        await until(pilot, lambda: "all well" in text(app), "the complete one")
        assert not app.arrivals.waits


@running
async def test_a_past_that_takes_long_is_announced_however_many_views_come() -> None:
    async with dashboard(paused(), timeline=FakeTimeline()) as (app, pilot):
        assert isinstance(app.feed, FakeFeed)

        def announced() -> bool:
            app.feed.show(incomplete(HEALTHY))  # type: ignore[attr-defined]
            return "… loading" in text(app)

        await until(pilot, announced, "the incomplete view")


def heads(app: KviewApp) -> list[str]:
    """The lines with the heads of panels and columns."""
    shown = [line for line in text(app).splitlines() if re.search(r"in rec/s|watermark  ", line)]
    return [re.sub(r"THROUGHPUT.*", "", line) for line in shown]
