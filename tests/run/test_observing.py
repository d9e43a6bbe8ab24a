"""The pace of observing, and how failures before and after the first view are handled."""

import itertools
import threading
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kview.errors import BadUse, ClusterUnreachable, ErrorKind, KviewError
from kview.language.notices import text
from kview.model.notices import Notice, NoticeKind
from kview.model.snapshot import Snapshot
from kview.run.observing import MAX_BACK_OFF_S, ObservingFeed, Pace, SourceEnded, SourceReplaced, views
from tests.run.fakes import Clock, ScriptedSource, Step, snapshot
from tests.waiting import wait_until

KILLED = KviewError(ErrorKind.CLUSTER_KILLED, signal="SIGKILL").facts
UNREACHABLE = ClusterUnreachable(ErrorKind.SERVER_EMPTY, text="")
BROKEN_FILE = BadUse(ErrorKind.STORE_UNKNOWN, file="half-written.pem")


def numbered() -> Callable[[Snapshot], str]:
    """Return a fold that counts. Its views look like `2nd of this fold: 7`."""
    seen = 0

    def fold(taken: Snapshot) -> str:
        nonlocal seen
        seen += 1
        return f"{seen}:{taken.observation.sequence}"

    return fold


def run(source: ScriptedSource, clock: Clock, interval_s: float = 1.0) -> list[str | Notice]:
    return list(views(source, numbered, interval_s, clock.wait, clock))


def notices(run: list[str | Notice]) -> list[Notice]:
    return [item for item in run if isinstance(item, Notice)]


@given(st.lists(st.floats(0, 5), max_size=50), st.floats(0.1, 3), st.floats(0, 1e6))
def test_the_pace_never_drifts_nor_piles_up(works_s: list[float], interval_s: float, began_s: float) -> None:
    pace = Pace(interval_s, began_s)
    now_s = began_s
    moments = [0]
    for work_s in works_s:
        now_s += work_s
        wait_s = pace.wait_s(now_s)
        assert 0 <= wait_s <= interval_s * 1.001
        now_s += wait_s
        moment = (now_s - began_s) / interval_s
        assert abs(moment - round(moment)) < 1e-3
        moments.append(round(moment))
    assert len(set(moments)) == len(moments)


def test_an_observation_longer_than_the_interval_leaves_moments_out() -> None:
    clock = Clock(ends_s=6.5)
    source = ScriptedSource(map(snapshot, range(10)))
    began: list[float] = []
    works_s = iter([0.2, 2.5, 0.2, 0.2, 0.2, 0.2])

    def work() -> None:
        began.append(clock.now_s)
        clock.now_s += next(works_s)

    source.on_observe = work
    run(source, clock)
    assert began == pytest.approx([0, 1, 4, 5, 6])


def test_errors_before_the_first_picture_are_raised() -> None:
    with pytest.raises(ClusterUnreachable):
        run(ScriptedSource([], [UNREACHABLE]), Clock(9))
    with pytest.raises(ZeroDivisionError):
        run(ScriptedSource([ZeroDivisionError("a bug")]), Clock(9))


def test_a_patient_run_waits_for_a_cluster_that_cannot_be_reached_yet() -> None:
    source = ScriptedSource(map(snapshot, range(3)), [UNREACHABLE, BROKEN_FILE, UNREACHABLE])
    clock = Clock(9.5)
    seen = list(views(source, numbered, 1.0, clock.wait, clock, patient=True))
    assert [item.values["wait_s"] for item in seen if isinstance(item, Notice)] == [1, 2, 4]
    assert "retrying in 4 s" in text(notices(seen)[-1])
    assert seen[3:] == ["1:0", "2:1", "3:2"]


def test_a_patient_run_ends_by_a_bug_before_the_first_picture() -> None:
    source = ScriptedSource([ZeroDivisionError("a bug")])
    with pytest.raises(ZeroDivisionError):
        list(views(source, numbered, 1.0, Clock(9).wait, patient=True))


def test_after_the_first_picture_a_failure_is_a_notice_and_it_goes_on() -> None:
    steps: list[Step] = [snapshot(0), OSError("no descriptors"), OSError("no descriptors"), snapshot(1)]
    shown = run(ScriptedSource(steps), Clock(3.5))
    assert [item if isinstance(item, str) else item.severity for item in shown] == [
        "1:0",
        "risk",
        "risk",
        "good",
        "2:1",
    ]
    assert "no descriptors" in text(notices(shown)[0]) and notices(shown)[0].sticky
    assert not notices(shown)[-1].sticky


