"""Events in words: every kind, from folds of worlds in which it happens."""

import dataclasses
from collections.abc import Callable, Iterator
from functools import cache

import pytest
from msgspec.structs import replace

from kview.derive.fold import State, step
from kview.language.events import sentence
from kview.language.nouns import MOST_BROKERS
from kview.model.events import Event, EventKind, Severity
from kview.model.failures import FailureKind
from kview.model.states import GroupState
from kview.model.units import CONNECTOR_TASK, UNKNOWN
from tests.language.said import well_said
from tests.worlds import World, crash_script, default_world, views
from tests.worlds.histories import HAPPENINGS

AT = 1_760_000_000_000


def events_of(world: World, *happenings: str) -> Iterator[Event]:
    """The events of a world to which these happen, one a second."""
    state = State()
    for what in ("nothing", "nothing", "nothing", *happenings, "nothing", "nothing"):
        HAPPENINGS[what](world)
        state, view = step(state, world.tick())
        yield from view.new_events


def rebalances() -> Iterator[Event]:
    """A rebalance from its begin to its end; then a group that is empty, and another controller."""
    world = default_world()
    group = world.group("billing")
    state, _ = step(State(), world.tick())
    for now in (GroupState.PREPARING_REBALANCE, GroupState.STABLE, GroupState.EMPTY):
        group.state = now
        state, view = step(state, world.tick())
        yield from view.new_events
    world.controller, world.controller_epoch = 102, 4
    _, view = step(state, world.tick())
    yield from view.new_events


def group_changes() -> Iterator[Event]:
    """A group that appears, moves to another coordinator, is set back, loses records and is deleted."""
    world = default_world()
    names = {group.name: group for group in world.groups}
    fraud = names.pop("fraud-check")
    world.groups = list(names.values())
    stopped, state = names["audit-export"], State()

    def lose() -> None:
        world.log("audit-log", 1).start = stopped.committed["audit-log", 1] + 9_069

    def set_back() -> None:
        stopped.committed["audit-log", 0] -= 1_500

    def move() -> None:
        fraud.coordinator = 2

    def nothing() -> None:
        pass

    changes: list[Callable[[], None]] = [nothing] * 3
    changes += [lambda: world.groups.append(fraud), move, set_back, lose, lambda: world.groups.remove(fraud)]
    for change in changes:
        change()
        state, view = step(state, world.tick())
        yield from view.new_events


@cache
def folded() -> tuple[Event, ...]:
    """Real events: a crash with its end, topics that come, grow and go, groups, truncation, a controller."""
    crash = [e for v in views(crash_script(4, healthy_s=20, silent_s=20, after_s=4)) for e in v.new_events]
    grown = default_world()
    state, _ = step(State(), grown.tick())
    log = grown.log("payment", 5)
    grown.logs.append(dataclasses.replace(log, partition=6, ends=dict(log.ends), seen={}))
    grown.logs.sort(key=lambda log: log.key)
    _, view = step(state, grown.tick())
    return (
        *crash,
        *view.new_events,
        *events_of(default_world(), "come or go", "come or go", "rebalance", "truncate"),
        *rebalances(),
        *group_changes(),
    )


