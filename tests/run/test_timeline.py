"""The timeline of a live run: pausing and going back in the recording, while the live view continues."""

import asyncio
import math
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from kview.derive.facts import Facts
from kview.derive.fold import State, step
from kview.derive.view import LIVE, View
from kview.errors import ErrorFacts
from kview.model.aggregates import Aggregates, SparkState, SparkStatus
from kview.model.history import CourseOf
from kview.model.notices import Notice, NoticeKind
from kview.model.snapshot import Snapshot
from kview.model.units import UNKNOWN
from kview.recording.names import state_folder
from kview.recording.reader import Recording
from kview.recording.ring import FlightRecorder
from kview.recording.segment import STREAM_FILE
from kview.run.recorder import Recorder
from kview.run.settings import Record
from kview.run.timeline import LiveTimeline, Publisher
from tests.recording.snapshots import all_of, assert_all_equal, concluded, ticking
from tests.run.fakes import HeldSource, Shown
from tests.waiting import wait_until
from tests.worlds import views
from tests.worlds.compare import unlike

INTERVAL_S = 0.01
WALL_MS = 77
CRASH_AT, FENCED_AT = 10, 19
SNAPSHOTS = concluded(ticking(30, crash_at=CRASH_AT))


class Stage:
    """A timeline with a source whose snapshots the test supplies."""

    def __init__(self, folder: Path, *, first: int = 0) -> None:
        self.first = first
        self.source = HeldSource()
        self.recorder = Recorder(Record(folder))
        self.taken: list[View] = []
        """What metrics are made of."""
        self.timeline = LiveTimeline(
            self.source,
            self.recorder,
            INTERVAL_S,
            lambda: WALL_MS,
            takers=(self._take,),
        )
        self.shown = Shown()
        self.timeline.start(self.shown.views.append, self.shown.notices.append)
        self.timeline.begin()

    def _take(self, snapshot: Snapshot, view: View | None) -> None:
        assert view is not None and view.snapshot is snapshot
        self.taken.append(view)

    def observe(self, until: int) -> None:
        """Observe up to the snapshot with that number, and wait until everything has been recorded."""
        count = until + 1 - self.first
        self.source.let(*SNAPSHOTS[self.first + self.source.observed : until + 1])
        wait_until(lambda: self.source.observed == count, "everything is observed")
        wait_until(lambda: self.recorded() == count, "everything is recorded")

    def recorded(self) -> int:
        """Return the number of recorded observations."""
        return len(Recording.open(self.recorder.folder).moments()) if self.recorder.folder else 0

    def wait_for(self, sequence: int, **moment: object) -> View:
        """Wait for the view of that observation, and return it."""
        wait_until(lambda: self.shown.at(sequence, **moment), f"view {sequence} {moment}")
        return self.shown.last


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path / "recording")
    yield stage
    stage.source.release()
    stage.timeline.stop()


@pytest.mark.parametrize("is_other_cluster", [False, True])
def test_the_course_has_this_run_and_earlier_ones_of_the_same_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_other_cluster: bool
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    earlier = FlightRecorder(state_folder(), "earlier")
    for view in views(SNAPSHOTS[:5]):
        snapshot = view.snapshot
        if is_other_cluster:
            snapshot = replace(snapshot, observation=replace(snapshot.observation, cluster_id="another"))
        earlier.append(snapshot, Facts.of(view))
    earlier.close()
    stage = Stage(tmp_path / "recording", first=9)
    try:
        stage.observe(25)
        asked = CourseOf("", ("billing",), UNKNOWN, SNAPSHOTS[25].observation.ended_ms)
        course = asyncio.run(stage.timeline.course(asked))
        first = SNAPSHOTS[9 if is_other_cluster else 0].observation
        assert course is not None and course.since_ms == first.ended_ms
        assert sum(map(math.isfinite, course.lag)) == (17 if is_other_cluster else 5 + 17)
    finally:
        stage.source.release()
        stage.timeline.stop()


