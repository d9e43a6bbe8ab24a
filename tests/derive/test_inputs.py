"""A topic's input that falls: what is said of it and when, and what is not called a fall."""

import re

import pytest

from kview.derive.fold import LOOK_BACK_MS, State, advance, fold_to, sample, view_of
from kview.derive.view import View
from kview.language import events
from kview.language.findings import sentence
from kview.model.events import Event, EventKind, Severity
from kview.model.findings import MOST_TOPICS, FindingKind
from kview.model.snapshot import Snapshot
from tests.worlds import World
from tests.worlds.parts import Log, Node, topic

RATE, LOW = 290.0, 4.0
FELL, ROSE = EventKind.INPUT_FELL, EventKind.INPUT_ROSE


class Watched:
    """A cluster with the topic `orders`, and what was said of its input."""

    def __init__(self, *others: Log, rate: float = RATE, partitions: int = 4, every_s: int = 2) -> None:
        nodes = [Node(id, "R1") for id in range(6)]
        self.world = World(nodes, [*topic("orders", partitions, 2, 0.0), *others], ())
        self.world.interval_ms, self.every_s = 1000 * every_s, every_s
        self.state = State()
        self.snapshots: list[Snapshot] = []
        self.events: list[Event] = []
        self.write(rate)

    def write(self, per_second: float, name: str = "orders") -> None:
        """From now on so many records come into a topic."""
        mine = [log for log in self.world.logs if log.topic == name]
        for log in mine:
            log.rate = per_second / len(mine)

    def after(self, seconds: int) -> View:
        for _ in range(seconds // self.every_s):
            self.snapshots.append(self.world.tick())
            self.state = advance(self.state, self.snapshots[-1])
            self.events += [event for event in self.state.new_events if event.kind in (FELL, ROSE)]
        self.state, sampled = sample(self.state)
        self.view = view_of(self.state, sampled, self.snapshots[-1])
        return self.view

    @property
    def line(self) -> str | None:
        """The headline's sentence about inputs."""
        found = [one for one in self.view.headline.findings if one.kind is FindingKind.INPUT_FELL]
        assert len(found) <= 1
        return sentence(found[0], self.view.snapshot.observation.ended_ms) if found else None

    @property
    def said(self) -> list[str]:
        return [events.sentence(event) for event in self.events]

    def seconds_until(self, line: str | None, at_most: int) -> int:
        """Let time pass until the headline says that, and return the seconds."""
        for second in range(self.every_s, at_most + self.every_s, self.every_s):
            self.after(self.every_s)
            if self.line == line:
                return second
        raise AssertionError(f"it still says {self.line}")


def test_a_fall_is_an_event_and_a_calm_line_after_half_a_minute_and_so_is_its_end() -> None:
    orders = Watched(every_s=1)
    orders.after(300)
    orders.write(LOW)
    said = "orders: input fell from 290 to 4/s"
    assert 30 <= orders.seconds_until(said, 45) <= 45
    assert orders.view.headline.severity is Severity.CALM
    assert orders.view.headline.findings[0].kind is FindingKind.CLUSTER_WELL
    assert orders.said == [said]
    orders.after(120)
    assert orders.line == said, "it stands while it is news"
    orders.write(280.0)
    assert orders.seconds_until(None, 20)
    assert re.fullmatch("orders: input rose again to [12].+/s, it was 290/s before it fell", orders.said[1])
    assert [event.severity for event in orders.events] == [Severity.CALM, Severity.GOOD]
    assert {event.kind for event in orders.view.events} >= {FELL, ROSE}


@pytest.mark.parametrize("low", [0.0, LOW])
def test_a_topic_that_ends_for_good_is_not_news_for_ever(low: float) -> None:
    orders = Watched(every_s=5)
    orders.after(600)
    orders.write(low)
    orders.seconds_until(f"orders: input fell from 290 to {low:.0f}/s", 45)
    orders.seconds_until(None, 600)
    orders.after(300)
    assert orders.line is None and len(orders.events) == 1
    assert orders.state.inputs.fallen == ()


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    ("before", "after"),
    [(RATE, RATE / 4), (9.0, 0.0), (3.0, 0.0), (0.0, 0.0), (0.0, RATE)],
    ids=["not a fifth", "low", "very low", "none", "it begins"],
)
def test_what_is_not_a_fall(before: float, after: float) -> None:
    orders = Watched(rate=before)
    orders.after(300)
    orders.write(after)
    orders.after(300)
    assert orders.line is None and not orders.events


