"""States of the throughput screen: five minutes of traffic, with Spark in each of its states."""

from functools import cache

from msgspec.structs import replace

from kview.derive.view import View
from kview.errors import ErrorKind, KviewError
from kview.model.aggregates import Aggregates, SparkState, SparkStatus
from tests.worlds import views
from tests.worlds.aggregates import wavy_crash, with_aggregates

RUNNING, INCIDENT, STARTING, FAILED, OFF = "running", "incident", "starting", "failed", "off"

HEALTHY_S = 300

JAVA_KILLED = KviewError(ErrorKind.JAVA_KILLED, signal="SIGKILL").facts


@cache
def script() -> tuple[View, ...]:
    """The views with Spark running, one per second."""
    return tuple(with_aggregates(views(wavy_crash(healthy_s=HEALTHY_S))))


def throughput_state(name: str) -> View:
    """One of the states. In FAILED the job's roll-ups end 42 s ago, and are still there."""
    if name == INCIDENT:
        return script()[HEALTHY_S + 20]
    view = script()[HEALTHY_S - 1]
    now_ms = view.snapshot.observation.ended_ms
    if name == STARTING:
        return replace(view, aggregates=Aggregates(SparkStatus(SparkState.STARTING, None, now_ms - 3_000)))
    if name == FAILED:
        status = SparkStatus(SparkState.FAILED, JAVA_KILLED, now_ms - 2_000, now_ms + 8_000)
        return replace(view, aggregates=Aggregates(status, script()[HEALTHY_S - 43].aggregates.rollups))
    if name == OFF:
        return replace(view, aggregates=Aggregates())
    return view
