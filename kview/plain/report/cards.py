"""What a page of a report begins with: four figures, and a bar of availability for each topic."""

from datetime import tzinfo
from typing import NamedTuple

import numpy as np

from kview.language import glyphs, report_names, reports, words
from kview.model.events import Severity
from kview.model.report import NoteKind, Report
from kview.model.report_tables import TableName
from kview.model.units import UNKNOWN
from kview.plain.report.summary import lasted_ms, named

MOST_BARS = 12
"""The most topics with a bar, those that were available least."""


class Card(NamedTuple):
    """A figure with what it is, and what to know about it."""

    name: str
    figure: str
    note: str
    severity: Severity


class Bar(NamedTuple):
    """A topic's time as shares of 0 to 1: with a leader that answered, with a silent one, and without one."""

    topic: str
    available: str
    answering: float
    silent: float
    offline: float


def cards(report: Report, zone: tzinfo | None = None) -> list[Card]:
    """Return the figures: the worst topic's availability, the worst lag, the records, the incidents."""
    return [_availability(report), _lag(report), _records(report), _incidents(report)]


def bars(report: Report) -> tuple[list[Bar], int]:
    """Return the bars of the topics, those that were available least first, and how many more there are."""
    table = report[TableName.TOPICS]
    known = np.flatnonzero(np.isfinite(table["available"]))
    keys = table["topic"][known].astype(str), table["answering"][known], table["available"][known]
    order = known[np.lexsort(keys)]
    drawn = []
    for at in order[:MOST_BARS].tolist():
        available = float(table["available"][at])
        answering = float(np.nan_to_num(table["answering"][at], nan=available))
        shares = answering, max(0.0, available - answering), 1 - available
        topic = glyphs.printable(named(report, table, "topic", at))
        drawn.append(Bar(topic, reports.percent(available), *shares))
    return drawn, max(0, len(order) - MOST_BARS)


def _availability(report: Report) -> Card:
    name, table = report_names.CARDS["availability"], report[TableName.TOPICS]
    shares = table["available"] if len(table) else np.zeros(0)
    if not np.isfinite(shares).any():
        return Card(name, words.NONE, "", Severity.CALM)
    at = int(np.nanargmin(shares))
    share = float(shares[at])
    note = reports.EVERY_TOPIC if share == 1 else glyphs.printable(named(report, table, "topic", at))
    return Card(name, reports.percent(share), note, Severity.GOOD if share == 1 else Severity.RISK)


def _lag(report: Report) -> Card:
    name, table = report_names.CARDS["lag"], report[TableName.GROUPS]
    if not len(table) or not (table["behind_most"] != UNKNOWN).any():
        return Card(name, words.NONE, "", Severity.CALM)
    at = int(np.argmax(table["behind_most"]))
    severity = Severity.WARN if table["above_ms"][at] > 0 else Severity.CALM
    figure = words.duration(int(table["behind_most"][at]))
    return Card(name, figure, glyphs.printable(named(report, table, "group", at)), severity)


def _records(report: Report) -> Card:
    name, table = report_names.CARDS["records"], report[TableName.CLUSTERS]
    mine = np.flatnonzero(table["cluster"] != "") if len(table) else np.zeros(0, np.int64)
    known = mine[table["records_in"][mine] != UNKNOWN] if len(mine) else mine
    if not len(known):
        return Card(name, words.NONE, "", Severity.CALM)
    rates = table["in_rate"][known]
    note = reports.on_average(float(np.nansum(rates))) if np.isfinite(rates).any() else ""
    return Card(name, words.si(float(table["records_in"][known].sum())), note, Severity.CALM)


def _incidents(report: Report) -> Card:
    name, table = report_names.CARDS["incidents"], report[TableName.INCIDENTS]
    is_partial = any(note.kind is NoteKind.FACTS_INCOMPLETE for note in report.period.notes)
    if not len(table):
        nothing = is_partial or UNKNOWN in (report.period.since_ms, report.period.until_ms)
        return Card(name, words.NONE if nothing else "0", "", Severity.CALM if nothing else Severity.GOOD)
    lasted, is_open = lasted_ms(report, table)
    at = int(np.argmax(lasted))
    note = reports.longest(int(lasted[at]), bool(is_open[at]))
    return Card(name, words.at_least(f"{len(table):,}", is_partial), note, Severity.RISK)
