"""A drill as the screen needs it: what happens, what may be seen of it, the hints, and the answer."""

from dataclasses import dataclass

from kview.school.conduct import Act
from kview.school.expectations import Expectation

HINT_COSTS_MS = 30_000
"""What a hint adds to the clock."""


@dataclass(frozen=True, slots=True)
class Exercise:
    """A drill that the seed has chosen.

    `kinds` are the names of all kinds of faults, each with what it is called in the list of answers. `answer`
    is the name of the right one, and `targets` are the brokers, racks or groups that it hit, none if it hit
    something else. `acts` come with whether they may be refused.
    """

    seed: int
    cause: str
    kinds: tuple[tuple[str, str], ...]
    answer: str
    targets: tuple[str, ...]
    acts: tuple[tuple[Act, bool], ...]
    symptoms: tuple[Expectation, ...]
    hints: tuple[str, ...]

    def is_right(self, kind: str, target: str) -> bool:
        """Return whether an answer names the cause and what it hit ('' for something else)."""
        return kind == self.answer and (target in self.targets or not (target or self.targets))
