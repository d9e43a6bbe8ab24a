"""Demos on the engine's stage: the dashboard without a terminal shows what the camera sees."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC
from functools import partial
from typing import Any

from textual.pilot import Pilot

from kview.lab.console import Console
from kview.model.lab import ActiveFault, Command, Lab, LabSettings, Reply
from kview.school.acts import staged
from kview.school.checking import START_MS, Stage, stage_of
from kview.school.conduct import Staged
from kview.school.demos import INCIDENT, Listed, Opening
from kview.school.drills import drill, drill_world, exercise
from kview.school.exercise import Exercise
from kview.school.files import lesson_files, lesson_of
from kview.school.first_run import TourMark
from kview.school.lesson import Lesson
from kview.school.moment import Counters
from kview.school.shows.demo_keys import DemoKeys
from kview.school.shows.show import Show
from kview.school.words.lessons import ABOUT_INCIDENT
from kview.school.worlds import world
from kview.simulate.cluster import build
from kview.tui.app import KviewApp
from kview.tui.session import Session
from kview.tui.widgets.header import SourceInfo
from tests.tui.harness import FakeFeed, FakeTimeline, own_themes, running_app


class StagedDemos:
    """Demos and a lab on an engine, which a test lets run (`Demos` and `Lab`)."""

    def __init__(self, name: str, seed: int = 1) -> None:
        self.started: list[str] = []
        self._begin(name, seed)

    def _begin(self, name: str, seed: int) -> None:
        if name == INCIDENT:
            self.stage = Stage(build(world(drill_world()), seed, START_MS))
            self.stage.watch(15_000)
        else:
            self.stage = stage_of(lesson_of(name))
        cluster = self.stage.cluster
        self._console = Console(cluster, cluster.counters, lambda: 0, lambda: None)

    def now_ms(self) -> int:
        """The engine's time."""
        return self.stage.now_ms

    @property
    def lab(self) -> Lab:
        """The engine."""
        return self

    def listed(self) -> list[Listed]:
        """The demos that kview brings."""
        lessons = [(name, lesson_of(name)) for name in lesson_files()]
        made = [Listed(name, one.title, one.minutes, one.about) for name, one in lessons]
        return [*made, Listed(INCIDENT, *ABOUT_INCIDENT)]

    def lesson(self, name: str) -> tuple[Lesson, tuple[Staged, ...]]:
        """A lesson and its steps."""
        lesson = lesson_of(name)
        return lesson, staged(lesson)

    def exercise(self, seed: int) -> Exercise:
        """The drill of a seed."""
        return exercise(drill(seed))

    def seed_of(self, name: str) -> int:
        """A seed."""
        return 1

    async def fresh(self, name: str, seed: int) -> int:
        """Build another cluster at once."""
        self.started.append(name)
        self._begin(name, seed)
        return 0

    async def apply(self, command: Command) -> Reply:
        """Carry out a command on the engine."""
        return self._console.apply(command)

    async def settings_now(self) -> LabSettings | None:
        """What is set in the engine."""
        return self.stage.cluster.adjustments.settings()

    async def active(self) -> tuple[ActiveFault, ...]:
        """The engine's faults."""
        return self._console.status().active

    async def counters(self) -> Counters:
        """The engine's counters."""
        return self.stage.cluster.counters()


def shown_demo(app: KviewApp) -> Show | None:
    """The lesson, the drill or the tour that is shown."""
    assert isinstance(app.teaching, DemoKeys)
    return app.teaching._show


class Class:
    """A demo that a test plays as a person would: keys, and seconds that pass."""

    def __init__(self, app: KviewApp, pilot: Pilot[int], demos: StagedDemos, feed: FakeFeed) -> None:
        self.app, self.pilot, self.demos, self._feed = app, pilot, demos, feed

    async def look(self) -> None:
        """Show what the camera sees now."""
        self._feed.show(self.demos.stage.moment.view)
        for _ in range(3):
            await self.pilot.pause()
        await self.app.workers.wait_for_complete()
        await self.pilot.pause()
        self.app.teaching.tick()
        await self.pilot.pause()

    async def second(self, seconds: int = 1) -> None:
        """Let seconds pass."""
        for _ in range(seconds):
            self.demos.stage.on()
            await self.look()

    async def press(self, *keys: str) -> None:
        """Press keys, and show what follows."""
        await self.pilot.press(*keys)
        await self.app.workers.wait_for_complete()
        await self.pilot.pause()
        self.app.teaching.tick()
        await self.pilot.pause()


@asynccontextmanager
async def lesson(
    name: str,
    seed: int = 1,
    size: tuple[int, int] = (120, 40),
    tour: TourMark | None = None,
    **options: Any,
) -> AsyncIterator[Class]:
    """A dashboard that has begun with a demo, or with the tour, and shows its first view."""
    demos, feed = StagedDemos(name, seed), FakeFeed()
    opening = None if tour is not None else Opening(name, seed)
    settings: dict[str, Any] = {
        "no_color": False,
        "few_colors": False,
        "themes": own_themes(),
        "zone": UTC,
        "lab": demos,
    }
    settings |= {
        "timeline": FakeTimeline(),
        "teaching": partial(DemoKeys, demos=demos, opening=opening, tour=tour),
    }
    settings |= {"feed": feed, "source": SourceInfo("simulated"), "clock_ms": demos.now_ms}
    app = KviewApp(Session(**settings | options))
    async with running_app(app, size) as pilot:
        played = Class(app, pilot, demos, feed)
        await played.look()
        await played.second()
        yield played
