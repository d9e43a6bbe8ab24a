"""A replay plays by itself, accepts commands, and shows the same views as the run did."""

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from kview.cli.replay import SPEEDS as CLI_SPEEDS
from kview.derive.fold import State, step
from kview.derive.view import LIVE, View
from kview.errors import BadUse
from kview.language.notices import text
from kview.language.words import clock, day
from kview.recording.names import MANIFEST
from kview.recording.reader import Recording
from kview.recording.replay import SPEEDS
from kview.recording.writer import RecordingWriter
from kview.run.player import replay_of
from kview.run.replaying import ReplayTimeline, interval_ms, open_recording, replay, views
from kview.run.settings import Display, Format
from tests.errors import raises_saying
from tests.recording.snapshots import all_of, assert_all_equal, ticking
from tests.run.fakes import Shown
from tests.waiting import PATIENCE_S, wait_until
from tests.worlds import default_world
from tests.worlds.compare import unlike

CRASH_AT, REWOUND_AT = 10, 21
SNAPSHOTS = ticking(40, crash_at=CRASH_AT)
LAST = len(SNAPSHOTS) - 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("replaying") / "seen"
    writer = RecordingWriter(folder)
    for snapshot in SNAPSHOTS:
        writer.append(snapshot)
    writer.close()
    return folder


def at_ms(sequence: int) -> int:
    return SNAPSHOTS[sequence].observation.ended_ms


class Stage:
    """A replay, with what it has shown."""

    def __init__(self, recording: Recording | Path, begin_ms: int | None = None, speed: int = 1) -> None:
        opened = open_recording(str(recording)) if isinstance(recording, Path) else recording
        self.shown = Shown()
        self.timeline = ReplayTimeline(opened, begin_ms, speed)
        self.timeline.start(self.shown.views.append, self.shown.notices.append)

    def wait_for(self, sequence: int, **moment: object) -> View:
        """Wait for the view of that observation, and return it."""
        wait_until(lambda: self.shown.at(sequence, **moment), f"view {sequence} {moment}")
        return self.shown.last


@pytest.fixture
def stage(folder: Path) -> Iterator[Stage]:
    stage = Stage(folder)
    yield stage
    stage.timeline.stop()


@pytest.fixture(scope="module")
def folded() -> list[View]:
    state, out = State(), []
    for snapshot in SNAPSHOTS:
        state, view = step(state, snapshot)
        out.append(view)
    return out


def test_it_plays_from_the_beginning_to_the_end_and_stands(folder: Path, folded: list[View]) -> None:
    stage = Stage(folder, speed=64)
    view = stage.wait_for(LAST, playing=False, speed=64)
    stage.timeline.stop()
    assert not any(seen.moment.live for seen in stage.shown.views)
    assert stage.shown.views[0].snapshot.observation.sequence == 0
    assert (view.moment.first_ms, view.moment.last_ms) == (at_ms(0), at_ms(LAST))
    assert [*unlike(replace(view, moment=LIVE), folded[LAST])] == []


def test_its_clock_is_the_recording_s(stage: Stage) -> None:
    stage.wait_for(0, playing=True)
    began_s, began_ms = time.monotonic(), stage.timeline.clock_ms()
    assert at_ms(0) <= began_ms < at_ms(0) + 1000 * PATIENCE_S
    wait_until(lambda: stage.timeline.clock_ms() > began_ms, "it runs")
    assert stage.timeline.clock_ms() - began_ms <= (time.monotonic() - began_s) * 1000 + 1000
    stage.timeline.step(0)
    wait_until(lambda: not stage.shown.last.moment.playing, "a pause")
    shown_ms = stage.shown.last.snapshot.observation.ended_ms
    assert stage.timeline.clock_ms() == shown_ms == stage.timeline.clock_ms()


