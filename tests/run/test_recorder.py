"""The folders that a run can record to, and what a run records of its folds."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kview.derive.fold import State, step
from kview.derive.view import View
from kview.errors import BadUse
from kview.model.snapshot import Snapshot
from kview.recording.reader import Recording
from kview.run.observing import new_fold
from kview.run.recorder import Recorder, check_target
from kview.run.settings import Record
from tests.errors import raises_saying
from tests.recording.runs_with_facts import rows
from tests.recording.snapshots import all_of, assert_all_equal, concluded, ticking
from tests.waiting import PATIENCE_S


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


@pytest.mark.parametrize("name", ["x" * 300, f"{'x' * 300}/r"])
def test_a_folder_that_cannot_be_looked_into_cannot_be_made(tmp_path: Path, name: str) -> None:
    with raises_saying(BadUse, r"cannot be created \(File name too long\): record to another folder"):
        check_target(Record(tmp_path / name))