UNCLEAN = Event(
    AT,
    EventKind.UNCLEAN_ELECTION,
    Severity.RISK,
    brokers=(2,),
    records=50,
    partition_count=3,
    partitions=(("a", 0), ("a", 1), ("b", 0)),
)
HOLDS = Event(
    AT,
    EventKind.TRANSACTION_HOLDS,
    Severity.WARN,
    partition_count=200,
    partitions=tuple(("invoice", partition) for partition in range(200)),
    since_ms=AT - 130_000,
)
NAMING = (
    EventKind.UNCLEAN_ELECTION,
    EventKind.RECORDS_LOST,
    EventKind.LOG_CUT,
    EventKind.GROUP_RESET,
    EventKind.GROUP_RECORDS_LOST,
    EventKind.TRANSACTION_HOLDS,
    EventKind.TRANSACTION_HANGS,
    EventKind.TRANSACTION_ENDED,
)
MADE = (
    Event(AT, EventKind.BROKER_GONE, Severity.WARN, brokers=(7,)),
    Event(AT, EventKind.BROKER_SILENT, Severity.RISK, brokers=(7,), cause=FailureKind.REFUSED),
    Event(AT, EventKind.LEADER_LOST, Severity.RISK, partition_count=3, internal_count=2),
    Event(AT, EventKind.LEADER_RETURNED, Severity.GOOD, brokers=(1, 2), partition_count=1_200),
    Event(AT, EventKind.LEADER_MOVED, Severity.GOOD, brokers=tuple(range(9)), partition_count=40),
    Event(AT, EventKind.REBALANCED, Severity.WARN, group="billing", members=1),
    Event(AT, EventKind.CONTROLLER_MOVED, Severity.WARN, controllers=(102,), after=102),
    Event(AT, EventKind.TOPIC_CREATED, Severity.CALM, topic="one", after=1),
    Event(AT, EventKind.TOPIC_SEEN, Severity.CALM, topic="one", after=1),
    Event(AT, EventKind.TOPIC_UNSEEN, Severity.WARN, topic="one"),
    UNCLEAN,
    Event(AT, EventKind.APIS_DIFFER, Severity.CALM, brokers=(4, 5)),
    Event(AT, EventKind.APIS_ALIKE, Severity.CALM),
    Event(AT, EventKind.BROKER_SLOW, Severity.WARN, brokers=(5,), after=1_212),
    Event(AT, EventKind.BROKER_NOT_SLOW, Severity.GOOD, brokers=(5,), after=2),
    Event(AT, EventKind.QUORUM_LOST, Severity.RISK, controllers=(101,)),
    Event(AT, EventKind.QUORUM_LOST, Severity.RISK),
    Event(AT, EventKind.QUORUM_BACK, Severity.GOOD),
    *(
        Event(AT, EventKind.BROKER_FOUND_DOWN, Severity.RISK, brokers=(3,), cause=cause, after=state)
        for state, cause in (
            ("silent", FailureKind.REFUSED),
            ("silent", FailureKind.SILENT),
            ("silent", FailureKind.OTHER),
            ("fenced", FailureKind.NONE),
            ("gone", FailureKind.NONE),
        )
    ),
    Event(AT, EventKind.BROKER_FOUND_DOWN, Severity.WARN, brokers=(3, 4), after="gone"),
    Event(AT, EventKind.LEADERLESS_FOUND, Severity.RISK, partition_count=3, internal_count=8),
    Event(AT, EventKind.CONTROLLER_LOST, Severity.WARN, controllers=(103,)),
    Event(AT, EventKind.CONTROLLER_FOUND_DOWN, Severity.WARN, controllers=(102, 103)),
    Event(AT, EventKind.CONTROLLER_BACK, Severity.GOOD, controllers=(103,)),
    Event(AT, EventKind.INPUT_FELL, Severity.CALM, topic="orders", topics=1, before=290, after=4),
    Event(AT, EventKind.INPUT_FELL, Severity.CALM, topic="orders", topics=1_204, before=12_290, after=0),
    Event(AT, EventKind.INPUT_ROSE, Severity.GOOD, topic="orders", topics=2, before=290, after=288),
    Event(AT, EventKind.CONNECT_TASK_FAILED, Severity.RISK, connector="crm", task=CONNECTOR_TASK, tasks=1),
    Event(AT, EventKind.CONNECT_TASK_FAILED, Severity.RISK, connector="billing", task=0, tasks=1_204),
    Event(AT, EventKind.CONNECT_TASK_RUNS, Severity.GOOD, connector="billing", task=0, tasks=1),
    *(
        replace(HOLDS, kind=kind, transactional_id=whose, producer_id=id, since_is_bound=is_bound)
        for kind, whose, id, is_bound in (
            (EventKind.TRANSACTION_HOLDS, "payments-app", 4_711, False),
            (EventKind.TRANSACTION_HOLDS, "", UNKNOWN, True),
            (EventKind.TRANSACTION_HANGS, "", 4_711, True),
            (EventKind.TRANSACTION_ENDED, "payments-app", 4_711, False),
            (EventKind.TRANSACTION_ENDED, "", 4_711, True),
        )
    ),
)
"""What a world does not do, and numbers that it does not have."""


def numbers(event: Event) -> list[str]:
    """What must stand in the event's sentence."""
    found = [event.group, event.topic, event.connector]
    found += [f"+{event.tasks - 1:,} more"] if event.tasks > 1 else []
    found += (
        [str(id) for id in event.brokers] if len(event.brokers) <= MOST_BROKERS else [str(len(event.brokers))]
    )
    found += [str(id) for id in event.controllers]
    if event.kind not in NAMING:  # they name their partitions
        found += [f"{n:,}" for n in [event.partition_count or event.internal_count] if n]
    if event.kind is EventKind.GROUP_RESET:
        found += [f"{abs(event.records):,}"]
    else:
        found += [f"≥ {event.records:,}"] if event.records else []
    if event.since_ms != UNKNOWN:
        found += [event.transactional_id or str(event.producer_id if event.producer_id > 0 else "unknown")]
        found += ["≥ 2 m 10 s" if event.since_is_bound else "2 m 10 s", "invoice-0, invoice-1 + 198 more"]
    of_broker = isinstance(event.after, int) and not event.controllers and not event.group
    found += [f"{event.after:,}"] if of_broker and event.after else []
    found += [str(event.after)] if event.controllers and event.after else []
    found += [f"{event.topics - 1:,} more topic"] if event.topics > 1 else []
    of_members = event.kind in (EventKind.REBALANCE_ENDED, EventKind.REBALANCED)
    return found + ([f"{event.members} member"] if of_members and event.members != UNKNOWN else [])


