"""Elections: the partitions whose leader changed between two snapshots, and what was lost with it."""

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from kview.derive.align import Alignment, align_partitions
from kview.derive.seen import Seen
from kview.model.snapshot import (
    Flags,
    IdMatrix,
    Ids,
    Longs,
    Snapshot,
    UncleanElections,
    columns,
    empty,
)
from kview.model.states import BrokerState
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID

MOST_REMEMBERED = 20
"""The most observations with unclean elections that are remembered, as many as there are incidents."""


class Elections(Struct, frozen=True):
    """The changes of leaders, one per row. Brokers, epochs and sizes are UNKNOWN_ID if there is none."""

    row: Longs
    """The partition's row in the later snapshot."""
    old_leader: Ids
    """The last broker that led the partition."""
    new_leader: Ids
    """UNKNOWN_ID if nobody leads it now."""
    old_epoch: Ids
    new_epoch: Ids
    old_isr: Ids
    """The size of the ISR before, and after."""
    new_isr: Ids
    clean: Flags
    """Whether the new leader was in the ISR, or an eligible replica, so that it had every committed
    record."""
    unclean: Flags
    """Whether it was neither, and cannot have become it: there was just this election, and nobody led, or a
    leader that was silent already, so that the ISR could not grow before. Neither `clean` nor `unclean` is
    set if that is not known, or if nobody has told which replicas were eligible."""
    doubtful: Flags
    """Whether it was neither, but may have joined the ISR since, before a leader that was well was lost."""


def last_leaders(before: Ids | None, then: Snapshot | None, now: Snapshot) -> Ids:
    """Return the last known leader of each partition of `now`, UNKNOWN_ID if none was seen.

    `before` are those of `then`.
    """
    leader = now.partitions.leader
    if before is None or then is None:
        return np.where(leader >= 0, leader, UNKNOWN_ID).astype(np.int32)
    rows = align_partitions(then.partitions, now.partitions)
    if rows.rows is None and then.partitions.leader is leader:
        return before
    return np.where(leader >= 0, leader, rows.carry(before, UNKNOWN_ID)).astype(np.int32)


def elections(then: Snapshot, now: Snapshot, led: Ids) -> Elections | None:
    """Return the changes of leaders between two snapshots, None if there is none.

    `led` are the last leaders of `then`'s partitions. Partitions that are new or were created again have none
    to compare with.
    """
    a, b = then.partitions, now.partitions
    rows = align_partitions(a, b)
    if rows.rows is None and a.leader is b.leader:
        return None
    before = rows.carry(a.leader, UNKNOWN_ID)
    changed = rows.known() & (before != b.leader) & (before != UNKNOWN_ID) & (b.leader != UNKNOWN_ID)
    at = np.flatnonzero(changed).astype(np.int64)
    if not len(at):
        return None
    leader, new_epoch = b.leader[at], b.leader_epoch[at]
    old_epoch = rows.carry(a.leader_epoch, UNKNOWN_ID)[at]
    old_isr, new_isr = _rows_of(rows, a.isr, at), b.isr[at]
    old_elr = _rows_of(rows, a.elr, at)
    eligible = _has(old_isr, leader) | _has(old_elr, leader)
    known = (leader >= 0) & ((old_isr >= 0).any(1) | (old_elr >= 0).any(1))
    if "elr" in then.observation.capabilities:
        elr_known = (rows.carry(a.min_isr, UNKNOWN_ID)[at] != UNKNOWN_ID) & ~(old_elr == UNKNOWN_ID).any(1)
        known &= eligible | elr_known
    next_epoch = (old_epoch >= 0) & (new_epoch.astype(np.int64) == old_epoch.astype(np.int64) + 1)
    silent = then.brokers.id[np.asarray(then.brokers.state != BrokerState.UP, np.bool_)]
    was_lost = (before[at] == NO_BROKER) | np.isin(before[at], silent)
    unclean = known & ~eligible & next_epoch
    return Elections(
        row=at,
        old_leader=rows.carry(led, UNKNOWN_ID)[at],
        new_leader=np.where(leader >= 0, leader, UNKNOWN_ID).astype(np.int32),
        old_epoch=old_epoch,
        new_epoch=new_epoch,
        old_isr=_size(old_isr),
        new_isr=_size(new_isr),
        clean=known & eligible,
        unclean=unclean & was_lost,
        doubtful=unclean & ~was_lost,
    )


