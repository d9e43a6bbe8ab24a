"""A line that somebody typed as a fault: `crash 4`, `slow 4 200ms`, `lose-rack R2`."""

import difflib
import re

from kview.errors import BadUse, ErrorKind
from kview.model.faults import WORDS
from kview.model.ports import FaultCommand, FaultKind

OTHER_WORDS = ("status", "counters", "quit")
"""Lines that are no faults."""

MAX_SLOW_MS = 60_000
"""A node slower than this is a hung one, for every client's time limit is shorter."""

_DURATION = re.compile(r"(\d+)(ms|s)?")
_ON_A_NODE = {FaultKind.CRASH, FaultKind.STOP, FaultKind.HANG, FaultKind.SLOW, FaultKind.START}


def parse(line: str) -> FaultCommand:
    """The fault that `line` asks for.

    Raises BadUse where a word is unknown, missing or one too many; whether the node or rack exists only the
    cluster knows.
    """
    word, *rest = line.split() or [""]
    try:
        kind = FaultKind(word)
    except ValueError:
        raise _unknown(word) from None
    expected = len(WORDS[kind].usage.split()) - 1
    if len(rest) != expected:
        raise BadUse(
            ErrorKind.COMMAND_INCOMPLETE,
            command=kind.value,
            expected=expected,
            given=len(rest),
            usage=WORDS[kind].usage,
        )
    if kind in _ON_A_NODE and not rest[0].isdecimal():
        raise BadUse(ErrorKind.NOT_A_NODE_ID, text=rest[0])
    if kind is FaultKind.SLOW:
        return FaultCommand(kind, rest[0], f"{duration_ms(rest[1])}ms")
    return FaultCommand(kind, rest[0] if rest else "")


def duration_ms(text: str) -> int:
    """`200ms`, `2s` or `200` (milliseconds) in milliseconds. Raises BadUse."""
    match = _DURATION.fullmatch(text)
    duration = int(match[1]) * (1000 if match[2] == "s" else 1) if match else 0
    if not 1 <= duration <= MAX_SLOW_MS:
        raise BadUse(ErrorKind.NOT_A_LATENCY, text=text, most_ms=MAX_SLOW_MS)
    return duration


def _unknown(word: str) -> BadUse:
    known = (*(kind.value for kind in FaultKind), *OTHER_WORDS)
    near = difflib.get_close_matches(word, known, n=1)
    if near:
        return BadUse(ErrorKind.COMMAND_MISSPELT, word=word, nearest=near[0])
    return BadUse(ErrorKind.COMMAND_UNKNOWN, word=word, known=known)
