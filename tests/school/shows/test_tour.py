"""The first-run tour: five captions with where to look, a fault, what it did, and never again."""

import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kview.school.first_run import TourMark
from kview.school.shows.demo_keys import DemoKeys
from kview.tui.app import KviewApp
from kview.tui.widgets.caption import CaptionStrip
from kview.tui.widgets.drawn import Drawn
from tests.school.shows.lesson_stage import Class, StagedDemos, lesson
from tests.tui.harness import HEALTHY, FakeTimeline, dashboard, lines, press, running, state, text, until


def new_mark(is_due: bool = True) -> TourMark:
    """A mark in a folder of its own."""
    return TourMark(Path(tempfile.mkdtemp()), skipped=not is_due)


@asynccontextmanager
async def tour(mark: TourMark, **options: Any) -> AsyncIterator[Class]:
    """A first run on an engine, with its first views."""
    async with lesson("leader-crash", tour=mark, **options) as played:
        yield played


def said(app: KviewApp) -> str:
    """The caption, on one line."""
    strip = app.screen.query_one(CaptionStrip)
    shown = strip.lines(strip.size.width, strip.size.height) if strip.display else []
    return " ".join(" ".join(span.text for line in shown for span in line).split())


def all_in_sync(app: KviewApp) -> bool:
    """Whether the view has a broker missing in no ISR."""
    assert app.view is not None
    return app.view.headline.under_replicated == 0


def marked(app: KviewApp) -> set[str | None]:
    """The panels in sight that are marked."""
    return {each.id for each in app.screen.query(Drawn) if each.looks and each.display and each.size.height}


@pytest.mark.quick(1)
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)])
@running
async def test_five_captions_say_where_to_look_and_end_with_a_crash(size: tuple[int, int]) -> None:
    mark = new_mark()
    async with tour(mark, size=size) as played:
        app = played.app
        for number, panel in enumerate(("brokers", "partitions", "groups", "keys"), 1):
            assert f"step {number} of 5" in text(app) and panel in marked(app)
            assert all(len(line) <= size[0] for line in lines(app))
            await played.press("space")
        await played.look()
        assert app.current_mode == "overview" and "brokers" in marked(app)
        assert "press K (Shift+k) to crash broker 0" in text(app)
        assert not re.search(r"\bspace\b", text(app).splitlines()[-1]), "space goes no further here"
        await played.press("space")
        assert "press K on a broker, or Esc to leave the tour" in text(app), "it does not go on by itself"
        await played.press("backspace", "space", "right", "K")
        assert not mark.is_due and "TOUR · the end" in text(app)
        await played.second(3)
        assert re.search(r"Broker 1 was killed.*still listed as leader", said(app))
        assert "B (restore 1) brings it back" in said(app)
        await played.second(12)
        assert re.search(r"Broker 1 crashed: \d partitions got new leaders after \d", said(app))
        await played.press("B")
        await played.second()
        assert "Broker 1 was started" in said(app) and "D lists demos" in said(app)
        for _ in range(20):
            await played.second()
            if "Broker 1 has caught up: it is in every ISR again" in said(app):
                break
            assert "it rejoins the ISRs once it has caught up" in said(app)
        assert all_in_sync(app) and "rejoins" not in said(app), "the caption does not stay behind"
        assert re.search(r"TOUR .* space end the tour ", text(app))
        await played.press("space")
        assert "TOUR" not in text(app) and "was started" not in text(app)
        await played.press("space")
        assert app.timeline.asked == [("toggle",)], "space pauses again"  # type: ignore[union-attr]


@pytest.mark.quick(1)
@pytest.mark.parametrize("key", ["H", "S", "W", "X", "C"])
@running
async def test_any_fault_at_any_caption_is_welcome(key: str) -> None:
    mark = new_mark()
    async with tour(mark) as played:
        await played.press(key)
        await played.second(2)
        for number in range(1, 6):
            assert mark.is_due and f"step {number} of 5" in text(played.app), "each caption is still read"
            assert "space goes on" in said(played.app)
            await played.press("space")
        assert not mark.is_due and "TOUR · the end" in text(played.app)
        assert "undoes everything" in said(played.app)
        await played.press("U")
        assert "undoes everything" not in said(played.app)


@running
async def test_a_fault_that_is_caused_early_and_undone_is_asked_for_again() -> None:
    async with tour(new_mark(), size=(80, 24)) as played:
        await played.press("space", "1", "K")
        await played.second()
        assert "step 2 of 5" in text(played.app) and "Broker 0 was killed" in said(played.app)
        await played.press("U")
        assert "goes on" not in said(played.app)
        await played.press("space", "space", "space")
        assert "press K (Shift+k) to crash broker 0" in text(played.app)


@running
async def test_escape_skips_it_and_it_is_found_by_name() -> None:
    mark = new_mark()
    async with tour(mark) as played:
        app = played.app
        await played.press("5", "enter")
        await until(played.pilot, lambda: len(app.screen_stack) == 2, "a group")
        await played.press("escape")
        assert mark.is_due and "TOUR" in text(app), "Escape leaves the screen first"
        await played.press("escape")
        assert not mark.is_due and "TOUR" not in text(app) and "you have left the tour" in text(app)
        await played.press("colon", *"tour", "enter")
        await until(played.pilot, lambda: "step 1 of 5" in text(app), "the tour")
        assert app.current_mode == "overview"
        await played.press("a")
        assert "all groups are listed" in text(app), "keys of demos do what they always do"


@running
async def test_it_is_not_shown_again_nor_before_a_view_nor_without_a_simulated_cluster() -> None:
    async with tour(new_mark(is_due=False)) as played:
        assert "TOUR" not in text(played.app)
    async with dashboard(teaching=partial(DemoKeys, demos=StagedDemos("topics"), tour=new_mark())) as (
        app,
        pilot,
    ):
        assert "TOUR" not in text(app), "there is nothing to look at yet"
        app.session.feed.show(state(HEALTHY))  # type: ignore[attr-defined]
        await until(pilot, lambda: "step 1 of 5" in text(app), "the tour")
    async with dashboard(state(HEALTHY)) as (app, pilot):
        await press(pilot, ["colon", *"tour"])
        assert "show the tour" not in text(app)


@running
async def test_a_demo_takes_its_place() -> None:
    mark = new_mark()
    async with tour(mark, timeline=FakeTimeline()) as played:
        assert isinstance(played.app.teaching, DemoKeys)
        played.app.teaching.start("topics")
        await played.second(2)
        assert not mark.is_due and "TOUR" not in text(played.app) and "step 1 of" in text(played.app)
