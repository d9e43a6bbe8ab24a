"""Expectations of a lesson: `partition invoice-3 leader is 4 within 12s`, `group billing lag grows`.

An expectation must come true once within its time. With `throughout`, and with `stays`, it must be true of
every observation until its step is over.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from kview.model.units import UNKNOWN
from kview.school.figures import Figure, NotAFigure, parse
from kview.school.moment import Moment, Value

_DURATION = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)(ms|s|m)")
_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000}
_NUMBER = re.compile(r"-?[0-9]{1,15}")


class Operator(StrEnum):
    """How a figure is compared: with a value, or with what it was at the beginning of its step."""

    IS = "is"
    IS_NOT = "is-not"
    AT_LEAST = ">="
    AT_MOST = "<="
    HAS = "has"
    LACKS = "lacks"
    GROWS = "grows"
    FALLS = "falls"
    CHANGES = "changes"
    STAYS = "stays"
    """It must not change before the step is over."""


WITHOUT_VALUE = frozenset({Operator.GROWS, Operator.FALLS, Operator.CHANGES, Operator.STAYS})
FORM = (
    "write FIGURE is|is-not|>=|<=|has|lacks VALUE, or FIGURE grows|falls|changes|stays; then within 10s"
    " or throughout"
)


@dataclass(frozen=True, slots=True)
class Expectation:
    """What must be true of a figure, at the latest `within_ms` after its step began (UNKNOWN: at its end)."""

    text: str
    figure: Figure
    operator: Operator
    values: tuple[str, ...] = ()
    within_ms: int = UNKNOWN
    throughout: bool = False
    """Whether it must be true of every observation of the step, and not just of one."""

    def holds(self, then: Value, now: Value) -> bool:
        """Return whether it holds. `then` is the value at the beginning of the step."""
        match self.operator:
            case Operator.STAYS:
                return then == now
            case Operator.CHANGES:
                return now is not None and then != now
            case Operator.GROWS:
                return _is_number(then) and _is_number(now) and int(now) > int(then)  # type: ignore[arg-type]
            case Operator.FALLS:
                return _is_number(then) and _is_number(now) and int(now) < int(then)  # type: ignore[arg-type]
            case Operator.IS:
                return self._equals(now)
            case Operator.IS_NOT:
                return now is not None and not self._equals(now)
            case Operator.HAS:
                return isinstance(now, tuple) and set(self.values) <= set(map(str, now))
            case Operator.LACKS:
                return isinstance(now, tuple) and not set(self.values) & set(map(str, now))
        limit = quantity(self.values[0])
        if limit is None or not _is_number(now):
            return False
        return int(now) >= limit if self.operator is Operator.AT_LEAST else int(now) <= limit  # type: ignore[arg-type]

    def _equals(self, now: Value) -> bool:
        if self.values == ("unknown",):
            return now is None
        if isinstance(now, bool):
            return self.values == ("yes" if now else "no",)
        if isinstance(now, tuple):
            return (tuple(map(str, now)) or ("none",)) == self.values
        if isinstance(now, int):
            return now == (-1 if self.values == ("none",) else quantity(self.values[0]))
        return now is not None and self.values == (now,)


def _is_number(value: Value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def quantity(text: str) -> int | None:
    """Return a number, or a duration in ms, or None."""
    if _NUMBER.fullmatch(text):
        return int(text)
    return duration_ms(text)


def duration_ms(text: str) -> int | None:
    """Return the milliseconds in `12s`, `200ms` or `2m`, or None."""
    match = _DURATION.fullmatch(text)
    return round(float(match[1]) * _UNITS_MS[match[2]]) if match else None


def expectation(text: str) -> Expectation:
    """Return the expectation in a text. Raises NotAFigure."""
    words = text.split()
    within_ms = UNKNOWN
    throughout = words[-1:] == ["throughout"]
    if throughout:
        words = words[:-1]
    elif len(words) > 2 and words[-2] == "within":
        limit_ms = duration_ms(words[-1])
        if limit_ms is None:
            raise NotAFigure(f"{words[-1]!r} is not a duration", "write 500ms, 12s or 2m")
        words, within_ms = words[:-2], limit_ms
    figure, rest = parse(words)
    if not rest or rest[0] not in list(Operator):
        raise NotAFigure(f"{' '.join(rest) or text!r} does not compare {figure}", FORM)
    operator, values = Operator(rest[0]), tuple(rest[1:])
    if (operator in WITHOUT_VALUE) != (not values):
        raise NotAFigure(f"{text!r} has the wrong number of values", FORM)
    if operator in (Operator.AT_LEAST, Operator.AT_MOST) and (len(values) > 1 or quantity(values[0]) is None):
        raise NotAFigure(f"{values[0]!r} is not a number or a duration", "write 100 or 12s")
    return Expectation(text, figure, operator, values, within_ms, throughout or operator is Operator.STAYS)


def shown(value: Value) -> str:
    """Return a value as it is written in an expectation."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return " ".join(map(str, value)) or "none"
    return str(value)


def seen(figure: Figure, moment: Moment) -> str:
    """Return a figure's value at a moment, as it is written in an expectation."""
    return shown(figure.value(moment))
