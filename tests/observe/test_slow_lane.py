"""The slow lane: when a request that a broker forwards counts as unanswered."""

from collections.abc import Callable, Collection, Coroutine, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from types import coroutine
from typing import cast

import numpy as np
from kafka.protocol.admin import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    ListPartitionReassignmentsResponse,
)
from msgspec.structs import replace

from kview.model.failures import STORAGE_ERROR, Cause, FailureKind, Part
from kview.model.snapshot import Reassignments, empty
from kview.model.states import BrokerState, GroupType
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID
from kview.observe import apis
from kview.observe.access import Access
from kview.observe.brokers import BrokerFacts
from kview.observe.configs import TOPICS_A_REQUEST
from kview.observe.groups.facts import GroupFacts
from kview.observe.groups.requests import GroupRequests
from kview.observe.groups.rounds import GroupRounds
from kview.observe.layout import Layout, layout
from kview.observe.link import Link
from kview.observe.links import Links
from kview.observe.loop import Loop
from kview.observe.settings import ObserveSettings
from kview.observe.slow_lane import SlowLane
from kview.observe.state import State
from kview.wire.metadata import BrokerAddress, PartitionRow, TopicRow, Topics
from tests.observe.test_log_dirs import answer
from tests.worlds.tables import table

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
    answered_ms: int = 0
    versions: dict[int, tuple[int, int]] = field(
        default_factory=lambda: {apis.LIST_PARTITION_REASSIGNMENTS: (0, 0)}
    )

    async def ask(self, request: object) -> tuple[object, int]:
        """Answer at once."""
        return ListPartitionReassignmentsResponse(
            version=0, throttle_time_ms=0, error_code=self.error, error_message=None, topics=[]
        ), self.answered_ms


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


@dataclass
class Disks(StillLink):
    """A connection to a broker with one log directory, which has failed or works."""

    loop: StillLoop = field(default_factory=StillLoop)
    error: int = 0
    versions: dict[int, tuple[int, int]] = field(default_factory=lambda: {apis.DESCRIBE_LOG_DIRS: (0, 4)})

    async def ask(self, request: object) -> tuple[object, int]:
        """Answer at once."""
        return answer(("/disk", self.error, UNKNOWN, UNKNOWN)), self.loop.clock_ms()


def test_nothing_is_known_of_the_directories_of_a_broker_that_came_back_until_it_tells_them_again() -> None:
    """It was restarted after its disk was repaired, and is busy with its first requests."""
    loop, state = AnsweringLoop(), State()
    disks = {broker: Disks(loop=loop, error=STORAGE_ERROR) for broker in (0, 1)}
    lane = SlowLane(cast(Loop, loop), ObserveSettings(), state, cast(dict[int, Link], disks))
    for broker in disks:
        address = BrokerAddress(broker, "127.0.0.1", 9092, "")
        state.brokers[broker] = BrokerFacts(address, BrokerState.UP, 0)
    restarted = state.brokers[1]

    def told(healthy: list[int]) -> list[tuple[int, int]]:
        """Return which error each broker has told of its directory, a second later."""
        loop.now_s += 1.0
        lane.step(healthy, healthy, 0)
        return list(zip(state.log_dirs.broker.tolist(), state.log_dirs.error_code.tolist(), strict=True))

    assert told([0, 1]) == told([0, 1]) == [(0, STORAGE_ERROR), (1, STORAGE_ERROR)]
    restarted.state, restarted.error = BrokerState.SILENT, FailureKind.REFUSED
    assert told([0]) == [(0, STORAGE_ERROR)]
    disks[1].connected = False
    restarted.state, restarted.error = BrokerState.UP, FailureKind.NONE
    assert told([0, 1]) == [(0, STORAGE_ERROR)], "its other connection is not up yet"
    disks[1].connected, disks[1].error = True, 0
    assert told([0, 1]) == [(0, STORAGE_ERROR), (1, 0)], "it is asked at once"
    restarted.state = BrokerState.GONE
    assert told([0]) == [(0, STORAGE_ERROR)]


@dataclass
class ConfigLink(StillLink):
    """A connection to a broker that answers DescribeConfigs with what `values` has at that moment."""

    loop: StillLoop = field(default_factory=StillLoop)
    values: dict[str, str] = field(default_factory=dict)
    versions: dict[int, tuple[int, int]] = field(default_factory=lambda: {apis.DESCRIBE_CONFIGS: (0, 4)})
    asked: list[list[str]] = field(default_factory=list)
    """The topics, or the brokers, of each request."""
    hidden: Collection[str] = ()
    """The topics whose settings kview may not see."""
    besides: Sequence[str] = ()
    """What it tells without being asked."""

    async def ask(self, request: DescribeConfigsRequest) -> tuple[object, int]:
        """Answer at once."""
        self.asked.append([resource.resource_name for resource in request.resources])
        result = DescribeConfigsResponse.DescribeConfigsResult
        entry = result.DescribeConfigsResourceResult
        made = [
            result(
                error_code=29 if resource.resource_name in self.hidden else 0,
                error_message=None,
                resource_type=resource.resource_type,
                resource_name=name,
                configs=[
                    entry(name=key, value=self.values.get(key, ""), read_only=False, config_source=1,
                          is_sensitive=False, synonyms=[])
                    for key in resource.configuration_keys
                ],
            )
            for resource in request.resources
            for name in (resource.resource_name, *self.besides)
        ]  # fmt: skip
        return DescribeConfigsResponse(throttle_time_ms=0, results=made), self.loop.clock_ms()


