"""Replay: playing, pausing, stepping, changing the speed, and jumping to a time or an event."""

import os
import time
from pathlib import Path

import numpy as np
import pytest

from kview.derive.fold import State, fold_to, step
from kview.derive.partitions.rates import LOOK_BACK_MS
from kview.errors import KviewError
from kview.model.snapshot import Snapshot
from kview.recording.reader import Recording
from kview.recording.replay import LOOK_AGAIN_S, MAX_PAUSE_MS, MOST_AT_ONCE, SPEEDS, Jump, Onward, Replay
from kview.recording.segment import STREAM_FILE
from kview.recording.writer import RecordingWriter
from tests.errors import raises_saying
from tests.recording.snapshots import assert_all_equal, assert_equal, ticking
from tests.worlds import default_world
from tests.worlds.compare import unlike

CRASH_AT, FENCED_AT = 20, 29


@pytest.fixture(scope="module")
def written() -> list[Snapshot]:
    return ticking(60, crash_at=CRASH_AT)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, written: list[Snapshot]) -> Path:
    folder = tmp_path_factory.mktemp("replay") / "r"
    record(folder, written)
    return folder


def record(folder: Path, snapshots: list[Snapshot]) -> None:
    writer = RecordingWriter(folder, segment_s=25, small_segment_bytes=0)
    for snapshot in snapshots:
        writer.append(snapshot)
    writer.close()


@pytest.fixture
def replay(folder: Path) -> Replay:
    replay = Replay(Recording.open(folder))
    assert isinstance(replay.due(0.0), Jump)
    return replay


def shown(move: Onward | Jump | None) -> list[int]:
    assert isinstance(move, Onward)
    return [snapshot.observation.sequence for snapshot in move.snapshots]


def test_it_begins_at_the_beginning_and_stands(folder: Path, written: list[Snapshot]) -> None:
    replay = Replay(Recording.open(folder))
    assert replay.wait_s(5.0) == 0.0
    first = replay.due(5.0)
    assert isinstance(first, Jump)
    assert_equal(first.snapshot, written[0])
    assert_all_equal(list(first.look_back()), written[:1])
    assert not replay.playing and replay.due(1e6) is None and replay.wait_s(1e6) is None


def test_playing_shows_each_observation_when_it_is_due(replay: Replay) -> None:
    replay.play(100.0)
    assert replay.due(100.9) is None
    assert replay.wait_s(100.9) == pytest.approx(0.1)
    assert shown(replay.due(101.0)) == [1]
    assert shown(replay.due(103.5)) == [2, 3]
    assert replay.place == 3
    replay.pause()
    assert replay.due(200.0) is None and replay.place == 3
    replay.play(300.0)
    assert shown(replay.due(301.0)) == [4]


@pytest.mark.parametrize("speed", SPEEDS)
def test_speeds(replay: Replay, speed: int) -> None:
    replay.set_speed(speed, 0.0)
    replay.play(0.0)
    assert replay.wait_s(0.0) == pytest.approx(1 / speed)
    assert shown(replay.due(4.0 / speed)) == [1, 2, 3, 4]


def test_a_change_of_speed_goes_on_from_here(replay: Replay) -> None:
    replay.play(0.0)
    replay.due(2.0)
    replay.faster(2.0)
    assert replay.speed == 2 and shown(replay.due(3.0)) == [3, 4]
    replay.faster(3.0, -1)
    replay.faster(3.0, -1)
    assert replay.speed == 1
    for _ in SPEEDS:
        replay.faster(3.0)
    assert replay.speed == 64


def test_who_folds_too_slowly_falls_behind_and_skips_nothing(replay: Replay) -> None:
    replay.set_speed(64, 0.0)
    replay.play(0.0)
    seen, now_s = [], 0.0
    while not replay.at_end:
        now_s += 10.0
        seen += (got := shown(replay.due(now_s)))
        assert len(got) <= MOST_AT_ONCE
    assert seen == list(range(1, 60))
    assert not replay.playing and replay.wait_s(now_s) is None


def test_steps(replay: Replay, written: list[Snapshot]) -> None:
    assert shown(replay.step(1)) == [1]
    assert shown(replay.step(1)) == [2]
    back = replay.step(-1)
    assert isinstance(back, Jump) and replay.place == 1
    assert_all_equal(list(back.look_back()), written[:2])
    assert isinstance(replay.step(-5), Jump) and replay.place == 0
    assert isinstance(replay.step(1000), Jump) and replay.at_end


def test_going_to_a_time(replay: Replay, written: list[Snapshot]) -> None:
    replay.play(0.0)
    jump = replay.seek(written[40].observation.ended_ms + 500, 50.0)
    assert_equal(jump.snapshot, written[40])
    assert replay.playing and shown(replay.due(51.0)) == [41]


def test_a_view_after_a_jump_equals_the_one_after_playing(replay: Replay, written: list[Snapshot]) -> None:
    state = State()
    for snapshot in written[:41]:
        state, played = step(state, snapshot)
    jump = replay.seek(written[40].observation.ended_ms, 0.0)
    folded = fold_to(jump.snapshot, jump.look_back(), lambda: False)
    assert folded is not None and folded[1].events
    assert not list(unlike(folded[1], played))


