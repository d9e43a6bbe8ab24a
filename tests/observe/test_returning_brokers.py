"""Brokers that come back: what is said of them until they answer."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kview.model.events import EventKind, Severity
from kview.observe.observer import ObserveSettings
from kview.plain.blocks import block
from tests.observe.fake_broker import FakeBroker
from tests.observe.observing import Watched, broker_state, headline, observing
from tests.real_kafka.cluster import RealKafka
from tests.waiting import paced

QUICK = ObserveSettings(interval_s=0.2, silence_s=0.5)


@contextmanager
def one_of_two_has_left() -> Iterator[tuple[Watched, FakeBroker, FakeBroker]]:
    """A cluster of two brokers, of which broker 1 is dead and no longer listed."""
    with FakeBroker(0) as stays, FakeBroker(1) as leaves:
        stays.advertised = leaves.advertised = {0: stays.address, 1: leaves.address}
        with observing([stays.address], QUICK) as observer:
            watched = Watched(observer)
            watched.until(lambda v: broker_state(v, 1) == "up", "both are up")
            leaves.close()
            watched.until(lambda v: broker_state(v, 1) == "silent", "it is silent")
            stays.advertised = {0: stays.address}
            watched.until(lambda v: broker_state(v, 1) == "gone", "it has left")
            watched.views.clear()
            yield watched, stays, leaves


def test_a_broker_that_is_listed_before_it_answers_is_no_alarm_and_is_up_as_soon_as_it_answers() -> None:
    with one_of_two_has_left() as (watched, stays, left):
        stays.advertised = {0: stays.address, 1: left.address}
        starting = watched.until(lambda v: broker_state(v, 1) == "starting", "it is listed again")
        assert "broker 1 listed, but has not answered yet" in headline(starting)
        assert "◌ starting" in block(starting, "kview")
        with FakeBroker(1, stays.advertised, port=left.port):
            watched.until(lambda v: broker_state(v, 1) == "up", "it answers", 1.0)
        seen = watched.views
        assert {broker_state(view, 1) for view in seen} <= {"gone", "starting", "up"}
        assert all(view.headline.severity is not Severity.RISK for view in seen)
        events = [event.kind for view in seen for event in view.new_events if 1 in event.brokers]
        assert events == [EventKind.BROKER_BACK]


def test_a_broker_that_is_listed_and_never_answers_is_silent_since_it_was_listed() -> None:
    with one_of_two_has_left() as (watched, stays, left):
        stays.advertised = {0: stays.address, 1: left.address}
        starting = watched.until(lambda v: broker_state(v, 1) == "starting", "it is listed again")
        silent = watched.until(lambda v: broker_state(v, 1) == "silent", "it does not answer")
        since_ms = int(starting.snapshot.brokers.since_ms[1])
        assert silent.snapshot.brokers.since_ms[1] == since_ms
        assert silent.snapshot.observation.ended_ms - since_ms >= 3000
        (event,) = [event for event in silent.new_events if 1 in event.brokers]
        assert event.kind is EventKind.BROKER_SILENT


SAMPLES_A_SECOND = 5
CALM_S = 3


@pytest.mark.slow  # a broker's restart takes most of it; fake brokers guard the same
def test_a_real_broker_that_comes_back_is_no_alarm(
    real_kafka: RealKafka, pytestconfig: pytest.Config
) -> None:
    """Kafka unfences a broker before its port accepts connections, in most restarts."""
    with observing([real_kafka.address(0)], ObserveSettings()) as observer:
        for _ in range(pytestconfig.getoption("--restarts")):
            watched = Watched(observer)
            watched.until(lambda v: set(v.snapshot.brokers.state) == {"up"}, "all are up")
            real_kafka.kill(2)
            watched.until(lambda v: broker_state(v, 2) in ("fenced", "gone"), "it is fenced")
            watched.views.clear()
            real_kafka.restart(2)
            calm = 0
            for _ in paced(1 / SAMPLES_A_SECOND):
                calm = calm + 1 if broker_state(watched.look(), 2) == "up" else 0
                if calm == CALM_S * SAMPLES_A_SECOND:
                    break
            said = [(broker_state(view, 2), view.headline.severity, headline(view)) for view in watched.views]
            assert {shown for shown, _, _ in said} <= {"fenced", "gone", "starting", "up"}
            assert not [
                finding
                for view in watched.views
                for finding in view.headline.findings
                if finding.severity is Severity.RISK and 2 in finding.brokers
            ], said
            events = [event.kind for view in watched.views for event in view.new_events if 2 in event.brokers]
            assert EventKind.BROKER_SILENT not in events
            assert events.count(EventKind.BROKER_BACK) == 1
            real_kafka.heal()