def test_it_begins_at_a_time_and_takes_every_control(
    folder: Path, folded: list[View], state_home: Path
) -> None:
    stage = Stage(folder, begin_ms=at_ms(5))
    stage.wait_for(5, playing=True)
    stage.timeline.toggle()
    stage.wait_for(5, playing=False)
    stage.timeline.faster(1)
    stage.wait_for(5, speed=2)
    stage.timeline.faster(-2)
    stage.wait_for(5, speed=1)
    stage.timeline.seek_event(1)
    view = stage.wait_for(CRASH_AT)
    assert [*unlike(replace(view, moment=LIVE), folded[CRASH_AT])] == []
    stage.timeline.step(-4)
    stage.wait_for(CRASH_AT - 4)
    stage.timeline.seek(at_ms(30))
    view = stage.wait_for(30)
    assert [*unlike(replace(view, moment=LIVE), folded[30])] == []
    stage.timeline.live()
    stage.wait_for(LAST, playing=False)
    stage.timeline.toggle()
    wait_until(lambda: stage.shown.said("the recording ends here"), "that it is the end")
    stage.timeline.keep("again")
    wait_until(lambda: stage.shown.said("kview replay again"), "that it is kept")
    stage.timeline.keep("again")
    wait_until(lambda: stage.shown.said("not kept: there is already"), "that the name is taken")
    stage.timeline.stop()
    assert_all_equal(all_of(open_recording("again")), SNAPSHOTS)
    assert (state_home / "kview" / "recordings" / "again" / MANIFEST).is_file()


def test_what_is_still_being_written_is_followed(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "r")
    for snapshot in SNAPSHOTS[:3]:
        writer.append(snapshot)
    stage = Stage(Recording(tmp_path / "r", grows_within_s=600.0), speed=64)
    stage.wait_for(2, playing=True)
    assert stage.timeline.clock_ms() == at_ms(2), "at its end ages do not run ahead"
    for snapshot in SNAPSHOTS[3:6]:
        writer.append(snapshot)
    stage.wait_for(5, playing=True)
    stage.timeline.toggle()
    stage.wait_for(5, playing=False)
    writer.append(SNAPSHOTS[6])
    stage.timeline.toggle()
    stage.wait_for(6, playing=True)
    writer.close()
    stage.wait_for(6, playing=False)
    stage.timeline.stop()


def test_printed_pictures_are_those_of_the_run(folder: Path, folded: list[View]) -> None:
    recording = Recording.open(folder)
    for begin, once, expected in (
        (None, False, folded),
        (at_ms(25), False, folded[25:]),
        (None, True, folded[-1:]),
        (at_ms(12), True, folded[12:13]),
    ):
        made = list(views(recording, begin, once))
        assert len(made) == len(expected)
        assert [*unlike(tuple(made), tuple(expected))] == []


def test_the_interval_is_the_usual_one(folder: Path) -> None:
    assert interval_ms(Recording.open(folder)) == 1000


def test_what_cannot_be_shown_is_bad_use(tmp_path: Path, folder: Path) -> None:
    with raises_saying(BadUse, "is not a kview recording"):
        open_recording(str(tmp_path))
    RecordingWriter(tmp_path / "empty").close()
    with raises_saying(BadUse, "has no complete observation"):
        open_recording(str(tmp_path / "empty"))
    (tmp_path / "new").mkdir()
    text = (folder / MANIFEST).read_text().replace('"version":', '"version":9')
    (tmp_path / "new" / MANIFEST).write_text(text)
    with raises_saying(BadUse, "use the version of kview that recorded it"):
        open_recording(str(tmp_path / "new"))


def test_a_rewound_group_is_an_event_unless_it_is_ignored(tmp_path: Path) -> None:
    world = default_world()
    writer = RecordingWriter(tmp_path / "r", segment_s=15, small_segment_bytes=0)
    for second in range(30):
        if second == REWOUND_AT:
            group = world.group("reporting")
            group.committed = {key: offset - 50_000 for key, offset in group.committed.items()}
            group.read = {}
        writer.append(world.tick())
    writer.close()
    recording = Recording.open(tmp_path / "r")
    jump = replay_of(recording, lambda: False).seek_event(1)
    assert jump is not None and jump.snapshot.observation.sequence == REWOUND_AT
    assert replay_of(recording, lambda: False, ("rep*",)).seek_event(1) is None