@pytest.mark.quick(2)
@pytest.mark.parametrize(("on", "off"), [(40, 20), (120, 60), (5, 55), (60, 60)])
def test_bursts_are_no_falls_once_their_pauses_are_known(on: int, off: int) -> None:
    orders = Watched(every_s=5)
    first = 1 if off > 30 and on > 60 else 0
    for _ in range(1800 // (on + off)):
        orders.write(RATE)
        orders.after(on)
        orders.write(0.0)
        orders.after(off)
    assert len([event for event in orders.events if event.kind is FELL]) <= first, orders.said


def test_a_topic_that_was_filled_once_or_just_created_has_no_level() -> None:
    orders = Watched()
    orders.after(30)
    orders.world.add(topic("filled", 3, 2, 5_000.0))
    orders.after(90)
    orders.write(0.0, "filled")
    orders.after(400)
    assert not orders.events


def test_a_topic_that_is_created_again_has_no_level() -> None:
    orders = Watched()
    orders.after(300)
    for log in orders.world.logs:
        log.topic_id, log.start, log.watermark, log.rate = "another", 0, 0.0, 0.0
        log.ends = dict.fromkeys(log.ends, 0.0)
    orders.after(200)
    assert not orders.events and orders.line is None


def test_an_internal_topic_is_nobodys_input() -> None:
    orders = Watched(*topic("__consumer_offsets", 5, 3, 50.0, internal=True))
    orders.after(300)
    orders.write(0.0, "__consumer_offsets")
    orders.after(100)
    assert not orders.events


def test_unknown_is_not_a_fall() -> None:
    """A leader that does not answer, a partition without one, and a pause of the observation itself."""
    orders = Watched()
    orders.after(300)
    orders.world.crash(0)  # its partitions move to other brokers, those with one replica have no leader
    orders.after(5)
    orders.world.cut(1)
    orders.after(100)
    orders.world.back(0)
    orders.world.back(1)
    orders.after(60)
    orders.world.skip(200)
    orders.after(60)
    assert not orders.events and orders.line is None


def test_a_fall_stays_one_while_nobody_knows_the_input() -> None:
    orders = Watched()
    orders.after(300)
    orders.write(LOW)
    orders.after(60)
    orders.world.cut(1)
    orders.after(40)
    assert orders.line is None, "what comes in now is unknown"
    orders.world.back(1)
    orders.after(60)
    assert orders.line and len(orders.events) == 1
    orders.write(RATE)
    orders.after(20)
    assert [event.kind for event in orders.events] == [FELL, ROSE]


def test_many_topics_are_one_event_and_one_line() -> None:
    names = [f"t{number:02}" for number in range(30)]
    orders = Watched(*(log for name in names for log in topic(name, 1, 1, 50.0)), partitions=1)
    orders.after(300)
    orders.write(0.0)
    for name in names:
        orders.write(0.0, name)
    orders.after(45)
    assert orders.said == ["orders: input fell from 290 to 0/s (+30 more topics)"]
    assert orders.line == orders.said[0]
    (finding,) = (one for one in orders.view.headline.findings if one.kind is FindingKind.INPUT_FELL)
    assert finding.count == 31 and len(finding.topics) == MOST_TOPICS


def test_trouble_stands_above_it() -> None:
    orders = Watched()
    orders.after(300)
    orders.write(LOW)
    orders.after(45)
    orders.world.crash(5)
    orders.after(2)
    kinds = [finding.kind for finding in orders.view.headline.findings]
    assert orders.view.headline.severity is Severity.RISK
    assert kinds[0] is FindingKind.BROKERS_SILENT and kinds[-1] is not FindingKind.BROKERS_SILENT


@pytest.mark.quick(1)
@pytest.mark.parametrize("back_s", [40, 200, 400])
def test_a_jump_says_the_same_line(back_s: int) -> None:
    orders = Watched()
    orders.after(700 - back_s)
    orders.write(LOW)
    orders.after(back_s)
    end_ms = orders.snapshots[-1].observation.ended_ms
    part = [one for one in orders.snapshots if one.observation.ended_ms >= end_ms - LOOK_BACK_MS]
    got = fold_to(part[-1], part, lambda: False)
    assert got is not None
    assert orders.line is not None
    assert got[1].headline.findings == orders.view.headline.findings
    assert [event.kind for event in got[1].events] == [FELL]
