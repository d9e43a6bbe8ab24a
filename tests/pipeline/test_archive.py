"""Java's class-data archive: made once, then used, and in nobody's way."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from kview.model.aggregates import Aggregates, Sum
from kview.pipeline.archive import archive_of, reading
from kview.pipeline.jvm import choose_java
from kview.pipeline.process import LiveJob
from kview.recording.writer import RecordingWriter
from tests.e2e.processes import descendants, jvms, runs
from tests.pipeline.archives import making
from tests.pipeline.figures import Counted, of_rollups, total
from tests.recording.snapshots import ticking
from tests.waiting import wait_until

STARTS_WITHIN_S = 90
LEFT_WITHIN_S = 2.0


@pytest.fixture(scope="module")
def java() -> Path:
    return choose_java(os.environ)


def test_an_archive_takes_the_place_of_older_ones(
    java: Path, archive_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(archive_cache))
    archive = archive_of(java)
    assert {path.name for path in (archive_cache / "kview").iterdir()} == {archive.name, "jars"}
    assert archive.stat().st_size > 50 << 20
    assert reading(java)[0].endswith(f"={archive}")


def test_there_is_none_to_read_before_one_is_made(
    java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert reading(java) == ()


@pytest.mark.parametrize("fits", [True, False])
def test_figures_are_right_with_an_archive_and_with_what_is_none(
    java: Path, archive_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fits: bool
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(archive_cache if fits else tmp_path))
    if not fits:
        archive_of(java).parent.mkdir()
        archive_of(java).write_text("no archive at all\n" * 1000)
    written = ticking(20)
    writer = RecordingWriter(tmp_path / "r")
    for snapshot in written:
        writer.append(snapshot)
    told = [Aggregates()]
    job = LiveJob(tmp_path / "r", told.append, lambda: 0)
    job.start()
    try:
        until_ms = written[-1].observation.ended_ms
        wait_until(lambda: told[-1].rollups.until_ms == until_ms, "roll-ups", STARTS_WITHIN_S)
        assert job.pid is not None
        (jvm,) = jvms(job.pid)
        assert str(archive_of(java)) in dict(descendants(job.pid))[jvm]
        maps = Path(f"/proc/{jvm}/maps")
        if maps.exists():
            assert (str(archive_of(java)) in maps.read_text()) == fits
    finally:
        job.stop()
    expected = Counted(written).sums[Sum.RECORDS_IN]
    assert total(of_rollups(told[-1].rollups), Sum.RECORDS_IN) == expected > 0


def test_nothing_is_left_of_one_that_is_not_finished(java: Path, tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "r")
    writer.append(ticking(1)[0])
    with making(java, writer.folder, tmp_path) as process:
        (jvm,) = wait_until(lambda: jvms(process.pid), "a JVM", STARTS_WITHIN_S)
        wait_until((tmp_path / "scratch" / "gateway").exists, "that it has begun", STARTS_WITHIN_S)
        processes = [process.pid, *(pid for pid, _ in descendants(process.pid))]
        # What Java writes at its end.
        option = next(word for word in words_of(jvm) if str(tmp_path / "kview") in word)
        unfinished = Path(option.partition("=")[2])
        for path in (unfinished, unfinished.with_name(f"{unfinished.name}.config")):
            path.write_text("half an archive")
        assert process.stdin is not None
        process.stdin.close()
        wait_until(lambda: not [*filter(runs, processes)], "the end of all", LEFT_WITHIN_S)
        assert not [*(tmp_path / "kview").iterdir()]


def words_of(pid: int) -> list[str]:
    asked = subprocess.run(
        ["ps", "-ww", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=True
    )
    return asked.stdout.split()