def test_notices_that_were_kept_are_said_once_and_before_what_comes_meanwhile() -> None:
    first, second, third = (Notice(kind) for kind in list(NoticeKind)[:3])
    publisher = Publisher(lambda: WALL_MS, opening=[first])
    publisher.notify_or_keep(second)
    said: list[Notice] = []
    others: list[threading.Thread] = []

    def say(notice: Notice) -> None:
        said.append(notice)
        if not others:
            others.append(threading.Thread(target=publisher.notify_or_keep, args=(third,)))
            others[0].start()
            others[0].join(0.02)

    publisher.start(lambda view: None, say)
    others[0].join()
    assert said == [first, second, third]
    publisher.stop()
    publisher.start(lambda view: None, said.append)
    assert len(said) == 3


def folded(until: int) -> View:
    """Return the view of an observation, folded from the first observation on."""
    state = State()
    for snapshot in SNAPSHOTS[: until + 1]:
        state, view = step(state, snapshot)
    return view


def test_live_pictures_say_that_they_are(stage: Stage) -> None:
    stage.observe(3)
    view = stage.wait_for(3, live=True, playing=True)
    assert view.moment.last_ms == SNAPSHOTS[3].observation.ended_ms
    stage.observe(4)
    assert stage.wait_for(4, live=True).moment.first_ms == SNAPSHOTS[0].observation.ended_ms
    assert stage.timeline.clock_ms() == WALL_MS


def test_a_pause_freezes_the_picture_and_nothing_else(stage: Stage) -> None:
    stage.observe(3)
    stage.wait_for(3)
    stage.timeline.toggle()
    stage.wait_for(3, live=False, playing=False)
    assert stage.timeline.clock_ms() == SNAPSHOTS[3].observation.ended_ms
    stage.observe(6)
    assert stage.shown.at(3, live=False)
    assert [view.snapshot.observation.sequence for view in stage.taken] == [
        snapshot.observation.sequence for snapshot in SNAPSHOTS[:7]
    ], "metrics go on"
    stage.timeline.toggle()
    view = stage.wait_for(6, live=True)
    assert [*unlike(replace(view, moment=LIVE), folded(6))] == []
    stage.observe(7)
    stage.wait_for(7, live=True)
    assert_all_equal(all_of(Recording.open(stage.recorder.folder or "")), SNAPSHOTS[:8])


def test_a_step_back_is_announced_while_it_is_read(stage: Stage) -> None:
    stage.observe(12)
    stage.wait_for(12)
    stage.timeline.step(-3)
    view = stage.wait_for(9, live=False, playing=False)
    announced = stage.shown.views[-2]
    assert announced.moment.reading_ms == SNAPSHOTS[9].observation.ended_ms
    assert announced.snapshot.observation.sequence == 12 and view.moment.reading_ms == UNKNOWN
    assert [*unlike(replace(view, moment=LIVE), folded(9))] == []
    assert stage.timeline.clock_ms() == SNAPSHOTS[9].observation.ended_ms
    stage.timeline.step(1)
    view = stage.wait_for(10)
    assert [*unlike(replace(view, moment=LIVE), folded(10))] == []
    stage.observe(14)
    stage.timeline.step(4)
    stage.wait_for(14, live=False)
    stage.timeline.live()
    assert stage.wait_for(14, live=True).moment.playing


def test_a_time_and_events_can_be_gone_to(stage: Stage) -> None:
    stage.observe(25)
    stage.wait_for(25)
    stage.timeline.seek(SNAPSHOTS[4].observation.ended_ms + 999)
    stage.wait_for(4, live=False)
    stage.timeline.seek_event(1)
    assert stage.wait_for(CRASH_AT).new_events == folded(CRASH_AT).new_events != ()
    stage.timeline.seek_event(-1)
    wait_until(lambda: stage.shown.said("no earlier event"), "that there is none")
    assert stage.shown.at(CRASH_AT, live=False)


