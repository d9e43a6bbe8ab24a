"""What is worth knowing first of a report: a few lines, the worst first."""

from datetime import tzinfo
from typing import NamedTuple

import numpy as np

from kview.language import glyphs, reports
from kview.model.events import Severity
from kview.model.report import NoteKind, Report
from kview.model.report_tables import Array, Table, TableName
from kview.model.units import UNKNOWN


class SummaryLine(NamedTuple):
    """A line of the summary and how bad it is."""

    severity: Severity
    text: str


def lines(report: Report, zone: tzinfo | None = None) -> list[SummaryLine]:
    """Return the summary, risks first.

    That there were no incidents is said only if everything was recorded.
    """
    candidates = [*_incidents(report, zone), *_availability(report), *_groups(report)]
    order = (Severity.RISK, Severity.WARN)
    bad = sorted(
        (line for line in candidates if line.severity in order), key=lambda line: order.index(line.severity)
    )
    kinds = {note.kind for note in report.period.notes}
    is_partial = NoteKind.FACTS_INCOMPLETE in kinds
    if NoteKind.NO_MATCH in kinds:
        bad.append(SummaryLine(Severity.WARN, reports.NO_MATCH))
    if is_partial:
        bad.append(SummaryLine(Severity.WARN, reports.NO_FACTS))
    elif not bad and _known_s(report):
        bad.append(SummaryLine(Severity.GOOD, reports.NOTHING_WRONG))
    return [
        SummaryLine(line.severity, glyphs.printable(line.text)) for line in [*bad, *_throughput(report, zone)]
    ]


def _known_s(report: Report) -> int:
    table = report[TableName.CLUSTERS]
    return max((int(value) for value in table["known_s"]), default=0)


MOST_GROUPS = 3
"""How many groups that lost records are named, those that lost most."""

MOST_CLUSTERS = 3
"""The throughput of how many clusters is said one by one, that of the busiest."""

MOST_INCIDENTS = 3
"""How many incidents are named one by one, the longest ones."""


def _incidents(report: Report, zone: tzinfo | None) -> list[SummaryLine]:
    table = report[TableName.INCIDENTS]
    when = reports.times(report, zone)
    summary_lines = []
    if len(table):
        lasted, is_open = lasted_ms(report, table)
        order = np.argsort(-lasted, kind="stable")
        longest = int(order[0])
        if len(table) > MOST_INCIDENTS:
            figures = len(table), int(lasted[longest]), int(np.count_nonzero(is_open)), bool(is_open[longest])
            summary_lines.append(SummaryLine(Severity.RISK, reports.incidents_line(*figures)))
        shown = sorted(order[:MOST_INCIDENTS].tolist(), key=lambda at: int(table["began_ms"][at]))
        for at in shown:
            text = reports.incident_line(
                reports.incident_subject(*_about(table, at), int(table["back_all_ms"][at])),
                cluster=_cluster(report, table, at),
                when=when(int(table["began_ms"][at])),
                lasted_ms=int(lasted[at]),
                is_open=bool(is_open[at]),
                led_ms=int(table["elected_all_ms"][at]),
                is_only_by_return=_only_by_return(table, at),
                waited_ms=int(table["waited_ms"][at]),
            )
            summary_lines.append(SummaryLine(Severity.RISK, text))
        if (gone := _sum(table["gone"])) > 0:
            summary_lines.append(SummaryLine(Severity.RISK, reports.gone_line(gone)))
    return summary_lines


def incident_title(table: Table, at: int) -> str:
    """Return what the incident in a row began with."""
    return reports.incident_title(*_about(table, at))


def _about(table: Table, at: int) -> tuple[str, str, str, str, str]:
    kind, cause, brokers, controllers, racks = (
        str(table[name][at]) for name in ("kind", "cause", "brokers", "controllers", "racks")
    )
    return kind, cause, brokers, controllers, racks


def lasted_ms(report: Report, table: Table) -> tuple[Array, Array]:
    """Return how long each incident lasted, or at least lasted, and whether it was still open at the end."""
    return ended_ms(report, table) - table["began_ms"], table["ended_ms"] == UNKNOWN


def ended_ms(report: Report, table: Table) -> Array:
    """Return the end of each incident, epoch ms, or until when its cluster was recorded if it was still
    open."""
    periods = report[TableName.PERIODS]
    until = {str(name): report.period.until_ms for name in table["cluster"]}
    for name in until:
        until[name] = int(periods["until_ms"][periods["cluster"] == name].max(initial=UNKNOWN))
    seen = np.array([until[str(name)] for name in table["cluster"]], np.int64)
    seen = np.where(seen == UNKNOWN, report.period.until_ms, seen)
    return np.where(table["ended_ms"] == UNKNOWN, np.maximum(seen, table["began_ms"]), table["ended_ms"])


