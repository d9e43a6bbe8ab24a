"""In the player, a newer command interrupts a look-back without losing anything, and failures become
notices."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from kview.derive.fold import State, step
from kview.derive.view import LIVE, View
from kview.errors import ErrorKind, KviewError
from kview.model.ports import Moment
from kview.model.snapshot import Snapshot
from kview.model.units import UNKNOWN
from kview.recording.reader import Recording
from kview.recording.replay import Jump, LookBack, Replay
from kview.recording.writer import RecordingWriter
from kview.run.player import Player, replay_of
from kview.run.timeline import Publisher
from tests.recording.snapshots import ticking
from tests.run.fakes import Shown
from tests.waiting import PATIENCE_S, wait_until
from tests.worlds.compare import unlike

SNAPSHOTS = ticking(12)


class Held(LookBack):
    """A look-back that waits for the test before its second snapshot."""

    reached = threading.Event()
    go_on = threading.Event()

    def __iter__(self) -> Iterator[Snapshot]:
        for number, snapshot in enumerate(LookBack.__iter__(self)):
            if number == 1:
                self.reached.set()
                assert self.go_on.wait(PATIENCE_S)
            yield snapshot


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    writer = RecordingWriter(tmp_path / "r")
    for snapshot in SNAPSHOTS:
        writer.append(snapshot)
    writer.close()
    return tmp_path / "r"


class Stage:
    """A player of a recording, with what it has shown."""

    def __init__(self, folder: Path) -> None:
        self.shown = Shown()
        self.numbers: list[int] = []
        self.reading: list[tuple[Moment, int]] = []
        """How time goes on while moments are read, and the numbers of the commands."""
        self.player = Player(lambda: self.open(folder), self._show, self.shown.notices.append)
        self.player.start()

    def open(self, folder: Path) -> Replay:
        """Open the recording as a run does."""
        return replay_of(Recording.open(folder), self.player.newer)

    def _show(self, view: View | None, moment: Moment, number: int) -> None:
        if view is None:
            self.reading.append((moment, number))
        else:
            self.numbers.append(number)
            self.shown.views.append(replace(view, moment=moment))


def test_a_step_on_from_a_look_back_that_was_interrupted_is_complete(folder: Path) -> None:
    stage = Stage(folder)

    def go_back(replay: Replay, now_s: float) -> Jump:
        jump = replay.seek(SNAPSHOTS[8].observation.ended_ms, now_s)
        whole = jump.look_back()
        return Jump(jump.snapshot, lambda: Held(whole.recording, whole.first, whole.last))

    stage.player.send(1, go_back)
    wait_until(Held.reached.is_set, "the look-back is under way")
    ((moment, number),) = stage.reading
    assert (moment.reading_ms, moment.playing, number) == (SNAPSHOTS[8].observation.ended_ms, False, 1)
    stage.player.send(2, lambda replay, now_s: replay.step(1))
    Held.go_on.set()
    wait_until(lambda: stage.shown.at(9), "the next one")
    stage.player.stop()
    assert stage.numbers == [2], "the first was given up"
    state = State()
    for snapshot in SNAPSHOTS[:10]:
        state, view = step(state, snapshot)
    assert [*unlike(replace(stage.shown.last, moment=LIVE), view)] == []


def test_a_past_that_cannot_be_read_leaves_time_where_it_is_shown(folder: Path) -> None:
    stage = Stage(folder)

    def forgotten() -> LookBack:
        raise KviewError(ErrorKind.MOMENT_FORGOTTEN, folder="r")

    def go_nowhere(replay: Replay, now_s: float) -> Jump:
        replay.play(now_s)
        return Jump(replay.seek(SNAPSHOTS[8].observation.ended_ms, now_s).snapshot, forgotten)

    stage.player.send(1, lambda replay, now_s: replay.step(3))
    wait_until(lambda: stage.shown.at(3), "a view")
    stage.player.send(2, go_nowhere)
    wait_until(lambda: stage.shown.said("r no longer contains that moment"), "why not")
    wait_until(lambda: stage.reading[-1][0].reading_ms == UNKNOWN, "nothing is read any more")
    assert stage.reading[-2][0].playing and not stage.reading[-1][0].playing
    stage.player.send(3, lambda replay, now_s: replay.step(1))
    wait_until(lambda: stage.shown.at(4), "the one after the one shown")
    stage.player.stop()


def test_a_command_that_fails_is_a_notice_and_the_next_one_is_carried_out(folder: Path) -> None:
    stage = Stage(folder)

    def fail(replay: Replay, now_s: float) -> None:
        raise KviewError(ErrorKind.MOMENT_FORGOTTEN, folder="r")

    def break_down(replay: Replay, now_s: float) -> None:
        raise ValueError("a bug")

    stage.player.send(1, fail)
    wait_until(lambda: stage.shown.said("r no longer contains that moment"), "why not")
    stage.player.send(2, break_down)
    wait_until(lambda: stage.shown.said("the replay failed (ValueError: a bug)"), "what failed")
    stage.player.send(3, lambda replay, now_s: replay.step(3))
    wait_until(lambda: stage.shown.at(3), "a view")
    stage.player.stop()


def test_pictures_that_are_not_wanted_any_more_are_not_handed_on() -> None:
    publisher, shown = Publisher(lambda: 0), Shown()
    _, view = step(State(), SNAPSHOTS[0])
    publisher.publish(view, LIVE)
    publisher.start(shown.views.append, shown.notices.append)
    publisher.publish(view, LIVE, wanted=lambda: False)
    assert not shown.views
    publisher.publish(view, LIVE, wanted=lambda: True)
    assert len(shown.views) == 1
    publisher.stop()
    publisher.publish(view, LIVE)
    assert len(shown.views) == 1
