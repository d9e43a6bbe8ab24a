"""Facts survive what recordings survive: kills, cuts, damage, rings, keeping under a name, and full disks."""

import itertools
import random
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from msgspec.structs import replace

from kview.derive.facts import Facts
from kview.errors import BadUse
from kview.model.snapshot import Snapshot
from kview.recording.fact_schema import FACTS
from kview.recording.facts import FactRows
from kview.recording.reader import Recording
from kview.recording.ring import FlightRecorder
from kview.recording.segment import STREAM_FILE
from kview.recording.writer import LONGEST_SEGMENT_S, RecordingStopped, RecordingWriter
from tests.errors import raises_saying
from tests.recording.runs_with_facts import Row, Seen, folded, recorded, rows, two_incidents_seen
from tests.recording.snapshots import all_of, assert_all_equal, histories
from tests.worlds import default_world

SEED = 4
OLD = Path(__file__).parent
FIRST = "seg-000001"
OPEN = "seg-000003"


def run() -> list[Seen]:
    """The first 34 seconds of two incidents."""
    return two_incidents_seen()[:34]


def all_facts(recording: Recording) -> dict[str, list[Row]]:
    return {part: rows(recording, part) for part in FACTS}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a recording of three segments, `r`, and how it was before it was closed."""
    folder = tmp_path_factory.mktemp("written")
    writer = recorded(folder / "r", run(), segment_s=12, small_segment_bytes=0)
    shutil.copytree(folder / "r", folder / "killed")
    writer.close()
    return folder


@pytest.fixture
def killed(written: Path, tmp_path: Path) -> Path:
    """Return a recording with two closed segments, and an open one whose writer was killed."""
    return Path(shutil.copytree(written / "killed", tmp_path / "killed"))


def test_a_kill_costs_no_more_than_the_groups_at_rest(written: Path) -> None:
    closed, cut = (all_facts(Recording.open(written / name)) for name in ("r", "killed"))
    for part in FACTS:
        assert cut[part] == closed[part][: len(cut[part])]
        if part != "group_lags":
            assert cut[part] == closed[part]
    assert 0 < len(closed["group_lags"]) - len(cut["group_lags"]) <= len(run()[0].snapshot.groups)


@pytest.mark.quick(2)
@pytest.mark.parametrize("part", [*FACTS, "observations"])
def test_a_stream_that_is_cut_anywhere_keeps_its_first_rows(killed: Path, part: str) -> None:
    stream, chance = killed / OPEN / f"{part}.arrows", random.Random(SEED)
    if not stream.exists():
        assert part in ("elections", "sizes")
        return
    content, before = stream.read_bytes(), all_facts(Recording.open(killed))
    for cut in (0, 1, 8, *(chance.randrange(len(content)) for _ in range(12))):
        stream.write_bytes(content[:cut])
        recording = Recording.open(killed)
        last = int(recording.sequences()[-1])
        for name, now in all_facts(recording).items():
            assert now == before[name][: len(now)]
            assert all(row["sequence"] <= last for row in now)
            if name != part and part != "observations":
                assert now == before[name]
        if part != "observations":
            assert len(recording.moments()) == len(run())


@pytest.mark.parametrize("part", FACTS)
def test_damage_in_facts_names_the_file_and_spares_snapshots_and_deltas(killed: Path, part: str) -> None:
    intact = tuple(Recording.open(killed).delta_batches())
    for path in (killed / FIRST / f"{part}.parquet", killed / OPEN / f"{part}.arrows"):
        if path.exists():
            path.write_bytes(b"\xff" * path.stat().st_size)
    recording = Recording.open(killed)
    concluded = [replace(seen.snapshot, oldest_unread=seen.view.oldest_unread) for seen in run()]
    assert_all_equal(all_of(recording), concluded)
    for now, before in zip(recording.delta_batches(), intact, strict=True):
        assert now.last_sequence == before.last_sequence
        assert all(a.equals(b) for a, b in zip(now[:3], before[:3], strict=True))
    if (killed / FIRST / f"{part}.parquet").exists():
        with raises_saying(BadUse, rf"{part}\.parquet is damaged"):
            rows(recording, part)


def test_facts_that_are_missing_are_damage_only_in_a_closed_segment(killed: Path) -> None:
    (killed / OPEN / "findings.arrows").unlink()
    before = rows(Recording.open(killed), "findings")
    assert before and before[-1]["sequence"] < len(run()) - 1
    (killed / FIRST / "findings.parquet").unlink()
    with raises_saying(BadUse, r"findings\.parquet is missing"):
        rows(Recording.open(killed), "findings")


def test_a_recording_that_grows_is_read_to_its_last_whole_observation(tmp_path: Path) -> None:
    writer = recorded(tmp_path / "r", run()[:5])
    recording = Recording.open(tmp_path / "r")
    for seen in run()[5:8]:
        writer.append(seen.snapshot, Facts.of(seen.view))
    assert {row["sequence"] for row in rows(recording, "findings")} == set(range(5))
    recording.refresh()
    assert {row["sequence"] for row in rows(recording, "findings", 5)} == {6, 7}
    writer.close()
    assert {row["sequence"] for row in rows(recording, "findings", 5)} == {6, 7}


def test_a_ring_drops_and_keeps_facts_with_their_segments(tmp_path: Path) -> None:
    recorder, world = FlightRecorder(tmp_path, "run", limit_ms=LONGEST_SEGMENT_S * 3000), default_world()
    for _ in range(8):
        (seen,) = folded([world.tick()])
        recorder.append(seen.snapshot, Facts.of(seen.view))
        world.skip(LONGEST_SEGMENT_S)
    recording = Recording.open(recorder.folder)
    left = set(recording.sequences().tolist())
    assert 2 <= len(left) < 8
    for part in ("findings", "group_lags", "sizes"):
        assert {row["sequence"] for row in rows(recording, part)} == left
    kept = recorder.keep("monday")
    recorder.close()
    assert all_facts(Recording.open(kept)) == all_facts(Recording.open(recorder.folder))


def test_a_ring_that_ends_accounts_for_groups_at_rest(tmp_path: Path) -> None:
    recorder = FlightRecorder(tmp_path, "run")
    for seen in run()[:14]:
        recorder.append(seen.snapshot, Facts.of(seen.view))
    recorder.close()
    written = rows(Recording.open(recorder.folder), "group_lags")
    assert sum(row["interval_ms"] for row in written) == 13_000 * len(run()[0].snapshot.groups)


def test_after_a_full_disk_open_incidents_are_told_again(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "r")
    for number, seen in enumerate(run()):
        if number == 20:
            (tmp_path / "r").rename(tmp_path / "away")
            (tmp_path / "r").write_text("in the way")
            writer.abandon()
            with pytest.raises(RecordingStopped):
                writer.append(seen.snapshot, Facts.of(seen.view))
            (tmp_path / "r").unlink()
            (tmp_path / "away").rename(tmp_path / "r")
            continue
        writer.append(seen.snapshot, Facts.of(seen.view))
    writer.close()
    recording = Recording.open(tmp_path / "r")
    second = int(recording.segments()[1].times[0][0])
    told = [row["sequence"] for row in rows(recording, "incidents")]
    assert second in told
    sums = {row["group"]: 0 for row in rows(recording, "group_lags")}
    for row in rows(recording, "group_lags"):
        sums[row["group"]] += row["interval_ms"]
    assert set(sums.values()) == {19_000 + (len(run()) - 22) * 1000}


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(histories())
def test_no_snapshots_break_the_facts(history: list[Snapshot]) -> None:
    made, last = FactRows(), -1
    for sequence, snapshot in enumerate(history):
        for part, batch in made.rows(sequence, snapshot, None, 0):
            assert batch.schema.equals(FACTS[part]) and batch.num_rows
            batch.validate(full=True)
            last = sequence
    assert last < len(history)


def test_the_streams_of_facts_are_plain_arrow_streams(killed: Path) -> None:
    for path in (killed / OPEN).glob("*.arrows"):
        if path.name != STREAM_FILE:
            with pa.OSFile(str(path)) as file:
                batches = list(itertools.islice(pa.ipc.open_stream(file), 3))
            assert batches and batches[0].schema.equals(FACTS[path.stem])
