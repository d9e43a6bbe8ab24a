"""Figures of a report as texts, by their units."""

import math
from collections.abc import Callable, Mapping
from datetime import datetime, tzinfo
from typing import Any

from kview.language import reports, words
from kview.model.report import Report
from kview.model.report_tables import Column, Unit
from kview.model.units import UNKNOWN

NO_LIMIT = -1
"""The value of retention.ms and retention.bytes if nothing is deleted."""

When = Callable[[int], str]
"""Writes a time (epoch ms)."""

LEFT = frozenset({Unit.NAME})
"""Units whose values are aligned to the left."""


def text_of(column: Column, value: Any, when: When) -> str:
    """Return a value as a text, `–` if it is not known. `when` writes times."""
    if isinstance(value, str):
        return value or words.NONE
    if value != value or (not column.is_fraction and value == UNKNOWN):
        return words.NONE
    if column.unit is Unit.TIME:
        return when(int(value))
    if column.name.startswith("retention") and value == NO_LIMIT:
        return "for ever" if column.unit is Unit.MILLISECONDS else "no limit"
    text = _TEXTS[column.unit](value)
    return words.marked(text, column.name == "gone" and value > 0, column.is_estimate)


def moment(at_ms: int, zone: tzinfo | None) -> str:
    """Return a moment with its day: `2026-03-01 14:02:07`."""
    return datetime.fromtimestamp(at_ms // 1000, zone).strftime("%Y-%m-%d %H:%M:%S")


def times(report: Report, zone: tzinfo | None) -> When:
    """Return how the times of a report are written: in `zone`, and without the day if it is about one day.

    None is the machine's own zone.
    """
    ends = [report.period.since_ms, report.period.until_ms - 1]
    if report.against is not None:
        ends += [report.against.since_ms, report.against.until_ms - 1]
    days = {moment(at_ms, zone).split()[0] for at_ms in ends if at_ms > UNKNOWN}

    def when(at_ms: int) -> str:
        day, time = moment(at_ms, zone).split()
        return time if days == {day} else f"{day} {time}"

    return when


def money(value: float) -> str:
    """Return a sum of money with two digits, or with more where it is small: `12.40`, `0.0031`."""
    if not 0 < abs(value) < 0.01:
        return f"{value:,.2f}"
    return f"{value:.{1 - math.floor(math.log10(abs(value)))}f}"


def ratio(value: float) -> str:
    """Return a ratio: `1.3`, `12`, `0.04`."""
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.1f}" if abs(value) >= 0.1 else f"{value:.2g}"


_TEXTS: Mapping[Unit, Callable[[Any], str]] = {
    Unit.SECONDS: lambda value: words.duration(int(value) * 1000, tenths=False),
    Unit.MILLISECONDS: lambda value: words.duration(int(value)),
    Unit.RECORDS: lambda value: f"{int(value):,}",
    Unit.COUNT: lambda value: f"{int(value):,}",
    Unit.ID: lambda value: str(int(value)),
    Unit.RECORDS_PER_SECOND: words.rate,
    Unit.BYTES: words.size,
    Unit.BYTES_PER_SECOND: lambda value: f"{words.size(round(value))}/s",
    Unit.BYTES_PER_DAY: lambda value: words.size(round(value)),
    Unit.SHARE: reports.percent,
    Unit.RATIO: ratio,
    Unit.MONEY: money,
}