def test_a_source_that_ended_is_connected_again_with_a_fresh_fold() -> None:
    steps: list[Step] = [
        snapshot(0),
        snapshot(1),
        SourceEnded(KILLED),
        snapshot(0),
    ]
    source = ScriptedSource(
        steps, [None, KviewError(ErrorKind.PORT_IN_USE, address="b:9092"), UNREACHABLE, None]
    )
    clock = Clock(ends_s=9.5)
    shown = run(source, clock)
    assert [item for item in shown if isinstance(item, str)] == ["1:0", "2:1", "1:0"]
    texts = [text(notice) for notice in notices(shown)]
    assert all("was killed (SIGKILL)" in said for said in texts)
    assert "b:9092 is in use" in texts[1] and "fresh cluster" in texts[-1]
    assert all(notice.sticky for notice in notices(shown))
    assert clock.waits[2:5] == [1, 2, 4], "the waits between attempts grow"


def test_a_cluster_that_was_replaced_on_purpose_is_followed_by_the_next_one_without_a_word() -> None:
    source = ScriptedSource([snapshot(0), SourceReplaced(), snapshot(0), snapshot(1)])
    assert run(source, Clock(ends_s=2.5)) == ["1:0", "1:0", "2:1"]
    assert source.connects == 2


def test_attempts_to_connect_again_never_end_and_their_waits_have_a_bound() -> None:
    source = ScriptedSource([snapshot(0), SourceEnded(KILLED)], [None, *[UNREACHABLE] * 50])
    clock = Clock(ends_s=1_000)
    run(source, clock)
    assert max(clock.waits) == MAX_BACK_OFF_S
    assert source.connects > 30


def test_a_feed_calls_back_until_it_is_stopped_and_closes_its_source() -> None:
    source = ScriptedSource(map(snapshot, range(10_000)))
    seen: list[str] = []
    feed = ObservingFeed(source, numbered, interval_s=0.01)
    feed.start(seen.append, lambda notice: None)
    wait_until(lambda: len(seen) >= 3, "three views")
    feed.stop()
    stopped_at = len(seen)
    wait_until(lambda: not [t for t in threading.enumerate() if t.name == "observer"], "the thread's end")
    assert source.closes == 1
    assert len(seen) == stopped_at
    assert seen[:3] == ["1:0", "2:1", "3:2"]


def test_a_feed_that_cannot_begin_keeps_the_error_and_says_so_once() -> None:
    ended: list[bool] = []
    feed = ObservingFeed(ScriptedSource([], [UNREACHABLE]), numbered, interval_s=1)
    feed.on_end = lambda: ended.append(True)
    feed.start(lambda view: None, lambda notice: None)
    wait_until(lambda: ended, "the end")
    feed.stop()
    assert feed.error is UNREACHABLE
    assert ended == [True]


def test_a_streak_of_bugs_is_logged_once_and_the_next_one_begins_with_a_short_wait(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("kview.run.observing.FIRST_BACK_OFF_S", 0.01)
    bug = ZeroDivisionError("a bug")
    steps: list[Step] = [bug, bug, bug, snapshot(0), SourceEnded(KILLED)]
    source = ScriptedSource(itertools.chain(steps, map(snapshot, range(10_000))), [*[None] * 4, bug])
    seen: list[str] = []
    told: list[Notice] = []
    feed = ObservingFeed(source, numbered, interval_s=0.01, patient=True)
    feed.start(seen.append, told.append)
    wait_until(lambda: len(seen) >= 3, "views after each streak")
    feed.stop()
    failed, again = NoticeKind.OBSERVING_FAILED, NoticeKind.OBSERVING_AGAIN
    assert [notice.kind for notice in told] == [
        *(failed, failed, failed, again),
        *(NoticeKind.SOURCE_LOST, failed, again),
    ]
    logged = [record for record in caplog.records if record.exc_info is not None]
    assert len(logged) == 2, "one for each streak"
    assert feed._back_off.pause_s == 0.01


def test_stopping_waits_for_no_observation_that_hangs() -> None:
    released, began = threading.Event(), threading.Event()
    source = ScriptedSource([snapshot(0)])

    def hang() -> None:
        began.set()
        released.wait(10)

    source.on_observe = hang
    seen: list[str] = []
    feed = ObservingFeed(source, numbered, interval_s=1)
    feed.start(seen.append, lambda notice: None)
    assert began.wait(5)
    stopping = threading.Thread(target=feed.stop)
    stopping.start()
    stopping.join(1)
    assert not stopping.is_alive(), "stop takes less than a second"
    released.set()
    wait_until(lambda: source.closes, "the source is closed")
    assert seen == [], "no call back after stop"
