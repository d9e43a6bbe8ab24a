"""Parses a typed line as a fault: `crash 4`, `slow 4 200ms`, `lose-rack R2`."""

import difflib
import re

from kview.errors import BadUse
from kview.model.faults import WORDS
from kview.model.ports import FaultCommand, FaultKind

OTHER_WORDS = ("status", "counters", "quit")
"""Commands that are not faults."""

MAX_SLOW_MS = 60_000
"""A node slower than this is as good as hung, because the timeout of every client is shorter."""

_DURATION = re.compile(r"(\d+)(ms|s)?")
_ON_A_NODE = {FaultKind.CRASH, FaultKind.STOP, FaultKind.HANG, FaultKind.SLOW, FaultKind.START}


def parse(line: str) -> FaultCommand:
    """Return the fault that `line` asks for.

    Raises BadUse if a word is unknown, missing or superfluous. Only the cluster knows whether the node or
    rack exists.
    """
    word, *rest = line.split() or [""]
    try:
        kind = FaultKind(word)
    except ValueError:
        raise BadUse(f"unknown command {word!r}", _nearest(word)) from None
    expected = len(WORDS[kind].usage.split()) - 1
    if len(rest) != expected:
        raise BadUse(
            f"{kind} takes {expected} words after it, got {len(rest)}", f"write it as: {WORDS[kind].usage}"
        )
    if kind in _ON_A_NODE and not rest[0].isdecimal():
        raise BadUse(f"{rest[0]!r} is no node id", "give a number, such as 4")
    if kind is FaultKind.SLOW:
        return FaultCommand(kind, rest[0], f"{duration_ms(rest[1])}ms")
    return FaultCommand(kind, rest[0] if rest else "")


def duration_ms(text: str) -> int:
    """Return `200ms`, `2s` or `200` (milliseconds) in milliseconds. Raises BadUse."""
    match = _DURATION.fullmatch(text)
    duration = int(match[1]) * (1000 if match[2] == "s" else 1) if match else 0
    if not 1 <= duration <= MAX_SLOW_MS:
        raise BadUse(f"{text!r} is no latency", f"give 1ms to {MAX_SLOW_MS}ms, such as 200ms or 2s")
    return duration


def _nearest(word: str) -> str:
    words = [*FaultKind, *OTHER_WORDS]
    near = difflib.get_close_matches(word, words, n=1)
    return f"did you mean {near[0]}?" if near else "the commands are " + ", ".join(words)
