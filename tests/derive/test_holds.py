"""Events of transactions that hold back last stable offsets, and of their ends."""

from collections.abc import Callable, Sequence

import numpy as np
from msgspec.structs import replace

from kview.derive.events import MAX_NAMED
from kview.derive.fold import State, fold_to, step
from kview.language.events import sentence
from kview.model.events import Event, EventKind, Severity
from kview.model.snapshot import Snapshot, Transactions
from kview.model.states import GroupType, TransactionState
from kview.model.units import UNKNOWN
from tests.worlds.small import TOPIC, ends, reader, small_world
from tests.worlds.transactions import APP, PRODUCER, TIMEOUT_MS, holding

HOLDS, HANGS, ENDED = EventKind.TRANSACTION_HOLDS, EventKind.TRANSACTION_HANGS, EventKind.TRANSACTION_ENDED
HALF_S = TIMEOUT_MS // 2000
STABLE = ends()[0]
REFUSED = 29

Change = Callable[[Snapshot, int], Snapshot]
"""Makes a snapshot of the one of a healthy second."""


def free(snapshot: Snapshot, second: int) -> Snapshot:
    """All last stable offsets were read, and nothing holds one."""
    table = snapshot.partitions
    read = np.full(len(table), snapshot.observation.ended_ms)
    return replace(
        snapshot, partitions=replace(table, last_stable=table.high_watermark.copy(), last_stable_ms=read)
    )


def held(
    open_s: int, partitions: Sequence[int] = (0,), state: str = TransactionState.ONGOING, error: int = 0
) -> Change:
    """These partitions have been held by one transaction that began `open_s` before the first second."""

    def change(snapshot: Snapshot, second: int) -> Snapshot:
        since_ms = snapshot.observation.ended_ms - 1000 * (second + open_s)
        now, tables = free(snapshot, second), []
        for partition in partitions:
            now = holding(now, TOPIC, partition, ends()[partition], since_ms, state, error)
            tables.append(now.transactions)
        columns = Transactions.__struct_fields__
        both = {name: np.concatenate([getattr(one, name) for one in tables]) for name in columns}
        return replace(now, transactions=Transactions(**both))

    return change


def recorded(changes: Sequence[Change], members: int = 1) -> list[Snapshot]:
    """A snapshot each second, of a group that has read all that it can of a held partition."""
    group = reader("billing", *ends(), members=members, share=1.0)
    group.type, group.commit_every_ms = GroupType.CLASSIC, 2_000
    world, snapshots = small_world(group), []
    for second, change in enumerate(changes):
        snapshot = change(world.tick(), second)
        offsets = snapshot.offsets
        waits = np.isin(offsets.partition, snapshot.transactions.partition)
        committed = np.where(waits, np.array(ends())[offsets.partition], offsets.committed)
        snapshots.append(replace(snapshot, offsets=replace(offsets, committed=committed)))
    return snapshots


def told(snapshots: Sequence[Snapshot]) -> list[tuple[int, Event]]:
    """The events of transactions, each with its second."""
    state, events = State(), []
    for second, snapshot in enumerate(snapshots):
        state, view = step(state, snapshot)
        events += [(second, event) for event in view.new_events if event.kind in (HOLDS, HANGS, ENDED)]
    return events


def kinds(events: Sequence[tuple[int, Event]]) -> list[tuple[int, EventKind]]:
    return [(second, event.kind) for second, event in events]


def test_a_transaction_for_which_a_group_waits_is_told_once_and_so_is_its_end() -> None:
    events = told(recorded([held(0)] * 130 + [free] * 5))
    (found_s, began), (ended_s, ended) = events
    assert (began.kind, began.severity, ended.kind, ended.severity) == (
        HOLDS,
        Severity.WARN,
        ENDED,
        Severity.GOOD,
    )
    assert 60 <= found_s <= 62 and ended_s == 130
    for event in (began, ended):
        assert (event.transactional_id, event.producer_id) == (APP, PRODUCER)
        assert (event.partitions, event.partition_count) == (((TOPIC, 0),), 1)
    open_for = {60: "1 m", 61: "1 m 1 s", 62: "1 m 2 s"}[found_s]
    assert sentence(began) == f"transaction of {APP}, open for {open_for}, holds back {TOPIC}-0"
    assert sentence(ended) == f"transaction of {APP} ended after 2 m 10 s: {TOPIC}-0 moves on"


def test_transactions_that_end_in_time_are_no_events() -> None:
    assert not told(recorded(([held(0)] * 20 + [free] * 3) * 4))


