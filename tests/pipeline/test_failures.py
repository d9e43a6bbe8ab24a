"""Failures of the live job, which reports the reason, leaves nothing behind, and is started again."""

import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.json import Decoder

from kview.config.messages import BytesFollow, messages
from kview.errors import ErrorFacts, ErrorKind, KviewError
from kview.language.errors import sentence
from kview.model.aggregates import Aggregates, SparkState, SparkStatus
from kview.model.snapshot import Snapshot
from kview.pipeline.process import FIRST_BACK_OFF_S, LiveJob
from kview.recording.writer import RecordingWriter
from tests.e2e.processes import descendants, exists, jvms, named, only_jvm, runs
from tests.pipeline.small_disks import mounted
from tests.recording.snapshots import ticking
from tests.waiting import wait_until
from tests.worlds import World
from tests.worlds.parts import PLACEMENT, Node, topic

STARTS_WITHIN_S = 300
TOLD_WITHIN_S = 30
NOW_MS = 1_760_000_500_000

SPARK_KILLED = KviewError(ErrorKind.SPARK_KILLED, signal="SIGKILL").facts
JAVA_KILLED = KviewError(ErrorKind.JAVA_KILLED, signal="SIGKILL").facts

WRITTEN = ticking(20)

TOPICS = 1_000
"""The roll-ups of this many topics do not fit into a socket's buffer."""


class Watched:
    """A live job whose scratch folder is in `folder`, with everything that it publishes."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.recording = folder / "recording"
        self.received: list[Aggregates] = []
        self.writer: RecordingWriter | None = None
        self._lock = threading.Lock()
        self.job = LiveJob(self.recording, self._hear, lambda: NOW_MS, **options)

    def _hear(self, aggregates: Aggregates) -> None:
        with self._lock:
            self.received.append(aggregates)

    def record(self, snapshots: list[Snapshot]) -> None:
        self.writer = self.writer or RecordingWriter(self.recording)
        for snapshot in snapshots:
            self.writer.append(snapshot)

    @property
    def processes(self) -> list[int]:
        """The process ids of the child and of everything that it has started."""
        child = self.job.pid
        return [child, *(pid for pid, _ in descendants(child))] if child is not None else []

    @property
    def jvms(self) -> list[int]:
        child = self.job.pid
        return jvms(child) if child is not None else []

    def wait_for_start_of(self, moment: str) -> None:
        """Wait until the child runs, or its Java, or the gateway in it, which needs seconds more."""
        reached: dict[str, Callable[[], bool]] = {
            "child": lambda: self.job.pid is not None,
            "java": lambda: bool(self.jvms),
            "gateway": lambda: any(self.folder.glob("kview-spark-*/gateway")),
        }
        wait_until(reached[moment], f"the start of {moment}", STARTS_WITHIN_S)

    def wait_until_it_runs(self) -> None:
        def runs() -> bool:
            return any(one.status.state is SparkState.RUNNING for one in self.received)

        wait_until(runs, "roll-ups", STARTS_WITHIN_S)

    def wait_until_all_is_received(self) -> None:
        until_ms = WRITTEN[-1].observation.ended_ms
        wait_until(lambda: self.received[-1].rollups.until_ms == until_ms, "all roll-ups", STARTS_WITHIN_S)

    def wait_for_failure(self, number: int = 1) -> SparkStatus:
        def failures() -> list[SparkStatus]:
            found = [aggregates.status for aggregates in self.received]
            return [status for status in found if status.state is SparkState.FAILED][number - 1 :]

        return wait_until(failures, "its failure", TOLD_WITHIN_S)[0]

    def assert_nothing_is_left(self, processes: list[int]) -> None:
        def left() -> list[object]:
            return [*filter(runs, processes), *self.folder.glob("kview-spark-*")]

        wait_until(lambda: not left(), f"the end of {processes}")


Watch = Callable[..., Watched]


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    """Return a function that creates a job with the given options, for example
    `watch(python="/no/python")`."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    made: list[Watched] = []

    def watching(**options: Any) -> Watched:
        made.append(Watched(tmp_path, **options))
        return made[-1]

    yield watching
    for watched in made:
        watched.job.stop()
    # This includes processes that have lost their parent.
    wait_until(lambda: not named(str(tmp_path)), "the end of all")


