"""The wall clock is set while kview observes: no age is negative, and nothing is made of the jump."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
from kafka.protocol.consumer import ListOffsetsRequest, OffsetFetchRequest

from kview.derive.view import View
from kview.language import events
from kview.model.units import UNKNOWN
from kview.observe.clock import ClockWatch, Jump, system_clock_ms
from kview.observe.observer import Observer, ObserveSettings
from tests.observe.fake_broker import COORDINATOR_VERSIONS, FakeBroker
from tests.observe.observing import Watched, headline
from tests.waiting import wait_until

HOUR_MS = 3_600_000
QUICK = ObserveSettings(interval_s=0.2, silence_s=0.5, retry_most_s=0.4, list_groups_rounds=1)


@dataclass
class WallClock:
    """The system's clock, set by `by_ms`."""

    by_ms: int = 0

    def __call__(self) -> int:
        return system_clock_ms() + self.by_ms


def ages_ms(view: View) -> list[int]:
    """The ages of everything that the snapshot says when it was received, and since when brokers are up."""
    snapshot = view.snapshot
    now_ms = snapshot.observation.ended_ms
    times = [
        *snapshot.brokers.answered_ms.tolist(),
        *snapshot.brokers.since_ms.tolist(),
        *snapshot.partitions.high_watermark_ms.tolist(),
        *snapshot.partitions.log_start_ms.tolist(),
        *snapshot.groups.received_ms.tolist(),
        *snapshot.offsets.received_ms.tolist(),
    ]
    return [now_ms - at_ms for at_ms in times if at_ms != UNKNOWN]


@contextmanager
def commit_seen(clock: WallClock) -> Iterator[tuple[FakeBroker, Watched]]:
    """A broker, and views of it from that in which a group's commit is seen."""
    with FakeBroker(versions=COORDINATOR_VERSIONS) as broker:
        broker.coordinator, broker.groups = 0, ("billing",)
        observer = Observer([broker.address], QUICK, clock_ms=clock, steady_s=time.monotonic)
        observer.connect()
        try:
            watched = Watched(observer)
            watched.until(lambda v: v.snapshot.offsets.committed.tolist() == [40], "the commit is seen")
            yield broker, watched
        finally:
            observer.close()


@pytest.mark.parametrize("by_ms", [HOUR_MS, -HOUR_MS, -5_000])
def test_all_ages_are_those_of_before_the_clock_was_set(by_ms: int) -> None:
    clock = WallClock()
    with commit_seen(clock) as (broker, watched):
        began_s = time.monotonic()
        broker.committed = 45
        broker.high_watermark = 200
        watched.look()
        clock.by_ms = by_ms
        watched.views.clear()
        for _ in range(4):
            view = watched.look()
            most_ms = (time.monotonic() - began_s) * 1000 + 10_000
            assert [age for age in ages_ms(view) if not 0 <= age <= most_ms] == []
            assert "healthy: 1 broker up" in " ".join(headline(view)), "whatever has been seen of the group"
            assert [events.sentence(event) for event in view.new_events] == []
        assert watched.views[0].snapshot.observation.sequence == 0


def test_commits_that_are_not_answered_again_are_as_old_as_they_were() -> None:
    clock = WallClock()
    with commit_seen(clock) as (broker, watched):
        began_s = time.monotonic()
        broker.delay[OffsetFetchRequest.API_KEY] = threading.Event()
        clock.by_ms = HOUR_MS
        ages = ages_ms(watched.look())
        assert max(ages) <= (time.monotonic() - began_s) * 1000 + 10_000


def test_an_answer_from_before_whose_companion_comes_after_is_not_used() -> None:
    clock = WallClock()
    with commit_seen(clock) as (broker, watched):
        began_s = time.monotonic()
        broker.wait_for_ends = threading.Event()
        watched.look()
        clock.by_ms = HOUR_MS
        watched.look()
        answered = len(broker.answered)
        broker.delay[ListOffsetsRequest.API_KEY] = threading.Event()
        broker.wait_for_ends.set()
        wait_until(lambda: len(broker.answered) > answered, "the log ends of before come")
        ages = ages_ms(watched.look())
        assert max(ages) <= (time.monotonic() - began_s) * 1000 + 10_000


def test_a_clock_that_is_adjusted_gradually_and_an_observer_that_had_to_wait_are_not_a_jump() -> None:
    now = [1_000_000, 50.0]
    watch = ClockWatch(lambda: int(now[0]), lambda: now[1])
    jumps = []
    for wall_ms, steady_s in ((1_000, 1.0), (61_000, 60.0), (1_500, 1.0), (HOUR_MS, 1.0), (1_000, 1.0)):
        now[0] += wall_ms
        now[1] += steady_s
        jumps.append(watch.jump())
    assert jumps == [None, None, None, Jump(HOUR_MS - 1_000, 4_663_500, 4_662_500), None]