def _rows_of(rows: Alignment, matrix: IdMatrix, at: Longs) -> IdMatrix:
    return rows.carry(matrix, NO_BROKER)[at]


def _has(lists: IdMatrix, broker: Ids) -> NDArray[np.bool_]:
    return np.asarray(((lists == broker[:, None]) & (broker >= 0)[:, None]).any(1), np.bool_)


def _size(lists: IdMatrix) -> Ids:
    counts = (lists >= 0).sum(1)
    return np.where(counts > 0, counts, UNKNOWN_ID).astype(np.int32)


class Elected(Struct, frozen=True):
    """What the elections of a step lost. The arrays have the rows of `Partitions`."""

    unclean: Flags
    old_end: Longs
    """The last log end seen of the last leader, UNKNOWN for partitions without an election."""
    lost: Longs
    """A lower bound of the records lost, UNKNOWN if nothing is known of them."""


def elected(before: Seen, now: Seen, alignment: Alignment) -> Elected | None:
    """Return what the elections of a step lost, None if there was none.

    It is the old leader's log end − the start of the new epoch. The old leader's log end is the last one
    seen. The new epoch starts where the new leader's log ended when it was elected. The best known value of
    that is the new leader's last reading as a follower, if it was taken when the old leader was silent or
    nobody led (from then on there was nothing left to copy). Otherwise it is the new leader's first reading
    as the leader, which is later, so the result is a lower bound. A doubtful election was unclean if the new
    leader's log then ended below the high watermark.
    """
    was, is_ = before.snapshot.partitions, now.snapshot.partitions
    if alignment.rows is None and was.leader is is_.leader:
        return None
    changes = elections(before.snapshot, now.snapshot, was.leader)
    if changes is None:
        return None
    unclean = np.zeros(len(is_), np.bool_)
    leader, began_ms = alignment.carry(was.leader, UNKNOWN_ID), before.snapshot.observation.began_ms
    silent_since = alignment.carry(before.placed.leader_silent_since_ms, UNKNOWN)
    silent_since = np.where(leader == NO_BROKER, began_ms, silent_since)
    is_elected = np.zeros(len(is_), np.bool_)
    is_elected[changes.row[changes.new_leader >= 0]] = True
    as_new_leader = alignment.carry(was.replicas, NO_BROKER) == is_.leader[:, None]
    follower = _pick(alignment.carry(before.readings.ends, UNKNOWN), as_new_leader)
    follower_ms = _pick(alignment.carry(before.readings.times_ms, UNKNOWN), as_new_leader)
    final = (follower != UNKNOWN) & (silent_since != UNKNOWN) & (follower_ms > silent_since)
    read_now = (is_.log_end != UNKNOWN) & (is_.log_end_ms > before.snapshot.observation.ended_ms)
    start = np.where(final, follower, np.where(read_now, is_.log_end, UNKNOWN))
    old_end = np.where(is_elected, alignment.carry(was.log_end, UNKNOWN), UNKNOWN)
    known = (old_end != UNKNOWN) & (start != UNKNOWN)
    committed = alignment.carry(was.high_watermark, UNKNOWN)[changes.row]
    proven = known[changes.row] & (start[changes.row] < committed)
    unclean[changes.row[changes.unclean | (changes.doubtful & proven)]] = True
    lost = np.where(known, np.maximum(np.where(known, old_end - start, 0), 0), UNKNOWN)
    return Elected(unclean, old_end, lost)


