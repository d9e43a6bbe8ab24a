"""`kview --simulate`, and the demos on such a cluster."""

import asyncio
import random
import time
from collections.abc import Sequence

from kview.errors import BadUse, ErrorKind, KviewError
from kview.model.lab import Lab
from kview.run.recorder import check_target
from kview.run.settings import Display
from kview.run.show import Shown, show
from kview.run.simulated import SimulatedSource
from kview.school.conduct import Staged
from kview.school.demos import INCIDENT, Listed, Opening
from kview.school.exercise import Exercise
from kview.school.lesson import Lesson
from kview.school.moment import Counters

FRESH_WITHIN_S = 40.0
"""How long a fresh cluster may take: its start, and an observation of the old one that has to end first."""

POLL_S = 0.05

MOST_SEED = 9_999
"""The largest seed that is chosen: short enough to be told to a class."""


def simulate(arguments: Sequence[str], display: Display, demo: str = "", seed: int | None = None) -> int:
    """Run `kview --simulate` and return the exit code. Raises KviewError.

    `arguments` are the flags for `kview serve`. With `demo`, the dashboard begins with the demo of that name,
    on its own cluster. `seed` is that of the demo, None for any.
    """
    check_target(display.record)
    opening = None
    if demo:
        seed = _RunDemos.seed_of(demo, seed)
        arguments, opening = _arguments_of(demo, seed), Opening(demo, seed)
    source = SimulatedSource(arguments, display.interval_ms / 1000, not display.no_records)
    demos = _RunDemos(source)
    return show(
        [Shown(source=source, name="simulated", display=display, lab=source, demos=demos, demo=opening)]
    )


def _arguments_of(name: str, seed: int) -> list[str]:
    """Return the arguments of the cluster's process for a demo."""
    return ["--lesson", name, "--seed", str(seed)]


class _RunDemos:
    """Implements `kview.school.demos.Demos` for a source. Each demo gets a fresh cluster."""

    def __init__(self, source: SimulatedSource) -> None:
        self._source = source

    @property
    def lab(self) -> Lab:
        """The simulated cluster."""
        return self._source

    def listed(self) -> list[Listed]:
        """Return all demos, those whose files are wrong last but one."""
        from kview.language.errors import sentence
        from kview.school.files import lesson_files, read_lesson
        from kview.school.words.lessons import ABOUT_INCIDENT

        made, wrong = [], []
        for name, path in lesson_files().items():
            try:
                lesson = read_lesson(path)
            except BadUse as error:
                shown = path.name if name == INCIDENT else name  # Each row has a name of its own.
                wrong.append(Listed(shown, shown, 0, "", sentence(error)))
                continue
            made.append(Listed(name, lesson.title, lesson.minutes, lesson.about))
        return [*made, *wrong, Listed(INCIDENT, *ABOUT_INCIDENT)]

    def lesson(self, name: str) -> tuple[Lesson, tuple[Staged, ...]]:
        """Return a lesson and its steps. Raises BadUse."""
        from kview.school.acts import staged
        from kview.school.files import lesson_of

        lesson = lesson_of(name)
        return lesson, staged(lesson)

    def exercise(self, seed: int) -> Exercise:
        """Return the drill of a seed."""
        from kview.school.drills import drill, exercise

        return exercise(drill(seed))

    @staticmethod
    def seed_of(name: str, seed: int | None = None) -> int:
        """Return the seed of a demo: the one given, or, for a drill, any."""
        if seed is not None:
            return seed
        return random.SystemRandom().randint(1, MOST_SEED) if name == INCIDENT else 1

    async def fresh(self, name: str, seed: int) -> int:
        """Replace the cluster, and return from when on it is observed. Raises KviewError."""
        generation = self._source.restart(_arguments_of(name, seed))
        until_s = time.monotonic() + FRESH_WITHIN_S
        while self._source.connected < generation:
            if time.monotonic() > until_s:
                raise KviewError(ErrorKind.CLUSTER_NOT_READY, within_s=FRESH_WITHIN_S)
            await asyncio.sleep(POLL_S)
        return time.time_ns() // 1_000_000

    async def counters(self) -> Counters | None:
        """Return what the cluster itself counts, or None if it does not say. Never raises."""
        return await self._source.counters()
