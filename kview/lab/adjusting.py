"""Parses a typed line as an adjustment: `rate invoice-service 200`, `bandwidth 4 200k`."""

import re

from kview.errors import BadUse, ErrorKind
from kview.language.adjustments import NEEDS
from kview.model.adjustments import Adjustment, AdjustmentKind

_AMOUNT = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)([kMG]?)")
_TIMES = {"": 1, "k": 1_000, "M": 1_000_000, "G": 1_000_000_000}
_NODE = re.compile(r"[0-9]{1,9}")


def is_adjustment(line: str) -> bool:
    """Return whether a line begins with the name of an adjustment."""
    return line.split(maxsplit=1)[:1] in [[kind.value] for kind in AdjustmentKind]


def adjustment_of(line: str) -> Adjustment:
    """Return the adjustment that `line`, which begins with the name of one, asks for.

    Raises BadUse if a word is missing, superfluous or not a number. Only the cluster knows what exists in it.
    """
    word, *rest = line.split()
    kind = AdjustmentKind(word)
    example = NEEDS[kind].example
    if len(rest) != len(example.split()) - 1:
        raise BadUse(ErrorKind.COMMAND_INCOMPLETE, command=word, needs=NEEDS[kind].what, example=example)
    match kind:
        case AdjustmentKind.RATE:
            return Adjustment(kind, rest[0], amount=amount(rest[1]))
        case AdjustmentKind.BANDWIDTH:
            if not _NODE.fullmatch(rest[0]):
                raise BadUse(ErrorKind.NOT_A_NODE_ID, text=rest[0])
            return Adjustment(kind, broker=int(rest[0]), amount=amount(rest[1]))
        case AdjustmentKind.SET:
            key, _, value = rest[1].partition("=")
            return Adjustment(kind, rest[0], key=key, value=value)
        case AdjustmentKind.UNSET:
            return Adjustment(kind, rest[0], key=rest[1])
    return Adjustment(kind, rest[0])


def amount(text: str) -> float:
    """Return the number in `200`, `20k` or `1.5M`. Raises BadUse."""
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise BadUse(ErrorKind.NOT_AN_AMOUNT, text=text)
    return float(match[1]) * _TIMES[match[2]]
