"""--record and `kview replay` without a terminal."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kview.recording.names import MANIFEST
from kview.recording.reader import Recording
from kview.recording.writer import RecordingWriter
from tests.cli.commands import KVIEW, ROOT, run_here, run_kview
from tests.recording.snapshots import ticking
from tests.waiting import PATIENCE_S

START_S = 120
SNAPSHOTS = ticking(12, crash_at=5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording of twelve seconds."""
    folder = tmp_path_factory.mktemp("cli") / "twelve"
    writer = RecordingWriter(folder)
    for snapshot in SNAPSHOTS:
        writer.append(snapshot)
    writer.close()
    return folder


@pytest.mark.quick(1)
@pytest.mark.parametrize("number", [2, 15], ids=["ctrl-c", "SIGTERM"])
def test_text_is_recorded_and_closed_by_a_signal(tmp_path: Path, number: int) -> None:
    folder = tmp_path / "seen"
    with subprocess.Popen(
        [*KVIEW, "--simulate", "--format", "json", "--record", str(folder), "--interval", "200ms"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        printed = [json.loads(process.stdout.readline())["at_ms"] for _ in range(5)]
        process.send_signal(number)
        printed += [json.loads(line)["at_ms"] for line in process.stdout.read().splitlines()]
        assert process.wait(PATIENCE_S) == 128 + number
        assert process.stderr.read() == ""
    recording = Recording.open(folder)
    assert recording.moments().tolist()[: len(printed)] == printed
    assert [segment.closed for segment in recording.segments()] == [True]


def test_blocks_of_a_recording(folder: Path) -> None:
    done = run_here("replay", str(folder))
    assert (done.returncode, done.stderr) == (0, "")
    blocks = [line for line in done.stdout.splitlines() if line.startswith("kview ")]
    assert len(blocks) == len(SNAPSHOTS) and all("replay twelve" in line for line in blocks)
    assert "broker 4" in done.stdout


def test_documents_from_a_time_on(folder: Path) -> None:
    done = run_here("replay", str(folder), "--format", "json", "--at", "+4s")
    assert done.returncode == 0, done.stderr
    seen = [json.loads(line)["at_ms"] for line in done.stdout.splitlines()]
    assert seen == [snapshot.observation.ended_ms for snapshot in SNAPSHOTS[4:]]


@pytest.mark.parametrize(("at", "shown"), [([], 11), (["--at", "-5s"], 6)])
def test_once_prints_one(folder: Path, at: list[str], shown: int) -> None:
    done = run_here("replay", str(folder), "--format", "json", "--once", *at)
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    document = json.loads(line)
    assert document["at_ms"] == SNAPSHOTS[shown].observation.ended_ms
    assert document["in_records_per_second"] > 0


def test_what_cannot_be_replayed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    RecordingWriter(tmp_path / "nothing").close()
    (tmp_path / "newer").mkdir()
    newer = (folder / MANIFEST).read_text().replace('"version":', '"version":9')
    (tmp_path / "newer" / MANIFEST).write_text(newer)
    shutil.copytree(folder, tmp_path / "damaged")
    (tmp_path / "damaged" / "seg-000001" / "words.parquet").write_bytes(b"PAR1 and then nothing PAR1")
    for arguments, sentence in (
        ([str(tmp_path / "empty")], "is not a kview recording: give"),
        ([str(tmp_path / "nothing")], "has no complete observation"),
        ([str(tmp_path / "newer")], "use the version of kview that recorded it"),
        ([str(folder), "--at", ""], "'' is not a valid time: write 14:05"),
        ([str(folder), "--at", "noon"], "'noon' is not a valid time: write 14:05"),
        ([str(folder), "--speed", "3"], "'3' is not one of '1', '2', '4'"),
        ([str(tmp_path / "damaged")], "words.parquet is damaged"),
    ):
        done = run_here("replay", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert sentence in done.stderr and "Traceback" not in done.stderr


def test_folders_and_urls_that_cannot_be_recorded_to(folder: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    (tmp_path / "file").write_text("")
    new = str(tmp_path / "new")
    for arguments, sentence in (
        (["--record", str(folder)], "twelve already holds a recording: give another folder"),
        (["--record", str(tmp_path / "file" / "x")], "cannot be created (Not a directory)"),
        (["--record-upload", "s3://bucket"], "--record-upload needs --record DIR"),
        (["--record", new, "--record-upload", "ftp://u:secret@h/x"], "cannot upload to ftp://h/x"),
    ):
        for command in (["--simulate"], ["connect", "localhost:1"]):
            done = run_here(*command, *arguments, "--once")
            assert (done.returncode, done.stdout) == (2, ""), done.stderr
            assert sentence in done.stderr and "secret" not in done.stderr
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
    assert not Path(new).exists()


def test_an_upload_has_the_last_segment_too(tmp_path: Path) -> None:
    folder, there = tmp_path / "seen", tmp_path / "there"
    done = run_kview(
        "--simulate", "--once", "--record", str(folder), "--record-upload", there.as_uri(), timeout_s=START_S
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert Recording.open(there).moments().tolist() == Recording.open(folder).moments().tolist() != []


def test_an_upload_that_fails_is_reported_and_the_recording_stays(tmp_path: Path) -> None:
    folder = tmp_path / "seen"
    (tmp_path / "file").write_text("")
    away = (tmp_path / "file" / "there").as_uri()
    done = run_kview(
        "--simulate", "--once", "--record", str(folder), "--record-upload", away, timeout_s=START_S
    )
    assert done.returncode == 0
    assert f"uploading to {away} failed" in done.stderr
    assert f"the upload of {folder} is incomplete: copy it by hand: the rest is" in done.stderr
    assert len(Recording.open(folder).moments()) == 2


@pytest.mark.parametrize(
    "program",
    [
        "import kview.cli.group as g; g.kview(['--help'], standalone_mode=False)",
        "import kview.cli.group as g; g.kview(['replay', '--help'], standalone_mode=False)",
        "import kview.tui.app, kview.derive.fold, kview.run.simulated, kview.run.dashboard",
    ],
    ids=["--help", "replay --help", "dashboard"],
)
def test_arrow_is_not_imported_before_it_is_used(program: str) -> None:
    check = f"import sys; {program}; sys.exit('pyarrow' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", check], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_kept_recording_is_found_by_its_name(folder: Path, state_home: Path) -> None:
    kept = state_home / "kview" / "recordings" / "friday"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.symlink_to(folder)
    done = run_here("replay", "friday", "--once")
    assert done.returncode == 0 and "replay friday" in done.stdout
    done = run_here("replay", "monday", "--once")
    assert done.returncode == 2
    assert (
        "'monday' is not a kview recording: give the folder of a recording, or the name of a kept one: "
        in done.stderr
        and "friday" in done.stderr
    )


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("2000-01-01T00:00", r"2000-01-01 00:00:00 is before the recording, which starts at \d{4}-"),
        ("2999-01-01T00:00", r"2999-01-01 00:00:00 is after the recording, which ends at \d{4}-"),
        ("-1h", r" is before the recording, which starts at "),
    ],
)
def test_a_moment_outside_the_recording_is_said(folder: Path, at: str, said: str) -> None:
    done = run_here("replay", str(folder), "--at", at, "--once")
    assert done.returncode == 0 and "BROKER" in done.stdout
    assert re.search(f"^kview: .*{said}", done.stderr), done.stderr
    inside = run_here("replay", str(folder), "--at", "-1s", "--once")
    assert (inside.returncode, inside.stderr) == (0, "")