@pytest.fixture
def watched(watch: Watch) -> Watched:
    return watch()


def assert_sentence(failure: SparkStatus) -> None:
    assert failure.error is not None
    why = sentence(failure.error)
    assert why and "\n" not in why and "Traceback" not in why and len(why) < 400, why


def test_it_waits_for_a_recording_and_says_where_one_has_gone(watch: Watch) -> None:
    watched = watch(steady_s=10 * TOLD_WITHIN_S)
    watched.job.start()
    failure = watched.wait_for_failure()
    assert_sentence(failure)
    assert failure.error is not None and failure.error.kind is ErrorKind.NO_MANIFEST
    assert failure.error.values["folder"] == str(watched.recording)
    assert failure.since_ms == NOW_MS
    assert failure.next_start_ms == NOW_MS + int(FIRST_BACK_OFF_S * 1000)

    watched.record(WRITTEN)
    watched.wait_until_all_is_received()

    processes = watched.processes
    watched.recording.rename(watched.folder / "elsewhere")
    failure = watched.wait_for_failure(2)
    assert_sentence(failure)
    assert failure.error is not None and failure.error.kind is ErrorKind.NO_MANIFEST
    assert failure.error.values["folder"] == str(watched.recording)
    # The job failed at once both times, so the pause has doubled.
    assert failure.next_start_ms == NOW_MS + 2 * int(FIRST_BACK_OFF_S * 1000)
    assert watched.received[-1].rollups.until_ms == WRITTEN[-1].observation.ended_ms
    wait_until(lambda: not [*filter(runs, processes)], "the end of its processes")


@pytest.mark.parametrize("moment", ["java", "gateway"])
def test_a_killed_child_takes_its_jvm_with_it_and_is_started_again(watched: Watched, moment: str) -> None:
    """Java notices the end of its parent only once it has started."""
    watched.record(WRITTEN)
    watched.job.start()
    watched.wait_for_start_of(moment)
    assert watched.job.pid is not None
    jvm, processes = only_jvm(watched.job.pid), watched.processes
    os.kill(processes[0], signal.SIGKILL)
    assert watched.wait_for_failure().error == SPARK_KILLED
    watched.assert_nothing_is_left(processes)
    wait_until(lambda: watched.jvms, "another start", TOLD_WITHIN_S)
    assert jvm not in watched.jvms


@pytest.mark.parametrize("moment", ["child", pytest.param("java", marks=pytest.mark.slow), "gateway"])
def test_nothing_is_left_of_a_start_that_is_stopped(watched: Watched, moment: str) -> None:
    watched.record(WRITTEN)
    watched.job.start()
    watched.wait_for_start_of(moment)
    processes = watched.processes
    watched.job.stop()
    watched.assert_nothing_is_left(processes)
    assert [aggregates.status.state for aggregates in watched.received] == [SparkState.STARTING]


def test_without_a_folder_for_its_files_it_says_so_and_tries_again(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = watched.folder / "missing"
    monkeypatch.setattr(tempfile, "tempdir", str(missing))
    watched.job.start()
    failure = watched.wait_for_failure()
    assert_sentence(failure)
    assert failure.error == (
        KviewError(ErrorKind.SPARK_NO_FOLDER, folder=str(missing), reason="No such file or directory").facts
    )
    assert failure.next_start_ms > NOW_MS
    missing.mkdir()
    wait_until(lambda: watched.job.pid, "a start", TOLD_WITHIN_S)
    assert len([*missing.glob("kview-spark-*")]) == 1


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "disk", "4m") as folder:
        yield folder


@pytest.mark.slow  # the test without any folder covers the same path
def test_a_full_disk_is_reported(small_disk: Path, watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(small_disk))
    watched.record(WRITTEN[:-2])
    watched.job.start()
    watched.wait_until_it_runs()
    with pytest.raises(OSError), (small_disk / "large").open("wb", buffering=0) as file:
        while file.write(bytes(1 << 16)):
            pass
    watched.record(WRITTEN[-2:])
    failure = watched.wait_for_failure()
    assert_sentence(failure)
    assert failure.error == KviewError(ErrorKind.SPARK_DISK_FULL, folder=str(small_disk)).facts


