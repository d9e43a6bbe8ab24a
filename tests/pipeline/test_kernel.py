"""However a recording is divided into tasks, its roll-ups are those that DuckDB counts, and so are the
figures."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import SparkContext

from kview.model.sums import SUMS, Kind
from kview.pipeline import rolling
from kview.pipeline.kernel import columns, facts, summing, walking
from kview.pipeline.kernel.columns import ALL, Names
from kview.pipeline.kernel.tables import PEAK_SHIFT, SECONDS_TABLE
from kview.pipeline.report import Question, report
from kview.recording.fact_schema import GROUP_LAGS
from kview.recording.manifest import read_manifest
from kview.recording.schema import PARTITION_DELTAS
from tests.pipeline.figures import Figures, by_duckdb, of_rollups, of_table
from tests.pipeline.here import HERE
from tests.pipeline.recorded import figures_of, record, rolled_live
from tests.pipeline.test_agreement import INCIDENTS, read_at_odd_times
from tests.recording.snapshots import moved
from tests.worlds.histories import Plan
from tests.worlds.scripts import views as folded

PLAN = Plan((*INCIDENTS.happenings, (72, "clock back 10 s"), (75, "rewind")))
SECONDS = 90
SLICE = 100
QUESTION = Question(threshold_ms=2_000, step_s=10)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    chance = np.random.default_rng(20)
    odd = [read_at_odd_times(moved(one, chance), chance) for one in PLAN.snapshots(1, SECONDS)]
    return record(tmp_path_factory.mktemp("kernel") / "r", list(folded(odd)))


def seconds(rollups: Path) -> list[pa.Table]:
    """Return the parts of the one-second roll-ups of all batches in a cache."""
    return [pq.read_table(one) for one in sorted(rollups.glob(f"*/batch-*/{SECONDS_TABLE}/*.parquet"))]


def added(parts: list[pa.Table]) -> Figures:
    """Return what parts have together: sums add up, and of the rest the greatest counts."""
    found: Figures = {}
    for part in parts:
        for cell, its in of_table(part).items():
            before = found.setdefault(cell, {})
            for name, value in its.items():
                was = before.get(name)
                if was is None:
                    before[name] = value
                else:
                    before[name] = was + value if name in set(map(str, SUMS)) else max(was, value)
    return found


def test_each_row_is_what_duckdb_counts_in_one_task_or_many(
    spark: SparkContext, recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = by_duckdb(recording)
    whole = report(spark, [recording], QUESTION, tmp_path, tmp_path / "one")
    (part,) = seconds(tmp_path / "one")
    assert of_table(part) == counted

    # Each segment has a task of its own, and so has each name.
    monkeypatch.setattr(rolling, "LEAST_TASK_BYTES", 1)
    monkeypatch.setattr(rolling, "TASK_BYTES", 1)
    monkeypatch.setattr("kview.pipeline.report.TASK_ROWS", 1)
    divided = report(spark, [recording], QUESTION, tmp_path, tmp_path / "many")
    parts = seconds(tmp_path / "many")
    assert len(parts) == len(read_manifest(recording).segments) > 2
    assert added(parts) == counted
    assert figures_of(divided) == figures_of(whole)

    # Rows come in many batches, which are merged often, and names are looked for in many row groups.
    monkeypatch.setattr(walking, "ROWS_AT_ONCE", SLICE)
    monkeypatch.setattr(summing, "MERGE_ROWS", SLICE // 2)
    monkeypatch.setattr(summing, "GROUP_ROWS", SLICE)
    monkeypatch.setattr(columns, "MOST_OPEN", 1)
    sliced = report(HERE, [recording], QUESTION, tmp_path, tmp_path / "slices")
    parts = seconds(tmp_path / "slices")
    assert added(parts) == counted
    assert figures_of(sliced) == figures_of(whole)


def test_the_live_job_rolls_up_the_same(recording: Path, tmp_path: Path) -> None:
    assert of_rollups(rolled_live(recording)) == by_duckdb(recording)


def test_what_arrived_while_no_leader_could_be_asked_is_spread_over_that_time() -> None:
    """By hand: 30 records in a second, then 552 in the 53 s until a leader answers, then 20."""
    begins_s, ends_s, records = [60, 61, 114], [61, 114, 115], [30, 552, 20]
    rows = [
        {"topic": "a", "partition": 0, "topic_partitions": 1, "records_in": each, "sequence": number}
        | {"began_ms": 1000 * begin, "ended_ms": 1000 * end, "observed_ms": 1000 * end}
        for number, (begin, end, each) in enumerate(zip(begins_s, ends_s, records, strict=True))
    ]
    summed = summing.Summing(summing.Scope(0, 180, ()))
    summed.add(pa.RecordBatch.from_pylist(rows, schema=PARTITION_DELTAS))
    of_topic = {row["second"]: row for row in summed.seconds().to_pylist() if row["kind"] == Kind.TOPIC}
    # 552 = 53 × 10 + 22: the first 22 seconds get one more.
    assert [of_topic[at]["records_in"] for at in range(60, 115)] == [30, *[11] * 22, *[10] * 31, 20]
    (minute,) = summed.minutes().to_pylist()
    assert minute["records_in"] == 602
    assert minute["peak"] == (30 << PEAK_SHIFT) + 60, "the greatest rate, and when its interval began"


def test_a_group_of_which_the_period_has_only_its_end_is_in_no_table(tmp_path: Path) -> None:
    """By hand: a row of no time counts if it says something."""
    of_no_time = {
        "gone": {},
        "unread": {"lost": 0},
        "late": {"lag": 7},
        "slow": {"behind_ms": 9_000},
        "robbed": {"lost": 3},
    }
    rows = [
        {"sequence": 5, "observed_ms": 50_000, "interval_ms": 0, "group": group, **known}
        for group, known in of_no_time.items()
    ]
    rows.append({"sequence": 6, "observed_ms": 51_000, "interval_ms": 1_000, "group": "unknown"})
    (tmp_path / "batch" / "group_lags").mkdir(parents=True)
    pq.write_table(
        pa.Table.from_pylist(rows, schema=GROUP_LAGS), tmp_path / "batch" / "group_lags" / "a.parquet"
    )
    batch = columns.Counted(str(tmp_path / "batch"), "c", 0, 0, 60, 60)
    found = {row["group"]: row for row in facts.group_lags([batch], "", 1_000, ALL)}
    assert sorted(found) == ["late", "robbed", "slow", "unknown"]
    figures = ("lag_most", "behind_most", "lost")
    assert [found["late"][name] for name in figures] == [7, None, None]
    assert [found["slow"][name] for name in figures] == [None, 9_000, None]
    assert facts.group_lags([batch], "gone", 1_000, ALL) == []


def test_a_range_of_names_reads_the_row_groups_that_have_some(tmp_path: Path) -> None:
    names = [f"topic-{number:02}" for number in range(20) for _ in range(10)]
    table = pa.table({"name": names, "second": list(range(200)), "value": list(range(200))})
    (tmp_path / "batch" / "seconds").mkdir(parents=True)
    pq.write_table(table, tmp_path / "batch" / "seconds" / "a.parquet", row_group_size=10)
    batch = columns.Counted(str(tmp_path / "batch"), "c", 0, 0, 1_000, 1_000)
    for chosen, values in {
        Names("topic-03", "topic-05"): range(30, 50),
        Names("topic-18"): range(180, 200),
        Names("", "topic-01"): range(10),
        Names("topic-031", "topic-04"): range(0),
        ALL: range(200),
    }.items():
        read = columns.Columns([batch], "seconds", "second", "name", chosen)
        assert read.numbers("value").tolist() == list(values)
        assert read.words("name")[1] == sorted(set(names[values.start : values.stop]))
    end = pq.read_metadata(tmp_path / "batch" / "seconds" / "a.parquet")
    read_groups = [g for g in range(20) if Names("topic-03", "topic-05").may_be_in(end.row_group(g), "name")]
    assert read_groups == [3, 4]
