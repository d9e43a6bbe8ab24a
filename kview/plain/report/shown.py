"""What people are shown of a report: which tables, columns and rows, in which order, and figures as texts."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any

import numpy as np

from kview.language import glyphs, report_names, reports, words
from kview.language.reports import When
from kview.model.report import Period, Report
from kview.model.report_tables import Array, Column, Table, TableName, Unit
from kview.model.units import UNKNOWN
from kview.plain.report.picks import KEYS, PICKS, Pick
from kview.plain.report.summary import incident_title

MOST_ROWS = 20
"""The most rows of a table that people are shown. The files have all of them."""


SAME_WITHIN = 0.02
"""By what share the lengths of two periods may differ, so that their totals can still be compared."""

_NO_LIMIT = -1
"""The value of retention.ms and retention.bytes if nothing is deleted."""

_LEFT = frozenset({Unit.NAME})
"""Units whose values are aligned to the left."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell: its text, and the value that the text is made of (None if it is not known or made up of several
    values)."""

    text: str
    value: str | int | float | None = None


@dataclass(frozen=True, slots=True)
class ShownColumn:
    """A column: its head, its meaning, on which side it is aligned, and how soon it is left out."""

    head: str
    meaning: str
    left: bool
    field: str
    """The name of the column in the report's table, '' if it is made up of several."""
    rank: int = 0
    """Columns with the greatest rank are left out first where there is no room; 0 never."""


@dataclass(frozen=True, slots=True)
class ShownTable:
    """A table as people see it. `total` is the number of rows that there are."""

    name: str
    title: str
    columns: tuple[ShownColumn, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: int
    hint: str = ""
    """What to know about the whole table, '' if nothing."""


def tables(report: Report, zone: tzinfo | None = None, most_rows: int = MOST_ROWS) -> list[ShownTable]:
    """Return the tables that have something to say, the most important first."""
    when = reports.times(report, zone)
    all_tables = [_incidents(report.period, when, most_rows)]
    if report.comparison is not None:
        all_tables.append(_comparison(report, report.comparison, when, most_rows))
    all_tables += [_picked(report, pick, when, most_rows) for pick in PICKS]
    return [table for table in all_tables if table.total]


def _picked(report: Report, pick: Pick, when: When, most_rows: int) -> ShownTable:
    table = report[pick.table]
    kept = np.flatnonzero(pick.keep(table)) if len(table) else np.zeros(0, np.int64)
    order = kept[np.lexsort([_descending(keys[kept]) for keys in reversed(pick.order(table))])]
    spec = {column.name: column for column in table.spec}
    several = len(set(table["cluster"])) > 1
    named = [*(("cluster",) if several else ()), *KEYS[pick.name]]
    ranked = [(name, 0) for name in named] + [
        (name, rank) for name, rank in pick.columns if rank == 0 or _has_something(table[name][order])
    ]
    columns = tuple(_column(spec[name], report, rank) for name, rank in ranked)
    rows = tuple(
        tuple(_cell(spec[name], table[name][at], when, name == "topic") for name, _ in ranked)
        for at in order[:most_rows]
    )
    return ShownTable(pick.name, report_names.TITLES[pick.name], columns, rows, len(order), pick.hint)


def _has_something(values: Array) -> bool:
    """Return whether a column is worth its room: some value is known, and not 0."""
    if values.dtype == object:
        return any(values)
    if values.dtype.kind == "f":
        return bool(np.any(np.isfinite(values) & (values != 0)))
    return bool(np.any((values != UNKNOWN) & (values != 0)))


def _descending(keys: Array) -> Array:
    if keys.dtype.kind == "f":
        return -np.nan_to_num(keys, nan=-np.inf)
    return -keys.astype(np.int64)


def _column(column: Column, report: Report, rank: int) -> ShownColumn:
    head = report_names.HEADS.get(column.name, report_names.kind_words(column.name))
    if column.name == "above_ms":
        head = f"over {words.duration(report.threshold_ms, tenths=False)}"
    return ShownColumn(head, column.meaning, column.unit in _LEFT, column.name, rank)


def _cell(column: Column, value: Any, when: When, is_topic: bool) -> Cell:
    if is_topic and value == "":
        return Cell("all topics", "")
    if column.name == "cluster" and value == "":
        return Cell("all clusters", "")
    if column.name in ("kind", "severity"):
        return Cell(report_names.kind_words(value), value)
    known = None if _is_unknown(value) else value if isinstance(value, str) else value.item()
    return Cell(glyphs.printable(_text_of(column, value, when)), known)


def _text_of(column: Column, value: Any, when: When) -> str:
    """Return a value as a text, `–` if it is not known. `when` writes times."""
    if isinstance(value, str):
        return value or words.NONE
    if value != value or (not column.is_fraction and value == UNKNOWN):
        return words.NONE
    if column.unit is Unit.TIME:
        return when(int(value))
    if column.name.startswith("retention") and value == _NO_LIMIT:
        return "for ever" if column.unit is Unit.MILLISECONDS else "no limit"
    text = _TEXTS[column.unit](value)
    return words.marked(text, column.name == "gone" and value > 0, column.is_estimate)


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
    Unit.RATIO: reports.ratio,
    Unit.MONEY: reports.money,
}


def _is_unknown(value: Any) -> bool:
    if isinstance(value, str):
        return False
    return bool(np.isnan(value)) if isinstance(value, np.floating) else int(value) == UNKNOWN


_STOPWATCH = ("fenced_ms", "elected_all_ms", "moves_all_ms", "isr_full_ms")

