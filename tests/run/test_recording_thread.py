"""Recording during a run stops with one notice, and never delays the run."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kview.derive.facts import Facts
from kview.language.notices import text
from kview.model.notices import Notice, NoticeKind
from kview.model.snapshot import Snapshot
from kview.recording.reader import Recording
from kview.recording.writer import RecordingStopped, RecordingWriter
from kview.run.recorder import QUEUE_OBSERVATIONS, RecordingThread, Writes
from tests.recording.snapshots import all_of, assert_all_equal, ticking
from tests.served import kview_environment
from tests.waiting import PATIENCE_S, wait_until


def test_what_is_offered_is_recorded(tmp_path: Path) -> None:
    notices: list[Notice] = []
    thread = RecordingThread(lambda: RecordingWriter(tmp_path / "r"), notices.append)
    thread.start()
    written = ticking(10)
    for snapshot in written:
        thread.offer(snapshot)
    thread.stop(PATIENCE_S)
    recording = Recording.open(tmp_path / "r")
    assert_all_equal(all_of(recording), written)
    assert [segment.closed for segment in recording.segments()] == [True]
    assert not notices


@pytest.mark.parametrize("place", ["a file", "below a file", "/proc"])
def test_a_folder_that_cannot_be_written_is_one_notice(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("in the way")
    folder = {"a file": tmp_path / "file", "below a file": tmp_path / "file" / "r", "/proc": Path("/proc/r")}[
        place
    ]
    notices: list[Notice] = []
    thread = RecordingThread(lambda: RecordingWriter(folder), notices.append)
    thread.start()
    wait_until(lambda: notices, "a notice")
    for snapshot in ticking(QUEUE_OBSERVATIONS + 5):
        thread.offer(snapshot)
    thread.stop(PATIENCE_S)
    assert len(notices) == 1 and not thread.recording
    assert str(folder) in text(notices[0]) and "has stopped" in text(notices[0]) and notices[0].sticky


class Held:
    """A slow disk."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.taken: list[Snapshot] = []

    def append(self, snapshot: Snapshot, facts: Facts | None = None) -> None:
        self.go_on.wait(PATIENCE_S)
        self.taken.append(snapshot)

    def close(self) -> None:
        pass


def test_a_slow_disk_holds_up_nobody_and_is_reported() -> None:
    held, notices = Held(), list[Notice]()
    thread = RecordingThread(lambda: held, notices.append)
    thread.start()
    written = ticking(1) * (QUEUE_OBSERVATIONS + 6)
    for snapshot in written:
        thread.offer(snapshot)
    held.go_on.set()
    wait_until(lambda: notices, "a notice")
    thread.stop(PATIENCE_S)
    assert QUEUE_OBSERVATIONS <= len(held.taken) <= QUEUE_OBSERVATIONS + 1
    assert notices == [Notice(NoticeKind.RECORDING_SLOW, {"count": len(written) - len(held.taken)})]


def test_a_job_is_done_between_observations_and_its_failure_ends_nothing(tmp_path: Path) -> None:
    notices: list[Notice] = []
    thread = RecordingThread(lambda: RecordingWriter(tmp_path / "r"), notices.append)
    written = ticking(4)

    def fail(writer: Writes) -> Notice:
        raise OSError("no such luck")

    def count(writer: Writes) -> Notice:
        return Notice(NoticeKind.KEPT, {"name": str(len(Recording.open(tmp_path / "r").moments()))})

    thread.start()
    for job in (fail, count):
        thread.offer(written[0])
        thread.offer(written[1])
        assert thread.ask(job)
    thread.stop(PATIENCE_S)
    assert [notice.kind for notice in notices] == [NoticeKind.NOT_KEPT, NoticeKind.KEPT]
    assert "no such luck" in text(notices[0]) and notices[1].values == {"name": "4"}
    assert len(Recording.open(tmp_path / "r").moments()) == 4


