"""The records that a share group has in flight: acquired, acknowledged, released, locked and lost."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kview.simulate.coordination.share_states import StateBatch
from kview.simulate.sharing.in_flight import (
    TERMINAL,
    Acknowledgement,
    AcknowledgeType,
    Acquired,
    InFlight,
    Limits,
    RecordState,
    ShareRefused,
    Wanted,
)
from kview.simulate.sharing.records import ShareState, ShareUpdate, overlaid, updated

ACCEPT, RELEASE, REJECT = AcknowledgeType.ACCEPT, AcknowledgeType.RELEASE, AcknowledgeType.REJECT
LIMITS = Limits(deliveries=5, records=2_000, lock_us=30_000)
LOG = [(0, 9), (10, 19), (20, 29), (30, 39)]
"""The batches of the log."""


def read(flight: InFlight, log: Sequence[tuple[int, int]] = LOG) -> list[tuple[int, int]]:
    """Return the batches of the log from the next offset on."""
    return [bounds for bounds in log if bounds[1] >= flight.next_offset()]


def acquire(
    flight: InFlight,
    member: str = "a",
    records: int = 500,
    batch: int = 500,
    exact: bool = False,
    now_us: int = 0,
    limits: Limits = LIMITS,
) -> list[tuple[int, int, int]]:
    """Acquire at the next offset."""
    wanted = Wanted(records, batch, exact)
    found = flight.acquire(member, flight.next_offset(), read(flight), wanted, limits, now_us)
    return [tuple(one) for one in found]  # type: ignore[misc]


def settle(flight: InFlight, member: str, first: int, last: int, kind: int, limits: Limits = LIMITS) -> None:
    """Acknowledge, and let it be written."""
    flight.commit(flight.acknowledge(member, [Acknowledgement(first, last, [kind])], limits, 0))


def states(flight: InFlight) -> list[tuple[int, int, str, int]]:
    return [(first, last, state.state.name, state.deliveries) for first, last, state in flight.states()]


# --- acquiring


def test_whole_batches_of_the_log_are_acquired() -> None:
    flight = InFlight(0)
    assert acquire(flight, records=1) == [(0, 9, 1)], "a batch has more than was asked for"
    assert acquire(flight, "b", records=25, batch=10) == [(10, 19, 1), (20, 29, 1), (30, 39, 1)]
    assert (flight.start, flight.end, flight.count) == (0, 39, 40)
    assert acquire(flight) == [], "everything is locked"


def test_a_start_inside_a_batch() -> None:
    flight = InFlight(5)
    assert acquire(flight, records=3) == [(5, 9, 1)]
    assert (flight.start, flight.end) == (5, 9)


def test_no_more_records_than_may_be_locked() -> None:
    few = LIMITS._replace(records=15)
    flight = InFlight(0)
    assert acquire(flight, limits=few) == [(0, 19, 1)], "to the end of the batch with the last one"
    assert not flight.can_acquire(few)
    settle(flight, "a", 3, 3, RELEASE)
    assert flight.can_acquire(few) and acquire(flight, "b", limits=few) == [(3, 3, 2)]
    settle(flight, "a", 0, 2, ACCEPT)
    settle(flight, "b", 3, 3, ACCEPT)
    settle(flight, "a", 4, 9, ACCEPT)
    assert (flight.start, flight.count) == (10, 10) and flight.can_acquire(few)


def test_an_exact_number_of_records() -> None:
    flight = InFlight(0)
    assert acquire(flight, records=3, exact=True) == [(0, 2, 1)]
    assert acquire(flight, records=4, exact=True) == [(3, 6, 1)]
    assert acquire(flight, records=15, exact=True) == [(7, 9, 1), (10, 21, 1)]


# --- acknowledging


def test_the_start_moves_past_what_is_settled() -> None:
    flight = InFlight(0)
    acquire(flight, records=20)
    settle(flight, "a", 10, 19, ACCEPT)
    assert (flight.start, flight.complete) == (0, 10)
    settle(flight, "a", 0, 4, REJECT)
    assert (flight.start, flight.complete) == (5, 10)
    settle(flight, "a", 5, 9, ACCEPT)
    assert (flight.start, flight.end, flight.complete, flight.count) == (20, 20, 0, 0)
    assert acquire(flight) == [(20, 39, 1)]


def test_what_is_not_written_is_rolled_back() -> None:
    flight = InFlight(0)
    acquire(flight, records=10)
    changes = flight.acknowledge("a", [Acknowledgement(0, 9, [ACCEPT])], LIMITS, 0)
    assert flight.complete == 10 and not flight.settled(), "not before it is written"
    with pytest.raises(ShareRefused):
        flight.acknowledge("a", [Acknowledgement(0, 9, [ACCEPT])], LIMITS, 0)
    flight.roll_back(changes, 10, LIMITS.deliveries)
    assert (states(flight), flight.complete) == ([(0, 9, "ACQUIRED", 1)], 0)
    changes = flight.acknowledge("a", [Acknowledgement(0, 9, [ACCEPT])], LIMITS, 0)
    flight.roll_back(changes, LIMITS.lock_us, LIMITS.deliveries)
    assert states(flight) == [(0, 9, "AVAILABLE", 1)], "its lock has ended meanwhile"


def test_one_wrong_acknowledgement_undoes_the_others() -> None:
    flight = InFlight(0)
    acquire(flight, records=10)
    with pytest.raises(ShareRefused):
        flight.acknowledge(
            "a", [Acknowledgement(0, 4, [ACCEPT]), Acknowledgement(5, 99, [ACCEPT])], LIMITS, 0
        )
    assert {state for _, _, state, _ in states(flight)} == {"ACQUIRED"}
    settle(flight, "a", 0, 9, ACCEPT)


# --- deliveries


def test_a_record_that_fails_again_and_again_is_isolated() -> None:
    """At half of the limit, fewer records at once; at the last delivery, one alone; then it is archived."""
    flight = InFlight(0)
    seen = []
    for _ in range(6):
        (got,) = acquire(flight, records=10)
        seen.append(got)
        settle(flight, "a", got[0], got[1], RELEASE)
    assert seen == [(0, 9, 1), (0, 9, 2), (0, 9, 3), (0, 4, 4), (0, 0, 5), (1, 1, 5)]
    assert flight.start == 2


def test_released_at_the_limit_is_archived() -> None:
    flight = InFlight(0)
    two = LIMITS._replace(deliveries=2)
    for deliveries in (1, 2):
        assert acquire(flight, records=10, limits=two) == [(0, 9, deliveries)]
        settle(flight, "a", 0, 9, RELEASE, two)
    assert flight.start == 10


def test_locks_end() -> None:
    flight = InFlight(0)
    acquire(flight, "a", records=10, now_us=0)
    acquire(flight, "b", records=10, now_us=20_000)
    assert flight.next_lock_end_us() == 30_000
    assert flight.end_locks(29_999, 5) == []
    assert flight.end_locks(30_000, 5) == [StateBatch(0, 9, RecordState.AVAILABLE, 1)]
    assert acquire(flight, "c", records=10) == [(0, 9, 2)]
    with pytest.raises(ShareRefused):
        settle(flight, "a", 0, 9, ACCEPT)


def test_renewed_locks() -> None:
    flight = InFlight(0)
    acquire(flight, records=10)
    flight.acknowledge("a", [Acknowledgement(0, 9, [AcknowledgeType.RENEW])], LIMITS, 25_000)
    assert flight.next_lock_end_us() == 55_000


# --- the log, and a new leader


def test_a_log_that_begins_later() -> None:
    flight = InFlight(0)
    acquire(flight, records=10)
    acquire(flight, records=10)
    settle(flight, "a", 0, 9, RELEASE)
    settle(flight, "a", 12, 13, ACCEPT)
    flight.move_to_log_start(15)
    assert (flight.start, flight.complete) == (15, 0)
    assert acquire(flight, "b", records=10) == [(20, 29, 1)], "15 to 19 are locked"
    settle(flight, "a", 15, 19, ACCEPT)
    assert flight.start == 20


def test_records_that_compaction_removed_are_archived() -> None:
    flight = InFlight(0)
    acquire(flight, records=20)
    settle(flight, "a", 0, 19, RELEASE)
    found = flight.acquire("b", 0, [(30, 39)], Wanted(500, 500), LIMITS, 0)
    assert found == [Acquired(30, 39, 1)]
    assert flight.settled() and flight.start == 30


def test_a_new_leader_delivers_what_nothing_is_known_of() -> None:
    """0–9 were acquired and never settled, 10–19 were accepted, 20–29 were released once."""
    batches = [StateBatch(10, 19, RecordState.ACKNOWLEDGED, 1), StateBatch(20, 29, RecordState.AVAILABLE, 1)]
    flight = InFlight(0, batches)
    assert (flight.start, flight.end, flight.complete) == (0, 29, 10)
    assert acquire(flight, records=4) == [(0, 9, 1)]
    assert acquire(flight) == [(20, 29, 2), (30, 39, 1)]
    settle(flight, "a", 0, 9, ACCEPT)
    assert flight.start == 20


def test_a_new_leader_of_settled_records() -> None:
    flight = InFlight(
        3, [StateBatch(3, 9, RecordState.ARCHIVED, 1), StateBatch(10, 12, RecordState.ACKNOWLEDGED, 1)]
    )
    assert (flight.start, flight.next_offset(), flight.count) == (13, 13, 0)
    assert acquire(flight) == [(13, 39, 1)]


# --- any course of events


@dataclass
class Walk:
    """A partition with members that do anything. It checks that nothing is delivered to two members at once,
    that nothing accepted comes again, that no delivery is missing in a count, and that nothing is lost."""

    limit: int
    flight: InFlight = field(default_factory=lambda: InFlight(0))
    now_us: int = 0
    log_end: int = 0
    log: list[tuple[int, int]] = field(default_factory=list)
    holders: dict[int, tuple[str, int]] = field(default_factory=dict)
    """Offset → (member, end of its lock)."""
    deliveries: dict[int, int] = field(default_factory=dict)
    settled: set[int] = field(default_factory=set)
    state: ShareState = field(default_factory=lambda: ShareState(0, 0, 0, 0, 0, 0, 0))

    @property
    def limits(self) -> Limits:
        return LIMITS._replace(deliveries=self.limit, records=60)

    def append(self, count: int) -> None:
        self.log.append((self.log_end, self.log_end + count - 1))
        self.log_end += count

    def fetch(self, member: str, records: int, exact: bool) -> None:
        offset = self.flight.next_offset()
        bounds = [one for one in self.log if one[1] >= offset]
        if not self.flight.can_acquire(self.limits) or not bounds:
            return
        wanted = Wanted(records, 7, exact)
        got = self.flight.acquire(member, offset, bounds, wanted, self.limits, self.now_us)
        for one in got:
            for at in range(one.first, one.last + 1):
                assert at not in self.settled, f"{at} comes again"
                holder, ends_us = self.holders.get(at, ("", 0))
                assert not holder or ends_us <= self.now_us, f"{at} is locked for {holder}"
                self.deliveries[at] = self.deliveries.get(at, 0) + 1
                assert one.deliveries == self.deliveries[at] <= self.limit
                self.holders[at] = member, self.now_us + LIMITS.lock_us
        assert not exact or sum(one.last - one.first + 1 for one in got) <= max(records, 0)

    def acknowledge(self, member: str, at: int, length: int, kind: int, writes: bool) -> None:
        mine = sorted(
            o for o, (name, ends_us) in self.holders.items() if name == member and ends_us > self.now_us
        )
        if not mine:
            return
        first = mine[at % len(mine)]
        last = first
        while last + 1 in mine and last - first + 1 < length:
            last += 1
        named = [Acknowledgement(first, last, [kind])]
        changes = self.flight.acknowledge(member, named, self.limits, self.now_us)
        if not writes:
            self.flight.roll_back(changes, self.now_us, self.limit)
            return
        self._write([change.batch for change in changes])
        self.flight.commit(changes)
        for offset in range(first, last + 1):
            del self.holders[offset]
            if kind in (ACCEPT, REJECT) or self.deliveries[offset] >= self.limit:
                self.settled.add(offset)

    def _write(self, batches: Sequence[StateBatch]) -> None:
        start, complete = self.flight.start, self.flight.complete
        self.state = updated(self.state, ShareUpdate(0, 0, start, complete, overlaid((), batches, start)))

    def wait(self, us: int) -> None:
        self.now_us += us
        ended = self.flight.end_locks(self.now_us, self.limit)
        if ended:
            self._write(ended)
            self.flight.settled()
        for offset in [o for o, (_, ends_us) in self.holders.items() if ends_us <= self.now_us]:
            del self.holders[offset]
            if self.deliveries[offset] >= self.limit:
                self.settled.add(offset)

    def fail_over(self) -> None:
        """Let another leader read the state. What was acquired and not settled has not been counted."""
        self.flight = InFlight(self.state.start_offset, self.state.batches)
        self.holders.clear()
        counted = {at: b.deliveries for b in self.state.batches for at in range(b.first, b.last + 1)}
        self.deliveries = {at: counted.get(at, 0) for at in self.deliveries}

    def check(self) -> None:
        flight = self.flight
        known = {at: state for first, last, state in flight.states() for at in range(first, last + 1)}
        assert all(at < flight.start or known[at].state in TERMINAL for at in self.settled)
        unsettled = [at for at in range(flight.start) if at not in self.settled]
        assert not unsettled, f"{unsettled} are lost"
        complete = sum(1 for at, state in known.items() if at >= flight.start and state.state in TERMINAL)
        assert flight.complete == complete
        held = {at for at, state in known.items() if state.state is RecordState.ACQUIRED}
        assert held == set(self.holders)


ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 12)),
        st.tuples(st.just("fetch"), st.sampled_from("abc"), st.integers(1, 30), st.booleans()),
        st.tuples(
            st.just("acknowledge"),
            st.sampled_from("abc"),
            st.integers(0, 40),
            st.integers(1, 15),
            st.sampled_from([int(ACCEPT), int(RELEASE), int(REJECT)]),
            st.booleans(),
        ),
        st.tuples(st.just("wait"), st.sampled_from([1_000, 10_000, 31_000])),
        st.tuples(st.just("fail_over")),
    ),
    max_size=60,
)


@settings(max_examples=300, deadline=None)
@given(limit=st.integers(2, 6), acts=ACTS)
def test_no_record_is_lost_or_delivered_twice_at_once(limit: int, acts: Sequence[tuple[object, ...]]) -> None:
    walk = Walk(limit)
    for name, *arguments in acts:
        getattr(walk, str(name))(*arguments)
        walk.check()
    _drain(walk)
    assert walk.settled == set(range(walk.log_end))


def _drain(walk: Walk) -> None:
    """Let one member accept everything that is left."""
    walk.wait(31_000)
    for _ in _at_most(10 * walk.log_end + 10):
        if walk.flight.start >= walk.log_end:
            return
        walk.fetch("z", 30, False)
        while any(member == "z" for member, _ in walk.holders.values()):
            walk.acknowledge("z", 0, 1_000, int(ACCEPT), True)
        walk.check()


def _at_most(times: int) -> Iterator[int]:
    yield from range(times)
    raise AssertionError("records are never delivered")
