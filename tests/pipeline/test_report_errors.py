"""Whatever is wrong with the input, `kview report` says so in a sentence, without a trace of Java."""

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext

from kview.config.children import child_environment
from kview.config.scratch import REPORTS, Scratch
from kview.pipeline.kept import FOLDER
from kview.recording.names import MANIFEST
from kview.recording.schema import SCHEMA_VERSION
from kview.recording.writer import RecordingWriter
from tests.benchmarks.synthetic import write_recording
from tests.e2e.processes import descendants, runs
from tests.pipeline.commanded import ended, refused, start
from tests.pipeline.recorded import figures_of, report_on
from tests.pipeline.small_disks import mounted
from tests.served import kview_command
from tests.waiting import wait_until

SAID_WITHIN_S = 30
"""How soon kview says that a master cannot be reached."""

SILENT_MASTER = """
import sys
from kview.errors import ClusterUnreachable
from kview.language.errors import sentence
from kview.pipeline.batch_session import BatchSession

try:
    with BatchSession(sys.argv[1], cluster_within_s=1):
        pass
except ClusterUnreachable as error:
    print(sentence(error.facts))
"""

SHORT_OF_MEMORY = """
from kview.language.errors import sentence
from kview.pipeline.batch_session import BatchSession

with BatchSession("local[2]", heap_mb=256) as session:
    try:
        session.context.parallelize([bytes(200 << 20) for _ in range(2)], 2).count()
    except Exception as error:
        print(sentence(session.error_of(error).facts))
"""

NO_PACKAGES = """<ivysettings><settings defaultResolver="none"/><resolvers>
<filesystem name="none"><ivy pattern="{folder}/[module].xml"/><artifact pattern="{folder}/[module].jar"/>
</filesystem></resolvers></ivysettings>"""
"""Ivy's settings with a single repository, which is empty."""


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    write_recording(tmp_path / "r", 20, 130, 3)
    return tmp_path / "r"


def assert_sentence(done: tuple[int, str, str], code: int, *said: str) -> None:
    """One line on standard error that says all of this, nothing on standard output."""
    assert done[:2] == (code, ""), done
    assert done[2].startswith("kview: ") and done[2].count("\n") == 1, done[2]
    assert all(text in done[2] for text in said), done[2]
    for java in ("\tat ", "Exception", "Traceback", "py4j"):
        assert java not in done[2]


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(one) for one in listed.read_text().split()] if listed.exists() else []


def test_what_is_not_a_recording(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    RecordingWriter(tmp_path / "nothing").close()
    write_recording(tmp_path / "newer", 1, 3, 1)
    manifest = json.loads((tmp_path / "newer" / MANIFEST).read_text())
    (tmp_path / "newer" / MANIFEST).write_text(json.dumps(manifest | {"version": SCHEMA_VERSION + 1}))
    (tmp_path / "garbled").mkdir()
    (tmp_path / "garbled" / MANIFEST).write_bytes(b"\x00\xff{")
    for name, said in {
        "nowhere": "is not a kview recording",
        "empty": "is not a kview recording",
        "nothing": "has no complete observation",
        "newer": f"was recorded in format {SCHEMA_VERSION + 1}",
        "garbled": "is damaged",
        "n*[": "is not a kview recording",
        "s3a:": "is not a kview recording",
        "ftp://host/x": "give a folder, or a URL like s3://bucket/folder",
        "hdfs://127.0.0.1:1/x": "libhdfs.so",
    }.items():
        path = name if "://" in name else tmp_path / name
        assert_sentence(refused(path, "--cache", tmp_path), 2, said)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--since", "+90s", "--until", "+30s"), "which is not after its beginning"),
        (("--since", "+1h"), "nothing was recorded after 2"),
        (("--until", "-1h"), "nothing was recorded before 2"),
        (("--against", "-2h", "-1h"), "choose a period between"),
        (("--since", "+999999999999h"), "is not a valid time"),
        (("--since", "soon"), "is not a valid time"),
    ],
)
def test_a_period_in_which_nothing_can_be(recording: Path, flags: tuple[str, ...], said: str) -> None:
    assert_sentence(refused(recording, *flags), 2, said)


def test_a_store_that_does_not_answer(tmp_path: Path) -> None:
    url = "s3://key:sesame@bucket/x?scheme=http&endpoint_override=127.0.0.1:1&region=eu-west-1"
    began_s = time.monotonic()
    done = ended(start(url, "--cache", tmp_path, state=tmp_path))
    assert time.monotonic() - began_s < SAID_WITHIN_S
    assert_sentence(done, 3, "kview cannot read s3://bucket/x (", "check the address")
    written = "".join(path.read_text() for path in tmp_path.rglob("*.log"))
    assert "sesame" not in done[2] + written and "s3://bucket/x" in written


