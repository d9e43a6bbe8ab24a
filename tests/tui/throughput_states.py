"""States of the throughput screen: five minutes of traffic, with Spark in each of its states."""

from functools import cache

from msgspec.structs import replace

from kview.derive.fold import State, fold_on
from kview.derive.view import View
from kview.errors import ErrorKind, KviewError
from kview.model.aggregates import Aggregates, Rollups, SparkState, SparkStatus
from kview.model.snapshot import Snapshot
from tests.worlds.aggregates import RUNNING as SPARK_RUNS
from tests.worlds.aggregates import Adding, wavy_crash

RUNNING, INCIDENT, STARTING, FAILED, OFF = "running", "incident", "starting", "failed", "off"

HEALTHY_S = 300

JAVA_KILLED = KviewError(ErrorKind.JAVA_KILLED, signal="SIGKILL").facts


EARLY_S, FIRST_MINUTE_S, FOUR_MINUTES_S, RUNNING_S, INCIDENT_S = (
    5, 56, HEALTHY_S - 60, HEALTHY_S - 1, HEALTHY_S + 20,
)  # fmt: skip
SEEN_S = (EARLY_S, FIRST_MINUTE_S, FOUR_MINUTES_S, RUNNING_S, INCIDENT_S)
"""The seconds of the script that are looked at. The views in between are not made."""


@cache
def rollups() -> tuple[Rollups, ...]:
    """The roll-ups of each second."""
    return tuple(map(Adding().add, snapshots()))


@cache
def snapshots() -> tuple[Snapshot, ...]:
    """The script: one snapshot per second."""
    return tuple(wavy_crash(healthy_s=HEALTHY_S))


@cache
def script() -> dict[int, View]:
    """The views with Spark running, by their second."""
    state, begin, made = State(), 0, {}
    for second in SEEN_S:
        state, view = fold_on(state, snapshots()[begin : second + 1])
        made[second] = replace(view, aggregates=Aggregates(SPARK_RUNS, rollups()[second]))
        begin = second + 1
    return made


def throughput_state(name: str) -> View:
    """One of the states. In FAILED the job's roll-ups end 42 s ago, and are still there."""
    if name == INCIDENT:
        return script()[INCIDENT_S]
    view = script()[RUNNING_S]
    now_ms = view.snapshot.observation.ended_ms
    if name == STARTING:
        return replace(view, aggregates=Aggregates(SparkStatus(SparkState.STARTING, None, now_ms - 3_000)))
    if name == FAILED:
        status = SparkStatus(SparkState.FAILED, JAVA_KILLED, now_ms - 2_000, now_ms + 8_000)
        return replace(view, aggregates=Aggregates(status, rollups()[RUNNING_S - 42]))
    if name == OFF:
        return replace(view, aggregates=Aggregates())
    return view
