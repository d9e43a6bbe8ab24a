"""A drill as the screen needs it: what happens, what may be seen of it, the hints, and the answer."""

from dataclasses import dataclass
from enum import StrEnum

from kview.model.lab import Command
from kview.school.expectations import Expectation

HINT_COSTS_MS = 30_000
"""What a hint adds to the clock."""


class Hit(StrEnum):
    """What a fault can hit."""

    BROKER = "broker"
    RACK = "rack"
    GROUP = "group"
    OTHER = "other"
    """A controller, a producer or a topic, none of which a person has to name."""


@dataclass(frozen=True, slots=True)
class Target:
    """What was hit: a broker, rack or group by its name, which is '' for OTHER."""

    hit: Hit
    name: str = ""

    @staticmethod
    def of(text: str) -> "Target":
        """Return the target of a text such as `broker 3`, `rack R2` or `other`."""
        hit, _, name = text.partition(" ")
        return Target(Hit(hit), name)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault, what it is called in the list of answers, and what it can hit."""

    name: str
    choice: str
    hits: frozenset[Hit]


@dataclass(frozen=True, slots=True)
class Exercise:
    """A drill that the seed has chosen.

    `kinds` are all kinds of faults. `answer` is the name of the right one, and `targets` are what it hit:
    each of them is a right answer. `acts` come with whether they may be refused.
    """

    seed: int
    cause: str
    kinds: tuple[Kind, ...]
    answer: str
    targets: tuple[Target, ...]
    acts: tuple[tuple[Command, bool], ...]
    symptoms: tuple[Expectation, ...]
    hints: tuple[str, ...]

    def choices(self, hit: Hit) -> tuple[Kind, ...]:
        """Return the kinds of faults that can hit that."""
        return tuple(kind for kind in self.kinds if hit in kind.hits)

    def is_right(self, kind: str, target: Target) -> bool:
        """Return whether an answer names the cause and what it hit."""
        return kind == self.answer and target in self.targets