def _pick(matrix: NDArray[np.int64], where: NDArray[np.bool_]) -> Longs:
    """Return the marked value of each row, UNKNOWN if none is marked."""
    picked: Longs = np.where(where, matrix, UNKNOWN).max(1, initial=UNKNOWN)
    return picked


class Memory(Struct, frozen=True):
    """The unclean elections that are remembered. Part of the fold."""

    unclean: UncleanElections = field(default_factory=lambda: empty(UncleanElections))
    waiting: Longs = field(default_factory=lambda: np.empty(0, np.int64))
    """The rows of partitions that were elected uncleanly, and whose new leaders have not told their log ends
    yet. The next arrays have an element for each of them."""
    old_end: Longs = field(default_factory=lambda: np.empty(0, np.int64))
    at_ms: Longs = field(default_factory=lambda: np.empty(0, np.int64))

    def next(self, now: Snapshot, alignment: Alignment, found: Elected | None) -> "Memory":
        """Return the memory after a step, with what was `found` in it."""
        memory = self._carried(alignment)._with_ends(now) if len(self.waiting) else self
        return memory if found is None or not found.unclean.any() else memory._with(found, now)

    def _with(self, found: Elected, now: Snapshot) -> "Memory":
        table, at_ms, rows = now.partitions, now.observation.ended_ms, np.flatnonzero(found.unclean)
        rows = rows[np.argsort(table.internal[rows], kind="stable")]
        lost, internal = found.lost[rows], int(table.internal[rows].sum())
        known = lost != UNKNOWN
        row = {
            "at_ms": at_ms,
            "topic": table.topic[rows[0]],
            "partition": table.partition[rows[0]],
            "partitions": len(rows) - internal,
            "internal_partitions": internal,
            "records": int(lost[known].sum()) if known.any() else UNKNOWN,
        }
        unclean = UncleanElections(
            **{
                name: np.append(getattr(self.unclean, name), np.array([row[name]], kind.dtype))
                for name, kind in columns(UncleanElections).items()
            }
        )
        waiting = rows[~known & (found.old_end[rows] != UNKNOWN)]
        return replace(
            self,
            unclean=unclean.take(slice(-MOST_REMEMBERED, None)),  # type: ignore[arg-type]
            waiting=np.append(self.waiting, waiting),
            old_end=np.append(self.old_end, found.old_end[waiting]),
            at_ms=np.append(self.at_ms, np.full(len(waiting), at_ms)),
        )

    def _carried(self, alignment: Alignment) -> "Memory":
        """Return the memory with the rows of this step, without partitions that were deleted."""
        if alignment.rows is None:
            return self
        order = np.argsort(alignment.rows, kind="stable")
        at = np.searchsorted(alignment.rows, self.waiting, sorter=order)
        rows = order[np.minimum(at, len(order) - 1)] if len(order) else np.zeros(len(at), np.int64)
        stay = np.isin(self.waiting, alignment.rows)
        return replace(self, waiting=rows)._keep(stay)

    def _keep(self, which: Flags) -> "Memory":
        waiting, old_end, at_ms = (each[which] for each in (self.waiting, self.old_end, self.at_ms))
        return replace(self, waiting=waiting, old_end=old_end, at_ms=at_ms)

    def _with_ends(self, now: Snapshot) -> "Memory":
        """Return the memory with what those new leaders have told that are read for the first time."""
        table, rows = now.partitions, self.waiting
        read = (table.log_end_ms[rows] > self.at_ms) & (table.log_end[rows] != UNKNOWN)
        if not read.any():
            return self
        lost = np.maximum(self.old_end - table.log_end[rows], 0)
        records = self.unclean.records.copy()
        for at_ms in set(self.at_ms[read].tolist()):
            more = int(lost[read & (self.at_ms == at_ms)].sum())
            row = self.unclean.at_ms == at_ms
            records[row] = np.where(records[row] == UNKNOWN, more, records[row] + more)
        return replace(self, unclean=replace(self.unclean, records=records))._keep(~read)