def test_a_broker_that_becomes_slow_or_fast_is_an_event(tmp_path: Path) -> None:
    world = default_world()
    writer = RecordingWriter(tmp_path / "r", segment_s=15, small_segment_bytes=0)
    folded, state = [], State()
    for second in range(50):
        world.nodes[5].latency_us = 212_000 if 12 <= second < 35 else 1_800
        snapshot = world.tick()
        writer.append(snapshot)
        state, view = step(state, snapshot)
        if view.new_events:
            folded.append(second)
    writer.close()
    replay = replay_of(Recording.open(tmp_path / "r"), lambda: False)
    found = []
    while (jump := replay.seek_event(1)) is not None:
        found.append(jump.snapshot.observation.sequence)
    assert found == folded == [17, 35]
    replay.seek(replay.last_ms, 0.0)
    for expected in reversed(found):
        jump = replay.seek_event(-1)
        assert jump is not None and jump.snapshot.observation.sequence == expected
    assert replay.seek_event(-1) is None


def test_the_flag_offers_the_speeds_that_there_are() -> None:
    assert tuple(map(str, SPEEDS)) == CLI_SPEEDS


def test_a_damaged_part_of_a_recording_is_left_out_and_said(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "r", segment_s=10, small_segment_bytes=0)
    for snapshot in SNAPSHOTS:
        writer.append(snapshot)
    writer.close()
    damaged = tmp_path / "r" / "seg-000002" / "numbers.parquet"
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    stage = Stage(tmp_path / "r")
    wait_until(lambda: stage.shown.notices, "the notice")
    stage.timeline.stop()
    said = [text(notice) for notice in stage.shown.notices]
    assert len(said) == 1 and said[0].startswith(f"a part of the recording is left out: {damaged} is damaged")
    shown = [
        view.snapshot.observation.ended_ms for view in views(open_recording(str(tmp_path / "r")), None, False)
    ]
    assert shown == [at_ms(sequence) for sequence in range(40) if not 10 <= sequence < 20]


def test_parts_of_a_recording_that_are_missing_are_said(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "r"
    writer = RecordingWriter(folder, segment_s=10, small_segment_bytes=0)
    for snapshot in SNAPSHOTS[:-2]:
        writer.append(snapshot)
    writer.abandon()

    def said_without(*segments: int) -> str:
        for number in segments:
            shutil.rmtree(folder / f"seg-{number:06}")
        display = Display(once=True, format=Format.TEXT)
        assert replay(open_recording(str(folder)), None, 1, display) == 0
        return capfd.readouterr().err

    def at(sequence: int) -> str:
        return f"{day(at_ms(sequence), None)} {clock(at_ms(sequence), None, tenths=False)}"

    assert said_without() == ""
    nothing = "kview: the recording has nothing"
    assert said_without(2) == f"{nothing} from {at(10)} to {at(19)}: missing seg-000002\n"
    assert said_without(3) == f"{nothing} from {at(10)} to {at(29)}: missing seg-000002 to seg-000003\n"
    assert said_without(4) == f"{nothing} after {at(9)}: missing seg-000002 to seg-000004\n"
    (folder / "seg-000001" / "numbers.parquet").unlink()
    with raises_saying(BadUse, r"numbers\.parquet is missing"):
        open_recording(str(folder))
    shutil.rmtree(folder / "seg-000001")
    with raises_saying(BadUse, "seg-000001 is missing"):
        open_recording(str(folder))


def test_a_recording_whose_only_part_is_damaged_is_an_error(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "r")
    (tmp_path / "r" / "seg-000001" / "numbers.parquet").write_bytes(b"PAR1")
    with raises_saying(BadUse, r"numbers\.parquet is damaged"):
        open_recording(str(tmp_path / "r"))


def test_values_that_no_cluster_has_are_damage_and_not_a_bug(tmp_path: Path) -> None:
    writer = RecordingWriter(tmp_path / "r")
    for snapshot in SNAPSHOTS:
        writer.append(snapshot)
    stream = tmp_path / "r" / "seg-000001" / "observations.arrows"
    stream.write_bytes(stream.read_bytes().replace(b"silent", b"salent"))
    with raises_saying(BadUse, r"r is damaged \(.*salent"):
        list(views(open_recording(str(tmp_path / "r")), None, False))
