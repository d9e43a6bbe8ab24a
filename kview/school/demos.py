"""What the screen needs of whatever plays demos on a simulated cluster. The room `run` implements it."""

from typing import NamedTuple, Protocol

from kview.model.lab import Lab
from kview.school.conduct import Staged
from kview.school.exercise import Exercise
from kview.school.lesson import Lesson
from kview.school.moment import Counters

INCIDENT = "incident"
"""The demo whose fault the seed chooses."""


class Listed(NamedTuple):
    """A demo in the list. `minutes` is how long it takes a person.

    `wrong` says what is wrong with its file, '' if it can be started.
    """

    name: str
    title: str
    minutes: int
    about: str
    wrong: str = ""


class Opening(NamedTuple):
    """The demo that a dashboard begins with."""

    name: str
    seed: int


class Demos(Protocol):
    """Demos, and the simulated cluster that they run on."""

    @property
    def lab(self) -> Lab:
        """The simulated cluster."""
        ...

    def listed(self) -> list[Listed]:
        """Return all demos, those whose files are wrong last but one."""
        ...

    def lesson(self, name: str) -> tuple[Lesson, tuple[Staged, ...]]:
        """Return a lesson and its steps. Raises BadUse if there is none, or if its file is wrong."""
        ...

    def exercise(self, seed: int) -> Exercise:
        """Return the drill of a seed."""
        ...

    def seed_of(self, name: str) -> int:
        """Return a seed for a demo: a random one for a drill."""
        ...

    async def fresh(self, name: str, seed: int) -> int:
        """Replace the cluster with a fresh one for a demo, and wait until it is connected.

        Returns the time from which on observations are of that cluster, epoch ms. Raises KviewError.
        """
        ...

    async def counters(self) -> Counters | None:
        """Return what the cluster itself counts, or None if it does not say. Never raises."""
        ...
