"""Reports as text: what is said first, widths, ASCII, names that are too long, nothing at all."""

import re
from datetime import UTC
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from kview.model.report import Note, NoteKind, Period, Report
from kview.model.report_tables import COMPARISON, TableName, comparison_of, table_of
from kview.model.units import UNKNOWN
from kview.plain.report.summary import lines
from kview.plain.report.text import text
from tests.plain.report.sample import START_MS, compared, empty, fleet, period, sample


def said(report: Report, width: int = 120) -> list[str]:
    return list(text(report, width, zone=UTC))


def with_table(name: TableName, **columns: Any) -> Report:
    """Return the sample with some columns of a table replaced."""
    before = period()
    table = before.tables[name]
    changed = table_of(name, {**table.columns, **columns})
    return sample(period=replace(before, tables={**before.tables, name: changed}))


def test_the_worst_is_said_first_and_in_figures() -> None:
    first = said(sample())[3:14]
    assert first == [
        "✕ 14:20:00 broker 4 fell silent; all partitions were led again after 8.7 s; acks=all writes waited"
        " up to 8.7 s; over",
        "  after 21 s",
        "✕ 14:50:00 controller 101 had no majority; still open at the end, after at least 10 m",
        "✕ at least 12 records that only an old leader had are gone",
        "✕ audit-log had partitions without a leader for 1 m 1 s, 99.58 % available",
        "✕ invoice had leaders that did not answer for 10 s (2 more topics too); its leaders answered 99.90 %"
        " of the time",
        "✕ payment was under min.insync.replicas for 12 s: acks=all writes were refused",
        "✕ audit-export lost 41 records, deleted before it had read them",
        "▲ audit-export was up to ≈7 m 40 s behind (at most 190,113 records), and more than 1 m behind for"
        " 38 m 30 s in all",
        "● on average 7,900 records/s in and 7,840 out; at most 12,003 came in within one second (14:20:01)",
        "● followers copied ≈33 GB between racks (67 % of replication), at a cost of 0.66",
    ]


def test_a_comparison_begins_with_what_is_new_and_says_if_totals_cannot_be_compared() -> None:
    rows = [
        ("prod", "", "records_in", 100.0, 139.0, 0.39),
        ("prod", "", "offline_ms", 0.0, 21_000.0, float("nan")),
        ("prod", "", "under_min_isr_ms", 0.0, 0.0, float("nan")),
        ("prod", "", "out_rate", 50.0, 50.0, 0.0),
    ]
    columns = {
        column.name: list(values) for column, values in zip(COMPARISON, zip(*rows, strict=True), strict=True)
    }
    hour = period()
    told = said(sample(against=hour, comparison=comparison_of(columns)))
    at = told.index("Comparison") + 2
    assert [line.split()[-2:] for line in told[at : at + 4]] == [["s", "new"], ["+39", "%"], ["+0", "%"], []]
    shorter = replace(hour, until_ms=hour.until_ms - 600_000)
    told = said(sample(against=shorter, comparison=comparison_of(columns)))
    assert "before is 50 m long, now is 1 h: compare rates and shares, not totals." in told


def test_notes_of_a_thousand_recordings_stay_short_and_the_worst_come_first() -> None:
    gaps = [Note(NoteKind.GAP, {"recording": f"r{n}", "gaps": 1, "seconds": n}) for n in range(1_000)]
    damaged = Note(NoteKind.LEFT_OUT, {"recording": "r7", "reason": "manifest.json is damaged"})
    shown = said(sample(period=replace(period(), notes=(*gaps, damaged))))
    notes = shown[shown.index("Notes") + 1 :]
    assert notes[0] == "· r7 cannot be read (manifest.json is damaged) and was left out."
    assert len(notes) == 7 and notes[6].endswith(
        "and 995 more notes of this kind: --format json has all of them."
    )