def said_by(script: str, *arguments: str | Path) -> str:
    """Run a script in a process of its own, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        env=child_environment(),
        check=True,
    )
    return done.stdout


@pytest.mark.slow  # starts a JVM of its own
def test_a_master_that_listens_and_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        master = f"spark://127.0.0.1:{silent.getsockname()[1]}"
        assert f"the Spark master {master} cannot be reached" in said_by(SILENT_MASTER, master)


@pytest.mark.slow  # starts a JVM of its own
def test_packages_that_cannot_be_downloaded(recording: Path, tmp_path: Path) -> None:
    settings = tmp_path / "ivy.xml"
    settings.write_text(NO_PACKAGES.format(folder=tmp_path))
    package = "org.apache.hadoop:hadoop-aws:3.5.0"
    flags = ("--conf", f"spark.jars.ivySettings={settings}", "--conf", f"spark.jars.ivy={tmp_path / 'ivy'}")
    done = ended(start(recording, "--packages", package, *flags, state=tmp_path / "state"))
    (log,) = (tmp_path / "state").rglob("kview.log")
    assert_sentence(done, 2, package, str(log))
    assert "hadoop-aws" in log.read_text()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with mounted(tmp_path / "disk", "16k") as folder:
        yield folder


@pytest.mark.slow  # a session of Spark of its own
def test_a_full_disk(recording: Path, small_disk: Path, tmp_path: Path) -> None:
    done = ended(start(recording, "--cache", small_disk, state=tmp_path))
    assert_sentence(done, 2, f"the disk that holds {small_disk}", "is full")
    assert not list(small_disk.rglob("*.parquet"))


@pytest.mark.slow
def test_a_heap_that_is_too_small() -> None:
    said = said_by(SHORT_OF_MEMORY)
    assert "needs more than 256 MB of memory" in said and "--heap" in said


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_ctrl_c_while_spark_starts(recording: Path, tmp_path: Path, number: int) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = start(recording, state=tmp_path, TMPDIR=str(scratch))
    (java,) = wait_until(lambda: children(process.pid), "Java")
    process.send_signal(number)
    assert_sentence(ended(process), 128 + number, "the report was cancelled")
    wait_until(lambda: not Path(f"/proc/{java}").exists(), "the end of Java")
    assert not list(scratch.iterdir())


@pytest.mark.slow
def test_ctrl_c_while_the_report_is_written(recording: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    unread = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # so it has to wait once the pipe is full
    try:
        process = start(recording, "--format", "json", "--out", pipe, state=tmp_path)
        wait_until(lambda: select.select([unread], [], [], 0)[0], "that it writes", 120)
        process.send_signal(signal.SIGINT)
        assert_sentence(ended(process), 130, "the report was cancelled")
    finally:
        os.close(unread)


def test_what_a_killed_report_left_goes_with_the_next_one(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = start(recording, state=tmp_path, TMPDIR=str(scratch))
    (left,) = wait_until(lambda: list(scratch.glob("kview-report-*/gateway")), "the session", 120)
    process.kill()
    ended(process)
    assert left.parent.exists()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))

    def is_gone() -> bool:
        """As long as the JVM still runs, its folder stays."""
        with Scratch(REPORTS):
            return not left.parent.exists()

    wait_until(is_gone, "its end after that of Java", 120)
    assert not list(scratch.iterdir())


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--master", "foo"), "'foo' is not a valid Spark master"),
        (("--master", "local[0]"), "is not a valid Spark master"),
    ],
)
def test_a_master_that_spark_does_not_know(recording: Path, flags: tuple[str, ...], said: str) -> None:
    assert_sentence(refused(recording, *flags), 2, said)


@pytest.mark.parametrize("flag", ["--threshold", "--price"])
@pytest.mark.parametrize("value", ["nan", "inf", "1e300", "-1", "much"])
def test_an_amount_that_is_none(flag: str, value: str) -> None:
    code, output, errors = refused("/nowhere", flag, value)
    assert (code, output) == (2, "") and f"{value!r} is not a number from 0 to " in errors


@pytest.mark.slow  # an interrupt while Spark starts is quick
def test_ctrl_c_during_a_job(spark: SparkContext, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    write_recording(folder, 500, 300, 3)
    process = start(folder, state=tmp_path)

    def workers() -> list[int]:
        return [pid for pid, words in descendants(process.pid) if "pyspark.daemon" in words]

    started = wait_until(workers, "Spark's Python workers")
    process.send_signal(signal.SIGINT)
    assert_sentence(ended(process), 130, "the report was cancelled")
    wait_until(lambda: not any(map(runs, started)), "the end of the workers")
    assert not list(folder.glob(f"{FOLDER}/.new-*"))
    shutil.copytree(folder, tmp_path / "copy", ignore=shutil.ignore_patterns(FOLDER))
    made, fresh = (report_on(spark, tmp_path, one) for one in (folder, tmp_path / "copy"))
    assert figures_of(made)["topics"] and figures_of(made) == figures_of(fresh)


@pytest.mark.slow
def test_a_report_that_nobody_reads_to_its_end(recording: Path) -> None:
    command = " ".join(map(str, (*kview_command("report"), recording, "--format", "json", "| head -c 1")))
    script = f"set -o pipefail; {command}; echo ${{PIPESTATUS[0]}} >&2"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False)
    assert done.stdout == "{" and done.stderr == "0\n"
