"""Fuzzy matching of names: the letters of what was typed, in order. All functions here are pure."""

import re
from collections.abc import Sequence

MOST_FOUND = 200
"""The most names that are compared in detail, out of all that have the letters in order."""


def rank(typed: str, name: str) -> tuple[int, int] | None:
    """Return how well a name matches, less is better, or None if it does not.

    From the best: the same, its beginning, the beginning of a word, a part of it, its letters in order. Of
    names that match equally well, the shorter one is better.
    """
    typed, name = typed.casefold().strip(), name.casefold()
    if not typed:
        return 0, len(name)
    at = name.find(typed)
    if name == typed:
        return 0, 0
    if at == 0:
        return 1, len(name)
    if at > 0:
        return (2 if not name[at - 1].isalnum() else 3), len(name)
    wanted = typed.replace(" ", "")
    return (4, len(name)) if _letters(wanted).search(name) else None


def _letters(wanted: str) -> re.Pattern[str]:
    """Return the expression for these letters in order, in one line. It never tries a letter twice."""
    parts = (f"[^{re.escape(letter)}\n]*{re.escape(letter)}" for letter in wanted)
    return re.compile(f"^{''.join(parts)}.*$", re.MULTILINE)


class Names:
    """Names that are searched together, with one expression over all of them."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = [name for name in names if "\n" not in name]
        self._text = "\n".join(name.casefold() for name in self._names)
        self._exact = frozenset(self._names)

    def __contains__(self, name: str) -> bool:
        return name in self._exact

    def found(self, typed: str) -> list[tuple[tuple[int, int], str]]:
        """Return the names that match, with their ranks, the best first."""
        wanted = typed.casefold().strip()
        lines: list[str] = []
        for expression in (
            re.compile(f"^.*{re.escape(wanted)}.*$", re.MULTILINE),
            _letters("".join(wanted.split())),
        ):
            for line in expression.finditer(self._text):
                lines.append(line[0])
                if len(lines) >= MOST_FOUND:
                    break
            if lines:
                break
        kept = set(lines)
        by_line = [name for name in self._names if name.casefold() in kept] if kept else []
        ranked = [(at, name) for name in by_line if (at := rank(typed, name)) is not None]
        return sorted(ranked)
