"""The figures of a report are those of the screen, and of the observations themselves."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from pyspark import SparkContext

from kview.derive.deltas import partition_deltas
from kview.derive.view import View
from kview.derive.windows import Window, whole_until_s, window
from kview.model.aggregates import Rollups
from kview.model.report import Report
from kview.model.report_tables import TableName
from kview.model.sums import PERCENTS, Kind
from kview.model.units import UNKNOWN
from kview.pipeline.report import Question
from tests.pipeline.recorded import record, report_on, rolled_live, rows_of
from tests.pipeline.test_agreement import INCIDENTS, read_at_odd_times
from tests.recording.snapshots import moved
from tests.worlds.histories import Plan
from tests.worlds.scripts import views as folded

SECONDS = 150
WITHOUT_GAP = Plan(tuple(step for step in INCIDENTS.happenings if step[1] != "skip"))
EQUAL = (
    *("records_in", "bytes_in", "records_out", "replicated", "cross_rack", "truncated", "records_in_gap"),
    *("rewound", "records_out_gap", "in_rate", "out_rate", "skew"),
    *("offline_ms", "silent_ms", "under_min_isr_ms", "under_replicated_ms"),
    *(f"in_p{percent}" for percent in PERCENTS),
)
KEYS = {
    TableName.TOPICS: (Kind.TOPIC, "topic"),
    TableName.BROKERS: (Kind.BROKER, "broker"),
    TableName.RACKS: (Kind.RACK, "rack"),
    TableName.GROUPS: (Kind.GROUP, "group"),
    TableName.CLUSTERS: (Kind.CLUSTER, "cluster"),
}


@pytest.fixture(scope="module")
def history() -> list[View]:
    """Minutes of incidents, observed at odd times."""
    chance = np.random.default_rng(20)
    snapshots = [read_at_odd_times(moved(one, chance), chance) for one in WITHOUT_GAP.snapshots(1, SECONDS)]
    return list(folded(snapshots))


@pytest.fixture(scope="module")
def recording(history: list[View], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("reported") / "r", history)


@pytest.fixture(scope="module")
def made(spark: SparkContext, recording: Path, tmp_path_factory: pytest.TempPathFactory) -> Report:
    question = Question(threshold_ms=3_000, price_per_gb=0.5)
    return report_on(spark, tmp_path_factory.mktemp("scratch"), recording, question=question)


@pytest.fixture(scope="module")
def live(recording: Path) -> Rollups:
    return rolled_live(recording)


def whole(live: Rollups, kind: Kind) -> Window:
    """Return the window of all complete seconds."""
    first_s, until_s = -(-live.from_ms // 1000), whole_until_s(live, live.until_ms)
    return window(live, kind, until_s, until_s - first_s)


@pytest.mark.parametrize("table", KEYS)
def test_the_figures_are_those_of_the_throughput_screen(
    made: Report, live: Rollups, table: TableName
) -> None:
    kind, named = KEYS[table]
    expected, rows = whole(live, kind), rows_of(made, table, named)
    if kind is Kind.CLUSTER:
        (row,) = rows.values()
        rows = {("",): row}
    idle = rows.keys() - {(name,) for name in expected.names}
    assert rows.keys() >= {(name,) for name in expected.names}
    assert all(kind is Kind.GROUP and not rows[key]["records_out"] for key in idle)
    compared = 0
    for at, name in enumerate(expected.names):
        row = rows[(name,)]
        for figure in EQUAL:
            if figure in row:
                value = getattr(expected, figure)[at]
                known = None if np.isnan(value) or value == UNKNOWN else value
                assert row[figure] == pytest.approx(known, rel=1e-12), (name, figure)
                compared += known is not None and known > 0
        if "hottest_topic" in row:
            hottest = expected.hottest[at]
            assert (row["hottest_topic"], row["hottest_partition"]) == (hottest or ("", None)), name
    assert compared > 2 * len(expected.names)
    (period,) = rows_of(made, TableName.PERIODS, "recording").values()
    assert period["known_s"] == expected.covered_s


def test_partitions_add_up_to_their_topics(made: Report) -> None:
    partitions = [made[TableName.PARTITIONS].row(at) for at in range(len(made[TableName.PARTITIONS]))]
    for (topic,), row in rows_of(made, TableName.TOPICS, "topic").items():
        mine = [one for one in partitions if one["topic"] == topic]
        for figure in (
            *("records_in", "replicated", "cross_rack", "truncated", "records_in_gap"),
            *("offline_ms", "silent_ms", "under_min_isr_ms", "under_replicated_ms"),
        ):
            assert sum(one[figure] for one in mine) == row[figure], (topic, figure)
    assert sum(row["offline_ms"] for row in partitions) > 0


def test_the_peak_of_a_partition_is_its_greatest_rate_between_two_readings(
    made: Report, history: list[View]
) -> None:
    greatest: dict[tuple[object, ...], int] = {}
    for before, now in pairwise(history):
        deltas, table = partition_deltas(before.snapshot, now.snapshot), now.snapshot.partitions
        length = deltas.ended_ms - deltas.began_ms
        for at in np.flatnonzero((deltas.records_in > 0) & (length > 0)).tolist():
            key = (table.topic[at], int(table.partition[at]))
            rate = int(deltas.records_in[at]) * 1000 // int(length[at])
            greatest[key] = max(greatest.get(key, 0), rate)
    rows = rows_of(made, TableName.PARTITIONS, "topic", "partition")
    found = {key: row["peak"] for key, row in rows.items() if row["peak"] is not None}
    assert found == greatest


def test_throughput_adds_up_to_the_cluster_and_its_topics(made: Report) -> None:
    rows = [made[TableName.THROUGHPUT].row(at) for at in range(len(made[TableName.THROUGHPUT]))]
    (cluster,) = rows_of(made, TableName.CLUSTERS, "cluster").values()
    topics = {topic: row for (topic,), row in rows_of(made, TableName.TOPICS, "topic").items()}
    for topic, row in {"": cluster, **topics}.items():
        mine = [one for one in rows if one["topic"] == topic]
        for figure in ("records_in", "records_out", "replicated", "cross_rack"):
            assert sum(one[figure] for one in mine) == row[figure], (topic, figure)
    assert sum(one["known_s"] for one in rows if one["topic"] == "") == cluster["known_s"]


def test_lags_are_those_that_the_fold_saw(made: Report, history: list[View]) -> None:
    since_ms, until_ms = made.period.since_ms, made.period.until_ms
    rows = rows_of(made, TableName.GROUPS, "group")
    most: dict[str, int] = {}
    behind: dict[str, int] = {}
    for before, view in pairwise(history):
        # What an observation saw held since the one before it.
        ended_ms, began_ms = (one.snapshot.observation.ended_ms for one in (view, before))
        if ended_ms <= since_ms or began_ms >= until_ms:
            continue
        for at, name in enumerate(view.snapshot.groups.group):
            lag, late = int(view.groups.lag[at]), int(view.groups.behind_ms[at])
            most[name] = max(most.get(name, UNKNOWN), lag)
            behind[name] = max(behind.get(name, UNKNOWN), late)
    for (group,), row in rows.items():
        assert row["lag_most"] == (None if most[str(group)] == UNKNOWN else most[str(group)]), group
        assert row["behind_most"] == (None if behind[str(group)] == UNKNOWN else behind[str(group)]), group
        assert 0 <= row["above_ms"] <= row["lag_known_ms"] <= until_ms - since_ms
    assert any(row["above_ms"] for row in rows.values())


def test_incidents_elections_and_findings_are_those_that_the_fold_saw(
    made: Report, history: list[View]
) -> None:
    told = rows_of(made, TableName.INCIDENTS, "kind", "began_ms")
    last = {incident.key: incident for view in history for incident in view.incidents}
    assert told.keys() == {(str(kind), began_ms) for kind, began_ms in last}
    for key, incident in last.items():
        row = told[key]
        assert row["brokers"] == ",".join(map(str, incident.brokers))
        assert row["ended_ms"] == (None if incident.is_open else incident.ended_ms)
        assert (row["partitions"], row["moved"]) == (incident.partitions, incident.moved)
    assert len(told) >= 2
    elected = sum(row["elections"] for row in rows_of(made, TableName.ELECTIONS, "topic").values())
    assert elected > 0
    findings = rows_of(made, TableName.FINDINGS, "kind")
    kinds = {finding.kind.value for view in history[1:-2] for finding in view.headline.findings}
    assert {kind for (kind,) in findings} >= kinds - {"past_pending"}
    assert all(row["held_ms"] <= made.period.until_ms - made.period.since_ms for row in findings.values())


def test_what_goes_between_racks_has_its_price(made: Report) -> None:
    rows = rows_of(made, TableName.TRAFFIC, "topic")
    total = rows.pop(("",))
    assert total["cross_rack_bytes"] > 0
    assert total["cost"] == pytest.approx(total["cross_rack_bytes"] / 10**9 * 0.5, rel=1e-6)
    assert sum(row["cross_rack_bytes"] for row in rows.values()) == pytest.approx(
        total["cross_rack_bytes"], abs=len(rows)
    )
    topics = rows_of(made, TableName.TOPICS, "topic")
    for key, row in rows.items():
        topic = topics[key]
        if topic["replicated"]:
            assert row["cross_rack_share"] == topic["cross_rack"] / topic["replicated"]


def test_patterns_choose_topics_and_groups(
    spark: SparkContext, recording: Path, made: Report, tmp_path: Path
) -> None:
    question = Question(topics=("pay*",), groups=("bill?ng", "no-such*"))
    chosen = report_on(spark, tmp_path, recording, question=question)
    everything = rows_of(made, TableName.TOPICS, "topic")
    assert rows_of(chosen, TableName.TOPICS, "topic") == {("payment",): everything["payment",]}
    assert list(rows_of(chosen, TableName.GROUPS, "group")) == [("billing",)]
    assert {row[0] for row in rows_of(chosen, TableName.PARTITIONS, "topic", "partition")} == {"payment"}


def test_two_periods_are_compared(spark: SparkContext, recording: Path, made: Report, tmp_path: Path) -> None:
    middle_ms = (made.period.since_ms // 60_000 + 1) * 60_000
    question = Question(since_ms=middle_ms, against=(None, middle_ms))
    both = report_on(spark, tmp_path, recording, question=question)
    assert both.against is not None and both.comparison is not None
    assert (both.against.until_ms, both.period.since_ms) == (middle_ms, middle_ms)
    now, before = (
        {row["topic"]: row for row in map(table.row, range(len(table)))}
        for table in (both[TableName.TOPICS], both.against.tables[TableName.TOPICS])
    )
    whole = rows_of(made, TableName.TOPICS, "topic")
    assert now["invoice"]["records_in"] + before["invoice"]["records_in"] == whole["invoice",]["records_in"]
    rows = [both.comparison.row(at) for at in range(len(both.comparison))]
    (row,) = (r for r in rows if (r["topic"], r["figure"]) == ("invoice", "in_rate"))
    assert row["change"] == pytest.approx(now["invoice"]["in_rate"] / before["invoice"]["in_rate"] - 1)
