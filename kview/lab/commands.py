"""Commands as people type them: `crash 4`, `slow 4 200ms`, `rate invoice-service 200`."""

import difflib
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from msgspec import structs

from kview.errors import BadUse, ErrorKind
from kview.language.commands import example, needs
from kview.model.lab import ARGUMENTS, Argument, Command, CommandKind, Where
from kview.simulate.codes import ErrorCode

OTHER_WORDS = ("status", "counters", "quit")
"""Lines that ask for something other than a command."""

MAX_SLOW_MS = 60_000
"""Limit of the latency that a fault may add. With more, the node would look hung, because clients give up
first."""

MAX_ADVANCE_MS = 30 * 86_400_000
"""Limit of the time that may pass at once: a month, which takes the cluster minutes."""

_DURATION = re.compile(r"([0-9]{1,9})(ms|s|m|h|d)?")
_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, None: 1}
_AMOUNT = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,6})?)([kMG]?)")
_TIMES = {"": 1, "k": 1_000, "M": 1_000_000, "G": 1_000_000_000}
HIGHEST_ERROR = 32_767
"""An error code has 16 bits."""

_OF_TIME = {"pause": "pause-time", "resume": "resume-time"}
"""What is paused if nothing is named."""

_NUMBER = re.compile(r"[0-9]{1,9}")


def parse(line: str) -> Command:
    """Return the command in a line.

    Raises BadUse if a word is unknown, missing, superfluous or not a number. Only the cluster knows what
    exists in it.
    """
    word, *rest = line.split() or [""]
    if not rest:
        word = _OF_TIME.get(word, word)
    if word in OTHER_WORDS:
        raise BadUse(ErrorKind.COMMAND_INCOMPLETE, command=word, needs="takes no argument", example=word)
    try:
        kind = CommandKind(word)
    except ValueError:
        raise _unknown(word) from None
    arguments = ARGUMENTS[kind]
    if len(rest) != len(arguments):
        raise BadUse(ErrorKind.COMMAND_INCOMPLETE, command=word, needs=needs(kind), example=example(kind))
    values: dict[str, Any] = {}
    for argument, text in zip(arguments, rest, strict=True):
        values |= _TYPED[argument].read(text)
    return Command(kind, **values)


def checked(command: Command) -> Command:
    """Return a command that did not come as a line, with what it needs and nothing else. Raises BadUse for
    what no line could have said."""
    values: dict[str, Any] = {}
    for argument in ARGUMENTS[command.kind]:
        values |= _TYPED[argument].read(_TYPED[argument].write(command))
    return Command(command.kind, **values)


def typed(command: Command) -> str:
    """Return the line of a command: `slow 4 200ms`."""
    return " ".join((command.kind.value, *(_TYPED[a].write(command) for a in ARGUMENTS[command.kind])))


def latency_ms(text: str) -> int:
    """Return the milliseconds in `200ms`, `2s` or `200`. Raises BadUse."""
    latency = _milliseconds(text)
    if not 1 <= latency <= MAX_SLOW_MS:
        raise BadUse(ErrorKind.NOT_A_LATENCY, text=text, most_ms=MAX_SLOW_MS)
    return latency