def test_the_newest_command_counts(stage: Stage) -> None:
    stage.observe(20)
    stage.wait_for(20)
    for _ in range(15):
        stage.timeline.step(-1)
    stage.wait_for(5)
    before = len(stage.shown.views)
    stage.timeline.step(-1)
    stage.timeline.live()
    stage.observe(21)
    stage.wait_for(21, live=True)
    later = stage.shown.views[before:]
    first_live = next(at for at, view in enumerate(later) if view.moment.live)
    assert all(view.moment.live for view in later[first_live:])


def test_new_aggregates_bring_the_last_picture_again(stage: Stage) -> None:
    made = Aggregates(SparkStatus(SparkState.STARTING))
    stage.timeline.set_aggregates(made)
    stage.observe(2)
    assert stage.wait_for(2).aggregates is made
    newer = Aggregates(SparkStatus(SparkState.RUNNING))
    count = len(stage.shown.views)
    stage.timeline.set_aggregates(newer)
    assert len(stage.shown.views) == count + 1 and stage.shown.last.aggregates is newer
    assert stage.shown.at(2, live=True)


def test_the_tape_is_kept_under_a_name(stage: Stage, state_home: Path) -> None:
    stage.observe(3)
    stage.timeline.keep("of-a-test")
    wait_until(lambda: stage.shown.said("kview replay of-a-test"), "that it is kept")
    kept = Recording.open(state_home / "kview" / "recordings" / "of-a-test")
    assert_all_equal(all_of(kept), SNAPSHOTS[:4])
    stage.timeline.keep("of-a-test")
    wait_until(lambda: stage.shown.said("already a recording named of-a-test"), "why not")


def test_without_a_tape_pausing_works_and_the_rest_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    stage = Stage(tmp_path / "file" / "recording")
    stopped: list[ErrorFacts] = []
    stage.recorder.on_stopped = stopped.append
    stage.source.let(*SNAPSHOTS[:3])
    wait_until(lambda: stage.shown.said("recording has stopped: Not a directory"), "why not")
    wait_until(lambda: stage.shown.at(2), "views still arrive")
    assert len(stopped) == 1
    controls: list[Callable[[], None]] = [
        lambda: stage.timeline.step(-1),
        lambda: stage.timeline.seek(0),
        lambda: stage.timeline.seek_event(-1),
        lambda: stage.timeline.keep("nothing"),
    ]
    for control in controls:
        stage.shown.notices.clear()
        control()
        assert stage.shown.said("recording has stopped: Not a directory"), stage.shown.notices
    assert stage.shown.at(2, live=True)
    stage.timeline.toggle()
    assert stage.shown.at(2, live=False)
    stage.source.release()
    stage.timeline.stop()


@contextmanager
def no_file_grows(beyond_bytes: int) -> Iterator[None]:
    """Make the system refuse to extend any file of this process beyond this size, as on a full disk."""
    before, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (beyond_bytes, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (before, most))


def test_what_was_recorded_before_the_disk_was_full_is_still_there(stage: Stage) -> None:
    stage.observe(5)
    assert stage.recorder.folder is not None
    (stream,) = stage.recorder.folder.glob(f"*/{STREAM_FILE}")
    with no_file_grows(stream.stat().st_size):
        stage.source.let(*SNAPSHOTS[6:9])
        wait_until(lambda: stage.shown.said("recording has stopped: File too large"), "why not")
    stage.wait_for(8, live=True)
    stage.timeline.step(-2)
    view = stage.wait_for(3, live=False)
    assert [*unlike(replace(view, moment=LIVE), folded(3))] == []
    stage.timeline.live()
    stage.wait_for(8, live=True)


def test_nothing_is_handed_on_after_the_end(stage: Stage) -> None:
    stage.observe(8)
    stage.wait_for(8)
    stage.timeline.step(-2)
    stage.wait_for(6)
    stage.timeline.stop()
    count = len(stage.shown.views)
    stage.timeline.live()
    stage.timeline.set_aggregates(Aggregates())
    assert len(stage.shown.views) == count
