"""The flight recorder stays within its limits, survives a crash, and can be kept under a name."""

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kview.errors import BadUse, KviewError
from kview.recording import ring
from kview.recording.reader import Recording
from kview.recording.ring import EARLIER_RUNS, FlightRecorder, find_recording, kept_folder
from kview.recording.writer import LARGEST_SEGMENT_BYTES, LONGEST_SEGMENT_S
from tests.errors import raises_saying
from tests.recording.snapshots import all_of, assert_all_equal, size_of, ticking
from tests.worlds import World, default_world


def filled(recorder: FlightRecorder, world: World, segments: int) -> None:
    """Record observations so far apart that each of them is in a segment of its own."""
    for _ in range(segments):
        recorder.append(world.tick())
        world.skip(LONGEST_SEGMENT_S)


def test_what_is_older_than_the_limit_is_forgotten(tmp_path: Path) -> None:
    recorder = FlightRecorder(tmp_path, "run", limit_ms=LONGEST_SEGMENT_S * 3000)
    filled(recorder, default_world(), 12)
    recording = Recording.open(recorder.folder)
    moments = recording.moments()
    assert 3 <= len(moments) <= 5
    assert moments[-1] - moments[0] >= 2 * LONGEST_SEGMENT_S * 1000
    assert {path.name for path in recorder.folder.glob("seg-*")} == {
        s.folder.name for s in recording.segments()
    }
    assert recording.sequences().tolist() == list(range(12 - len(moments), 12))


def test_a_moment_that_the_ring_has_dropped_is_an_error(tmp_path: Path) -> None:
    recorder, world = FlightRecorder(tmp_path, "run", limit_ms=LONGEST_SEGMENT_S * 2000), default_world()
    filled(recorder, world, 3)
    recording = Recording.open(recorder.folder)
    filled(recorder, world, 9)
    with raises_saying(KviewError, "no longer contains that moment"):
        recording.at_place(0)
    assert list(recording.delta_batches()) == []
    recording.refresh()
    assert recording.at_place(0).observation.sequence > 3


def test_the_ring_stays_within_its_bytes(tmp_path: Path) -> None:
    limit = 200_000
    recorder = FlightRecorder(tmp_path, "run", limit_bytes=limit)
    world = default_world()
    for _ in range(30):
        filled(recorder, world, 1)
        assert (
            size_of(recorder.folder) <= limit + 120_000
        )  # the stream of the open segment may exceed the limit
    assert 2 <= len(Recording.open(recorder.folder).moments()) < 30
    assert LARGEST_SEGMENT_BYTES < ring.RING_BYTES / 4


def test_a_killed_run_is_there_and_an_old_one_goes(tmp_path: Path) -> None:
    written = ticking(3)
    for run in range(EARLIER_RUNS + 3):
        recorder = FlightRecorder(tmp_path, f"run-{run}")
        for snapshot in written:
            recorder.append(snapshot)
        os.utime(recorder.folder, (run, run))
        recorder.close()
        assert_all_equal(all_of(Recording.open(recorder.folder)), written)
    left = sorted(folder.name for folder in (tmp_path / "flight").iterdir())
    assert left == [f"run-{run}" for run in range(2, EARLIER_RUNS + 3)]


def test_a_run_that_goes_on_is_left_alone(tmp_path: Path) -> None:
    mine = FlightRecorder(tmp_path, "mine")
    mine.append(ticking(1)[0])
    for run in range(EARLIER_RUNS + 3):
        FlightRecorder(tmp_path, f"run-{run}", limit_bytes=1).close()
    assert len(Recording.open(mine.folder).moments()) == 1


def test_clusters_of_one_run_remove_what_exceeds_together(tmp_path: Path) -> None:
    for trial in range(5):
        mine = [FlightRecorder(tmp_path, f"{trial}-1-{of}", limit_bytes=100_000) for of in range(2)]
        for earlier in range(EARLIER_RUNS):
            for segment in range(20):
                folder = tmp_path / "flight" / f"{trial}-earlier{earlier}" / f"seg-{segment}"
                folder.mkdir(parents=True)
                (folder / "x.parquet").write_bytes(b"x" * 3000)
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda recorder: filled(recorder, default_world(), 2), mine))
        for recorder in mine:
            recorder.close()


def test_runs_that_go_on_cost_no_descriptors(tmp_path: Path) -> None:
    others = [FlightRecorder(tmp_path, f"other-{run}") for run in range(3)]
    mine, world = FlightRecorder(tmp_path, "mine"), default_world()
    filled(mine, world, 2)
    before = len(os.listdir("/proc/self/fd"))
    filled(mine, world, 5)
    assert len(os.listdir("/proc/self/fd")) == before
    for recorder in (mine, *others):
        recorder.close()


def test_keeping_under_a_name(tmp_path: Path) -> None:
    recorder, world = FlightRecorder(tmp_path, "run", limit_ms=LONGEST_SEGMENT_S * 2000), default_world()
    filled(recorder, world, 3)
    before = all_of(Recording.open(recorder.folder))
    kept = recorder.keep("incident-7")
    assert kept == kept_folder(tmp_path) / "incident-7" == find_recording("incident-7", tmp_path)
    assert find_recording(str(kept), tmp_path) == kept
    filled(recorder, world, 9)
    recorder.close()
    assert_all_equal(all_of(Recording.open(kept)), before)
    with raises_saying(BadUse, "already a recording named incident-7"):
        recorder.keep("incident-7")


@pytest.mark.parametrize("name", ["", "../up", "a/b", ".hidden", "-x", "x" * 101, "a\nb"])
def test_a_name_is_not_a_path(tmp_path: Path, name: str) -> None:
    recorder = FlightRecorder(tmp_path, "run")
    recorder.append(ticking(1)[0])
    with raises_saying(BadUse, "not a valid name for a recording"):
        recorder.keep(name)
    assert not kept_folder(tmp_path).exists()


def test_an_unknown_recording_is_an_error_that_lists_those_there_are(tmp_path: Path) -> None:
    recorder = FlightRecorder(tmp_path, "run")
    recorder.append(ticking(1)[0])
    recorder.keep("monday")
    with raises_saying(BadUse, "'tuesday' is not a kview recording: .*name of a kept one: monday"):
        find_recording("tuesday", tmp_path)


def test_a_folder_that_cannot_be_looked_into_is_not_a_recording(tmp_path: Path) -> None:
    with raises_saying(BadUse, r"x is not a kview recording \(manifest.json: File name too long\)"):
        find_recording("x" * 300, tmp_path)
    with raises_saying(BadUse, r"is not a kview recording \(manifest.json: File name too long\)"):
        find_recording("tuesday", tmp_path / ("x" * 300))


def test_the_clusters_of_a_run_start_together_and_count_as_one_run(tmp_path: Path) -> None:
    def start(run: int) -> list[FlightRecorder]:
        names = [f"run-{run}", *(f"run-{run}-{cluster}" for cluster in range(1, 8))]
        with ThreadPoolExecutor(len(names)) as pool:
            return list(pool.map(lambda name: FlightRecorder(tmp_path, name), names))

    for run in range(EARLIER_RUNS + 2):
        for recorder in start(run):
            recorder.close()
    left = Counter(folder.name.split("-")[1] for folder in (tmp_path / "flight").iterdir())
    assert left == {str(run): 8 for run in range(1, EARLIER_RUNS + 2)}
