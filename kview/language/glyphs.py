"""Every sign that kview draws, and its ASCII stand-in for terminals that cannot show the sign.

Panels use the signs below. `plain` replaces each sign by a single character, just before a line is drawn, so
that a stand-in never moves a column.
"""

from collections.abc import Mapping
from functools import lru_cache
from unicodedata import category

from kview.model.checks import Level
from kview.model.events import Severity

LEADER = "●"
FOLLOWER = "○"
OUT_OF_SYNC = "◌"
DEAD = "✕"
ADDED = "⊕"
REMOVED = "⊖"
YES = "✓"
OK = "●"
UP = "▲"
DOWN = "▼"
FROZEN = "▮"
MARK = "▸"
FOLDED = "+"
UNFOLDED = "−"
"""Before a row that many things share, and once these have rows of their own."""
DOT = "·"
NONE = "–"
MINUS = "−"
ABOUT = "≈"
ELLIPSIS = "…"
ARROW = "→"
BEFORE = "←"
RULE = "─"
BAR = "│"
TICK = "┤"
CORNERS = "╭╮╰╯"
"""The corners of a frame: the upper two and the lower two, each from left to right."""
ORIGIN = "┼"
PAUSED = "❚❚"
PLAYING = "►"
POINTS_AT = "──▶"
LINE = "━"
DOTTED = "┅"
LOG_END = "┥"
LOG_START = "├"
MARKED = "┬"
UNCOMMITTED = "▒"
LEVELS = "▁▂▃▄▅▆▇█"
DIALS = "◔◑◕"
"""How much of a time has passed: a quarter, half of it, three quarters."""
UPPER_HALF = "▀"

SIGNS: Mapping[str, str] = {
    Severity.RISK: DEAD,
    Severity.WARN: UP,
    Severity.GOOD: OK,
    Severity.CALM: OK,
    Level.WEAKNESS: DOT,
}
"""The sign of a severity, and of a level of `kview check`."""

_STAND_INS = {
    LEADER: "*",
    FOLLOWER: "o",
    OUT_OF_SYNC: ".",
    DEAD: "x",
    ADDED: "+",
    REMOVED: "-",
    YES: "+",
    UP: "^",
    DOWN: "v",
    FROZEN: "#",
    MARK: "]",
    DOT: ":",
    NONE: "-",
    MINUS: "-",
    ABOUT: "~",
    "≥": ">",
    "≤": "<",
    ELLIPSIS: "$",
    ARROW: ">",
    "←": "<",
    "↑": "^",
    "↓": "v",
    "×": "x",
    "÷": "/",
    PAUSED[0]: "|",
    PLAYING: "]",
    POINTS_AT[-1]: ">",
    RULE: "-",
    BAR: "|",
    TICK: "+",
    ORIGIN: "+",
    LINE: "=",
    DOTTED: ".",
    LOG_END: "|",
    LOG_START: "|",
    MARKED: "+",
    UNCOMMITTED: "%",
    UPPER_HALF: "'",
    "—": "-",
    "’": "'",
    "“": '"',
    "”": '"',
} | dict(zip(LEVELS + CORNERS + DIALS, "._-=+*%#++++-=%", strict=True))

_TABLE = str.maketrans(_STAND_INS)


def plain(text: str) -> str:
    """Return `text` in ASCII, character for character. A character without a stand-in becomes `?`."""
    if text.isascii():
        return text
    return text.translate(_TABLE).encode("ascii", "replace").decode()


MOST_MARKS = 2
"""The most combining marks on one letter: Vietnamese needs two. More of them would cover other lines."""

_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Characters that count as letters or marks, but show nothing."""


def printable(text: str) -> str:
    """Return `text` with a `?` in place of every character that could change more than its own cell.

    Names come from a cluster and may contain anything: control characters, line breaks, characters that turn
    the direction of writing or show nothing, lone surrogates, and floods of combining marks. One character
    stays one character, so that columns stay aligned.
    """
    return text if text.isascii() and text.isprintable() else _printable(text)


@lru_cache(maxsize=4096)
def _printable(text: str) -> str:
    shown, marks = [], MOST_MARKS  # a mark at the beginning has no letter to stand on
    for character in text:
        is_mark = category(character) in ("Mn", "Me")
        marks = marks + 1 if is_mark else 0
        is_selector = "\ufe00" <= character <= "\ufe0f" or character >= "\U000e0100"
        hidden = character in _INVISIBLE or is_selector or not character.isprintable()
        shown.append("?" if hidden or marks > MOST_MARKS else character)
    return "".join(shown)