def test_one_past_half_of_its_timeout_is_told_when_it_is_first_seen_and_not_again() -> None:
    ((second, began),) = told(recorded([held(HALF_S + 10)] * 90))
    assert (second, began.kind) == (0, HOLDS)
    assert sentence(began) == f"transaction of {APP}, open for 7 m 40 s, holds back {TOPIC}-0"


def test_one_that_hangs_is_a_risk_and_ends_by_an_abort() -> None:
    snapshots = recorded([held(0, state=TransactionState.HANGING)] * 75 + [free] * 2, members=0)
    (found_s, began), (ended_s, ended) = told(snapshots)
    assert (found_s, began.kind, began.severity) == (60, HANGS, Severity.RISK)
    assert sentence(began) == (
        f"hanging transaction of producer {PRODUCER}, open for ≥ 1 m, holds back {TOPIC}-0:"
        " no coordinator knows it"
    )
    assert (ended_s, ended.kind) == (75, ENDED)
    assert sentence(ended).startswith(f"transaction of producer {PRODUCER} ended after ≥ 1 m 15 s: ")


def test_one_that_is_found_hanging_later_is_told_as_that() -> None:
    hanging = held(0, state=TransactionState.HANGING)
    assert [kind for _, kind in kinds(told(recorded([held(0)] * 80 + [hanging] * 80)))] == [HOLDS, HANGS]


def test_it_has_not_ended_because_its_timeout_is_not_known_or_nobody_waits() -> None:
    """There is no finding in between, but the last stable offset stays where it was."""
    long, refused = held(HALF_S + 10), held(0, error=REFUSED)
    events = told(recorded([long] * 5 + [refused] * 20 + [long] * 5 + [free] * 2, members=0))
    assert kinds(events) == [(0, HOLDS), (30, ENDED)]


def test_whose_it_is_is_learned_later_and_told_at_the_end() -> None:
    events = told(recorded([held(0, error=REFUSED)] * 70 + [held(0)] * 10 + [free] * 2))
    (_, began), (_, ended) = events
    assert (began.kind, began.producer_id, began.transactional_id) == (HOLDS, UNKNOWN, "")
    assert "an unknown producer" in sentence(began)
    assert (ended.kind, ended.transactional_id) == (ENDED, APP)


def test_partitions_that_are_released_one_after_the_other_end_together() -> None:
    both, one = held(HALF_S + 10, (0, 1)), held(HALF_S + 10, (1,))
    events = told(recorded([both] * 5 + [one] * 3 + [free] * 2))
    assert kinds(events) == [(0, HOLDS), (8, ENDED)]
    assert all(event.partitions == ((TOPIC, 0), (TOPIC, 1)) for _, event in events)
    assert sentence(events[1][1]).endswith(f": {TOPIC}-0, {TOPIC}-1 move on")


def cut(snapshot: Snapshot, second: int) -> Snapshot:
    """The new leader's log ends before the transaction."""
    now = free(snapshot, second)
    last_stable = now.partitions.last_stable.copy()
    last_stable[0] = STABLE - 1
    return replace(now, partitions=replace(now.partitions, last_stable=last_stable))


def again(snapshot: Snapshot, second: int) -> Snapshot:
    """The topic was deleted, and created again with records."""
    now = free(snapshot, second)
    ids = np.full(len(now.partitions), "created again", object)
    return replace(now, partitions=replace(now.partitions, topic_id=ids))


def not_read(snapshot: Snapshot, second: int) -> Snapshot:
    """Nothing is known of last stable offsets."""
    now = free(snapshot, second)
    return replace(
        now, partitions=replace(now.partitions, last_stable_ms=np.full(len(now.partitions), UNKNOWN))
    )


def test_no_end_is_made_up() -> None:
    for change in (cut, again, not_read):
        assert kinds(told(recorded([held(HALF_S + 10)] * 5 + [change] * 3))) == [(0, HOLDS)], change


def test_a_replay_tells_the_same() -> None:
    snapshots = recorded([free] * 5 + [held(0)] * 130 + [free] * 5)
    jumped = fold_to(snapshots[-1], snapshots, lambda: False)
    assert jumped is not None
    _, view = jumped
    mine = [event for event in view.events if event.kind in (HOLDS, HANGS, ENDED)]
    assert mine == [event for _, event in told(snapshots)] and len(mine) == 2
    assert all(len(event.partitions) <= MAX_NAMED for event in mine)
