"""Lessons as words: the list of demos, and what a check of one found."""

from collections.abc import Sequence
from textwrap import wrap

from kview.errors import ErrorFacts
from kview.language.errors import sentence
from kview.language.words import plural
from kview.model.units import UNKNOWN

ABOUT_INCIDENT = (
    "Find the fault",
    5,
    "One of twenty faults, of which you see only the symptoms: find the broker and the cause.",
)
"""Title, minutes and content of the demo whose fault the seed chooses."""


WIDTH = 80
"""Columns of the list of demos."""


def listed(demos: Sequence[tuple[str, str, int, str]]) -> list[str]:
    """Return the lines of a list of demos, each with its name, title, minutes and what it teaches."""
    wide = max((len(name) for name, *_ in demos), default=0)
    lines = []
    for name, title, minutes, about in demos:
        begin = f"{name:{wide}}  {minutes} min  "
        lines += [begin + title, *(" " * len(begin) + line for line in wrap(about, WIDTH - len(begin)))]
    return lines


def unmet(step: int, expected: str, seen: str) -> str:
    """Return that an expectation did not come true."""
    return f"step {step}: expected {expected}, but it was {seen}"


def refused(step: int, asked: str, why: ErrorFacts) -> str:
    """Return that the cluster refused what a step does."""
    return f"step {step}: the cluster refused {asked}: {sentence(why)}"


def result(name: str, steps: int, failures: int, took_ms: int) -> str:
    """Return the outcome of a check in one line."""
    outcome = "ok" if not failures else plural(failures, "expectation") + " not met"
    return f"{name}: {outcome} ({plural(steps, 'step')}, {took_ms / 1000:.0f} s of the cluster's time)"


def drilled(name: str, cause: str, symptoms: Sequence[tuple[str, int, str]]) -> list[str]:
    """Return the outcome of a drill: one line, and one more for each symptom that was not seen in time.

    A symptom comes with the milliseconds until it was seen, UNKNOWN if it was not, and what was seen instead.
    """
    missed = [
        f"{name}: expected {text}, but it was {seen}" for text, at_ms, seen in symptoms if at_ms == UNKNOWN
    ]
    if missed:
        return [*missed, f"{name}: {cause}, but not every symptom was seen in time"]
    last_ms = max(at_ms for _, at_ms, _ in symptoms)
    return [f"{name}: ok, visible after {last_ms / 1000:.0f} s ({cause})"]