def topics_of(names: Sequence[str], short: Collection[str] = ()) -> Layout:
    """A layout of topics with one partition each, of which `short` have only one of two replicas in sync."""
    rows = [PartitionRow(0, 0, 0, 1, (0, 1), (0,) if name in short else (0, 1), ()) for name in names]
    topics = [TopicRow(name, name, False, 0, at, 1) for at, name in enumerate(names)]
    return layout(Topics(topics, rows), None)


class Reading:
    """A slow lane that reads the settings of topics at a broker, once a second."""

    def __init__(self, layout: Layout) -> None:
        self.loop, self.state = AnsweringLoop(), State(layout=layout)
        self.link = ConfigLink(loop=self.loop)
        links = {0: cast(Link, self.link)}
        self.lane = SlowLane(cast(Loop, self.loop), ObserveSettings(), self.state, links)

    def after(self, seconds: int) -> list[list[str]]:
        """Return the topics of each request within so many seconds."""
        first = len(self.link.asked)
        for _ in range(seconds):
            self.loop.now_s += 1.0
            self.lane.step([0], [0], 0)
        return [names for names in self.link.asked[first:] if names != ["0"]]


def test_settings_of_topics_in_sight_or_in_trouble_are_read_every_few_seconds_others_each_minute() -> None:
    names = ["orders", "payments", "returns"]
    reading = Reading(topics_of(names))
    assert reading.after(20) == [names], "they are known now"
    reading.lane.in_sight = frozenset({"orders"})
    assert reading.after(8) == [["orders"]] * 2
    reading.state.layout = topics_of(names, short=["returns"])
    assert "returns" in reading.after(1)[0], "something is wrong with it"
    assert {name for asked in reading.after(8) for name in asked} == {"orders", "returns"}
    reading.state.layout = topics_of(names)
    reading.lane.in_sight = frozenset()
    assert reading.after(15) == []
    assert sorted({name for asked in reading.after(60) for name in asked}) == names, "a minute is over"


def test_what_is_read_again_is_what_is_shown() -> None:
    """Somebody lowers min.insync.replicas, so that a partition takes writes again."""
    reading = Reading(topics_of(["orders"], short=["orders"]))
    reading.link.values["min.insync.replicas"] = "2"
    reading.after(5)
    assert reading.state.min_isr().tolist() == [2]
    made = reading.state.min_isr()
    assert reading.after(5) and reading.state.min_isr() is made, "the same again costs nothing"
    reading.link.values["min.insync.replicas"] = "1"
    reading.after(5)
    assert reading.state.min_isr().tolist() == [1]


def test_topics_that_kview_may_not_see_hold_back_no_others_and_are_said() -> None:
    names = ["orders", "secrets"]
    reading = Reading(topics_of(names, short=["secrets"]))
    reading.lane.in_sight, reading.link.hidden = frozenset(names), ["secrets"]
    reading.link.values["min.insync.replicas"] = "2"
    assert reading.after(1) == [names]
    assert reading.after(24) == [["orders"]] * 6
    assert reading.state.failures[Part.CONFIGS, NO_BROKER].code == 29
    assert reading.state.min_isr().tolist() == [2, UNKNOWN_ID]
    assert sum("secrets" in asked for asked in reading.after(60)) == 1, "it is asked for once a minute"
    reading.link.hidden = ()
    reading.after(65)
    assert not reading.state.failures and reading.state.min_isr().tolist() == [2, 2]


def test_of_a_big_cluster_the_settings_of_topics_in_trouble_are_read_first() -> None:
    names = ["orders", "payments", "returns"]
    reading = Reading(topics_of(names, short=["returns"]))
    reading.lane.step([0], [0], 0, is_brief=True)
    assert ["returns"] in reading.link.asked and not any("orders" in asked for asked in reading.link.asked)
    assert reading.after(1) == [["orders", "payments"]]


def test_settings_that_nobody_asked_for_are_no_answer() -> None:
    reading = Reading(topics_of(["orders"]))
    reading.link.besides = ["never heard of"]
    reading.after(1)
    assert reading.state.failures[Part.CONFIGS, NO_BROKER].kind is FailureKind.MALFORMED
    assert not reading.state.settings
    reading.link.besides = ()
    reading.after(5)
    assert not reading.state.failures and list(reading.state.settings) == ["orders"]


