"""Captions: their sentences, and the figures in braces that are filled in when they are shown."""

import re

from kview.language.verdicts import STATUSES
from kview.language.words import NONE, count, duration
from kview.model.units import NO_BROKER
from kview.school.expectations import shown
from kview.school.figures import Figure, NotAFigure, parse
from kview.school.moment import Moment, Value

NO_LEADER = "none"

_BRACES = re.compile(r"\{([^{}]*)\}")
_END = re.compile(r"[.!?…](?:\s|$)")


def sentences(caption: str) -> int:
    """Return the number of sentences."""
    return len(_END.findall(caption.strip()))


def figures_in(caption: str) -> list[Figure]:
    """Return the figures in a caption, in order. Raises NotAFigure."""
    figures = []
    for words in _BRACES.findall(caption):
        figure, rest = parse(words.split())
        if rest:
            raise NotAFigure(f"unexpected {' '.join(rest)!r} after the figure", "remove it")
        figures.append(figure)
    return figures


def is_known(caption: str, moment: Moment) -> bool:
    """Return whether all figures of a caption are known at a moment."""
    return all(figure.value(moment) is not None for figure in figures_in(caption))


def filled(caption: str, moment: Moment) -> str:
    """Return a caption with its figures as they are at a moment."""
    figures = iter(figures_in(caption))

    def value(_: re.Match[str]) -> str:
        figure = next(figures)
        return worded(figure, figure.value(moment))

    return " ".join(_BRACES.sub(value, caption).split())


def worded(figure: Figure, value: Value) -> str:
    """Return a figure's value as people read it: `1,234`, `8.0 s`, `0, 1, 2`, or – if it is not known."""
    if value is None:
        return NONE
    if isinstance(value, bool):
        return shown(value)
    if figure.name == "leader" and value == NO_BROKER:
        return NO_LEADER
    if isinstance(value, int):
        return duration(value) if figure.is_duration else count(value)
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "none"
    return (
        STATUSES.get(value, value.replace("_", " ")) if figure.name == "status" else value.replace("_", " ")
    )
