"""The schedules make sense before a cluster is started for them."""

import pytest

from tests.truth.schedule import LONG, SHORT, Do, Schedule, within

ALL = (SHORT, *LONG)


@pytest.mark.parametrize("schedule", ALL, ids=lambda schedule: schedule.name)
def test_steps_are_in_order_and_everything_comes_back(schedule: Schedule) -> None:
    times = [step.at_s for step in schedule.steps]
    assert times == sorted(times)
    assert times[-1] < schedule.seconds
    out: dict[Do, set[object]] = {Do.KILL: set(), Do.HANG: set(), Do.CUT: set(), Do.DELAY: set()}
    undone_by = {Do.KILL: Do.START, Do.HANG: Do.GO_ON, Do.CUT: Do.MEND, Do.DELAY: Do.MEND}
    for step in schedule.steps:
        node = "coordinator" if step.at_coordinator else step.node
        if step.do in out:
            assert node not in out[step.do]
            out[step.do].add(node)
        for fault, undo in undone_by.items():
            if step.do is undo:
                out[fault].discard(node)
    assert not any(out.values())


@pytest.mark.parametrize("schedule", ALL, ids=lambda schedule: schedule.name)
def test_the_broker_behind_the_link_is_never_killed(schedule: Schedule) -> None:
    assert all(step.node != schedule.linked for step in schedule.steps if step.do is Do.KILL)
    assert all(step.node == schedule.linked for step in schedule.steps if step.do in (Do.CUT, Do.DELAY))


def test_what_can_be_played_in_some_minutes() -> None:
    assert within(70) == LONG
    assert within(20) == LONG[:1]
    assert within(1) == (SHORT,)
    assert SHORT.seconds <= 170
    for minutes in (5, 30, 45):
        assert sum(one.seconds for one in within(minutes)) <= minutes * 60
