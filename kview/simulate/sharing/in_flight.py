"""The records of one partition that a share group has in flight, and what may happen to them.

Source: Kafka's SharePartition, InFlightBatch and InFlightState. Records are tracked in the batches in which
they were acquired, or one by one once a batch's records differ. What is acknowledged or released is in force
when it has been written: until then it can be rolled back, and nobody acquires it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from kview.simulate.codes import ErrorCode
from kview.simulate.coordination.share_states import StateBatch

NOBODY = ""
THROTTLE_LIMIT_MIN = 2

Bounds = tuple[int, int]
"""(first, last) offset of a batch of the log, both inclusive."""


class RecordState(IntEnum):
    """The state of a record in flight, with its number in the persisted state."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4


class AcknowledgeType(IntEnum):
    """What a member says about records. A gap is an offset without a record."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


_STATE_AFTER = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}
_KINDS = frozenset(AcknowledgeType)
TERMINAL = (RecordState.ACKNOWLEDGED, RecordState.ARCHIVED)


class ShareRefused(Exception):
    """Raised when an acknowledgement is refused. `message` is for the client, in Kafka's words."""

    def __init__(self, error_code: ErrorCode, message: str | None) -> None:
        super().__init__(message)
        self.error_code = error_code
        self.message = message


class Acknowledgement(NamedTuple):
    """What a member says about the records from `first` to `last`: one type for all, or one for each."""

    first: int
    last: int
    types: Sequence[int]


class Acquired(NamedTuple):
    """Records that a member has acquired."""

    first: int
    last: int
    deliveries: int


class Limits(NamedTuple):
    """What counts for a group at the moment. With `renews`, members may renew their locks."""

    deliveries: int
    records: int
    lock_us: int
    renews: bool = True


class Wanted(NamedTuple):
    """What a member wants. With `exact`, no more than `records` are acquired even if a batch has more."""

    records: int
    batch_records: int
    exact: bool = False


class State:
    """The state of a batch, or of one record. `before` is what it returns to if a change is not written."""

    __slots__ = ("before", "deliveries", "ends", "lock_ends_us", "member", "state")

    def __init__(
        self, state: RecordState, deliveries: int, member: str = NOBODY, lock_ends_us: int = -1
    ) -> None:
        self.state = state
        self.deliveries = deliveries
        self.member = member
        self.lock_ends_us = lock_ends_us
        self.before: tuple[RecordState, str, int] | None = None
        self.ends = False
        """Whether the records are gone, so that a change cannot be rolled back any more."""

    def copy(self) -> "State":
        return State(self.state, self.deliveries, self.member, self.lock_ends_us)

    @property
    def free(self) -> bool:
        """Whether the records can be acquired."""
        return self.state is RecordState.AVAILABLE and self.before is None

    @property
    def over(self) -> bool:
        """Whether nothing can happen to the records any more."""
        return self.state in TERMINAL and self.before is None

    def acquire(self, member: str, lock_ends_us: int) -> None:
        self.state, self.member, self.lock_ends_us = RecordState.ACQUIRED, member, lock_ends_us
        self.deliveries += 1

    def change(self, state: RecordState, limit: int) -> None:
        """Give records that are acquired another state. Released ones are archived if they have been
        delivered as often as they may be."""
        if state is RecordState.AVAILABLE and self.deliveries >= limit:
            state = RecordState.ARCHIVED
        self.state, self.member, self.lock_ends_us = state, NOBODY, -1

    def archive(self) -> None:
        self.state, self.member, self.lock_ends_us, self.ends = RecordState.ARCHIVED, NOBODY, -1, True


class Change(NamedTuple):
    """A change that is to be written: the state in memory, and the batch for the share coordinator."""

    state: State
    batch: StateBatch


