"""Many recordings are rolled up together, with the same figures as each of them alone."""

import os
import resource
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from pyspark import SparkContext

from kview.derive.view import View
from kview.model.report import NoteKind, Report
from kview.model.report_tables import TableName
from kview.pipeline.kept import FOLDER
from kview.pipeline.report import Question, report
from kview.recording.listing import find_recordings
from tests.benchmarks.synthetic import write_recording
from tests.pipeline.recorded import record, report_on
from tests.recording.snapshots import moved
from tests.worlds.histories import Plan
from tests.worlds.scripts import views as folded

PLANS = (
    Plan(((8, "crash 4"), (20, "rewind"), (30, "back 4"))),
    Plan(((5, "skip"), (40, "crash 1"))),
    Plan(((12, "rewind"), (50, "crash 1"), (61, "truncate"))),
    Plan(((20, "clock back 10 s"), (30, "crash 1"))),
)


def of_cluster(views: list[View], cluster: str) -> list[View]:
    return [
        replace(
            view,
            snapshot=replace(
                view.snapshot, observation=replace(view.snapshot.observation, cluster_id=cluster)
            ),
        )
        for view in views
    ]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the recordings of four clusters, one of them killed and one damaged, at different
    depths."""
    root = tmp_path_factory.mktemp("fleet")
    for number, plan in enumerate(PLANS):
        chance = np.random.default_rng(number)
        views = list(folded([moved(one, chance) for one in plan.snapshots(1, 66 + 4 * number)]))
        where = root / "/".join("abc"[:number]) / f"r{number}"
        record(where, of_cluster(views, f"cluster-{number}"), close=number != 2)
    content = bytearray(damaged_file(root).read_bytes())
    content[len(content) // 3] ^= 0x10
    damaged_file(root).write_bytes(content)
    return root


def damaged_file(fleet: Path) -> Path:
    """The file of a segment of the second recording with a bit that has changed within a page."""
    return fleet / "a" / "r1" / "seg-000002" / "partition_deltas.parquet"


def rows_of_cluster(made: Report, cluster: str) -> dict[str, list[dict[str, Any]]]:
    """All rows about a cluster, in an order that does not depend on other clusters."""
    found = {}
    for name, table in made.period.tables.items():
        if name is not TableName.PERIODS:
            rows = [table.row(at) for at in range(len(table))]
            mine = [row for row in rows if row["cluster"] == cluster]
            found[name.value] = sorted(mine, key=repr)
    return found


def rolled_up(made: Report) -> dict[str, int]:
    table = made[TableName.PERIODS]
    return dict(zip(table["cluster"].tolist(), table["rolled_up"].tolist(), strict=True))


@pytest.mark.slow  # the overlap and the names are asked alone
def test_recordings_together_have_the_figures_of_each_alone(
    spark: SparkContext, fleet: Path, tmp_path: Path
) -> None:
    folders, alone = find_recordings([str(fleet)]), {}
    for number, folder in enumerate(sorted(folders, key=lambda one: one.name)):
        alone[f"cluster-{number}"] = report_on(spark, tmp_path, folder)
        shutil.rmtree(folder / FOLDER)
    damaged = folders[0].with_name("damaged")
    shutil.copytree(folders[0], damaged)
    (damaged / "manifest.json").write_text("{")
    fresh = report_on(spark, tmp_path, *folders, damaged)
    kept = report_on(spark, tmp_path, *folders)
    for cluster, one in alone.items():
        expected = rows_of_cluster(one, cluster)
        assert expected["topics"] and expected["partitions"] and expected["findings"]
        assert rows_of_cluster(fresh, cluster) == expected, cluster
        assert rows_of_cluster(kept, cluster) == expected, cluster
        assert rolled_up(fresh)[cluster] == rolled_up(one)[cluster]
    assert set(rolled_up(kept).values()) == {0}
    notes = {note.kind: note.values for note in fresh.period.notes}
    assert NoteKind.CLOCK_SET_BACK in notes
    assert notes[NoteKind.SEGMENT_DAMAGED]["file"] == str(damaged_file(fleet))
    assert notes[NoteKind.LEFT_OUT]["recording"] == str(damaged)


def test_recordings_with_the_same_name_and_no_cluster_id_are_told_apart(
    spark: SparkContext, tmp_path: Path
) -> None:
    views = of_cluster(list(folded(PLANS[0].snapshots(1, 70))), "")
    folders = [record(tmp_path / place / "run", views) for place in ("a", "b")]
    made = report(spark, folders, Question(), tmp_path)
    clusters = {row for row in made[TableName.CLUSTERS]["cluster"].tolist() if row}
    assert clusters == {str(folder) for folder in folders}
    assert NoteKind.OVERLAP not in {note.kind for note in made.period.notes}


def last_job(spark: SparkContext) -> int:
    """Return the number of a job that has just run. Jobs are numbered in their order."""
    spark.parallelize([1], 1).count()
    return max(spark.statusTracker().getJobIdsForGroup())


@pytest.mark.slow
def test_hundreds_of_recordings(spark: SparkContext, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """No job for each, and fewer files open at a time than there are recordings."""
    count = pytestconfig.getoption("--recordings")
    write_recording(tmp_path / "one", 2, 5, 1)
    for number in range(count):
        shutil.copytree(tmp_path / "one", tmp_path / "fleet" / f"{number % 40:02}" / f"r{number}")
    folders = find_recordings([str(tmp_path / "fleet")])
    assert len(folders) == count
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    fewer = len(os.listdir("/proc/self/fd")) + count // 2
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, fewer), hard))
    try:
        before = last_job(spark)
        made = report(spark, folders, Question(), tmp_path, tmp_path / "cache")
        jobs = last_job(spark) - before
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert 0 < jobs < count / 10
    assert len([note for note in made.period.notes if note.kind is NoteKind.OVERLAP]) == count - 1
