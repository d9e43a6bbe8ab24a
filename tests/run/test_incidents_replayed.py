"""A recording on disk has the incidents of the run: a crash, a hang and the loss of a rack."""

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import asdict

from kview.derive.facts import Facts
from kview.derive.fold import State, fold_to, step
from kview.derive.incidents.time_marks import time_marks
from kview.derive.view import View
from kview.model.failures import FailureKind
from kview.model.incidents import Incident, PhaseKind
from kview.model.ports import TimeMark
from kview.recording.incident_marks import incident_marks
from kview.recording.reader import Recording
from kview.recording.replay import Replay
from kview.recording.troubles import Health, healths, troubles
from kview.recording.writer import RecordingWriter
from kview.run.replaying import ReplayTimeline, views
from kview.run.timeline import Publisher, to_event
from tests.run.fakes import Shown
from tests.waiting import wait_until
from tests.worlds import World, default_world

LOST_S = {10: (4,), 60: (1,), 120: (3, 4, 5)}
BACK_S = {40: (4,), 90: (1,), 150: (3, 4, 5)}
HANGS_S = 60
LENGTH_S = 180
SEGMENT_S = 50
"""So that the incidents lie in several closed segments, and the last one in an open one."""


def happens(world: World, second: int) -> None:
    """Lose and bring back brokers."""
    for broker in LOST_S.get(second, ()):
        world.crash(broker, FailureKind.SILENT if second == HANGS_S else FailureKind.REFUSED)
    for broker in BACK_S.get(second, ()):
        world.back(broker)


def recorded(folder: Path, live: list[View], is_told: Callable[[int], bool]) -> Path:
    """Record the run, with the facts of the seconds that are told. The last segment stays open."""
    writer = RecordingWriter(folder, segment_s=SEGMENT_S, small_segment_bytes=0)
    for second, view in enumerate(live):
        writer.append(view.snapshot, Facts.of(view) if is_told(second) else None)
    writer.abandon()
    return folder


@pytest.fixture(scope="module")
def live() -> list[View]:
    """The views of the run that were seen live."""
    world, state, seen = default_world(), State(), []
    for second in range(LENGTH_S):
        happens(world, second)
        state, view = step(state, world.tick())
        seen.append(view)
    return seen


@pytest.fixture(scope="module")
def folder(live: list[View], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recording of the run without facts, whose last segment is still open."""
    return recorded(tmp_path_factory.mktemp("incidents") / "run", live, lambda second: False)


def facts(incident: Incident) -> dict[str, object]:
    """Everything that is known about an incident, by name."""
    return asdict(incident)


@pytest.mark.slow  # a jump to each incident finds them, too
def test_a_replay_finds_what_was_seen_live(folder: Path, live: list[View]) -> None:
    crash, hang, rack = live[-1].incidents
    assert (crash.brokers, hang.brokers, rack.brokers) == ((4,), (1,), (3, 4, 5))
    assert all(one.phases[-1].kind is PhaseKind.ISR_FULL for one in (crash, hang, rack))
    assert all(one.moved and one.waited_ms > 9_000 and one.gone > 0 and one.groups for one in (crash, hang))
    assert hang.seen_ms - hang.began_ms > 1_500, "it takes a while to tell that it hangs"
    replayed = list(views(Recording.open(folder), None, once=False))
    assert len(replayed) == len(live)
    for then, now in zip(live, replayed, strict=True):
        assert [facts(one) for one in then.incidents] == [facts(one) for one in now.incidents]


def test_a_jump_to_where_it_was_first_seen_shows_each(folder: Path, live: list[View]) -> None:
    replay = Replay(Recording.open(folder))
    for incident in live[-1].incidents:
        jump = replay.seek(incident.seen_ms, 0.0)
        folded = fold_to(jump.snapshot, jump.look_back(), lambda: False)
        assert folded is not None
        shown = [one for one in folded[1].incidents if one.key == incident.key]
        assert [one.seen_ms for one in shown] == [folded[1].snapshot.observation.ended_ms]
        replay.step(-1)
        earlier = replay.again()
        before = fold_to(earlier.snapshot, earlier.look_back(), lambda: False)
        assert before is not None and incident.key not in [one.key for one in before[1].incidents]


def test_the_time_bar_of_a_replay_has_the_incidents_from_columns_alone(
    folder: Path, live: list[View]
) -> None:
    found = troubles(healths(Recording.open(folder), lambda: False))
    folded = time_marks(live[-1].incidents)
    assert len(found) == len(folded) == 3
    for mark, incident in zip(found, folded, strict=True):
        for at_ms, truth_ms in zip(mark, incident, strict=True):
            assert abs(at_ms - truth_ms) <= 3_000, (mark, incident)
    assert not troubles(healths(Recording.open(folder), lambda: True)), "cancelled"


def test_the_time_bar_has_the_incidents_that_the_recorder_wrote_down(
    live: list[View], tmp_path: Path
) -> None:
    opened = Recording.open(recorded(tmp_path / "run", live, lambda second: True))
    assert incident_marks(opened, lambda: False) == time_marks(live[-1].incidents)
    assert incident_marks(opened, lambda: True) == (), "cancelled"
    timeline, shown = ReplayTimeline(opened, None, 1), Shown()
    timeline.start(shown.views.append, shown.notices.append)
    try:
        wait_until(lambda: shown.views and shown.last.moment.marks, "the marks")
        assert shown.last.moment.marks == time_marks(live[-1].incidents)
    finally:
        timeline.stop()


def test_incidents_that_were_written_down_in_part_are_not_used(live: list[View], tmp_path: Path) -> None:
    opened = Recording.open(recorded(tmp_path / "run", live[:60], lambda second: second != 30))
    assert incident_marks(opened, lambda: False) is None


def test_the_marks_come_with_the_views_of_a_replay(folder: Path, live: list[View]) -> None:
    shown = Shown()
    timeline = ReplayTimeline(Recording.open(folder), live[5].snapshot.observation.ended_ms, 1)
    timeline.start(shown.views.append, shown.notices.append)
    try:
        timeline.toggle()
        wait_until(lambda: shown.views and len(shown.last.moment.marks) == 3, "the marks")
    finally:
        timeline.stop()


def test_keys_stop_at_an_incident_that_is_told_later_than_its_first_sign(
    folder: Path, live: list[View]
) -> None:
    hang = live[-1].incidents[1]
    publisher = Publisher(lambda: 0)
    publisher.set_marks(time_marks(live[-1].incidents))
    replay = Replay(Recording.open(folder))
    replay.seek(hang.seen_ms - 1_000, 0.0)
    to_event(replay, 1, publisher)
    assert replay.at_ms == hang.seen_ms
    replay.step(1)
    to_event(replay, -1, publisher)
    assert replay.at_ms == hang.seen_ms
    notices: list[object] = []
    publisher.start(lambda view: None, notices.append)
    replay.seek(replay.last_ms, 0.0)
    assert to_event(replay, 1, publisher) is None and len(notices) == 1


def test_a_trouble_that_goes_on_has_no_end() -> None:
    made = troubles(iter([Health(1, False, 5), Health(2, True, 5), Health(3, False, 9), Health(4, False, 5)]))
    assert made == (TimeMark(2, 2, 3, 4),), "as full as before"
    (going,) = troubles(iter([Health(1, True, 0), Health(2, False, 3), Health(3, True, 3)]))
    assert going.began_ms == 1 and going.healing_ms < 0 and going.ended_ms < 0