class _Batch:
    """Consecutive records: with one state, or with one for `each` offset."""

    __slots__ = ("each", "first", "last", "whole")

    def __init__(self, first: int, last: int, state: State) -> None:
        self.first = first
        self.last = last
        self.whole = state
        self.each: dict[int, State] | None = None

    def split(self) -> dict[int, State]:
        """Track the records one by one."""
        if self.each is None:
            self.each = {offset: self.whole.copy() for offset in range(self.first, self.last + 1)}
        return self.each

    def parts(self) -> Iterator[tuple[int, int, State]]:
        """Yield (first, last, state) of what has a state of its own."""
        if self.each is None:
            yield self.first, self.last, self.whole
        else:
            for offset, state in self.each.items():
                yield offset, offset, state


class InFlight:
    """The records in flight, from `start` (the share-partition start offset) to `end`.

    `end` is the last offset in flight, or the next offset to read if nothing is in flight.
    """

    def __init__(self, start: int, batches: Iterable[StateBatch] = ()) -> None:
        self.start = start
        self.complete = 0
        """How many records from `start` on are acknowledged or archived."""
        self._batches: list[_Batch] = []
        self._looks_for_free = False
        at = start
        for batch in batches:
            if batch.first > at:
                # Acquired by somebody once, but nothing was written of it: as if it had never been delivered.
                self._add(_Batch(at, batch.first - 1, State(RecordState.AVAILABLE, 0)))
            self._add(_Batch(batch.first, batch.last, State(RecordState(batch.state), batch.deliveries)))
            if batch.state in TERMINAL:
                self.complete += batch.last - batch.first + 1
            at = batch.last + 1
        self.end = at - 1 if self._batches else start
        self._looks_for_free = bool(self._batches)
        self._move_start()

    def _add(self, batch: _Batch) -> None:
        at = bisect_left(self._batches, batch.first, key=lambda known: known.first)
        self._batches.insert(at, batch)

    def _floor(self, offset: int) -> int:
        """Return the index of the last batch that begins at or before an offset, or −1."""
        return bisect_right(self._batches, offset, key=lambda known: known.first) - 1

    @property
    def count(self) -> int:
        """How many offsets are in flight."""
        return self.end - self.start + 1 if self._batches else 0

    def states(self) -> Iterator[tuple[int, int, State]]:
        """Yield (first, last, state) of everything in flight."""
        for batch in self._batches:
            yield from batch.parts()

    # --- acquiring

    def next_offset(self) -> int:
        """Return the offset at which to read next."""
        if not self._batches or self.start > self._batches[-1].last:
            self._looks_for_free = False
            return self.end
        if self._looks_for_free:
            for first, _, state in self.states():
                if state.free:
                    return first
            self._looks_for_free = False
        return self.end + 1

    def can_acquire(self, limits: Limits) -> bool:
        """Return whether a member can acquire records, if there are any to read."""
        return self.next_offset() != self.end + 1 or self.count < limits.records

    def acquire(
        self,
        member: str,
        offset: int,
        bounds: Sequence[Bounds],
        wanted: Wanted,
        limits: Limits,
        now_us: int,
    ) -> list[Acquired]:
        """Acquire records of these batches of the log, which were read at `offset`, for a member."""
        if not bounds or wanted.records <= 0 or bounds[-1][1] < self.start:
            return []
        last = bounds[-1][1]
        room = limits.records - self.count
        left = min(wanted.records, room)
        if room <= 0 and offset <= self.end:
            left, last = min(wanted.records, self.end - offset + 1), min(last, self.end)
        if left <= 0:
            return []
        lock_ends_us = now_us + limits.lock_us
        base = bounds[0][0]
        self._archive_gone(offset, base)
        at = self._floor(base)
        if at < 0:
            base = max(base, self.start)
        elif self._batches[at].last >= base:
            base = self._batches[at].first
        low = bisect_left(self._batches, min(bounds[0][0], base), key=lambda known: known.first)
        high = bisect_right(self._batches, last, key=lambda known: known.first)
        overlapping = self._batches[low:high]
        if not overlapping:
            return self._acquire_new(member, bounds, base, last, wanted, left, lock_ends_us)
        acquired: list[Acquired] = []
        taken = 0
        for batch in overlapping:
            if taken >= left:
                break
            throttled = self._is_throttled(batch, bounds[0][0], last, limits)
            if throttled and taken:
                return acquired
            if batch.each is None and not batch.whole.free:
                continue
            if batch.each is None and batch.whole.deliveries == 0:
                more = self._acquire_fresh(batch, member, bounds, last, wanted, left - taken, lock_ends_us)
                acquired += more
                taken += sum(one.last - one.first + 1 for one in more)
                continue
            fits = batch.first >= bounds[0][0] and batch.last <= last
            too_many = wanted.exact and batch.last - batch.first + 1 > left - taken
            if fits and batch.each is None and not too_many and not throttled:
                batch.whole.acquire(member, lock_ends_us)
                acquired.append(Acquired(batch.first, batch.last, batch.whole.deliveries))
                taken += batch.last - batch.first + 1
                continue
            most = left - taken if wanted.exact else None
            offsets = self._acquire_each(batch, member, (bounds[0][0], last), most, limits, lock_ends_us)
            taken += len(offsets)
            acquired += _joined(offsets)
            if throttled and offsets:
                return acquired
        end = overlapping[-1].last
        if taken < left and end < last:
            acquired += self._acquire_new(member, bounds, end + 1, last, wanted, left - taken, lock_ends_us)
        return acquired

    def _acquire_new(
        self,
        member: str,
        bounds: Sequence[Bounds],
        first: int,
        last: int,
        wanted: Wanted,
        most: int,
        lock_ends_us: int,
    ) -> list[Acquired]:
        """Acquire records that are not in flight yet."""
        if not self._batches and self.end > first:
            first = self.end
        if first > last:
            return []
        if most < last - first + 1:
            last = _end_of_batch(bounds, first + most - 1, last)
        was_empty = not self._batches
        acquired = self._take(member, bounds, first, last, wanted, most, lock_ends_us)
        if was_empty:
            self.start = first
            self.end = last
        self.end = max(self.end, last)
        return acquired

    def _acquire_fresh(
        self,
        batch: _Batch,
        member: str,
        bounds: Sequence[Bounds],
        last: int,
        wanted: Wanted,
        most: int,
        lock_ends_us: int,
    ) -> list[Acquired]:
        """Acquire records of a batch that was in flight for an earlier leader, of which nothing is known."""
        first, ends = max(batch.first, bounds[0][0]), min(batch.last, last)
        if most < ends - first + 1:
            ends = min(ends, _end_of_batch(bounds, first + most - 1, ends))
        self._batches.remove(batch)
        for begin, end in ((batch.first, first - 1), (ends + 1, batch.last)):
            if begin <= end:
                self._add(_Batch(begin, end, State(RecordState.AVAILABLE, 0)))
        return self._take(member, bounds, first, ends, wanted, most, lock_ends_us)

    def _take(
        self,
        member: str,
        bounds: Sequence[Bounds],
        first: int,
        last: int,
        wanted: Wanted,
        most: int,
        lock_ends_us: int,
    ) -> list[Acquired]:
        """Put the records from `first` to `last` in flight for a member, in batches."""
        if wanted.exact:
            batch = _Batch(first, last, State(RecordState.ACQUIRED, 1, member, lock_ends_us))
            self._add(batch)
            if last - first + 1 > most:
                for offset, state in batch.split().items():
                    if offset >= first + most:
                        state.state, state.member, state.lock_ends_us = RecordState.AVAILABLE, NOBODY, -1
                        state.deliveries = 0
                self._looks_for_free = True
            return [Acquired(first, min(last, first + most - 1), 1)]
        begins = [first]
        if last - first + 1 > wanted.batch_records:
            for base, _ in bounds:
                if base > last:
                    break
                if base - begins[-1] >= wanted.batch_records:
                    begins.append(base)
        acquired = [
            Acquired(begin, after - 1, 1)
            for begin, after in zip(begins, [*begins[1:], last + 1], strict=True)
            if begin < after
        ]
        for one in acquired:
            self._add(_Batch(one.first, one.last, State(RecordState.ACQUIRED, 1, member, lock_ends_us)))
        return acquired

    def _acquire_each(
        self,
        batch: _Batch,
        member: str,
        within: Bounds,
        most: int | None,
        limits: Limits,
        lock_ends_us: int,
    ) -> list[Acquired]:
        """Acquire free records of a batch one by one: those that fail again and again alone, or few."""
        throttle_from, throttled_most = _throttle_limit(limits.deliveries), -1
        isolates = limits.deliveries > 2
        states = batch.split()
        acquired: list[Acquired] = []
        for offset, state in states.items():
            if offset < within[0] or not state.free:
                continue
            if offset > within[1]:
                break
            if isolates and state.deliveries == limits.deliveries - 1 and acquired:
                break
            if state.deliveries >= throttle_from and throttled_most < 0:
                throttled_most = max(1, len(states) >> (state.deliveries - throttle_from + 1))
            state.acquire(member, lock_ends_us)
            acquired.append(Acquired(offset, offset, state.deliveries))
            if isolates and state.deliveries == limits.deliveries:
                break
            if len(acquired) in (most, throttled_most):
                break
        return acquired

    def _is_throttled(self, batch: _Batch, first: int, last: int, limits: Limits) -> bool:
        limit = _throttle_limit(limits.deliveries)
        if batch.each is None:
            return batch.whole.free and batch.whole.deliveries >= limit
        return any(
            state.free and state.deliveries >= limit
            for offset, state in batch.each.items()
            if first <= offset <= last
        )

    def _archive_gone(self, offset: int, base: int) -> None:
        """Archive what is free from `offset` to before `base`: the log no longer has it (compaction)."""
        if offset < base and self._archive(offset, base, (RecordState.AVAILABLE,), counts=True):
            self._looks_for_free = True

    def archive_aborted(self, first: int, last: int) -> None:
        """Archive records of an aborted transaction that have just been acquired."""
        self._archive(first, last + 1, (RecordState.ACQUIRED,), counts=True)

    def _archive(self, first: int, stop: int, states: Sequence[RecordState], counts: bool) -> bool:
        archived = False
        for batch in self._batches:
            if batch.first >= stop:
                break
            if batch.last < first:
                continue
            if batch.each is None and batch.whole.state not in states:
                continue
            if batch.each is None and not (first <= batch.first and batch.last < stop):
                batch.split()
            for begin, end, state in batch.parts():
                if state.state in states and first <= begin and end < stop:
                    state.archive()
                    archived = True
                    if counts:
                        self.complete += end - begin + 1
        return archived

    # --- acknowledging

    def acknowledge(
        self, member: str, acknowledgements: Sequence[Acknowledgement], limits: Limits, now_us: int
    ) -> list[Change]:
        """Return the changes to be written, which are followed by `commit` or `roll_back`. Raises
        ShareRefused, and then nothing has changed."""
        changes: list[Change] = []
        try:
            for acknowledgement in acknowledgements:
                if acknowledgement.last >= self.start:
                    for batch in self._named(acknowledgement):
                        self._acknowledge(member, acknowledgement, batch, limits, now_us, changes)
        except ShareRefused:
            self.roll_back(changes, now_us, limits.deliveries)
            raise
        return changes

    def _named(self, named: Acknowledgement) -> list[_Batch]:
        low = self._floor(named.first)
        if low < 0:
            if not named.first < self.start <= named.last or self._floor(self.start) < 0:
                raise ShareRefused(
                    ErrorCode.INVALID_RECORD_STATE,
                    "Batch record not found. The request batch offsets are not found in the cache.",
                )
            low = self._floor(self.start)
        batches = self._batches[low : self._floor(named.last) + 1]
        if not batches or batches[-1].last < named.first:
            message = "Batch record not found. The first offset in request is past acquired records."
            raise ShareRefused(ErrorCode.INVALID_REQUEST, message)
        if named.last > batches[-1].last:
            message = "Batch record not found. The last offset in request is past acquired records."
            raise ShareRefused(ErrorCode.INVALID_REQUEST, message)
        return batches

    def _acknowledge(
        self,
        member: str,
        named: Acknowledgement,
        batch: _Batch,
        limits: Limits,
        now_us: int,
        changes: list[Change],
    ) -> None:
        if batch.last < self.start:
            return
        if batch.each is None:
            state = batch.whole
            if state.member == NOBODY:
                raise _invalid("The batch cannot be acknowledged. The batch is not in the acquired state.")
            if state.member != member:
                raise _invalid("Member is not the owner of batch record")
            fits = batch.first >= named.first and batch.last <= named.last
            if fits and len(named.types) == 1 and batch.first >= self.start:
                self._settle(batch.first, batch.last, state, named.types[0], limits, now_us, changes)
                return
            batch.split()
        for offset, _, state in batch.parts():
            if offset < max(named.first, self.start):
                continue
            if offset > named.last:
                break
            if state.state is not RecordState.ACQUIRED:
                raise _invalid("The offset cannot be acknowledged. The offset is not acquired.")
            if state.member != member:
                raise _invalid("Member is not the owner of offset")
            kind = named.types[offset - named.first] if len(named.types) > 1 else named.types[0]
            self._settle(offset, offset, state, kind, limits, now_us, changes)

    def _settle(
        self,
        first: int,
        last: int,
        state: State,
        kind: int,
        limits: Limits,
        now_us: int,
        changes: list[Change],
    ) -> None:
        if kind == AcknowledgeType.RENEW:
            if not limits.renews:
                raise _invalid("Renewing acquisition locks is not enabled for the group.")
            state.lock_ends_us = now_us + limits.lock_us
            return
        changes.append(
            self._begin(first, last, state, _STATE_AFTER[AcknowledgeType(kind)], limits.deliveries)
        )

    def _begin(self, first: int, last: int, state: State, after: RecordState, limit: int) -> Change:
        state.before = state.state, state.member, state.lock_ends_us
        state.change(after, limit)
        if state.state in TERMINAL:
            self.complete += self._counted(first, last)
        return Change(state, StateBatch(first, last, state.state, state.deliveries))

    def _counted(self, first: int, last: int) -> int:
        return max(0, last - max(first, self.start) + 1)

    def release(self, member: str, limit: int) -> list[Change]:
        """Return the changes that release what a member has acquired, as `acknowledge` does."""
        changes: list[Change] = []
        for batch in self._batches:
            if batch.each is None and batch.whole.member == member and batch.first < self.start <= batch.last:
                batch.split()
            for first, last, state in batch.parts():
                if state.state is RecordState.ACQUIRED and state.member == member:
                    gone = RecordState.ARCHIVED if last < self.start else RecordState.AVAILABLE
                    changes.append(self._begin(first, last, state, gone, limit))
        return changes

    def commit(self, changes: Iterable[Change]) -> None:
        """Put changes into force that have been written."""
        for state, _ in changes:
            state.before = None
            if state.state is RecordState.AVAILABLE:
                self._looks_for_free = True
        self._move_start()

    def roll_back(self, changes: Iterable[Change], now_us: int, limit: int) -> None:
        """Take changes back that could not be written. Locks that have ended meanwhile are not held again."""
        for state, batch in changes:
            was_over = state.state in TERMINAL
            if not state.ends and state.before is not None:
                state.state, state.member, state.lock_ends_us = state.before
                if state.lock_ends_us <= now_us:
                    state.change(RecordState.AVAILABLE, limit)
            state.before = None
            if state.state is RecordState.AVAILABLE:
                self._looks_for_free = True
            if was_over and state.state not in TERMINAL:
                self.complete -= self._counted(batch.first, batch.last)

    # --- time and the log

    def next_lock_end_us(self) -> int | None:
        """Return when the next lock ends."""
        return min(
            (state.lock_ends_us for _, _, state in self.states() if state.state is RecordState.ACQUIRED),
            default=None,
        )

    def end_locks(self, now_us: int, limit: int) -> list[StateBatch]:
        """Release what has been acquired for too long. That is in force at once, whether it is written or
        not."""
        ended: list[StateBatch] = []
        for batch in self._batches:
            due = [
                s for _, _, s in batch.parts() if s.state is RecordState.ACQUIRED and s.lock_ends_us <= now_us
            ]
            if not due:
                continue
            if batch.each is None and batch.first < self.start <= batch.last:
                batch.split()
            for first, last, state in batch.parts():
                if not _is_due(state, now_us):
                    continue
                state.change(RecordState.ARCHIVED if last < self.start else RecordState.AVAILABLE, limit)
                ended.append(StateBatch(first, last, state.state, state.deliveries))
                if state.state in TERMINAL:
                    self.complete += self._counted(first, last)
                else:
                    self._looks_for_free = True
        return ended

    def move_to_log_start(self, log_start: int) -> None:
        """Note that the log begins later than what is in flight. What is acquired stays so until it is
        acknowledged or its lock ends."""
        if log_start <= self.start:
            return
        if not self._batches:
            self.start = self.end = log_start
            self.complete = 0
            return
        gone = sum(
            self._counted(first, min(last, log_start - 1))
            for first, last, state in self.states()
            if first < log_start and state.state in TERMINAL
        )
        if self._archive(self.start, log_start, (RecordState.AVAILABLE,), counts=False):
            self._looks_for_free = True
        self.start = log_start
        self.complete -= gone
        self.end = max(self.end, self.start)

    def settled(self) -> bool:
        """Move the start past records that are acknowledged or archived, and return whether it moved."""
        return self._move_start()

    def _move_start(self) -> bool:
        over = self.start
        for _, last, state in self.states():
            if last < self.start:
                continue
            if not state.over:
                break
            over = last + 1
        if over == self.start:
            return False
        self.complete -= sum(
            self._counted(first, min(last, over - 1))
            for first, last, state in self.states()
            if first < over and state.state in TERMINAL
        )
        self.start = over
        at = 0
        while at < len(self._batches) and self._batches[at].last < over:
            at += 1
        del self._batches[:at]
        if not self._batches:
            self.start = self.end = max(over, self.end + 1)
            self.complete = 0
        elif self._batches[0].first > self.start:
            self.start = self._batches[0].first  # Offsets in between have no records.
        return True


