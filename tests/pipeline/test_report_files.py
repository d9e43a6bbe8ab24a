"""A report is right whatever happened to the recording, to its clock, and to the roll-ups that are kept."""

import json
import os
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace
from pyspark import SparkContext

from kview.derive.view import View
from kview.errors import BadUse, ErrorKind
from kview.model.report import NoteKind, Report
from kview.model.report_tables import TableName
from kview.pipeline.kept import ABOUT, FOLDER, begin, clean
from kview.pipeline.report import Question, report
from kview.recording.manifest import read_manifest
from kview.recording.segment import STREAM_FILE
from tests.pipeline.recorded import figures_of, record, report_on, rows_of
from tests.recording.snapshots import moved
from tests.worlds.histories import Plan
from tests.worlds.scripts import views as folded

PLAN = Plan(((8, "crash 4"), (20, "rewind"), (30, "back 4")))
SECONDS = 200


@pytest.fixture(scope="module")
def history() -> list[View]:
    chance = np.random.default_rng(3)
    return list(folded([moved(snapshot, chance) for snapshot in PLAN.snapshots(1, SECONDS)]))


@pytest.fixture(scope="module")
def recorded(history: list[View], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of the first 80 observations, for copies."""
    return record(tmp_path_factory.mktemp("recorded") / "r", history[:80])


@pytest.fixture(scope="module")
def first(
    spark: SparkContext, recorded: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Report]:
    """Such a copy with kept roll-ups, and the report that made them."""
    scratch = tmp_path_factory.mktemp("first")
    folder = Path(shutil.copytree(recorded, scratch / "r"))
    return folder, report_on(spark, scratch, folder)


@pytest.fixture(scope="module")
def expected(first: tuple[Path, Report]) -> Report:
    """The report on the first 80 observations."""
    return first[1]


@pytest.fixture
def folder(recorded: Path, tmp_path: Path) -> Path:
    """A copy of the recording without roll-ups."""
    return Path(shutil.copytree(recorded, tmp_path / "r"))


@pytest.fixture
def reported(first: tuple[Path, Report], tmp_path: Path) -> Path:
    """A copy of the recording with kept roll-ups."""
    return Path(shutil.copytree(first[0], tmp_path / "reported"))


def rolled_up(made: Report) -> int:
    return int(made[TableName.PERIODS]["rolled_up"].sum())


def notes(made: Report) -> list[NoteKind]:
    return [note.kind for note in made.period.notes]


def assert_same(made: Report, other: Report) -> None:
    assert figures_of(made) == figures_of(other)


def test_kept_rollups_answer_the_next_report(
    spark: SparkContext, reported: Path, expected: Report, tmp_path: Path
) -> None:
    assert rolled_up(expected) == len(read_manifest(reported).segments)
    for segment in reported.glob("seg-*/*_deltas.parquet"):
        segment.unlink()  # whoever read them again would fail
    shutil.rmtree(reported / "seg-000002")
    second = report_on(spark, tmp_path, reported)
    assert rolled_up(second) == 0
    assert {note.kind for note in second.period.notes} == {NoteKind.ROLLED_UP_ONLY}
    reasons = [note.values["reason"] for note in second.period.notes]
    assert reasons.count("missing") == 1 and len(reasons) == len(read_manifest(reported).segments)
    assert_same(second, expected)


@pytest.mark.parametrize("damage", ["cut", "missing", "other version", "unfinished", "other segments"])
def test_rollups_that_are_not_whole_are_never_used(
    spark: SparkContext, reported: Path, expected: Report, tmp_path: Path, damage: str
) -> None:
    (batch,) = (reported / FOLDER).glob("batch-*")
    file = max(batch.glob("seconds/*.parquet"), key=lambda path: path.stat().st_size)
    about = json.loads((batch / ABOUT).read_text())
    match damage:
        case "cut":
            os.truncate(file, file.stat().st_size - 1)
        case "missing":
            file.unlink()
        case "other version":
            (batch / ABOUT).write_text(json.dumps(about | {"version": 0}))
        case "unfinished":
            batch.rename(batch.with_name(f".new-{2**22 + 1}-1"))
        case "other segments":
            (number, size), *rest = about["segments"]
            (batch / ABOUT).write_text(json.dumps(about | {"segments": [[number, size + 1], *rest]}))
    again = report_on(spark, tmp_path, reported)
    assert rolled_up(again) > 0
    assert_same(again, expected)
    left = {path for path in (reported / FOLDER).iterdir() if path != batch}
    assert len(left) == 1 and not any(path.name.startswith(".new-") for path in left)
    assert damage == "other segments" or not batch.exists(), "what cannot be used is removed"


def test_what_another_machine_is_writing_stays_for_a_day(tmp_path: Path) -> None:
    theirs = tmp_path / f".new-{2**22 + 1}@other.host-1"
    ended = tmp_path / f".new-{2**22 + 1}-1"
    mine = begin(tmp_path, "1")
    for folder in (theirs, ended):
        folder.mkdir()
    clean(tmp_path, [])
    assert set(tmp_path.iterdir()) == {theirs, mine}
    os.utime(theirs, (0, 0))
    clean(tmp_path, [])
    assert set(tmp_path.iterdir()) == {mine}


def test_a_recording_that_goes_on_is_rolled_up_from_where_it_was(
    spark: SparkContext, folder: Path, expected: Report, tmp_path: Path
) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | {"segments": manifest["segments"][:3]}))
    assert rolled_up(report_on(spark, tmp_path, folder)) == 3
    (folder / "manifest.json").write_text(json.dumps(manifest))
    made = report_on(spark, tmp_path, folder)
    assert rolled_up(made) == len(manifest["segments"]) - 3
    assert_same(made, expected)


def test_an_open_segment_counts_as_if_it_were_closed(
    spark: SparkContext, history: list[View], expected: Report, tmp_path: Path
) -> None:
    made = report_on(spark, tmp_path, record(tmp_path / "r", history[:80], close=False))
    assert notes(made) in ([NoteKind.STILL_WRITTEN], [NoteKind.NOT_CLOSED])
    assert_same(made, expected)


def test_a_torn_recording_counts_up_to_its_last_whole_observation(
    spark: SparkContext, history: list[View], expected: Report, tmp_path: Path
) -> None:
    folder = record(tmp_path / "r", history[:81], close=False)
    stream = sorted(folder.glob(f"seg-*/{STREAM_FILE}"))[-1]
    os.truncate(stream, stream.stat().st_size - 3)
    os.utime(stream, (0, 0))
    made = report_on(spark, tmp_path, folder)
    (note,) = made.period.notes
    assert (note.kind, note.values["sequence"]) == (NoteKind.TORN, 79)
    assert_same(made, expected)


def test_a_damaged_segment_is_left_out(
    spark: SparkContext, folder: Path, expected: Report, tmp_path: Path
) -> None:
    file = folder / "seg-000003" / "partition_deltas.parquet"
    os.truncate(file, file.stat().st_size - 10)
    made = report_on(spark, tmp_path, folder)
    (note,) = (note for note in made.period.notes if note.kind is NoteKind.SEGMENT_DAMAGED)
    assert (note.values["segment"], note.values["file"]) == (3, str(file))
    mine, whole = (rows_of(one, TableName.CLUSTERS, "cluster") for one in (made, expected))
    ((key, row),) = mine.items()
    assert 0 < row["records_in"] < whole[key]["records_in"]


def flip(file: Path) -> None:
    """Change a bit within the data of a file, whose size and ends stay the same."""
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 0x10
    file.write_bytes(content)


def test_a_segment_with_a_damaged_page_is_left_out(
    spark: SparkContext, recorded: Path, folder: Path, tmp_path: Path
) -> None:
    flip(folder / "seg-000003" / "partition_deltas.parquet")
    made = report_on(spark, tmp_path, folder)
    without = Path(shutil.copytree(recorded, tmp_path / "without"))
    (without / "seg-000003" / "partition_deltas.parquet").write_bytes(b"")
    assert_same(made, report_on(spark, tmp_path, without))
    (note,) = (note for note in made.period.notes if note.kind is NoteKind.SEGMENT_DAMAGED)
    assert note.values["file"] == str(folder / "seg-000003" / "partition_deltas.parquet")


def test_kept_rollups_with_a_damaged_page_are_made_again(
    spark: SparkContext, reported: Path, expected: Report, tmp_path: Path
) -> None:
    (batch,) = (reported / FOLDER).glob("batch-*")
    flip(max(batch.glob("seconds/*.parquet"), key=lambda path: path.stat().st_size))
    made = report_on(spark, tmp_path, reported)
    assert rolled_up(made) > 0 and not batch.exists()
    assert_same(made, expected)


def minutes(made: Report) -> dict[tuple[Any, ...], dict[str, Any]]:
    rows = (made[TableName.THROUGHPUT].row(at) for at in range(len(made[TableName.THROUGHPUT])))
    return {(row["topic"], row["at_ms"]): row for row in rows if row["known_s"] == 60}


@pytest.mark.slow  # seconds that came twice are asked alone
def test_recordings_that_overlap_count_each_second_once(
    spark: SparkContext, history: list[View], tmp_path: Path
) -> None:
    by_minute = Question(step_s=60)
    whole = report_on(spark, tmp_path, record(tmp_path / "whole", history), question=by_minute)
    first = record(tmp_path / "a", history[:130])
    second = record(tmp_path / "b", history[60:])
    made = report_on(spark, tmp_path, second, first, question=by_minute)
    assert notes(made) == [NoteKind.OVERLAP]
    periods = sorted(
        zip(made[TableName.PERIODS]["since_ms"], made[TableName.PERIODS]["until_ms"], strict=True)
    )
    assert periods[0][1] <= periods[1][0] < periods[0][1] + 60_000
    assert len(minutes(made)) >= 2
    for key, row in minutes(made).items():
        assert row == minutes(whole)[key], key
    sums = sum(made[TableName.PARTITIONS]["records_in"])
    assert sums == sum(made[TableName.TOPICS]["records_in"])


MIDDLE_MS = PLAN.snapshots(1, 1)[0].observation.ended_ms + 60_000


@pytest.mark.parametrize(
    "question",
    [
        pytest.param(Question(threshold_ms=2_000), marks=pytest.mark.slow),
        pytest.param(Question(topics=("*e*",), groups=("*1*",), since_ms=MIDDLE_MS), marks=pytest.mark.slow),
        pytest.param(Question(topics=("none",), until_ms=MIDDLE_MS - 60_000), marks=pytest.mark.slow),
    ],
)
def test_the_figures_of_a_large_recording_come_from_many_tasks(
    spark: SparkContext,
    history: list[View],
    question: Question,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Two clusters, one of them in a batch that was rolled up before, an open segment, and a gap.
    first = record(tmp_path / "a", history[:50], close=False)
    second = record(tmp_path / "b", [*history[:70], *history[100:]])
    report_on(spark, tmp_path, second, question=question)
    other = [
        replace(
            view,
            snapshot=replace(view.snapshot, observation=replace(view.snapshot.observation, cluster_id="B")),
        )
        for view in history[60:90]
    ]
    folders = (first, second, record(tmp_path / "c", other))
    here = report_on(spark, tmp_path, *folders, question=question)
    # With patterns or a shorter period, some tables may be empty.
    assert question.threshold_ms != 2_000 or all(len(here[table]) for table in TableName)
    monkeypatch.setattr("kview.pipeline.report.TASK_ROWS", 1)
    assert_same(report_on(spark, tmp_path, *folders, question=question), here)


def test_a_period_that_is_widened_to_whole_minutes_says_so(
    spark: SparkContext, reported: Path, expected: Report, tmp_path: Path
) -> None:
    middle_ms = (expected.period.since_ms // 60_000 + 1) * 60_000
    exact = report_on(spark, tmp_path, reported, question=Question(since_ms=middle_ms))
    made = report_on(spark, tmp_path, reported, question=Question(since_ms=middle_ms + 7_000))
    assert_same(made, exact)
    assert exact.period.notes == ()
    ((kind, values),) = [(note.kind, note.values) for note in made.period.notes]
    assert (kind, values) == (NoteKind.WHOLE_MINUTES, {"earlier_s": 7, "later_s": 0})


def test_patterns_that_match_nothing_are_noted(spark: SparkContext, reported: Path, tmp_path: Path) -> None:
    made = report_on(spark, tmp_path, reported, question=Question(topics=("none", "no*"), groups=("*",)))
    found = [(note.kind, dict(note.values)) for note in made.period.notes]
    assert found == [(NoteKind.NO_MATCH, {"kind": "topics", "patterns": "none, no*"})]


def test_two_clusters_are_told_apart_and_summed_up(
    spark: SparkContext, history: list[View], reported: Path, expected: Report, tmp_path: Path
) -> None:
    others = [
        replace(
            view,
            snapshot=replace(view.snapshot, observation=replace(view.snapshot.observation, cluster_id="B")),
        )
        for view in history[:80]
    ]
    made = report_on(spark, tmp_path, reported, record(tmp_path / "b", others))
    rows = rows_of(made, TableName.CLUSTERS, "cluster")
    ((name,),) = rows_of(expected, TableName.CLUSTERS, "cluster")
    alone = rows_of(expected, TableName.CLUSTERS, "cluster")[(name,)]
    assert rows[(name,)] == alone and rows["B",] == alone | {"cluster": "B"}
    assert rows["",]["records_in"] == 2 * alone["records_in"]
    assert len(made[TableName.TOPICS]) == 2 * len(expected[TableName.TOPICS])


def test_of_seconds_that_came_twice_the_later_ones_count(spark: SparkContext, tmp_path: Path) -> None:
    plan = Plan(((5, "crash 4"), (40, "clock back 10 s"), (43, "rewind"), (80, "clock back 10 s")))
    history = list(folded(plan.snapshots(1, 120)))
    fresh = report_on(spark, tmp_path, record(tmp_path / "whole", history))
    assert NoteKind.CLOCK_SET_BACK in notes(fresh)
    growing = tmp_path / "r"
    shutil.copytree(tmp_path / "whole", growing, ignore=shutil.ignore_patterns(FOLDER))
    manifest = json.loads((growing / "manifest.json").read_text())
    made = fresh
    for count in (2, 4, 7, len(manifest["segments"])):
        (growing / "manifest.json").write_text(
            json.dumps(manifest | {"segments": manifest["segments"][:count]})
        )
        made = report_on(spark, tmp_path, growing)
    assert_same(made, fresh)


def test_what_was_not_observed_is_not_known(spark: SparkContext, tmp_path: Path) -> None:
    plan = Plan(((20, "skip"), (20, "skip")))
    history = list(folded(plan.snapshots(1, 40)))
    ends = [view.snapshot.observation.ended_ms for view in history]
    pause_ms = max(after - before for before, after in pairwise(ends))
    made = report_on(spark, tmp_path, record(tmp_path / "r", history))
    assert notes(made) == [NoteKind.GAP]
    row = made[TableName.PERIODS].row(0)
    assert (row["gaps"], row["gap_ms"]) == (1, pause_ms)
    assert 35 <= row["known_s"] <= 40


def test_rollups_go_to_the_cache_or_are_not_kept(
    spark: SparkContext, folder: Path, expected: Report, tmp_path: Path
) -> None:
    cached = [report(spark, [folder], Question(), tmp_path, tmp_path / "cache") for _ in range(2)]
    assert [rolled_up(made) > 0 for made in cached] == [True, False]
    assert not (folder / FOLDER).exists()
    (folder / FOLDER).write_text("a file where the folder should be")
    made = report_on(spark, tmp_path, folder)
    assert notes(made) == [NoteKind.NOT_KEPT]
    for one in (*cached, made):
        assert_same(one, expected)


@pytest.mark.parametrize("observations", [0, 1])
def test_a_recording_without_a_complete_second_is_refused(
    spark: SparkContext, history: list[View], tmp_path: Path, observations: int
) -> None:
    with pytest.raises(BadUse) as caught:
        report_on(spark, tmp_path, record(tmp_path / "r", history[:observations]))
    assert caught.value.kind is ErrorKind.REPORT_NOTHING_KNOWN