def time_ms(text: str) -> int:
    """Return the milliseconds in `200ms`, `90s`, `10m`, `2h` or `7d`. Raises BadUse."""
    length = 0 if text.isdigit() else _milliseconds(text)
    if not 1 <= length <= MAX_ADVANCE_MS:
        raise BadUse(ErrorKind.NOT_A_TIME_TO_PASS, text=text, most_d=MAX_ADVANCE_MS // _UNIT_MS["d"])
    return length


def _milliseconds(text: str) -> int:
    match = _DURATION.fullmatch(text)
    return int(match[1]) * _UNIT_MS[match[2]] if match else 0


def amount(text: str) -> float:
    """Return the number in `200`, `20k` or `1.5M`. Raises BadUse."""
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise BadUse(ErrorKind.NOT_AN_AMOUNT, text=text)
    return float(match[1]) * _TIMES[match[2]]


def error_code(text: str) -> int:
    """Return the number of an error of Kafka's, given as `NOT_LEADER_OR_FOLLOWER` or `6`. Raises BadUse."""
    if text in ErrorCode.__members__ and text != "NONE":
        return ErrorCode[text].value
    if text == "-1" or (_NUMBER.fullmatch(text) and 0 < int(text) <= HIGHEST_ERROR):
        return int(text)
    from kafka import errors  # which knows those, too, that the simulated cluster never answers with

    known = {getattr(one, "message", ""): getattr(one, "errno", 0) for one in vars(errors).values()}
    if known.get(text):
        return int(known[text])
    near = difflib.get_close_matches(text.upper(), [*ErrorCode.__members__, *filter(None, known)], n=1)
    raise BadUse(ErrorKind.NOT_AN_ERROR, text=text, nearest=near[0] if near else "NOT_LEADER_OR_FOLLOWER")


def where_of(text: str) -> Where:
    """Return the requests in `all` or `times=3,broker=1,topic=orders,partition=0,percent=20`. Raises
    BadUse."""
    values: dict[str, Any] = {}
    for part in () if text == "all" else text.split(","):
        name, sign, value = part.partition("=")
        number = _NUMBER.fullmatch(value) is not None
        if name == "topic" and value:
            values[name] = value
        elif sign and number and name in ("times", "broker", "partition"):
            values[name] = int(value)
        elif name == "percent" and number and 1 <= int(value) <= 100:
            values[name] = float(value)
        else:
            raise BadUse(ErrorKind.NOT_A_WHERE, text=part)
    if "partition" in values and "topic" not in values:
        raise BadUse(ErrorKind.NOT_A_WHERE, text=f"partition={values['partition']} without topic=")
    return Where(**values)


def where_text(where: Where) -> str:
    """Return it as it is typed."""
    default, pairs = Where(), structs.asdict(where).items()
    given = [f"{name}={value:.0f}" if name == "percent" else f"{name}={value}" for name, value in pairs
             if value != getattr(default, name)]  # fmt: skip
    return ",".join(given) or "all"


def _moment(text: str) -> dict[str, Any]:
    if text not in ("before", "after"):
        raise BadUse(ErrorKind.NOT_A_MOMENT, text=text)
    return {"key": text}


def _error(text: str) -> dict[str, Any]:
    return {"key": str(error_code(text))}


def _node(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise BadUse(ErrorKind.NOT_A_NODE_ID, text=text)
    return int(text)


def _setting(text: str) -> dict[str, Any]:
    key, _, value = text.partition("=")
    return {"key": key, "value": value}


def _unknown(word: str) -> BadUse:
    known = (*(kind.value for kind in CommandKind), *OTHER_WORDS)
    near = difflib.get_close_matches(word, known, n=1)
    if near:
        return BadUse(ErrorKind.COMMAND_MISSPELT, word=word, nearest=near[0])
    return BadUse(ErrorKind.COMMAND_UNKNOWN, word=word, known=known)


class _Typed(NamedTuple):
    """How an argument is read into a command's fields, and how it is written."""

    read: Callable[[str], dict[str, Any]]
    write: Callable[[Command], str]


_A_NODE = _Typed(lambda text: {"node": _node(text)}, lambda command: str(command.node))
_ANOTHER_NODE = _Typed(lambda text: {"other": _node(text)}, lambda command: str(command.other))
_A_NAME = _Typed(lambda text: {"name": text}, lambda command: command.name)

_TYPED: Mapping[Argument, _Typed] = {
    Argument.NODE: _A_NODE,
    Argument.OTHER: _ANOTHER_NODE,
    Argument.BROKER: _A_NODE,
    Argument.RACK: _A_NAME,
    Argument.PRODUCER: _A_NAME,
    Argument.GROUP: _A_NAME,
    Argument.TOPIC: _A_NAME,
    Argument.PARTITION: _A_NAME,
    Argument.LATENCY: _Typed(
        lambda text: {"amount": latency_ms(text)}, lambda command: f"{command.amount:.0f}ms"
    ),
    Argument.TIME: _Typed(lambda text: {"amount": time_ms(text)}, lambda command: f"{command.amount:.0f}ms"),
    Argument.RATE: _Typed(
        lambda text: {"amount": amount(text)},
        lambda command: f"{command.amount:.6f}".rstrip("0").rstrip("."),
    ),
    Argument.BANDWIDTH: _Typed(
        lambda text: {"amount": amount(text)}, lambda command: f"{command.amount:.0f}"
    ),
    Argument.API: _A_NAME,
    Argument.FOLDER: _A_NAME,
    Argument.ERROR: _Typed(_error, lambda command: command.key),
    Argument.MOMENT: _Typed(_moment, lambda command: command.key),
    Argument.WHERE: _Typed(lambda text: {"where": where_of(text)}, lambda command: where_text(command.where)),
    Argument.KEY: _Typed(lambda text: {"key": text}, lambda command: command.key),
    Argument.SETTING: _Typed(_setting, lambda command: f"{command.key}={command.value}"),
}