@pytest.mark.parametrize("kind", EventKind)
def test_every_kind_is_said_with_its_numbers(kind: EventKind) -> None:
    events = [event for event in (*folded(), *MADE) if event.kind is kind]
    assert events
    for event in events:
        well_said(sentence(event), numbers(event))


def test_folds_make_all_kinds_but_a_broker_that_leaves() -> None:
    missing = set(EventKind) - {event.kind for event in folded()}
    assert missing == {
        EventKind.BROKER_GONE,
        EventKind.BROKER_FOUND_DOWN,
        EventKind.LEADERLESS_FOUND,
        EventKind.CONTROLLER_LOST,
        EventKind.CONTROLLER_FOUND_DOWN,
        EventKind.CONTROLLER_BACK,
        EventKind.BROKER_SLOW,
        EventKind.BROKER_NOT_SLOW,
        EventKind.UNCLEAN_ELECTION,
        EventKind.APIS_DIFFER,
        EventKind.APIS_ALIKE,
        EventKind.TOPIC_SEEN,
        EventKind.TOPIC_UNSEEN,
        EventKind.INPUT_FELL,
        EventKind.INPUT_ROSE,
        EventKind.CONNECT_TASK_FAILED,
        EventKind.CONNECT_TASK_RUNS,
        EventKind.TRANSACTION_HOLDS,
        EventKind.TRANSACTION_HANGS,
        EventKind.TRANSACTION_ENDED,
        EventKind.QUORUM_LOST,
        EventKind.QUORUM_BACK,
    }


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (MADE[1], "broker 7 stopped answering: connection refused"),
        (replace(MADE[1], cause=FailureKind.OTHER), "broker 7 stopped answering"),
        (
            replace(MADE[1], cause=FailureKind.SILENT),
            "broker 7 stopped answering, but still accepts connections",
        ),
        (
            replace(MADE[1], brokers=(7, 8), cause=FailureKind.SILENT),
            "brokers 7 and 8 stopped answering, but still accept connections",
        ),
        (
            replace(MADE[1], cause=FailureKind.CLOSED),
            "broker 7 stopped answering: it closes connections without answering",
        ),
        (UNCLEAN, "unclean election of broker 2: a-0, a-1 + 1 more lost ≥ 50 records"),
        (
            replace(UNCLEAN, records=0),
            "unclean election of broker 2: a-0, a-1 + 1 more lost what the new leader did not have",
        ),
        (MADE[2], "3 partitions now have no leader"),
        (replace(MADE[2], partition_count=1, internal_count=0), "1 partition now has no leader"),
        (MADE[3], "1,200 partitions have a leader again: brokers 1 and 2"),
        (replace(MADE[3], brokers=(4,), partition_count=1), "1 partition has a leader again: broker 4"),
        (MADE[4], "40 partitions moved to 9 brokers"),
        (MADE[5], "group billing rebalanced: 1 member"),
        (
            Event(AT, EventKind.GROUP_RESET, Severity.WARN, group="a", records=2_000, partition_count=2),
            "offsets of group a were reset: 2 partitions, together 2,000 forward",
        ),
        (MADE[6], "controller 102 became active"),
        (replace(MADE[6], before=101, epoch=4), "controller 102 took over from 101 (epoch 4)"),
        (MADE[7], "topic one was created with 1 partition"),
        (
            Event(
                AT,
                EventKind.RECORDS_LOST,
                Severity.RISK,
                records=1,
                partition_count=300,
                partitions=(("a", 0), ("a", 1), ("b", 0)),
            ),
            "≥ 1 record lost from the old leader's log: a-0, a-1 + 298 more",
        ),
    ],
)
def test_sentences(event: Event, said: str) -> None:
    assert sentence(event) == said


def test_a_crash_from_its_begin_to_its_end() -> None:
    assert [sentence(event) for event in folded()[:12]] == [
        "broker 4 stopped answering: connection refused",
        "watermark froze on 10 partitions",
        "broker 4 was fenced",
        "3 partitions moved to broker 2",
        "1 partition now has no leader",
        "broker 4 left the ISR of 9 partitions",
        "≥ 12 records lost from the old leader's log: invoice-3, invoice-9 + 1 more",
        "watermark advanced again on 9 partitions",
        "broker 4 came back",
        "1 partition has a leader again: broker 4",
        "broker 4 joined the ISR of 9 partitions",
        "topic payment grew from 6 to 7 partitions",
    ]
