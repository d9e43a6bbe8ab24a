"""Captions: their sentences, and the figures in braces that are filled in when they are shown."""

import re

from kview.school.expectations import shown
from kview.school.figures import Figure, Moment, NotAFigure, parse

_BRACES = re.compile(r"\{([^{}]*)\}")
_END = re.compile(r"[.!?…](?:\s|$)")


def sentences(caption: str) -> int:
    """Return the number of sentences."""
    return len(_END.findall(caption.strip()))


def figures_in(caption: str) -> list[Figure]:
    """Return the figures in a caption, in order. Raises NotAFigure."""
    found = []
    for words in _BRACES.findall(caption):
        figure, rest = parse(words.split())
        if rest:
            raise NotAFigure(f"{' '.join(rest)!r} is too much after a figure", "leave it out")
        found.append(figure)
    return found


def filled(caption: str, moment: Moment) -> str:
    """Return a caption with its figures as they are at a moment. Large numbers get separators."""
    figures = iter(figures_in(caption))

    def value(_: re.Match[str]) -> str:
        found = next(figures).value(moment)
        is_number = isinstance(found, int) and not isinstance(found, bool)
        return f"{found:,}" if is_number else "–" if found is None else shown(found)

    return " ".join(_BRACES.sub(value, caption).split())
