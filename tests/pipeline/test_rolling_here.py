"""What this process rolls up is what Spark rolls up, row by row."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from kview.model.snapshot import Snapshot
from kview.pipeline import rolling_here
from kview.pipeline.report import Question, report
from kview.recording.manifest import read_manifest
from tests.pipeline.recorded import figures_of, record
from tests.pipeline.test_agreement import INCIDENTS, read_at_odd_times
from tests.pipeline.test_report_files import notes
from tests.recording.snapshots import moved
from tests.worlds.histories import Plan
from tests.worlds.scripts import views as folded

PLANS = {
    "incidents": INCIDENTS,
    "clock set back": Plan(
        ((5, "crash 4"), (40, "clock back 10 s"), (43, "rewind"), (80, "clock back 10 s"))
    ),
}
SECONDS = 110


def odd(snapshots: list[Snapshot]) -> list[Snapshot]:
    chance = np.random.default_rng(20)
    return [read_at_odd_times(moved(snapshot, chance), chance) for snapshot in snapshots]


def every_third(snapshots: list[Snapshot]) -> list[Snapshot]:
    """Intervals of three seconds."""
    return odd(snapshots)[::3]


def rolled(folder: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of all tables of all batches, without the ids of the batches."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for batch in sorted(folder.glob("batch-*")):
        for file in sorted(batch.glob("*/*.parquet")):
            rows = pq.read_table(file).drop_columns(["batch"]).to_pylist()
            of_table = found.setdefault(f"{batch.name[:19]} {file.parent.name}", [])
            of_table += [tuple(map(str, row.values())) for row in rows]
    return {name: sorted(rows) for name, rows in found.items()}


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("observed", [odd, every_third, list])
def test_rollups_are_those_of_spark(
    spark: SparkSession,
    plan: str,
    observed: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    views = list(folded(observed(PLANS[plan].snapshots(1, SECONDS))))
    folder = record(tmp_path / "r", views)
    assert len(read_manifest(folder).segments) > 2
    monkeypatch.setattr(rolling_here, "ROWS_AT_ONCE", 100)
    monkeypatch.setattr(rolling_here, "MERGE_ROWS", 50)
    here = report(spark, [folder], Question(), tmp_path, tmp_path / "here")
    there = report(spark, [folder], Question(), tmp_path, tmp_path / "there", in_spark=True)
    (one,), (two,) = (list((tmp_path / name).iterdir()) for name in ("here", "there"))
    assert rolled(one) == rolled(two) and len(rolled(one)) >= 7
    assert figures_of(here) == figures_of(there) and notes(here) == notes(there)
