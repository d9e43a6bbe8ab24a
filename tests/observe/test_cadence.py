"""Groups that are not read in every observation, because their broker takes one group per request."""

import json
import re
from collections.abc import Sequence

from kview.derive.view import View
from kview.language import verdicts
from kview.observe.observer import Observer, ObserveSettings
from kview.plain.documents import document
from tests.observe.fake_broker import COORDINATOR_VERSIONS, FakeBroker
from tests.observe.observing import Watched
from tests.waiting import wait_until
from tests.worlds import START_MS

ROUND = 14
"""Observations until each of 40 groups has been read, three at a time."""


class Clock:
    """A wall clock that stands still between observations."""

    def __init__(self) -> None:
        self.now_ms = START_MS

    def __call__(self) -> int:
        return self.now_ms

    def steady_s(self) -> float:
        """The same clock in seconds, so that it is not set but passes."""
        return self.now_ms / 1000


def names(prefix: str) -> tuple[str, ...]:
    return tuple(f"{prefix}-{number:02}" for number in range(40))


def looks(
    watched: Watched, clock: Clock, times: int, step_ms: int, brokers: Sequence[FakeBroker]
) -> list[View]:
    """Make observations that are `step_ms` apart on the clock, which waits until all is answered."""
    made = []
    for _ in range(times):
        clock.now_ms += step_ms
        made.append(watched.look())
        wait_until(lambda: all(len(b.answered) >= len(b.asked) for b in brokers), "all is answered")
    return made


def old(view: View) -> list[str]:
    """The groups of which the screen says that their figures are old."""
    table, figures = view.snapshot.groups.group, view.groups
    ages = figures.verdict_age_ms.tolist()
    said = [
        f"{verdicts.name(figures.verdict[row], ages[row])} {verdicts.of_group(figures, row)}"
        for row in range(len(table))
    ]
    return [str(name) for name, each in zip(table, said, strict=True) if re.search(r" (ago|old)\b", each)]


def test_groups_that_are_read_in_turn_are_not_old_between_their_turns() -> None:
    clock = Clock()
    with FakeBroker(0, versions=COORDINATOR_VERSIONS) as broker:
        broker.coordinator, broker.groups = 0, names("group")
        broker.committed = broker.high_watermark
        observer = Observer([broker.address], ObserveSettings(interval_s=1.0), clock, steady_s=clock.steady_s)
        observer.connect()
        try:
            watched = Watched(observer)
            made = looks(watched, clock, 3 * ROUND, 1_000, [broker])
            assert [name for view in made for name in old(view)] == []
            assert len(made[-1].snapshot.offsets) == 40, "each has been read"
            clock.now_ms += 60_000  # nobody looks for a minute
            late = looks(watched, clock, 1, 1_000, [broker])[0]
            assert len(old(late)) == 40 - 3
            (unread,) = [f for f in json.loads(document(late))["findings"] if f["kind"] == "groups_unread"]
            assert unread["groups"] == 40 - 3
            assert unread["since_ms"] == late.snapshot.offsets.received_ms.min()
            assert unread["cause"]["text"] == "coordinator 0 has not answered yet"
        finally:
            observer.close()


def test_long_intervals_do_not_make_figures_old() -> None:
    clock = Clock()
    with FakeBroker(0, versions=COORDINATOR_VERSIONS) as broker:
        broker.coordinator, broker.groups = 0, names("group")[:9]
        observer = Observer(
            [broker.address], ObserveSettings(interval_s=10.0), clock, steady_s=clock.steady_s
        )
        observer.connect()
        try:
            made = looks(Watched(observer), clock, 8, 10_000, [broker])
            assert [name for view in made for name in old(view)] == []
        finally:
            observer.close()


def test_each_group_has_its_turn_when_there_are_several_coordinators() -> None:
    clock = Clock()
    with (
        FakeBroker(0, versions=COORDINATOR_VERSIONS) as a,
        FakeBroker(1, versions=COORDINATOR_VERSIONS) as b,
    ):
        for broker in (a, b):
            broker.advertised = {one.node: one.address for one in (a, b)}
        a.groups, b.groups = names("a"), names("b")
        observer = Observer([a.address], ObserveSettings(interval_s=1.0), clock, steady_s=clock.steady_s)
        observer.connect()
        try:
            made = looks(Watched(observer), clock, ROUND + 2, 1_000, [a, b])
            assert sorted(set(made[-1].snapshot.offsets.group)) == sorted((*names("a"), *names("b")))
        finally:
            observer.close()