@pytest.mark.slow
def test_a_jvm_that_ends_while_roll_ups_are_sent_does_not_spoil_them(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    logs = [log for number in range(TOPICS) for log in topic(f"topic-{number}", 1, 1, 50.0)]
    world = World([Node(id, "") for id in PLACEMENT], logs, [])
    watched.record([world.tick() for _ in range(3)])
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    ours, theirs = socket.socketpair()
    words = ["--control-fd", str(theirs.fileno()), "--recording", str(watched.recording)]
    words += ["--after", "-1", "--scratch", str(scratch)]
    with (
        ours,
        subprocess.Popen(
            [sys.executable, "-m", "kview.pipeline.child", *words],
            pass_fds=[theirs.fileno()],
            stderr=subprocess.DEVNULL,
        ) as child,
    ):
        theirs.close()
        # The roll-ups do not fit into the socket's buffer, and nobody reads them.
        assert select.select([ours], [], [], STARTS_WITHIN_S)[0]
        jvm = only_jvm(child.pid)
        os.kill(jvm, signal.SIGKILL)
        wait_until(lambda: not exists(jvm), "its noticing")
        ours.settimeout(TOLD_WITHIN_S)
        rollups, failed = messages(ours, Decoder(BytesFollow | ErrorFacts))
    assert isinstance(rollups, bytes) and len(rollups) > 300_000
    assert failed == JAVA_KILLED


def test_a_child_that_cannot_be_started_or_understood_is_reported(watch: Watch, tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text(
        f"#!{sys.executable}\nimport os, sys\nos.write(int(sys.argv[-1]), bytes(100) + b'\\n')\n"
    )
    program.chmod(0o755)
    watched = watch(python=str(program))
    watched.job.start()
    failure = watched.wait_for_failure()
    assert_sentence(failure)
    assert failure.error is not None and failure.error.kind is ErrorKind.SPARK_GARBLED
    program.unlink()
    not_started = KviewError(ErrorKind.SPARK_NOT_STARTED, reason="No such file or directory")
    assert watched.wait_for_failure(2).error == not_started.facts


def test_a_child_that_ends_before_it_has_read_what_it_was_told_says_how_it_ended(
    watch: Watch, tmp_path: Path
) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\nsleep 0.2\nexit 7\n")
    program.chmod(0o755)
    watched = watch(python=str(program))
    watched.job.start()
    assert watched.wait_for_failure().error == KviewError(ErrorKind.SPARK_ENDED, code=7).facts


def test_its_rests_get_longer_until_somebody_asks_for_it(watch: Watch, tmp_path: Path) -> None:
    first_s = 0.1
    watched = watch(python=str(tmp_path / "no-python"), first_back_off_s=first_s)

    def rest_s(number: int) -> float:
        return (watched.wait_for_failure(number).next_start_ms - NOW_MS) / 1000

    watched.job.start()
    assert [rest_s(number) for number in (1, 2, 3, 4)] == [first_s * 2**n for n in range(4)]
    watched.job.restart()
    assert [rest_s(number) for number in (5, 6)] == [first_s, first_s * 2]


@pytest.mark.slow  # Spark waits ten seconds for the process
def test_a_process_for_python_that_takes_long_to_start_costs_no_jvm(
    watched: Watched, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late, began = tmp_path / "late", tmp_path / "began"
    late.mkdir()
    (late / "sitecustomize.py").write_text(
        "import pathlib, sys, time\n"
        f"began = pathlib.Path({str(began)!r})\n"
        "if 'pyspark' in ' '.join(sys.orig_argv) and not began.exists():\n"
        "    began.touch()\n"
        "    time.sleep(11)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(late))
    watched.record(WRITTEN[:10])
    watched.job.start()
    wait_until(began.exists, "a process for Python", STARTS_WITHIN_S)
    jvms = watched.jvms
    watched.record(WRITTEN[10:])
    watched.wait_until_all_is_received()
    assert watched.jvms == jvms
    assert SparkState.FAILED not in {one.status.state for one in watched.received}
