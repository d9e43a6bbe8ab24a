"""Parses a typed line as a fault: `crash 4`, `slow 4 200ms`, `lose-rack R2`."""

import difflib
import re

from kview.errors import BadUse, ErrorKind
from kview.language.faults import NEEDS, USAGE, Needs
from kview.model.adjustments import AdjustmentKind
from kview.model.faults import FaultCommand, FaultKind

OTHER_WORDS = ("status", "counters", "quit")
"""Lines that ask for something other than a fault."""

MAX_SLOW_MS = 60_000
"""Limit of the latency that a fault may add. With more, the node would look hung, because clients give up
first."""

_DURATION = re.compile(r"([0-9]{1,9})(ms|s)?")
_NODE = re.compile(r"[0-9]{1,9}")
_ON_A_NODE = {FaultKind.CRASH, FaultKind.STOP, FaultKind.HANG, FaultKind.SLOW, FaultKind.START}


def parse(line: str) -> FaultCommand:
    """Return the fault that `line` asks for.

    Raises BadUse if a word is unknown, missing or superfluous. Only the cluster knows whether the node or
    rack exists.
    """
    word, *rest = line.split() or [""]
    if word in OTHER_WORDS:
        raise _incomplete(word, Needs("takes no argument", word))
    try:
        kind = FaultKind(word)
    except ValueError:
        raise _unknown(word) from None
    if len(rest) != len(USAGE[kind].split()) - 1:
        raise _incomplete(word, NEEDS[kind])
    if kind is FaultKind.LOSE_RACK:
        return FaultCommand(kind, rack=rest[0])
    if kind not in _ON_A_NODE:
        return FaultCommand(kind)
    if not _NODE.fullmatch(rest[0]):
        raise BadUse(ErrorKind.NOT_A_NODE_ID, text=rest[0])
    slow_ms = duration_ms(rest[1]) if kind is FaultKind.SLOW else 0
    return FaultCommand(kind, int(rest[0]), slow_ms=slow_ms)


def duration_ms(text: str) -> int:
    """Return the milliseconds in `200ms`, `2s` or `200`. Raises BadUse."""
    match = _DURATION.fullmatch(text)
    duration = int(match[1]) * (1000 if match[2] == "s" else 1) if match else 0
    if not 1 <= duration <= MAX_SLOW_MS:
        raise BadUse(ErrorKind.NOT_A_LATENCY, text=text, most_ms=MAX_SLOW_MS)
    return duration


def _incomplete(word: str, needs: Needs) -> BadUse:
    return BadUse(ErrorKind.COMMAND_INCOMPLETE, command=word, needs=needs.what, example=needs.example)


def _unknown(word: str) -> BadUse:
    known = (*(kind.value for kind in FaultKind), *(kind.value for kind in AdjustmentKind), *OTHER_WORDS)
    near = difflib.get_close_matches(word, known, n=1)
    if near:
        return BadUse(ErrorKind.COMMAND_MISSPELT, word=word, nearest=near[0])
    return BadUse(ErrorKind.COMMAND_UNKNOWN, word=word, known=known)
