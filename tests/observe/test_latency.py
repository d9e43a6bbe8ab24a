"""The latency of brokers: what duty cycles, slow and hung brokers show."""

import heapq
from collections.abc import Callable
from itertools import count

import pytest

from kview.derive.fold import State, step
from kview.model.snapshot import Snapshot
from kview.model.units import UNKNOWN
from kview.observe.latency import Latency, Probes
from kview.observe.observer import ObserveSettings
from kview.plain.blocks import block
from kview.tui.options import Options
from kview.tui.rows.brokers import BrokerRows
from kview.tui.text import content
from tests.observe.fake_broker import FakeBroker
from tests.observe.observing import observing, until
from tests.served import Served
from tests.worlds import default_world

ANSWER_S = 0.002


class Clock:
    """Virtual seconds, and what is to be done when."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._numbers = count()
        self._due: list[tuple[float, int, Callable[[], None]]] = []

    def call_later(self, seconds: float, do: Callable[[], None]) -> None:
        heapq.heappush(self._due, (self.now_s + seconds, next(self._numbers), do))

    def run_to(self, at_s: float) -> None:
        while self._due and self._due[0][0] <= at_s:
            self.now_s, _, do = heapq.heappop(self._due)
            do()
        self.now_s = at_s


class OnAndOff:
    """A broker that stands still for `stopped_s` and then runs for `running_s`, again and again."""

    def __init__(self, clock: Clock, stopped_s: float, running_s: float, began_s: float) -> None:
        self.latency = Latency()
        self._clock = clock
        self._stopped_s, self._cycle_s, self._began_s = stopped_s, stopped_s + running_s, began_s
        self._sent_s: float | None = None

    @property
    def owed_s(self) -> float:
        return 0.0 if self._sent_s is None else self._clock.now_s - self._sent_s

    def probe(self) -> None:
        if self._sent_s is None:
            self._sent_s = self._clock.now_s
            at_s = (self._clock.now_s + self._began_s) % self._cycle_s
            self._clock.call_later(max(0.0, self._stopped_s - at_s) + ANSWER_S, self._answer)

    def _answer(self) -> None:
        assert self._sent_s is not None
        self.latency.add(self._clock.now_s - self._sent_s)
        self._sent_s = None


def latencies_ms(stopped_s: float, running_s: float, began_s: float = 0.0, seconds: int = 120) -> list[float]:
    """The latency at each of so many observations, a second apart, without the first ones."""
    clock = Clock()
    broker = OnAndOff(clock, stopped_s, running_s, began_s)
    probes = Probes(clock.call_later)
    seen = []
    for second in range(seconds):
        clock.run_to(float(second))
        probes.plan({7: broker}, 1.0)
        seen.append(broker.latency.us(broker.owed_s) / 1000)
    return seen[6:]


@pytest.mark.parametrize("began_s", [0.0, 0.1, 0.2, 0.3, 0.4])
def test_a_broker_that_stands_still_for_300_of_500_ms_is_slow_in_every_observation(began_s: float) -> None:
    assert min(latencies_ms(0.3, 0.2, began_s)) >= 50


def test_a_broker_that_stands_still_for_1200_of_1500_ms_is_slow_in_every_observation() -> None:
    assert min(latencies_ms(1.2, 0.3)) >= 200


def test_a_healthy_broker_and_one_that_pauses_now_and_then_are_not_slow() -> None:
    assert max(latencies_ms(0.0, 1.0)) == pytest.approx(1000 * ANSWER_S)
    assert max(latencies_ms(0.15, 7.85, seconds=600)) == pytest.approx(1000 * ANSWER_S)


def test_many_brokers_get_one_request_each() -> None:
    clock = Clock()
    sent: list[int] = []
    brokers = {number: OnAndOff(clock, 0.0, 1.0, 0.0) for number in range(100)}
    Probes(lambda seconds, do: sent.append(1)).plan(brokers, 1.0)
    assert len(sent) == 100


def latency_ms(snapshot: Snapshot, broker: int) -> float:
    us = int(snapshot.brokers.latency_us[snapshot.brokers.id.tolist().index(broker)])
    return us if us == UNKNOWN else us / 1000


def test_a_hung_brokers_latency_grows_and_a_dead_ones_is_unknown() -> None:
    settings = ObserveSettings(interval_s=0.2, silence_s=0.5, retry_most_s=0.4)
    with FakeBroker(0) as leader, FakeBroker(1) as other:
        leader.advertised = {0: leader.address, 1: other.address}
        with observing([leader.address], settings) as observer:
            until(observer, lambda s: 0 < latency_ms(s, 1) < 100, "it is measured")
            other.hang()
            until(observer, lambda s: latency_ms(s, 1) > 400, "it grows while a request waits")
            until(observer, lambda s: latency_ms(s, 1) > 1_500, "it grows while the broker is silent")
            other.go_on()
            until(observer, lambda s: 0 < latency_ms(s, 1) < 100, "it answers again")
            other.close()
            until(observer, lambda s: latency_ms(s, 1) == UNKNOWN, "it is dead")


def test_a_slow_brokers_latency_is_its_delay() -> None:
    with Served("--no-traffic") as cluster, observing(cluster.addresses, ObserveSettings()) as observer:
        until(observer, lambda s: bool((s.brokers.latency_us > 0).all()), "all are measured")
        cluster.do("slow 4 200ms")

        def is_slow_alone(seen: Snapshot) -> bool:
            others = max(latency_ms(seen, broker) for broker in (0, 1, 2, 3, 5))
            return others < 200 <= latency_ms(seen, 4) < 2_000

        until(observer, is_slow_alone, "it is slow, and the others are not")


LINK_S = 0.6


class Linked(OnAndOff):
    """A broker behind a link that makes every answer late by LINK_S."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(clock, 0.0, 1.0, 0.0)

    def probe(self) -> None:
        if self._sent_s is None:
            self._sent_s = self._clock.now_s
            self._clock.call_later(LINK_S, self._answer)


@pytest.mark.parametrize(
    ("made", "least_ms"),
    [
        (lambda clock: OnAndOff(clock, 0.3, 0.2, 0.0), 50),
        (lambda clock: OnAndOff(clock, 1.2, 0.3, 0.0), 200),
        (Linked, 600),
    ],
    ids=["300 ms stopped, 200 ms running", "1,200 ms stopped, 300 ms running", "a link of 600 ms"],
)
def test_a_broker_that_is_slow_is_said_to_be_slow_until_it_answers_quickly(
    made: Callable[[Clock], OnAndOff], least_ms: int
) -> None:
    clock, world, state = Clock(), default_world(), State()
    broker, probes, said = made(clock), Probes(clock.call_later), []
    for second in range(60):
        clock.run_to(float(second))
        probes.plan({5: broker}, 1.0)
        world.nodes[5].latency_us = broker.latency.us(broker.owed_s)
        state, view = step(state, world.tick())
        printed = block(view, "a cluster").splitlines()
        (row,) = [line for line in printed if line.split()[1:2] == ["5"] and line.startswith("  R2")]
        found = [line for line in printed if line.startswith("▲ broker 5 slow for ")]
        said.append((len(found), "▲ slow" in row))
    assert set(said[20:]) == {(1, True)}
    shown = BrokerRows(view, Options()).row(5, view.snapshot.observation.ended_ms).cells
    assert "▲ slow" in map(content, shown)
    assert broker.latency.us(broker.owed_s) >= least_ms * 1000