def test_an_incident_is_told_in_one_sentence() -> None:
    def told(**columns: Any) -> list[str]:
        return said(with_table(TableName.INCIDENTS, **columns))[3:5]

    back = {"back_all_ms": [332_000, UNKNOWN], "elected_all_ms": [332_400, UNKNOWN], "moved": [0, 0]}
    first = " ".join(told(**back))
    assert first.startswith(
        "✕ 14:20:00 broker 4 was silent for 5 m 32 s; all partitions were led again after"
    )
    assert " after 5 m 32 s, and not before the return" in re.sub(" +", " ", first)
    assert "not before" not in " ".join(told(**{**back, "moved": [3, 0]})), "others took over some"
    several = {**back, "brokers": ["3,4", ""], "racks": ["is silent", ""]}
    first = " ".join(told(**several))
    assert first.startswith(
        "✕ 14:20:00 brokers 3 and 4 were silent, all back after 5 m 32 s (rack is silent); all partitions"
    ), first
    stopped = {"cause": ["stopped", "quorum_lost"], "back_all_ms": [12_000, UNKNOWN]}
    first = " ".join(told(**stopped))
    assert first.startswith("✕ 14:20:00 broker 4 was out of the cluster for 12 s; all partitions")
    assert "led again after 8.7 s" in first


def test_of_several_lost_brokers_it_is_said_when_the_last_one_was_fenced() -> None:
    def told(all_ms: int) -> str:
        fenced = {"fenced_ms": [9_100, UNKNOWN], "fenced_all_ms": [all_ms, UNKNOWN], "racks": ["R1,R2", ""]}
        shown = said(with_table(TableName.INCIDENTS, brokers=["3,4", ""], **fenced))
        return shown[shown.index("Incidents") + 2]

    assert "brokers 3 and 4 silent (racks R1 and R2)" in told(14_200), "the rest of them may be up"
    assert "+9.1 s to 14 s" in told(14_200)
    assert "+9.1 s, not all" in told(UNKNOWN)
    assert " +9.1 s  " in told(9_100)


def test_the_day_is_said_once_unless_there_are_several() -> None:
    day, hour = said(sample()), 3_600_000
    assert day[1] == "2026-03-01 14:00:00 to 15:00:00 UTC (1 h)"
    assert sum("2026-" in line for line in day) == 1
    stretched = period()
    days = said(sample(period=replace(stretched, until_ms=stretched.since_ms + 10 * hour + 1)))
    assert days[1].startswith("2026-03-01 14:00:00 to 2026-03-02 00:00:00 UTC")
    assert any("2026-03-01 14:20:00 broker 4 fell silent" in line for line in days)
    until_midnight = said(sample(period=replace(stretched, until_ms=stretched.since_ms + 10 * hour)))
    assert not any("2026-03-01 14:20:00" in line for line in until_midnight), "midnight is the end of the day"


def test_calm_is_said_only_if_everything_was_recorded() -> None:
    quiet = dict(period().tables)
    for name in (TableName.TOPICS, TableName.GROUPS, TableName.INCIDENTS):
        quiet[name] = table_of(name, {})
    calm = Period(START_MS, START_MS + 1, quiet)
    assert lines(sample(period=calm))[0].text.startswith("no incidents")
    partly = replace(calm, notes=(Note(NoteKind.FACTS_INCOMPLETE, {"recording": "monday", "segments": 2}),))
    assert not any("no incidents" in line.text for line in lines(sample(period=partly)))
    assert not any("no incidents" in line.text for line in lines(empty()))


def test_a_pattern_without_a_match_is_said_first() -> None:
    quiet = {name: table_of(name, {}) for name in TableName}
    note = Note(NoteKind.NO_MATCH, {"kind": "topics", "patterns": "pya*"})
    shown = said(sample(period=Period(START_MS, START_MS + 60_000, quiet, (note,)), topics=("pya*",)))
    assert "▲ nothing matches a pattern that was given (see Notes)" in shown
    assert "· None of the topics in this period has a name that matches pya*." in shown


