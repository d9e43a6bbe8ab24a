"""Lessons as words: the list of demos, and what a check of one found."""

from kview.errors import ErrorFacts
from kview.language.errors import sentence
from kview.language.words import plural


def listed(names: list[str], titles: list[str], minutes: list[int], abouts: list[str]) -> list[str]:
    """Return a line for each demo: its name, its title, how long it takes, and what it teaches."""
    wide = max(map(len, names), default=0)
    long = max(map(len, titles), default=0)
    rows = zip(names, titles, minutes, abouts, strict=True)
    return [f"{name:{wide}}  {title:{long}}  {time} min  {about}" for name, title, time, about in rows]


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
