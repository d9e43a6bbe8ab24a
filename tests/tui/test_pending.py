"""A moment whose past is not read yet: figures that need it are pending, and nothing claims to know them."""

import re

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.fold import State, step
from kview.derive.view import View
from kview.model.units import UNKNOWN
from kview.tui.app import KviewApp
from kview.tui.widgets.table import Table
from tests.tui.harness import HEALTHY, FakeFeed, FakeTimeline, dashboard, press, running, text, until
from tests.tui.moments import PAUSED, incomplete, paused
from tests.worlds import default_world


@running
async def test_what_needs_the_past_is_pending_and_what_the_snapshot_holds_is_shown() -> None:
    async with dashboard(incomplete(), size=(200, 50), timeline=FakeTimeline()) as (app, _):
        shown = text(app)
        assert re.search(r"^▸ R1 +0  ● up +4 +8 +… +… +2 ms +1\.1 GB +… ", shown, re.MULTILINE)
        assert re.search(r"invoice +3 +4✕·5 +4✕ 2○ 5○ .* 1,229,461 .* ✕ 3 s", shown)
        assert re.search(r"invoice +2 +1·5 .* \+1,764 +… +▮ … +frozen", shown)
        assert re.search(r"invoice +0 +0·5 .* 1,228,182 +\+4 +… +… +… +│", shown)
        assert re.search(r"billing +Stable 3/3 +≥108 +… +… +…$", shown, re.MULTILINE)
        assert re.search(r"EVENTS +…", shown)
        for known in ("blocked", "stopped", "● ok", "none yet", "2 observations"):
            assert known not in shown


@pytest.mark.parametrize(
    ("keys", "shows"), [(["2"], "1ST (preferred)"), (["5", "enter"], "MEMBERS"), (["6"], "Spark")]
)
@running
async def test_other_screens_do_not_say_it_either(keys: list[str], shows: str) -> None:
    async with dashboard(incomplete(HEALTHY), timeline=FakeTimeline(), size=(160, 50)) as (app, pilot):
        assert "… loading earlier minutes" in text(app)
        await press(pilot, keys)
        await until(pilot, lambda: shows in text(app), shows)
        shown = text(app)
        assert "…" in "".join(shown.splitlines()[3:-1])
        for known in (" ok", "well", "stopped", "for ≥", "reads –"):
            assert known not in shown, known


def cut_off() -> View:
    """A moment at which only kview cannot reach broker 4.

    Followers have shown that it lives, but the past is not read yet."""
    world = default_world()
    world.cut(4)
    for _ in range(8):
        snapshot = world.tick()
    table, quorum = snapshot.brokers, snapshot.quorum
    untold = replace(
        snapshot,
        brokers=replace(table, last_fetch_ms=np.full(len(table), UNKNOWN)),
        quorum=replace(quorum, last_fetch_ms=np.full(len(quorum), UNKNOWN)),
    )
    return replace(step(State(), untold)[1], moment=replace(PAUSED, complete=False))


@pytest.mark.parametrize(("key", "shows"), [("1", "4…·5"), ("2", "P3…")])
@running
async def test_a_broker_that_may_live_is_not_in_trouble_before_the_past_is_read(key: str, shows: str) -> None:
    async with dashboard(cut_off(), timeline=FakeTimeline(), size=(200, 60)) as (app, pilot):
        await press(pilot, [key])
        await until(pilot, lambda: shows in text(app), shows)
        shown = text(app)
        assert "… silent ≥7 s" in shown and "… loading earlier minutes" in shown
        assert "✕" not in shown and "fenced in" not in shown and "frozen" not in shown


@running
async def test_nothing_moves_when_the_past_is_there() -> None:
    async with dashboard(incomplete(), size=(200, 50), timeline=FakeTimeline()) as (app, pilot):
        before = heads(app)
        assert isinstance(app.session.feed, FakeFeed)
        app.session.feed.show(paused())
        await until(pilot, lambda: "blocked" in text(app), "the verdicts")
        assert heads(app) == before
        table = app.screen.query_one("#brokers", Table)
        assert table.selected == 0


@running
async def test_nothing_flickers_if_the_past_is_read_soon() -> None:
    async with dashboard(paused(), timeline=FakeTimeline()) as (app, pilot):
        assert isinstance(app.session.feed, FakeFeed)
        app.arrivals.wait_s = 600.0
        before = text(app)
        app.clock_ms.now_ms -= 13_000  # type: ignore[attr-defined]
        app.session.feed.show(incomplete(HEALTHY))
        await until(pilot, lambda: app.arrivals.waits, "the incomplete view")
        app.screen.tick(True)  # type: ignore[attr-defined]
        assert text(app) == before
        app.session.feed.show(paused(HEALTHY))
        await until(pilot, lambda: "cluster healthy" in text(app), "the complete one")
        assert not app.arrivals.waits


@running
async def test_a_past_that_takes_long_is_announced_however_many_views_come() -> None:
    async with dashboard(paused(), timeline=FakeTimeline()) as (app, pilot):
        assert isinstance(app.session.feed, FakeFeed)

        def announced() -> bool:
            app.session.feed.show(incomplete(HEALTHY))  # type: ignore[attr-defined]
            return "… loading" in text(app)

        await until(pilot, announced, "the incomplete view")


def heads(app: KviewApp) -> list[str]:
    """The lines with the heads of panels and columns."""
    shown = [line for line in text(app).splitlines() if re.search(r"in rec/s|watermark  ", line)]
    return [re.sub(r"THROUGHPUT.*", "", line) for line in shown]
