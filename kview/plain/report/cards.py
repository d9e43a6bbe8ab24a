"""What a page of a report begins with: four figures, and a bar of availability for each topic."""

from typing import NamedTuple

import numpy as np

from kview.language import glyphs, report_names, reports, words
from kview.model.events import Severity
from kview.model.report import MOST_INCIDENTS, NoteKind, Report
from kview.model.report_tables import TableName
from kview.model.units import UNKNOWN
from kview.plain.report.summary import lasted_ms, named

MOST_BARS = 12
"""The most topics with a bar, those that were available least."""


_GAPS = {NoteKind.GAP, NoteKind.LEFT_OUT, NoteKind.SEGMENT_GONE, NoteKind.SEGMENT_DAMAGED, NoteKind.TORN}
"""Notes that some time was not seen."""


class Card(NamedTuple):
    """A figure with what it is, and what to know about it."""

    name: str
    figure: str
    note: str
    severity: Severity


class Bar(NamedTuple):
    """A topic's time as shares of 0 to 1: with a leader that answered, with a silent one, and without one.
    `answered` is the first one in words."""

    topic: str
    answered: str
    answering: float
    silent: float
    offline: float


def cards(report: Report) -> list[Card]:
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
        drawn.append(Bar(topic, reports.percent(answering), *shares))
    return drawn, max(0, len(order) - MOST_BARS)


def _availability(report: Report) -> Card:
    name, table = report_names.CARDS["availability"], report[TableName.TOPICS]
    shares = table["answering"] if len(table) else np.zeros(0)
    if not np.isfinite(shares).any():
        return Card(name, words.NONE, "", Severity.CALM)
    at = int(np.nanargmin(shares))
    share = float(shares[at])
    is_cut = any(note.kind is NoteKind.CUT_OFF for note in report.period.notes)
    is_all = bool(np.isfinite(shares).all()) and not report.topics and not is_cut
    topic = "" if share == 1 else glyphs.printable(named(report, table, "topic", at))
    note = reports.EVERY_TOPIC if share == 1 and is_all else topic
    return Card(name, reports.percent(share), note, Severity.GOOD if share == 1 else Severity.RISK)


def _lag(report: Report) -> Card:
    name, table = report_names.CARDS["lag"], report[TableName.GROUPS]
    if not len(table) or not (table["behind_most"] != UNKNOWN).any():
        return Card(name, words.NONE, "", Severity.CALM)
    at = int(np.argmax(table["behind_most"]))
    severity = Severity.WARN if table["above_ms"][at] > 0 else Severity.CALM
    figure = f"≈{words.duration(int(table['behind_most'][at]))}"
    return Card(name, figure, glyphs.printable(named(report, table, "group", at)), severity)


def _records(report: Report) -> Card:
    name, table = report_names.CARDS["records"], report[TableName.CLUSTERS]
    mine = np.flatnonzero(table["cluster"] != "") if len(table) else np.zeros(0, np.int64)
    known = mine[table["records_in"][mine] != UNKNOWN] if len(mine) else mine
    if not len(known):
        return Card(name, words.NONE, "", Severity.CALM)
    rates = table["in_rate"][known]
    note = reports.on_average(float(rates[0])) if len(rates) == 1 and np.isfinite(rates[0]) else ""
    return Card(name, words.si(float(table["records_in"][known].sum())), note, Severity.CALM)


def _incidents(report: Report) -> Card:
    name, table = report_names.CARDS["incidents"], report[TableName.INCIDENTS]
    kinds = {note.kind for note in report.period.notes}
    is_partial = NoteKind.FACTS_INCOMPLETE in kinds
    if not len(table):
        if is_partial or UNKNOWN in (report.period.since_ms, report.period.until_ms):
            return Card(name, words.NONE, "", Severity.CALM)
        if kinds & _GAPS:
            return Card(name, "0", reports.IN_TIME_SEEN, Severity.CALM)
        return Card(name, "0", "", Severity.GOOD)
    lasted, is_open = lasted_ms(report, table)
    at = int(np.argmax(lasted))
    note = reports.longest(int(lasted[at]), bool(is_open[at]))
    is_least = is_partial or len(table) >= MOST_INCIDENTS
    return Card(name, words.at_least(f"{len(table):,}", is_least), note, Severity.RISK)
