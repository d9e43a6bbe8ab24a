"""The slow lane: when a request that a broker forwards counts as unanswered."""

from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from kafka.protocol.admin import ListPartitionReassignmentsResponse
from msgspec.structs import replace

from kview.model.failures import Cause, FailureKind, Part
from kview.model.units import NO_BROKER
from kview.observe import apis
from kview.observe.access import Access
from kview.observe.link import Link
from kview.observe.loop import Loop
from kview.observe.settings import ObserveSettings
from kview.observe.slow_lane import SlowLane
from kview.observe.state import State

OVERDUE = Cause(FailureKind.OVERDUE)


@dataclass
class StillLoop:
    """A clock that is set by hand. What is sent is never answered."""

    now_s: float = 100.0
    sent: int = 0
    access: Access = field(default_factory=Access)

    def monotonic(self) -> float:
        return self.now_s

    def clock_ms(self) -> int:
        return int(self.now_s * 1000)

    def spawn(self, task: object) -> None:
        """Leave the request unanswered."""
        self.sent += 1


@dataclass
class StillLink:
    """A connection to a broker that forwards DescribeQuorum, and knows nothing else."""

    connected: bool = True
    versions: dict[int, tuple[int, int]] = field(default_factory=lambda: {apis.DESCRIBE_QUORUM: (0, 1)})

    def open(self) -> None:
        """Stay as it is."""


def failures_at(*steps: tuple[float, list[int], list[int]]) -> list[Cause | None]:
    """The failure of the quorum after each step at (seconds, healthy brokers, brokers that answer)."""
    loop, state = StillLoop(), State()
    links = {broker: cast(Link, StillLink()) for broker in (0, 1)}
    lane = SlowLane(cast(Loop, loop), ObserveSettings(), state, links)
    seen = []
    for at_s, healthy, answering in steps:
        loop.now_s = 100.0 + at_s
        lane.step(healthy, answering, 0)
        seen.append(state.failures.get((Part.QUORUM, NO_BROKER)))
    return seen


def test_observations_are_not_evenly_spaced() -> None:
    """On a busy machine, two observations may end 0.6 s apart."""
    assert failures_at((0.0, [0, 1], [0, 1]), (0.6, [0, 1], [0, 1])) == [None, OVERDUE]


def test_a_broker_that_answers_late_on_its_other_connection_is_not_to_blame() -> None:
    assert failures_at((0.0, [0, 1], [0, 1]), (1.0, [1], [0, 1])) == [None, OVERDUE]


def test_a_request_counts_as_unanswered_also_after_its_broker_was_silent_for_a_moment() -> None:
    assert failures_at((0.0, [0], [0]), (1.0, [], []), (2.0, [0], [0])) == [None, None, OVERDUE]


def test_a_second_broker_is_asked_for_the_quorum_when_the_first_may_be_cut_off_from_it_but_not_a_third() -> (
    None
):
    loop, asked = StillLoop(), []
    links = {broker: cast(Link, StillLink()) for broker in (0, 1, 2)}
    lane = SlowLane(cast(Loop, loop), ObserveSettings(), State(), links)
    for _ in range(5):
        lane.step([0, 1, 2], [0, 1, 2], 0)
        loop.now_s += 1.0
        asked.append(loop.sent)
    assert asked == [1, 2, 2, 2, 2]


class AnsweringLoop(StillLoop):
    """A clock that is set by hand. What is sent is answered at once."""

    def spawn(self, task: Callable[[], Coroutine[object, None, None]]) -> None:  # type: ignore[override]
        """Carry out the request."""
        self.sent += 1
        with suppress(StopIteration):
            task().send(None)


@dataclass
class Controller(StillLink):
    """A connection to a broker that answers about reassignments with Kafka's error number `error`."""

    error: int = 0
    versions: dict[int, tuple[int, int]] = field(
        default_factory=lambda: {apis.LIST_PARTITION_REASSIGNMENTS: (0, 0)}
    )

    async def ask(self, request: object) -> tuple[object, int]:
        """Answer at once."""
        return ListPartitionReassignmentsResponse(
            version=0, throttle_time_ms=0, error_code=self.error, error_message=None, topics=[]
        ), 0


def refusals_at(*steps: tuple[float, int]) -> list[int]:
    """The error number shown for reassignments after each step at (seconds, what the broker answers)."""
    loop, state, link = AnsweringLoop(), State(), Controller()
    lane = SlowLane(cast(Loop, loop), ObserveSettings(forwarded_rounds=1), state, {0: cast(Link, link)})
    seen = []
    for at_s, link.error in steps:
        loop.now_s = 100.0 + at_s
        lane.step([0], [0], 0)
        failure = state.failures.get((Part.REASSIGNMENTS, NO_BROKER))
        seen.append(failure.code if failure else 0)
    assert loop.sent == len(steps)
    return seen


def test_that_a_controller_is_being_elected_is_no_failure_unless_it_lasts() -> None:
    not_controller = [(second * 1.5, 41) for second in range(4)]
    assert refusals_at(*not_controller) == [0, 0, 0, 41]
    assert refusals_at(*not_controller[:2], (3.0, 0), (4.5, 41), (6.0, 41)) == [0] * 5, "two elections"
    assert refusals_at(*not_controller, (6.0, 0)) == [0, 0, 0, 41, 0]
    assert refusals_at((0.0, 31)) == [31], "any other refusal is shown at once"


def test_a_broker_whose_replicas_go_offline_or_come_back_is_asked_for_its_log_directories_at_once() -> None:
    loop, state, asked = StillLoop(), State(), []
    links = {broker: cast(Link, StillLink(versions={apis.DESCRIBE_LOG_DIRS: (0, 4)})) for broker in (0, 1)}
    lane = SlowLane(cast(Loop, loop), ObserveSettings(log_dirs_s=30.0), state, links)
    for offline in ([[-1]], [[-1]], [[1]], [[1]], [[-1]]):
        state.layout = replace(state.layout, offline=np.array(offline, np.int32))
        lane.step([0, 1], [0, 1], 0)
        lane._running.clear()  # what was asked has been answered
        loop.now_s += 1.0
        asked.append(loop.sent)
    assert asked == [2, 2, 3, 3, 4]
