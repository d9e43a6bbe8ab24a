"""Elections: the partitions whose leader changed between two snapshots."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kview.derive.align import Alignment, align_partitions
from kview.model.snapshot import Flags, IdMatrix, Ids, Longs, Snapshot
from kview.model.units import NO_BROKER, UNKNOWN_ID


@dataclass(frozen=True, slots=True)
class Elections:
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
    """Whether it was neither, and the election reset the ISR to the new leader. Neither `clean` nor `unclean`
    is set if that is not known, because more than one change happened between the two snapshots."""


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
    eligible = _has(old_isr, leader) | _has(_rows_of(rows, a.elr, at), leader)
    known = (leader >= 0) & (old_isr >= 0).any(1)
    is_reset = ((new_isr >= 0).sum(1) == 1) & _has(new_isr, leader)
    next_epoch = (old_epoch >= 0) & (new_epoch.astype(np.int64) == old_epoch.astype(np.int64) + 1)
    return Elections(
        row=at,
        old_leader=rows.carry(led, UNKNOWN_ID)[at],
        new_leader=np.where(leader >= 0, leader, UNKNOWN_ID).astype(np.int32),
        old_epoch=old_epoch,
        new_epoch=new_epoch,
        old_isr=_size(old_isr),
        new_isr=_size(new_isr),
        clean=known & eligible,
        unclean=known & ~eligible & is_reset & next_epoch,
    )


def _rows_of(rows: Alignment, matrix: IdMatrix, at: Longs) -> IdMatrix:
    return rows.carry(matrix, NO_BROKER)[at]


def _has(lists: IdMatrix, broker: Ids) -> NDArray[np.bool_]:
    return np.asarray(((lists == broker[:, None]) & (broker >= 0)[:, None]).any(1), np.bool_)


def _size(lists: IdMatrix) -> Ids:
    counts = (lists >= 0).sum(1)
    return np.where(counts > 0, counts, UNKNOWN_ID).astype(np.int32)
