"""Cells of figures: each is made from its value, so that what is drawn and what is exported mean the same.

Values are unrounded, in records, records per second, bytes and seconds, None if they are not known. All
functions here are pure.
"""

import math
from datetime import UTC, datetime, timedelta
from typing import Self

from kview.derive.view import GroupFigures, OffsetFigures
from kview.language import verdicts, words
from kview.language.brokers import BrokerWords
from kview.model.units import NEVER, UNKNOWN, UNKNOWN_ID
from kview.tui.text import Line, Role, Span

Value = str | int | float | None

AT_LEAST, ABOUT, AT_MOST = ">=", "~", "<="
"""Marks of values that are bounds or estimates. A value without a mark is as it was read."""

IS_NEVER = "never"
"""The mark of a duration without a value, because it does not end at this rate."""

STATE = ("state", "state s", "state bound")
"""The titles of the values of `state_figure`."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Figure(tuple[Span, ...]):
    """A cell that stands for values.

    They are for the columns that `Column.exported` names, in order. If it names fewer, the rest are "" or
    None, as the mark of a figure that cannot have one.
    """

    values: tuple[Value, ...]

    def __new__(cls, spans: Line, *values: Value) -> Self:
        """Make a cell of what is drawn and of its values."""
        cell = super().__new__(cls, spans)
        cell.values = values
        return cell


def text_figure(text: str, role: Role = Role.TEXT, dim: bool = False) -> Line:
    """Return what is drawn for a figure. "–" and "…" are always dim; `dim` is for stale figures."""
    return (Span(text, Role.DIM if dim or text.strip() in (words.NONE, words.NOT_YET, "") else role),)


def figure(
    text: str, value: float | None, mark: str = "", role: Role = Role.TEXT, old: bool = False
) -> Figure:
    """Return the cell of a value with a mark. `old`: it was read so long ago that it is an estimate now."""
    if value is None and mark != IS_NEVER:
        mark = ""
    elif old and not mark:
        mark = ABOUT
    return Figure(text_figure(text, role, old), value, mark)


def count_figure(
    value: int, role: Role = Role.TEXT, is_bound: bool = False, old: bool = False, mark: str = ""
) -> Figure:
    """Return the cell of a number of things, or of an offset: `1,204,117`, or `≥1,204,117` if it is a bound.

    `mark` is that of a column whose title says that its figures are bounds.
    """
    text = words.at_least(words.count(value), is_bound)
    return figure(text, known(value), AT_LEAST if is_bound else mark, role, old)


def number_figure(value: int, role: Role = Role.TEXT) -> Figure:
    """Return the cell of a number that is a name or a small setting, without separators."""
    return figure(words.setting(value), known(value), role=role)


def rate_figure(
    per_second: float, role: Role = Role.TEXT, is_bound: bool = False, old: bool = False
) -> Figure:
    """Return the cell of a rate: `1,861`, or `≥1,861` if it is a bound."""
    text = words.rate(per_second, is_bound)
    return figure(text, finite(per_second), AT_LEAST if is_bound else "", role, old)


def size_figure(value_bytes: int, role: Role = Role.TEXT, old: bool = False) -> Figure:
    """Return the cell of a size: `1.1 GB`."""
    return figure(words.size(value_bytes), known(value_bytes), role=role, old=old)


def latency_figure(value_us: int, role: Role = Role.TEXT) -> Figure:
    """Return the cell of how long a request takes: `0.4 ms`."""
    value = known(value_us)
    return figure(words.latency(value_us), None if value is None else value / 1_000_000, role=role)


def duration_figure(
    text: str, length_ms: int, mark: str = "", role: Role = Role.TEXT, old: bool = False
) -> Figure:
    """Return the cell of a length of time, which `text` says in words."""
    mark = IS_NEVER if length_ms >= NEVER else mark
    return figure(text, seconds(length_ms), mark, role, old)


def behind_figure(
    figures: GroupFigures | OffsetFigures, row: int, trend: str = "", old: bool = False
) -> Figure:
    """Return the cell of a lag in time: `2 m 10 s`, `≥2 m 10 s`, `≈2 m 10 s`, with its trend after it."""
    mark = AT_LEAST if figures.behind_is_bound[row] else ABOUT if figures.behind_is_estimate[row] else ""
    return duration_figure(verdicts.behind(figures, row) + trend, int(figures.behind_ms[row]), mark, old=old)


def state_figure(said: BrokerWords, drawn: Line) -> Figure:
    """Return the cell of what a broker is doing, with how long it has been so."""
    lasts = seconds(said.lasts_ms)
    return Figure(drawn, said.name, lasts, AT_LEAST if said.is_bound and lasts is not None else "")


def moment_figure(text: str, at_ms: int) -> Figure:
    """Return the cell of a moment."""
    return Figure((Span(text, Role.DIM),), moment(at_ms))


# -- values


def known(value: int) -> int | None:
    """Return a value, None for what is not known."""
    return None if value in (UNKNOWN, UNKNOWN_ID) else value


def finite(value: float) -> float | None:
    """Return a rate or a ratio, None for what is not known."""
    return value if math.isfinite(value) else None


def seconds(length_ms: int) -> float | None:
    """Return a length of time in seconds, None for what is not known and for NEVER.

    Negative lengths, which come from clocks that differ, count as 0.
    """
    return None if known(length_ms) is None or length_ms >= NEVER else max(0, length_ms) / 1000


def age(since_ms: int, now_ms: int) -> float | None:
    """Return how long ago a moment was in seconds, None if the moment is not known."""
    return None if known(since_ms) is None else seconds(now_ms - since_ms)


def moment(at_ms: int) -> Value:
    """Return a moment as ISO 8601 has it, in UTC with milliseconds, or in epoch ms if no calendar has it."""
    if known(at_ms) is None:
        return None
    try:
        at = _EPOCH + timedelta(milliseconds=at_ms)
    except OverflowError:
        return at_ms
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