def _only_by_return(table: Table, at: int) -> bool:
    """Return whether partitions were led again only because the lost brokers came back."""
    back_ms, led_ms = int(table["back_all_ms"][at]), int(table["elected_all_ms"][at])
    return 0 < back_ms <= led_ms and int(table["moved"][at]) == 0


def _cluster(report: Report, table: Table, at: int) -> str:
    """Return the cluster that a row is about, '' if the report is about one cluster only."""
    clusters = set(report[TableName.PERIODS]["cluster"])
    return str(table["cluster"][at]) if len(clusters) > 1 else ""


def named(report: Report, table: Table, name: str, at: int) -> str:
    """Return the topic or group of a row, with its cluster if there are several."""
    return reports.of_cluster(str(table[name][at]), _cluster(report, table, at))


def _sum(values: Array) -> int:
    return int(values[values != UNKNOWN].sum())


def _availability(report: Report) -> list[SummaryLine]:
    table = report[TableName.TOPICS]
    summary_lines = []
    for name, share, is_silent in (("offline_s", "available", False), ("silent_s", "answering", True)):
        if (worst := _greatest(table, name)) is not None:
            others = int(np.count_nonzero(table[name] > 0)) - 1
            values = (
                named(report, table, "topic", worst),
                int(table[name][worst]),
                float(table[share][worst]),
            )
            summary_lines.append(
                SummaryLine(Severity.RISK, reports.unavailable_line(*values, others, is_silent))
            )
    if (worst := _greatest(table, "under_min_isr_s")) is not None:
        others = int(np.count_nonzero(table["under_min_isr_s"] > 0)) - 1
        text = reports.min_isr_line(
            named(report, table, "topic", worst), int(table["under_min_isr_s"][worst]), others
        )
        summary_lines.append(SummaryLine(Severity.RISK, text))
    return summary_lines


def _greatest(table: Table, name: str) -> int | None:
    """Return the row with the greatest value above 0, None if there is none."""
    if not len(table) or not np.any(table[name] > 0):
        return None
    return int(np.argmax(table[name]))


def _groups(report: Report) -> list[SummaryLine]:
    table = report[TableName.GROUPS]
    summary_lines = []
    lost = np.flatnonzero(table["lost"] > 0)
    lost = lost[np.argsort(-table["lost"][lost], kind="stable")]
    for at in lost[:MOST_GROUPS].tolist():
        text = reports.lost_line(named(report, table, "group", at), int(table["lost"][at]))
        summary_lines.append(SummaryLine(Severity.RISK, text))
    if len(others := lost[MOST_GROUPS:]):
        text = reports.others_lost_line(len(others), _sum(table["lost"][others]))
        summary_lines.append(SummaryLine(Severity.RISK, text))
    over = np.where(table["above_ms"] > 0, table["behind_most"], UNKNOWN)
    if len(over) and np.any(over > 0):
        at = int(np.argmax(over))
        figures = (int(over[at]), int(table["lag_most"][at]), int(table["above_ms"][at]))
        text = reports.behind_line(named(report, table, "group", at), *figures, report.threshold_ms)
        summary_lines.append(SummaryLine(Severity.WARN, text))
    return summary_lines


def _throughput(report: Report, zone: tzinfo | None) -> list[SummaryLine]:
    table = report[TableName.CLUSTERS]
    if not len(table):
        return []
    clusters = np.flatnonzero(table["cluster"] != "")  # '' is the sum, which has no rate of its own
    busiest = clusters[np.argsort(-table["records_in"][clusters], kind="stable")].tolist()
    summary_lines = []
    for at in busiest[:MOST_CLUSTERS]:
        most_ms = int(table["in_most_ms"][at])
        text = reports.rate_line(
            float(table["in_rate"][at]),
            int(table["in_most"][at]),
            reports.times(report, zone)(most_ms) if most_ms != UNKNOWN else "",
            float(table["out_rate"][at]),
            _cluster(report, table, at),
        )
        summary_lines.append(SummaryLine(Severity.CALM, text))
    if more := busiest[MOST_CLUSTERS:]:
        text = reports.more_clusters_line(len(more), _sum(table["records_in"][more]))
        summary_lines.append(SummaryLine(Severity.CALM, text))
    racks = report[TableName.TRAFFIC]
    whole = np.flatnonzero(racks["topic"] == "")
    if len(whole) and (crossed := _sum(racks["cross_rack_bytes"][whole])) > 0:
        copied = _sum(racks["replicated_bytes"][whole])
        cost = racks["cost"][whole]
        price = "" if np.isnan(cost).all() else reports.money(float(np.nansum(cost)))
        summary_lines.append(
            SummaryLine(Severity.CALM, reports.racks_line(crossed, crossed / max(copied, 1), price))
        )
    return summary_lines