_INCIDENT_RANKS = {
    **{"gone": 1, "waited_ms": 1, "elected_all_ms": 2, "fenced_ms": 3, "isr_full_ms": 4, "moves_all_ms": 5},
    **{"moved": 6, "leaderless": 6},
}


def _incidents(period: Period, when: When, most_rows: int) -> ShownTable:
    table = period.tables[TableName.INCIDENTS]
    spec = {column.name: column for column in table.spec}
    several = len(set(table["cluster"])) > 1
    numbers = (*_STOPWATCH, "moved", "leaderless", "gone", "waited_ms")
    known = [name for name in numbers if name == "fenced_ms" or _has_something(table[name])]
    columns = (
        *((ShownColumn("cluster", "", True, "cluster"),) if several else ()),
        ShownColumn("began", spec["began_ms"].meaning, False, "began_ms"),
        ShownColumn("what", "What the incident began with.", True, ""),
        ShownColumn("lasted", "From the first sign to the end.", False, ""),
        *(
            ShownColumn(report_names.HEADS[name], spec[name].meaning, False, name, _INCIDENT_RANKS[name])
            for name in known
        ),
    )
    rows = []
    for at in np.argsort(table["began_ms"], kind="stable")[:most_rows]:
        cells = [_cell(spec["cluster"], table["cluster"][at], when, False)] if several else []
        cells.append(_cell(spec["began_ms"], table["began_ms"][at], when, False))
        cells.append(Cell(glyphs.printable(incident_title(table, int(at)))))
        ended, began = int(table["ended_ms"][at]), int(table["began_ms"][at])
        open_for = period.until_ms - began
        cells.append(
            Cell(words.duration(ended - began) if ended != UNKNOWN else f"≥{words.duration(open_for)}")
        )
        cells += [_incident_cell(table, int(at), spec[name], when) for name in known]
        rows.append(tuple(cells))
    return ShownTable(
        TableName.INCIDENTS, report_names.TITLES[TableName.INCIDENTS], columns, tuple(rows), len(table)
    )


def _incident_cell(table: Table, at: int, column: Column, when: When) -> Cell:
    cell = _cell(column, table[column.name][at], when, False)
    if cell.value is None:
        return cell
    if column.name == "fenced_ms":
        brokers = str(table["brokers"][at]).count(",") + 1
        return Cell(reports.fenced(int(cell.value), int(table["fenced_all_ms"][at]), brokers), cell.value)
    if column.name in _STOPWATCH:
        return Cell(f"+{cell.text}", cell.value)
    return Cell(f"≤{cell.text}", cell.value) if column.name == "waited_ms" else cell


def _comparison(report: Report, table: Table, when: When, most_rows: int) -> ShownTable:
    """Return the comparison, the greatest changes first. Each row has the unit of its figure."""
    figures = {
        column.name: column for name in (TableName.CLUSTERS, TableName.TOPICS) for column in report[name].spec
    }
    several = len(set(table["cluster"])) > 1
    columns = (
        *((ShownColumn("cluster", "", True, "cluster"),) if several else ()),
        ShownColumn("topic", "", True, "topic"),
        ShownColumn("figure", "", True, "figure"),
        *(ShownColumn(name, "", False, name) for name in ("before", "now", "change")),
    )
    began = (table["before"] == 0) & (table["now"] > 0)
    changes = np.where(began, np.inf, np.abs(np.nan_to_num(table["change"], nan=0)))
    kept = np.flatnonzero((table["before"] != 0) | (table["now"] != 0))
    rows = []
    for at in kept[np.lexsort([-changes[kept], table["topic"][kept] != ""])][:most_rows]:
        figure = figures[str(table["figure"][at])]
        change = float(table["change"][at])
        rows.append(
            tuple(
                [
                    *([Cell(glyphs.printable(str(table["cluster"][at])))] if several else []),
                    _cell(table.spec[1], table["topic"][at], when, True),
                    Cell(report_names.FIGURES.get(figure.name, figure.name), figure.name),
                    *(
                        Cell(
                            _text_of(figure, _in_unit(figure, table[name][at]), when), _float(table[name][at])
                        )
                        for name in ("before", "now")
                    ),
                    Cell(reports.change(change, bool(began[at])), _float(change)),
                ]
            )
        )
    return ShownTable(
        "comparison", report_names.TITLES["comparison"], columns, tuple(rows), len(kept), _lengths(report)
    )


def _lengths(report: Report) -> str:
    """Return that totals of the two periods cannot be compared, '' if they can."""
    assert report.against is not None
    before, now = (period.until_ms - period.since_ms for period in (report.against, report.period))
    return reports.lengths_differ(before, now) if abs(now - before) > SAME_WITHIN * before else ""


def _in_unit(figure: Column, value: float) -> Any:
    return value if figure.is_fraction else UNKNOWN if np.isnan(value) else int(value)


def _float(value: Any) -> float | None:
    return None if np.isnan(value) else float(value)


def fitting(table: ShownTable, width: int, cell_width: Callable[[str], int]) -> Iterator[int]:
    """Yield the places of the columns that fit into `width` cells, leaving out the least important ones."""
    widths = [
        max([cell_width(column.head), *(cell_width(row[at].text) for row in table.rows)])
        for at, column in enumerate(table.columns)
    ]
    left = set(range(len(widths)))
    while sum(widths[at] + 2 for at in left) - 2 > width:
        worst = max(left, key=lambda at: (table.columns[at].rank, at))
        if not table.columns[worst].rank:
            break
        left.remove(worst)
    yield from sorted(left)
