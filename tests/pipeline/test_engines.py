"""numpy, in this process and in Spark's tasks, rolls up what Spark's expressions do, row by row."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from kview.model.snapshot import Snapshot
from kview.pipeline import local_figures, summing, tasks
from kview.pipeline.report import Question, report
from kview.pipeline.rolling import Engine
from kview.pipeline.schemas import MINUTES_TABLE, SECONDS_TABLE
from kview.recording.manifest import read_manifest
from tests.pipeline.recorded import figures_of, record
from tests.pipeline.test_agreement import INCIDENTS, read_at_odd_times
from tests.pipeline.test_report_files import notes
from tests.recording.snapshots import moved
from tests.worlds.histories import Plan
from tests.worlds.scripts import views as folded

PLAN = Plan((*INCIDENTS.happenings, (72, "clock back 10 s"), (75, "rewind")))
SECONDS = 90


def odd(snapshots: list[Snapshot]) -> list[Snapshot]:
    chance = np.random.default_rng(20)
    return [read_at_odd_times(moved(snapshot, chance), chance) for snapshot in snapshots]


SECONDS_KEY, MINUTES_KEY = ("second", "kind", "name"), ("slot", "topic", "partition")
GREATEST = {"hottest", "topic_partitions", "peak", "internal"}
"""Of what the parts of a batch have for the same second or minute, the greatest counts. The rest adds up."""


def rolled(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of all tables of all batches, summed up, without the ids of the batches."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for batch in sorted(folder.glob("batch-*")):
        for table in sorted(path.name for path in batch.iterdir() if path.is_dir()):
            rows = [
                row
                for file in sorted((batch / table).glob("*.parquet"))
                for row in pq.read_table(file).drop_columns(["batch"]).to_pylist()
            ]
            key = {SECONDS_TABLE: SECONDS_KEY, MINUTES_TABLE: MINUTES_KEY}.get(table)
            rows = summed(rows, key) if key is not None else rows
            found[f"{batch.name[:19]} {table}"] = sorted(tuple(map(str, row.values())) for row in rows)
    return found


def summed(rows: list[dict[str, Any]], key: tuple[str, ...]) -> list[dict[str, Any]]:
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        its = tuple(row[name] for name in key)
        before = found.get(its)
        found[its] = row if before is None else {n: added(n, before[n], row[n], key) for n in row}
    return list(found.values())


def added(name: str, one: Any, other: Any, key: tuple[str, ...]) -> Any:
    if name in key or one is None or other is None:
        return other if one is None else one
    if name == "hottest":
        return max(one, other, key=lambda its: tuple(its.values()))
    return max(one, other) if name in GREATEST else one + other


@pytest.mark.slow
def test_rollups_do_not_depend_on_the_engine(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    views = list(folded(odd(PLAN.snapshots(1, SECONDS))))
    folder = record(tmp_path / "r", views)
    assert len(read_manifest(folder).segments) > 2
    # Rows come in many batches, which are merged often, and each segment has a task of its own.
    monkeypatch.setattr(tasks, "ROWS_AT_ONCE", 100)
    monkeypatch.setattr(summing, "MERGE_ROWS", 50)
    monkeypatch.setattr(tasks, "LEAST_TASK_BYTES", 1)
    made, tables = {}, {}
    for engine in Engine:
        cache = tmp_path / engine.value
        made[engine] = report(spark, [folder], Question(), tmp_path, cache, engine=engine)
        (rollups,) = cache.iterdir()
        tables[engine] = rolled(rollups)
        assert len(tables[engine]) >= 7
        if engine is Engine.TASKS:
            (batch,) = rollups.glob("batch-*")
            assert len(list(batch.glob("seconds/*.parquet"))) == len(read_manifest(folder).segments)
    expected = made.pop(Engine.EXPRESSIONS)
    for engine, other in made.items():
        assert tables[engine] == tables[Engine.EXPRESSIONS]
        assert figures_of(other) == figures_of(expected) and notes(other) == notes(expected)
    # Spark finds the same figures in the parts that tasks wrote.
    monkeypatch.setattr(local_figures, "MOST_ROWS", 0)
    again = report(spark, [folder], Question(), tmp_path, tmp_path / Engine.TASKS.value)
    assert figures_of(again) == figures_of(expected)