def _invalid(message: str) -> ShareRefused:
    return ShareRefused(ErrorCode.INVALID_RECORD_STATE, message)


def _is_due(state: State, now_us: int) -> bool:
    return state.state is RecordState.ACQUIRED and state.lock_ends_us <= now_us


def _throttle_limit(deliveries: int) -> int:
    """Return after how many deliveries records are delivered fewer at once."""
    return max(THROTTLE_LIMIT_MIN, -(-deliveries // 2))


def _end_of_batch(bounds: Sequence[Bounds], offset: int, last: int) -> int:
    """Return the last offset of the log's batch that has this offset, or the offset itself, up to `last`."""
    for first, end in reversed(bounds):
        if first <= offset:
            return min(last, max(offset, end))
    return offset


def _joined(offsets: Sequence[Acquired]) -> list[Acquired]:
    """Return single offsets as ranges that have been delivered equally often."""
    ranges: list[Acquired] = []
    for one in offsets:
        before = ranges[-1] if ranges else None
        if before is not None and before.last == one.first - 1 and before.deliveries == one.deliveries:
            ranges[-1] = before._replace(last=one.last)
        else:
            ranges.append(one)
    return ranges


def check_acknowledgements(acknowledgements: Sequence[Acknowledgement], renews: bool) -> None:
    """Check what a member says by itself. `renews` is whether it says that locks are renewed. Raises
    ShareRefused."""
    last = -1
    for one in acknowledgements:
        count = len(one.types)
        if (
            one.first > one.last
            or one.first < last
            or not count
            or (count > 1 and count != one.last - one.first + 1)
            or not _KINDS.issuperset(one.types)
            or (not renews and AcknowledgeType.RENEW in one.types)
        ):
            raise ShareRefused(ErrorCode.INVALID_REQUEST, None)
        last = one.last
