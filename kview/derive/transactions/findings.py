"""Findings about transactions that hold back last stable offsets: who reads with read_committed waits for
them."""

from collections.abc import Iterator

import numpy as np

from kview.derive.align import positions, rows_at
from kview.derive.groups.verdicts import HELD_MS, RANK
from kview.derive.view import OffsetFigures, Verdict
from kview.model.events import Severity
from kview.model.failures import NO_FAILURE, refused
from kview.model.findings import Finding, FindingKind, OpenTransaction
from kview.model.snapshot import Flags, Longs, Snapshot
from kview.model.states import TransactionState
from kview.model.units import UNKNOWN, UNKNOWN_ID

STILL_MS = 3_000
"""A last stable offset that has not moved for so long stands still. Those of busy transactional producers are
below the watermark nearly always, and move on."""


def stands_still(snapshot: Snapshot) -> Flags:
    """Return the partitions whose last stable offset a transaction holds where it is."""
    since_ms = snapshot.partitions.last_stable_since_ms
    still = since_ms <= snapshot.observation.ended_ms - STILL_MS
    return np.asarray((since_ms != UNKNOWN) & still, np.bool_)


def waits_long(snapshot: Snapshot) -> Flags:
    """Return the partitions whose last stable offset has stood still for so long that groups may wait."""
    since_ms = snapshot.partitions.last_stable_since_ms
    return np.asarray((since_ms != UNKNOWN) & (since_ms <= snapshot.observation.ended_ms - HELD_MS), np.bool_)


def holders(snapshot: Snapshot) -> Longs:
    """Return for each partition the row of `Transactions` that holds its last stable offset, or −1.

    That is the one that begins first.
    """
    table, known = snapshot.partitions, snapshot.transactions
    rows, at = np.full(len(table), -1), rows_at(table, known.topic, known.partition)
    listed = np.flatnonzero(at >= 0)[::-1]
    rows[at[listed]] = listed
    return rows


def transaction_findings(snapshot: Snapshot, offsets: OffsetFigures) -> Iterator[Finding]:
    """Yield the transactions that block groups, that have used up half of their timeout, or that hang, one
    finding for each producer."""
    for finding, _ in who_holds(snapshot, offsets):
        yield finding


def who_holds(snapshot: Snapshot, offsets: OffsetFigures | None) -> list[tuple[Finding, Longs]]:
    """Return the same findings, each with the rows of its partitions. `offsets` is None if no group waits."""
    table, now_ms = snapshot.partitions, snapshot.observation.ended_ms
    held = stands_still(snapshot)
    if not held.any():
        return []
    holder, known = holders(snapshot), snapshot.transactions
    blocking = np.zeros(len(table), np.bool_)
    if offsets is not None:
        blocking[offsets.partition_row[_waits(offsets)]] = True
    by_producer: dict[int, list[int]] = {}
    for row in np.flatnonzero(held).tolist():
        at = int(holder[row])
        began_ms, timeout_ms, hangs = UNKNOWN, UNKNOWN, False
        if at >= 0:
            began_ms, timeout_ms = int(known.began_ms[at]), int(known.timeout_ms[at])
            hangs = known.state[at] == TransactionState.HANGING
        is_old = UNKNOWN not in (began_ms, timeout_ms) and now_ms - began_ms > timeout_ms / 2
        held_ms = int(table.last_stable_since_ms[row])
        written_ms = int(known.written_ms[at]) if hangs else UNKNOWN
        is_lost = hangs and now_ms - (min(held_ms, written_ms) if written_ms > 0 else held_ms) >= HELD_MS
        if blocking[row] or is_old or is_lost:
            by_producer.setdefault(int(known.producer_id[at]) if at >= 0 else UNKNOWN, []).append(row)
    every = [np.array(rows) for rows in by_producer.values()]
    return [(_finding(snapshot, offsets, holder, rows), rows) for rows in every]


def held_partition(snapshot: Snapshot, offsets: OffsetFigures, row: int) -> Finding | None:
    """Return what holds a partition's last stable offset where it is, however harmless, or None."""
    if not stands_still(snapshot)[row]:
        return None
    return _finding(snapshot, offsets, holders(snapshot), np.array([row]))


def _waits(offsets: OffsetFigures) -> Flags:
    return np.asarray(offsets.rank == RANK[Verdict.HELD], np.bool_)


def _finding(snapshot: Snapshot, offsets: OffsetFigures | None, holder: Longs, rows: Longs) -> Finding:
    """Return the finding about the partitions `rows`, which one producer holds."""
    table, known = snapshot.partitions, snapshot.transactions
    first = int(rows[np.argmin(table.last_stable_since_ms[rows])])
    at, since_ms = int(holder[first]), int(table.last_stable_since_ms[first])
    since_is_bound, hangs, cause = True, False, NO_FAILURE
    transaction = OpenTransaction(
        str(table.topic[first]), int(table.partition[first]), int(table.last_stable[first])
    )
    if at >= 0:
        hangs = known.state[at] == TransactionState.HANGING
        cause = refused(int(known.error_code[at])) if known.error_code[at] else NO_FAILURE
        if known.began_ms[at] != UNKNOWN:
            since_ms, since_is_bound = int(known.began_ms[at]), False
        transaction = OpenTransaction(
            transaction.topic,
            transaction.partition,
            int(known.start_offset[at]) if known.start_offset[at] != UNKNOWN else transaction.start_offset,
            int(known.producer_id[at]),
            int(known.producer_epoch[at]) if known.producer_epoch[at] != UNKNOWN_ID else UNKNOWN,
            str(known.transactional_id[at]),
            int(known.coordinator[at]),
            int(known.timeout_ms[at]),
            _address(snapshot, int(table.leader[first])),
        )
    groups = []
    if offsets is not None:
        mine = _waits(offsets) & np.isin(offsets.partition_row, rows)
        groups = sorted(set(snapshot.offsets.group[mine].tolist()))
    behind = np.maximum(table.high_watermark[rows] - table.last_stable[rows], 0)
    internal = int(table.internal[rows].sum())
    return Finding(
        FindingKind.HANGING_TRANSACTION if hangs else FindingKind.OPEN_TRANSACTION,
        Severity.RISK if hangs else Severity.WARN,
        group=groups[0] if groups else "",
        groups=len(groups),
        partitions=len(rows) - internal,
        internal_partitions=internal,
        count=int(behind.sum()),
        since_ms=since_ms,
        since_is_bound=since_is_bound,
        cause=cause,
        transaction=transaction,
    )


def _address(snapshot: Snapshot, broker: int) -> str:
    row = int(positions(snapshot.brokers.id, np.array([broker]))[0])
    return f"{snapshot.brokers.host[row]}:{snapshot.brokers.port[row]}" if row >= 0 else ""