def test_tables_say_what_they_leave_out() -> None:
    shown = said(sample(), 200)
    assert "leaderless at end" not in shown[shown.index("Incidents") + 1], "there are none"
    shown = said(with_table(TableName.INCIDENTS, leaderless=[0, 2]), 200)
    head = shown[shown.index("Incidents") + 1]
    assert "leaderless at end" in head and "no leader" not in head, "0 at the end is not 0 throughout"
    assert any(line.startswith("While no broker answers, kview finds nothing else") for line in shown)


def test_of_several_clusters_each_sentence_names_one_and_the_busiest_are_drawn() -> None:
    shown = said(fleet(40))
    summary = shown[3 : shown.index("", 3)]
    assert "✕ 80 incidents; the longest lasted at least 10 m; some were still open at the end" in summary
    assert any("controller 101 had no majority in cluster-001; still" in line for line in summary)
    assert "✕ audit-export of cluster-002 lost 41 records, deleted before it had read them" in summary
    assert "✕ 37 more groups lost 1,517 records in the same way" in summary
    rates = [line for line in summary if "on average" in line]
    assert [line.partition(": on average ")[0].split()[-1] for line in rates] == [
        "cluster-000", "cluster-001", "cluster-002"
    ]  # fmt: skip
    assert not any("– records/s" in line for line in summary)
    assert any(re.search(r"37 more clusters: [\d,]+ records in", line) for line in summary)
    assert len(summary) < 25, "however many clusters there are"
    plots = [line for line in shown if line.startswith("Records")]
    assert len(plots) == 1 + 2 * 3 and plots[0].endswith("the busiest clusters")
    clusters = shown[shown.index("Clusters") :]
    assert clusters[2].startswith("all clusters") and clusters[3].startswith("cluster-000")
    assert "Clusters" not in said(sample()), "one cluster is summed up above"


TOPICS = period().tables[TableName.THROUGHPUT]["topic"]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_every_line_fits(width: int) -> None:
    long_name = "orders-" + "x" * 230 + "-eu"
    name = with_table(TableName.TOPICS, topic=["invoice", long_name, "audit-log"])
    names = with_table(TableName.THROUGHPUT, topic=np.where(TOPICS == "", "", TOPICS + long_name))
    fleets = (fleet(7), fleet(3, "x" * 249)) if width > 60 else ()
    for report in (sample(), compared(), name, names, *fleets):
        assert max(len(line) for line in said(report, width)) <= max(width, 60)
    assert any("…" in line and "-eu" in line for line in said(name, width))


@pytest.mark.parametrize("width", range(40, 130, 3))
def test_a_number_stays_with_its_unit(width: int) -> None:
    starts = [line.split()[0] for line in said(sample(), width) if line.startswith("  ") and line.strip()]
    assert not {"s", "m", "h", "ms", "%", "GB", "MB", "records"} & set(starts)


def test_ascii_has_nothing_else() -> None:
    assert all(line.isascii() and "?" not in line for line in text(compared(), 100, True, UTC))


def test_hostile_names_stay_in_their_cell() -> None:
    report = with_table(TableName.TOPICS, topic=["a\nb\x1b[31m", "\u202egpj", "<script>"])
    assert all(line.isprintable() for line in said(report))


def test_a_report_about_nothing_says_so() -> None:
    assert said(empty()) == ["kview report: 0 clusters", ""]


def test_unknown_figures_are_dashes() -> None:
    report = with_table(TableName.GROUPS, lag_most=[None, None], behind_most=[None, None], lost=[0, 0])
    row = next(line for line in said(report) if line.startswith("billing"))
    assert row.split()[1] == "–"


def test_steps_without_known_seconds_are_gaps() -> None:
    from kview.plain.report.plots import plots

    plot = plots(sample())[0]
    known = np.isfinite(plot.lines[0].values)
    assert (len(known), int(known.sum()), bool(known[30:35].any())) == (60, 55, False)
    assert plot.lines[0].values[0] == pytest.approx(7_900)
