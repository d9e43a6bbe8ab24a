"""The folders that a run can record to, and what a run records of its folds."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from kview.derive.fold import State, step
from kview.derive.view import View
from kview.errors import BadUse
from kview.model.notices import Notice, NoticeKind
from kview.model.snapshot import Snapshot
from kview.recording.reader import Recording
from kview.recording.writer import RecordingWriter
from kview.run.observing import new_fold
from kview.run.recorder import ARROW_POOL, QUEUE_OBSERVATIONS, Recorder, check_target
from kview.run.settings import Record
from tests.errors import raises_saying
from tests.recording.runs_with_facts import rows
from tests.recording.snapshots import all_of, assert_all_equal, concluded, ticking
from tests.waiting import PATIENCE_S, wait_until


def test_each_snapshot_is_folded_once_and_recorded_with_what_the_fold_concluded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Snapshot] = []
    written = concluded(ticking(8, crash_at=4))

    def counted(state: State, snapshot: Snapshot) -> tuple[State, View]:
        calls.append(snapshot)
        if snapshot is written[5]:
            raise ZeroDivisionError
        return step(state, snapshot)

    monkeypatch.setattr("kview.derive.fold.step", counted)

    def see(fold: Callable[[Snapshot], View], snapshot: Snapshot) -> None:
        if snapshot is written[5]:
            with pytest.raises(ZeroDivisionError):
                fold(snapshot)
        else:
            assert fold(snapshot).snapshot is snapshot

    recorder = Recorder(Record(tmp_path / "r"))
    recorder.start(lambda notice: pytest.fail(str(notice)))
    fold = new_fold(takers=(recorder.offer,))
    for snapshot in written:
        see(fold, snapshot)
    recorder.stop(PATIENCE_S)
    recording = Recording.open(tmp_path / "r")
    assert calls == written
    assert_all_equal(all_of(recording), written)
    assert {row["sequence"] for row in rows(recording, "findings")} == {0, 1, 2, 3, 4, 6, 7}
    assert [row["brokers"] for row in rows(recording, "incidents")][-1] == [4]


@pytest.mark.parametrize("ends_it", ["shown", "queue", "stop"])
def test_a_recorder_that_is_held_begins_late_and_leaves_nothing_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends_it: str
) -> None:
    written, said = ticking(QUEUE_OBSERVATIONS), list[str]()
    recorder = Recorder(Record(tmp_path / "r"))
    made = recorder._recording

    def noted(folder: Path) -> RecordingWriter:
        said.append("begins")
        return made(folder)

    monkeypatch.setattr(recorder, "_recording", noted)
    recorder.hold()
    recorder.start(lambda notice: pytest.fail(str(notice)))
    early = QUEUE_OBSERVATIONS // 4
    for snapshot in written[:early]:
        recorder.offer(snapshot, None)
    recorder._thread._thread.join(0.05)
    said.append(ends_it)
    if ends_it == "queue":
        recorder.offer(written[early], None)
        wait_until(lambda: len(said) > 1, "it begins")
        early += 1
    elif ends_it == "shown":
        recorder.shown()
    recorder.stop(PATIENCE_S)
    assert said == [ends_it, "begins"]
    assert_all_equal(all_of(Recording.open(tmp_path / "r")), written[:early])


@pytest.mark.parametrize(("observations", "name"), [(1, ""), (2, ""), (1, "mine")])
def test_one_observation_alone_is_not_recorded_for_looking_back_unless_it_is_to_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, observations: int, name: str
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    recorder, notices = Recorder(Record()), list[Notice]()
    recorder.hold()
    recorder.start(notices.append)
    for snapshot in ticking(observations):
        recorder.offer(snapshot, None)
    if name:
        assert recorder.keep(name) is None
    recorder.stop(PATIENCE_S)
    assert (recorder.folder is not None) is (observations > 1 or bool(name))
    assert [notice.kind for notice in notices] == [NoticeKind.KEPT] * bool(name)


IMPORTS_ARROW = """
import os, sys
from kview.run.recorder import ARROW_POOL, import_arrow
import_arrow()
import pyarrow
print(pyarrow.default_memory_pool().backend_name, os.environ.get(ARROW_POOL))
"""


@pytest.mark.parametrize(("chosen", "in_use"), [(None, "system None"), ("jemalloc", "jemalloc jemalloc")])
def test_arrow_uses_the_c_librarys_memory_in_this_process_only(chosen: str | None, in_use: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name != ARROW_POOL}
    environment |= {ARROW_POOL: chosen} if chosen else {}
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS_ARROW], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.strip() == in_use


@pytest.mark.parametrize("name", ["x" * 300, f"{'x' * 300}/r"])
def test_a_folder_that_cannot_be_looked_into_cannot_be_made(tmp_path: Path, name: str) -> None:
    with raises_saying(BadUse, r"cannot be created \(File name too long\): record to another folder"):
        check_target(Record(tmp_path / name))
