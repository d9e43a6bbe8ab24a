"""Events: each kind from the smallest difference that makes it, and silence where nothing happened."""

import dataclasses

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.events import MAX_EVENTS, kept
from kview.derive.fold import State, step
from kview.model.events import Event, EventKind, Severity
from kview.model.states import GroupState
from kview.model.units import UNKNOWN_ID
from tests.worlds import World, default_world


def after(world: World, steps: int = 3) -> State:
    state = State()
    for _ in range(steps):
        state, _ = step(state, world.tick())
    return state


def happened(state: State, world: World) -> list[Event]:
    """The events of the next step, at time 0 and without the names of partitions."""
    _, view = step(state, world.tick())
    assert all(event.at_ms == view.snapshot.observation.ended_ms for event in view.new_events)
    return [replace(event, at_ms=0, partitions=()) for event in view.new_events]


def test_another_controller() -> None:
    world = default_world()
    state = after(world)
    world.controller, world.controller_epoch = UNKNOWN_ID, UNKNOWN_ID
    state, view = step(state, world.tick())
    assert view.new_events == ()
    world.controller, world.controller_epoch = 102, 4
    assert happened(state, world) == []  # who led before is not known any more
    world = default_world()
    state = after(world)
    world.controller, world.controller_epoch = 102, 4
    assert happened(state, world) == [
        Event(
            0, EventKind.CONTROLLER_MOVED, Severity.WARN, controllers=(102,), before=101, after=102, epoch=4
        )
    ]


def test_partitions_added() -> None:
    world = default_world()
    state = after(world)
    first = world.log("payment", 5)
    world.logs = sorted(
        [*world.logs, dataclasses.replace(first, partition=6, ends=dict(first.ends), seen={})],
        key=lambda log: log.key,
    )
    assert happened(state, world) == [
        Event(0, EventKind.PARTITIONS_ADDED, Severity.CALM, topic="payment", before=6, after=7)
    ]


def test_a_follower_that_cut_its_log() -> None:
    world = default_world()
    log = world.log("invoice", 0)
    log.rate = 0.0
    state = after(world)
    log.isr, log.stalled = [0, 1], frozenset({3})
    log.ends[3] -= 40
    events = happened(state, world)
    assert events == [
        Event(0, EventKind.ISR_SHRANK, Severity.WARN, brokers=(3,), partition_count=1),
        Event(0, EventKind.LOG_CUT, Severity.WARN, brokers=(3,), partition_count=1, records=40),
    ]


def test_a_preferred_election_is_calm() -> None:
    world = default_world()
    log = world.log("invoice", 0)
    log.leader = 3
    state = after(world)
    log.leader, log.epoch = 0, log.epoch + 1
    assert happened(state, world) == [
        Event(0, EventKind.LEADER_MOVED, Severity.CALM, brokers=(0,), partition_count=1)
    ]


def test_a_rebalance_that_was_seen() -> None:
    world = default_world()
    group = world.group("billing")
    state = after(world)
    group.state = GroupState.PREPARING_REBALANCE
    (begins,) = happened(state, world)
    assert (begins.kind, begins.severity, begins.group) == (
        EventKind.REBALANCE_STARTED,
        Severity.WARN,
        "billing",
    )
    state, _ = step(state, world.tick())
    group.state = GroupState.COMPLETING_REBALANCE
    state, view = step(state, world.tick())
    assert view.new_events == ()
    group.state, group.members = GroupState.STABLE, 2
    (ends,) = happened(state, world)
    assert (ends.kind, ends.severity, ends.members) == (EventKind.REBALANCE_ENDED, Severity.GOOD, 2)


def test_a_rebalance_between_two_observations_is_known_by_its_owners() -> None:
    world = default_world()
    state = after(world)
    world.group("billing").members = 2
    (event,) = happened(state, world)
    assert (event.kind, event.group, event.members) == (EventKind.REBALANCED, "billing", 2)


def test_a_group_that_becomes_empty() -> None:
    world = default_world()
    state = after(world)
    world.group("billing").members, world.group("billing").state = 0, GroupState.EMPTY
    (event,) = happened(state, world)
    assert (event.kind, event.severity) == (EventKind.GROUP_STATE, Severity.WARN)
    assert (event.before, event.after) == (GroupState.STABLE, GroupState.EMPTY)


def test_a_group_of_unknown_state_makes_no_event() -> None:
    world = default_world()
    state = after(world)
    world.group("billing").state = GroupState.UNKNOWN
    assert happened(state, world) == []


def test_an_isr_in_another_order_is_the_same_isr() -> None:
    world = default_world()
    state = after(world)
    world.log("invoice", 0).isr.reverse()
    assert happened(state, world) == []


@pytest.mark.parametrize("broker", range(6))
def test_a_crash_is_one_event_for_every_broker(broker: int) -> None:
    world = default_world()
    state = after(world)
    world.crash(broker)
    kinds: list[str] = []
    for _ in range(12):
        state, view = step(state, world.tick())
        kinds.extend(event.kind for event in view.new_events)
    for kind in (
        EventKind.BROKER_SILENT,
        EventKind.WATERMARK_FROZEN,
        EventKind.BROKER_FENCED,
        EventKind.ISR_SHRANK,
    ):
        assert kinds.count(kind) == 1, kind
    assert np.isin(view.snapshot.partitions.isr[view.partitions.isr_count > 1], [broker]).sum() == 0


def event_at(at_ms: int) -> Event:
    return Event(at_ms, EventKind.LEADER_MOVED, Severity.CALM)


def test_events_are_kept_for_nine_minutes_and_no_more_than_so_many() -> None:
    now = 6_000_000
    old, young = event_at(now - 540_000), event_at(now - 540_000 + 1)
    assert kept((old, young), (event_at(now),), now) == (young, event_at(now))
    many = tuple(event_at(now + at) for at in range(MAX_EVENTS + 50))
    assert kept(many, (), now + 1000) == many[-MAX_EVENTS:]