def test_the_look_back_is_ten_minutes_and_ends_at_a_jump_of_the_clock(tmp_path: Path) -> None:
    world = default_world()
    world.interval_ms = 60_000
    snapshots = [world.tick() for _ in range(15)]
    world.next_ms -= 5_000_000
    snapshots += [world.tick() for _ in range(15)]
    record(tmp_path / "r", snapshots)
    replay = Replay(Recording.open(tmp_path / "r"))
    reached = {}
    for place in (14, 16, 29):
        while replay.place < place:
            replay.step(1)
        jump = replay.step(0)
        assert isinstance(jump, Jump)
        reached[place] = [snapshot.observation.sequence for snapshot in jump.look_back()]
    assert reached == {14: list(range(4, 15)), 16: [15, 16], 29: list(range(19, 30))}
    assert LOOK_BACK_MS == 600_000


def test_gaps_are_not_waited_through(tmp_path: Path) -> None:
    world = default_world()
    snapshots = [world.tick()]
    world.skip(7200)
    snapshots += [world.tick()]
    world.next_ms -= 3_600_000
    snapshots += [world.tick()]
    record(tmp_path / "r", snapshots)
    replay = Replay(Recording.open(tmp_path / "r"))
    replay.due(0.0)
    replay.play(0.0)
    assert replay.wait_s(0.0) == MAX_PAUSE_MS / 1000
    assert shown(replay.due(MAX_PAUSE_MS / 1000)) == [1, 2]


def test_the_next_and_the_previous_event(replay: Replay) -> None:
    """A broker becomes silent and is fenced later. A segment ends in between, but the first observation of
    the next segment is not an event."""
    found = []
    while (jump := replay.seek_event(1)) is not None:
        found.append(jump.snapshot.observation.sequence)
    assert found == [CRASH_AT, FENCED_AT]
    back = replay.seek_event(-1)
    assert back is not None and back.snapshot.observation.sequence == CRASH_AT
    assert replay.seek_event(-1) is None and replay.place == CRASH_AT


def test_what_counts_as_an_event_can_be_chosen(folder: Path) -> None:
    def led_anew(before: Snapshot, now: Snapshot) -> bool:
        return not np.array_equal(before.partitions.leader, now.partitions.leader)

    jump = Replay(Recording.open(folder), led_anew).seek_event(1)
    assert jump is not None and jump.snapshot.observation.sequence == FENCED_AT


def test_an_event_at_the_very_beginning_of_a_segment(tmp_path: Path) -> None:
    record(tmp_path / "r", ticking(40, crash_at=25))
    recording = Recording.open(tmp_path / "r")
    assert recording.segments()[1].times[0][0] == 25
    jump = Replay(recording).seek_event(1)
    assert jump is not None and jump.snapshot.observation.sequence == 25


def test_a_recording_that_grows(tmp_path: Path) -> None:
    writer, snapshots = RecordingWriter(tmp_path / "r"), ticking(6)
    for snapshot in snapshots[:3]:
        writer.append(snapshot)
    replay = Replay(Recording.open(tmp_path / "r"))
    replay.step(2)
    assert replay.at_end
    for snapshot in snapshots[3:]:
        writer.append(snapshot)
    replay.refresh()
    assert not replay.at_end and replay.place == 2
    assert shown(replay.step(1)) == [3]


def test_the_end_of_a_recording_that_is_being_written_is_waited_at(tmp_path: Path) -> None:
    writer, snapshots = RecordingWriter(tmp_path / "r"), ticking(6)
    for snapshot in snapshots[:3]:
        writer.append(snapshot)
    replay = Replay(Recording(tmp_path / "r", grows_within_s=600.0))
    replay.step(0)
    replay.play(0.0)
    assert shown(replay.due(9.0)) == [1, 2]
    assert replay.playing and replay.at_end and not replay.ended
    assert replay.wait_s(9.0) == LOOK_AGAIN_S
    assert replay.due(9.5) is None and replay.wait_s(9.5) == LOOK_AGAIN_S
    for snapshot in snapshots[3:]:
        writer.append(snapshot)
    assert replay.due(10.0) is None and replay.wait_s(10.0) == pytest.approx(1.0)
    assert shown(replay.due(11.0)) == [3]
    assert shown(replay.due(20.0)) == [4, 5] and replay.playing
    long_ago_s = time.time() - 600.0
    os.utime(tmp_path / "r" / "seg-000001" / STREAM_FILE, (long_ago_s, long_ago_s))
    assert replay.due(20.5) is None and not replay.playing and replay.ended, "whoever wrote it was killed"


def test_an_empty_recording(tmp_path: Path) -> None:
    RecordingWriter(tmp_path / "r")
    with raises_saying(KviewError, "has no complete observation"):
        Replay(Recording.open(tmp_path / "r"))
