"""Every sign that kview draws, and its ASCII stand-in for terminals that cannot show the sign.

Panels use the signs below. `plain` replaces each sign by a single character, just before a line is drawn, so
that a stand-in never moves a column.
"""

from collections.abc import Mapping

from kview.model.events import Severity

LEADER = "●"
FOLLOWER = "○"
OUT_OF_SYNC = "◌"
DEAD = "✕"
OK = "●"
UP = "▲"
DOWN = "▼"
FROZEN = "▮"
MARK = "▸"
DOT = "·"
NONE = "–"
MINUS = "−"
ABOUT = "≈"
ELLIPSIS = "…"
ARROW = "→"
RULE = "─"
BAR = "│"
TICK = "┤"
ORIGIN = "┼"
PAUSED = "❚❚"
PLAYING = "►"
LEVELS = "▁▂▃▄▅▆▇█"

SIGNS: Mapping[str, str] = {Severity.RISK: DEAD, Severity.WARN: UP, Severity.GOOD: OK, Severity.CALM: OK}
"""The sign of a severity."""

_STAND_INS = {
    LEADER: "*",
    FOLLOWER: "o",
    OUT_OF_SYNC: ".",
    DEAD: "x",
    UP: "^",
    DOWN: "v",
    FROZEN: "#",
    MARK: ">",
    DOT: ":",
    NONE: "-",
    MINUS: "-",
    ABOUT: "~",
    "≥": ">",
    "≤": "<",
    ELLIPSIS: "~",
    ARROW: ">",
    "←": "<",
    "↑": "^",
    "↓": "v",
    "×": "x",
    "÷": "/",
    PAUSED[0]: "|",
    PLAYING: ">",
    RULE: "-",
    BAR: "|",
    TICK: "+",
    ORIGIN: "+",
    "—": "-",
    "’": "'",
    "“": '"',
    "”": '"',
} | dict(zip(LEVELS, "._-=+*%#", strict=True))

_TABLE = str.maketrans(_STAND_INS)


def plain(text: str) -> str:
    """Return `text` in ASCII, character for character. A character without a stand-in becomes `?`."""
    if text.isascii():
        return text
    return text.translate(_TABLE).encode("ascii", "replace").decode()


def printable(text: str) -> str:
    """Return `text` with control characters replaced.

    Names come from a cluster and may contain anything.
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else "?" for character in text)
