"""A temporary folder goes with the last process that needs it, even if that was killed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kview.config.scratch import LOCK, UNLOCKED_S, Scratch
from kview.errors import ErrorKind, KviewError

HOLDER = """
import os, subprocess, sys
from kview.config.scratch import Scratch
made = Scratch("x-")
(made.path / "deep").mkdir()
child = 0
if "child" in sys.argv:
    null = subprocess.DEVNULL
    child = subprocess.Popen(["sleep", "60"], stdout=null, pass_fds=made.held_by).pid
print(made.path, child, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for temporary files."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def holder(*words: str) -> tuple[subprocess.Popen[str], Path, int]:
    """A process with a folder, and perhaps with a child that needs it, too."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    path, child = process.stdout.readline().split()
    return process, Path(path), int(child)


def kill(process: subprocess.Popen[str]) -> None:
    """Kill a process that nothing warns."""
    process.kill()
    process.wait()


def test_what_a_killed_process_left_goes_when_the_next_one_begins() -> None:
    process, left, _ = holder()
    with Scratch("x-") as other:
        assert left.is_dir() and other.path != left, "while it runs, nobody touches its folder"
    kill(process)
    with Scratch("y-"):
        assert left.is_dir(), "a folder of something else"
    with Scratch("x-") as made:
        assert not left.exists() and made.path.is_dir()
    assert not made.path.exists()


def test_a_folder_stays_while_a_child_of_the_killed_process_needs_it() -> None:
    process, left, child = holder("child")
    try:
        kill(process)
        with Scratch("x-"):
            assert left.is_dir()
    finally:
        os.kill(child, 9)
    # The child is not ours, so nobody tells when it has ended.
    for _ in range(1000):
        with Scratch("x-"):
            if not left.exists():
                return
    raise AssertionError(f"{left} is still there")


def test_a_folder_stays_while_one_in_it_is_needed(folder: Path) -> None:
    outer, inner = folder / "x-outer", folder / "x-outer" / "x-inner"
    inner.mkdir(parents=True)
    for path in (outer, inner):
        (path / LOCK).touch()
    command = ["flock", str(inner / LOCK), "sh", "-c", "echo; read _"]
    held = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert held.stdout is not None and held.stdout.readline()
    with Scratch("x-"):
        assert inner.is_dir()
    held.communicate(b"\n")
    with Scratch("x-"):
        assert not outer.exists()


def test_what_is_not_known_to_be_abandoned_stays(folder: Path) -> None:
    old = folder.stat().st_mtime - 2 * UNLOCKED_S
    for name in ("x-empty", "x-young", "x-full", "elsewhere"):
        (folder / name).mkdir()
    (folder / "x-full" / "file").touch()
    (folder / "elsewhere" / LOCK).touch()
    (folder / "x-link").symlink_to(folder / "elsewhere")
    for name in ("x-empty", "x-full"):
        os.utime(folder / name, (old, old))
    with Scratch("x-") as made:
        left = {path.name for path in folder.iterdir()} - {made.path.name}
    assert left == {"x-young", "x-full", "x-link", "elsewhere"}
    assert (folder / "elsewhere" / LOCK).exists()


def test_without_a_place_for_it_there_is_a_sentence(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(folder / "missing"))
    with pytest.raises(KviewError) as caught:
        Scratch("x-")
    assert caught.value.kind is ErrorKind.SPARK_NO_FOLDER
