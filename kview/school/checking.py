"""Plays a lesson without a screen, at the engine's speed, and checks its expectations."""

from collections.abc import Iterator
from dataclasses import dataclass

from kview.derive.fold import State, step
from kview.errors import ErrorFacts
from kview.lab.console import Console
from kview.model.lab import Command
from kview.school.acts import act, pressed
from kview.school.camera import Camera
from kview.school.captions import filled
from kview.school.expectations import duration_ms, seen
from kview.school.figures import parse
from kview.school.lesson import Lesson, Step
from kview.school.moment import Moment
from kview.school.watching import Watch
from kview.school.worlds import world
from kview.simulate.cluster import Cluster, build

START_MS = 1_767_265_200_000
"""The engine's first moment, so that a lesson is the same on every day."""
INTERVAL_MS = 1_000
"""Time between two observations, as on the screen."""


@dataclass(frozen=True, slots=True)
class Failed:
    """An expectation that did not come true, or an act that the cluster refused. `step` counts from 1."""

    step: int
    caption: str
    expected: str
    seen: str = ""
    refused: ErrorFacts | None = None


@dataclass(frozen=True, slots=True)
class Compared:
    """A figure before a step and after it."""

    figure: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Played:
    """A step that was played: its caption with the figures of that time, and what came of it."""

    step: int
    caption: str
    took_ms: int
    compared: tuple[Compared, ...]
    failed: tuple[Failed, ...]


class Stage:
    """A simulated cluster that is observed by the camera and folded, once per interval."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._camera = Camera(cluster)
        self._console = Console(cluster, cluster.counters, lambda: 0, lambda: None)
        self._state = State()
        self.moment = self._look()

    @property
    def now_ms(self) -> int:
        """The engine's time, in epoch ms."""
        return self.cluster.kernel.now_us // 1000

    def on(self) -> Moment:
        """Let an interval pass, and return the next moment."""
        self.cluster.run_until(self.cluster.kernel.now_us + INTERVAL_MS * 1000)
        self.moment = self._look()
        return self.moment

    def watch(self, length_ms: int) -> None:
        """Let time pass."""
        until_ms = self.now_ms + length_ms
        while self.now_ms < until_ms:
            self.on()

    def apply(self, command: Command) -> ErrorFacts | None:
        """Carry out a command, and return why it was refused, if it was."""
        return self._console.apply(command).refused

    def _look(self) -> Moment:
        self._state, view = step(self._state, self._camera.snapshot())
        return Moment(view, self.cluster.counters())


def stage_of(lesson: Lesson) -> Stage:
    """Return the cluster of a lesson as it is when the first step begins."""
    stage = Stage(build(world(lesson.world), lesson.world.seed, START_MS))
    stage.watch(duration_ms(lesson.world.watched) or 0)
    return stage


def play(lesson: Lesson) -> Iterator[Played]:
    """Play every step of a lesson, and yield what came of each."""
    stage = stage_of(lesson)
    for number, lesson_step in enumerate(lesson.steps, 1):
        yield _play(stage, number, lesson_step)


def _play(stage: Stage, number: int, lesson_step: Step) -> Played:
    began_ms, before = stage.now_ms, stage.moment
    caption = filled(lesson_step.caption, before)
    failed = []
    acts = [(text, act(text)) for text in lesson_step.does]
    if lesson_step.press and (key := pressed(lesson_step.press)) is not None:
        acts.insert(0, (lesson_step.press, key))
    for text, wanted in acts:
        refused = stage.apply(wanted)
        if refused is not None:
            failed.append(Failed(number, caption, text, refused=refused))
    if acts:
        stage.on()  # What was true before says nothing about what was done.
    watch = Watch(lesson_step, before, began_ms)
    watch.see(stage.moment, stage.now_ms)
    while not watch.is_over:
        watch.see(stage.on(), stage.now_ms)
    failed += [Failed(number, caption, wrong.text, seen(wrong.figure, stage.moment)) for wrong in watch.unmet]
    figures = [parse(text.split())[0] for text in lesson_step.compare]
    compared = tuple(Compared(str(f), seen(f, before), seen(f, stage.moment)) for f in figures)
    return Played(number, caption, stage.now_ms - began_ms, compared, tuple(failed))