@coroutine
def pause() -> Iterator[None]:
    yield


class LateLink(ConfigLink):
    """A connection whose answers come when the loop goes on."""

    async def ask(self, request: DescribeConfigsRequest) -> tuple[object, int]:
        answered = await super().ask(request)
        await pause()
        return answered


@dataclass
class LateLoop(StillLoop):
    """A clock that is set by hand. What is sent is answered later."""

    waiting: list[Coroutine[object, None, None]] = field(default_factory=list)

    def spawn(self, task: Callable[[], Coroutine[object, None, None]]) -> None:  # type: ignore[override]
        """Send the request."""
        sent = task()
        sent.send(None)
        self.waiting.append(sent)

    def go_on(self) -> None:
        """Let the answers come that are due."""
        due, self.waiting = self.waiting, []
        for sent in due:
            with suppress(StopIteration):
                sent.send(None)


def test_settings_that_are_on_their_way_are_not_asked_for_again() -> None:
    names = [f"t{number:04}" for number in range(2 * TOPICS_A_REQUEST)]
    loop = LateLoop()
    link = LateLink(loop=loop)
    lane = SlowLane(
        cast(Loop, loop), ObserveSettings(), State(layout=topics_of(names)), {0: cast(Link, link)}
    )
    for _ in range(4):
        lane.step([0], [0], 0)
        loop.now_s += 1.0
        lane.step([0], [0], 0)
        loop.go_on()
    asked = [each for each in link.asked if each != ["0"]]
    assert asked == [names[:TOPICS_A_REQUEST], names[TOPICS_A_REQUEST:]]


def test_many_topics_in_trouble_take_turns() -> None:
    names = [f"t{number:04}" for number in range(2_000)]
    reading = Reading(topics_of(names, short=names))
    reading.after(20)
    asked = reading.after(60)
    assert all(len(one) <= TOPICS_A_REQUEST for one in asked)
    assert 2_000 * 3 <= sum(map(len, asked)) <= 2_000 * 5, "each about every 14 s"


def test_brokers_throttles_are_read_every_few_seconds_while_something_moves() -> None:
    reading = Reading(topics_of(["orders"]))
    reading.after(10)
    before = reading.link.asked.count(["0"])
    reading.state.reassignments = table(
        Reassignments, [{"topic": "orders", "partition": 0, "adding": [2], "removing": [1]}]
    )
    assert reading.after(9)[:2] == [["orders"]] * 2, "and those of the topic"
    during = reading.link.asked.count(["0"])
    assert during - before == 2
    reading.state.reassignments = empty(Reassignments)
    reading.after(20)
    assert reading.link.asked.count(["0"]) - during == 1, "once more after its end"


@dataclass
class Sharing(StillLink):
    """A connection to a broker that knows share groups."""

    versions: dict[int, tuple[int, int]] = field(
        default_factory=lambda: {
            apis.DESCRIBE_SHARE_GROUP_OFFSETS: (0, 1),
            apis.SHARE_GROUP_DESCRIBE: (1, 1),
            apis.OFFSET_FETCH: (9, 9),
        }
    )


def test_a_share_group_whose_state_nobody_tells_keeps_no_other_answer_waiting() -> None:
    """Its coordinator asks another broker, and answers nothing else on the same connection meanwhile."""
    loop, state, link = StillLoop(), State(), cast(Link, Sharing())
    state.groups["tasks"] = GroupFacts("tasks", GroupType.SHARE, "Stable", 0)
    lane = SlowLane(cast(Loop, loop), ObserveSettings(), state, {0: link})
    requests = GroupRequests(cast(Loop, loop), state)
    rounds = GroupRounds(state, requests, cast(Links, None), 3, 1.0)
    asked = [ask.func for _, ask in cast(list[tuple[Link, partial[object]]], rounds.details({0: link}))]
    assert asked == [requests.describe], "the fast lane asks for its members alone"
    lane.step([0], [0], 0)
    loop.now_s += 3.5
    lane.step([0], [0], 0)
    assert loop.sent == 1 and state.failures == {(Part.SHARE_OFFSETS, 0): OVERDUE}


def test_a_move_goes_on_until_metadata_that_are_not_older_say_what_came_of_it() -> None:
    """Older ones still list the replicas that it added: they would be out of sync."""
    loop, state, link = AnsweringLoop(), State(), Controller(answered_ms=5_000)
    moves = table(Reassignments, [{"topic": "orders", "partition": 0, "adding": [2], "removing": [1]}])
    state.reassignments = moves
    state.succeeded(Part.METADATA, 0, 4_900)
    lane = SlowLane(cast(Loop, loop), ObserveSettings(forwarded_rounds=9), state, {0: cast(Link, link)})
    lane.step([0], [0], 0)
    assert loop.sent == 1 and state.reassignments is moves
    state.succeeded(Part.METADATA, 0, 5_100)
    lane.step([0], [0], 0)
    assert loop.sent == 1 and not len(state.reassignments)