FULL_DISK = """
import resource, sys
from pathlib import Path
from kview.language.notices import text
from kview.run.recorder import RecordingThread
from kview.recording.writer import RecordingWriter
from tests.recording.snapshots import all_of, ticking
limit, folder = int(sys.argv[1]), Path(sys.argv[2])
def writer():
    made = RecordingWriter(folder)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    return made
thread = RecordingThread(writer, lambda notice: print(text(notice), flush=True))
thread.start()
for snapshot in ticking(12):
    thread.offer(snapshot)
thread.stop(20)
"""


@pytest.mark.quick(1)
@pytest.mark.parametrize("limit", [100, 20_000, 130_000, 160_001])
def test_a_disk_that_is_full_leaves_what_was_written(tmp_path: Path, limit: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(limit), str(tmp_path / "r")],
        capture_output=True,
        text=True,
        env=kview_environment(),
        timeout=120,
        check=True,
    )
    assert done.stdout.count("\n") == 1 and "has stopped: File too large" in done.stdout, done
    read = all_of(Recording.open(tmp_path / "r"))
    assert_all_equal(read, ticking(len(read)))
    assert bool(read) == (limit >= 130_000)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_small_file_system_that_is_full(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300k", "tmpfs", str(disk)], check=False)
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        writer = RecordingWriter(disk / "r")
        appended, written = 0, ticking(60)
        with pytest.raises(RecordingStopped, match="No space left on device"):
            for snapshot in written:
                writer.append(snapshot)
                appended += 1
        assert appended > 5
        assert_all_equal(all_of(Recording.open(disk / "r")), written[:appended])
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_disk_that_fills_while_a_segment_is_closed(tmp_path: Path) -> None:
    """The Parquet file cannot be written, because a folder with its name exists. The stream remains."""
    writer, written = RecordingWriter(tmp_path / "r"), ticking(5)
    for snapshot in written:
        writer.append(snapshot)
    (tmp_path / "r" / "seg-000001" / "numbers.parquet").mkdir()
    with pytest.raises(RecordingStopped):
        writer.close()
    assert_all_equal(all_of(Recording.open(tmp_path / "r")), written)


def test_recording_continues_once_there_is_space_again(tmp_path: Path) -> None:
    """A file in place of the next segment's folder stands for a full disk."""
    now_s, notices, in_the_way = [50.0], list[Notice](), tmp_path / "r" / "seg-000002"
    made = threading.Event()

    def new_writer() -> RecordingWriter:
        writer = RecordingWriter(tmp_path / "r", segment_s=3, small_segment_bytes=0)
        in_the_way.write_text("")
        made.set()
        return writer

    thread = RecordingThread(new_writer, notices.append, lambda: now_s[0])
    thread.start()
    assert made.wait(PATIENCE_S)
    written = ticking(10)

    def offer(first: int, end: int) -> None:
        """Offer these snapshots, and wait until they have been dealt with."""
        for snapshot in written[first:end]:
            thread.offer(snapshot)
        done = threading.Event()

        def job(writer: Writes) -> Notice:
            done.set()
            return Notice(NoticeKind.KEPT, {"name": "nothing"})

        assert thread.ask(job) and done.wait(PATIENCE_S)

    offer(0, 6)
    in_the_way.unlink()
    offer(6, 7)  # too early
    now_s[0] += 10.0
    offer(7, 10)
    thread.stop(PATIENCE_S)
    said = [text(notice) for notice in notices if notice.kind is not NoticeKind.KEPT]
    assert len(said) == 2
    assert "has stopped: File exists" in said[0] and said[0].endswith("; trying again every 10 s")
    assert said[1].startswith("recording continues: 4 observations left out since ")
    recording = Recording.open(tmp_path / "r")
    assert_all_equal(all_of(recording), [*written[:3], *written[7:]])
    assert [segment.number for segment in recording.segments()] == [1, 2]


def test_an_observation_waits_until_its_view_is_drawn_but_not_if_more_wait_or_at_the_end() -> None:
    held = Held()
    held.go_on.set()
    thread = RecordingThread(lambda: held, lambda notice: None, after_s=PATIENCE_S)
    written = ticking(3)
    for snapshot in written:
        thread.offer(snapshot)
    thread.start()
    wait_until(lambda: len(held.taken) == 2, "those that another one follows")
    thread.stop(PATIENCE_S / 2)
    assert held.taken == written
