"""Switching between clusters: from the palette, and back to one that could be shown."""

import asyncio
from collections.abc import Sequence

import pytest

from kview.errors import BadUse, ErrorKind
from kview.tui.app import TICKS_A_SECOND, KviewApp
from kview.tui.session import Session
from kview.tui.widgets.header import SourceInfo
from tests.tui.harness import (
    CRASH,
    HEALTHY,
    FakeClock,
    FakeFeed,
    dashboard,
    press,
    running,
    state,
    text,
    until,
)


class FakeClusters:
    """Two other clusters, of which one has a variable in its settings that is not set."""

    def __init__(self) -> None:
        self.feed = FakeFeed(state(CRASH))
        self.other: Session | None = None

    def names(self) -> list[str]:
        """The names."""
        return ["prod", "stage"]

    def open(self, name: str) -> Session:
        """Return the session of a cluster, or fail."""
        if name == "prod":
            raise BadUse(ErrorKind.VARIABLE_NOT_SET, name="PROD_PASSWORD")
        now_ms = state(CRASH).snapshot.observation.ended_ms
        return Session(feed=self.feed, source=SourceInfo(name), clock_ms=FakeClock(now_ms), clusters=self)

    def fleet(self) -> Session | None:
        """There is no screen of all clusters."""
        return None

    def instead(self) -> Session | None:
        """Return what a test wants to be shown, once."""
        other, self.other = self.other, None
        return other


@running
async def test_the_palette_lists_the_profiles_and_shows_the_one_chosen() -> None:
    clusters = FakeClusters()
    async with dashboard(state(HEALTHY), clusters=clusters) as (app, pilot):
        await press(pilot, ["ctrl+p", *"connect"])
        shown = text(app)
        assert "connect prod" in shown and "connect stage" in shown
        await press(pilot, [*" stage", "enter"])
        await until(pilot, lambda: "stage" in _lines(app)[0], "the other cluster")
        assert "silent" in text(app)
        assert app.session.feed is clusters.feed


@running
async def test_a_view_of_the_cluster_before_is_not_shown() -> None:
    clusters = FakeClusters()
    async with dashboard(state(HEALTHY), clusters=clusters) as (app, pilot):
        before = app.session.feed
        assert isinstance(before, FakeFeed)
        app.open_cluster("stage")
        await until(pilot, lambda: app.session.feed is clusters.feed and app.view, "the other cluster")
        assert (before.stopped, clusters.feed.stopped) == (1, 0)
        before.show(state(HEALTHY))
        await pilot.pause()
        assert app.view is not None
        assert app.view.snapshot is state(CRASH).snapshot


@running
async def test_the_screens_of_a_cluster_begin_again_and_keys_work_on_them() -> None:
    async with dashboard(state(HEALTHY), clusters=FakeClusters()) as (app, pilot):
        await press(pilot, ["5", "enter"])
        assert app.where() == ("groups", 2)
        app.colours.use("light")
        app.open_cluster("stage")
        await until(pilot, lambda: app.where() == ("overview", 1) and app.view, "the other cluster")
        before = app.session
        app.open_cluster("stage")
        await until(pilot, lambda: app.session is not before and app.view, "the other cluster again")
        assert app.palette.name == "light", "as the user chose"
        await press(pilot, ["5"])
        assert app.where() == ("groups", 1)
        assert "billing" in text(app)


@running
async def test_a_cluster_that_could_not_be_shown_gives_way_to_another() -> None:
    clusters = FakeClusters()
    async with dashboard(state(HEALTHY), clusters=clusters) as (app, pilot):
        clusters.other = clusters.open("before")
        await until(pilot, lambda: "before" in _lines(app)[0], "the cluster before")


@running
async def test_a_cluster_that_fails_while_it_comes_onto_the_screen_gives_way_after_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The change takes time, and the timer does not wait for it."""
    clusters, may_change = FakeClusters(), asyncio.Event()
    async with dashboard(state(HEALTHY), clusters=clusters) as (app, pilot):
        switch_mode = app.switch_mode

        async def later(mode: str) -> None:
            await may_change.wait()
            await switch_mode(mode)

        monkeypatch.setattr(app, "switch_mode", later)
        app.open_cluster("stage")
        await until(pilot, lambda: app._is_changing, "the change has begun")
        clusters.other = clusters.open("before")
        await asyncio.sleep(2 / TICKS_A_SECOND)
        may_change.set()
        await until(pilot, lambda: "before" in _lines(app)[0], "the cluster before")


@running
async def test_a_profile_with_wrong_settings_is_said_and_the_cluster_stays_on_the_screen() -> None:
    async with dashboard(state(HEALTHY), clusters=FakeClusters()) as (app, pilot):
        await press(pilot, ["ctrl+p", *"connect prod", "enter"])
        said = "the environment variable PROD_PASSWORD is not set"
        await until(pilot, lambda: said in text(app), "why not")
        assert "invoice" in text(app)
        assert app.return_code is None


@running
async def test_without_profiles_the_palette_offers_none() -> None:
    async with dashboard(state(HEALTHY)) as (app, pilot):
        await press(pilot, ["ctrl+p", *"connect"])
        assert "nothing matches" in text(app)


def _lines(app: KviewApp) -> Sequence[str]:
    return text(app).splitlines()
