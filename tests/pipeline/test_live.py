"""The steps of the live job, without Spark, Java or waiting."""

import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from kview.pipeline import live
from kview.recording.writer import RecordingWriter
from tests.pipeline.here import HERE
from tests.recording.snapshots import ticking


class Enough(Exception):
    """Ends the job, which has no end."""


class Watched(threading.Event):
    """Notes how long the job would rest, and ends it after some steps."""

    def __init__(self, steps: int) -> None:
        super().__init__()
        self.rests: list[float | None] = []
        self._steps = steps

    def wait(self, timeout: float | None = None) -> bool:
        self.rests.append(None if self.is_set() else timeout)
        if len(self.rests) == self._steps:
            raise Enough
        return True


@pytest.mark.parametrize("is_watched", [False, True])
def test_each_observation_is_in_one_step_and_nobody_who_does_not_look_costs_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_watched: bool
) -> None:
    snapshots = iter(ticking(4))
    writer = RecordingWriter(tmp_path / "r")
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if (snapshot := next(snapshots, None)) is not None:
            writer.append(snapshot)

    monkeypatch.setattr(live, "time", SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    received: list[pa.Table] = []
    watched = Watched(6)
    if is_watched:
        watched.set()
    with pytest.raises(Enough):
        live.run(HERE, tmp_path / "r", -1, received.append, watched)
    assert [table["last_sequence"][0].as_py() for table in received] == [0, 1, 2, 3]
    assert all(0 < pause <= max(live.CYCLE_S, live.MAX_REST_S) for pause in pauses)
    assert watched.rests == [None if is_watched else live.UNWATCHED_S - live.CYCLE_S] * 6
