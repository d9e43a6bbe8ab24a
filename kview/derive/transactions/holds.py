"""Transactions that are found holding back last stable offsets, followed until they end.

A transaction is found when there is a finding about it. It is followed until the last stable offsets have
moved on, also while there is no finding: groups that no longer wait for it do not end it.
"""

from collections.abc import Callable, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kview.derive.align import Alignment
from kview.derive.events import Picker
from kview.derive.transactions.findings import waits_long, who_holds
from kview.derive.view import OffsetFigures
from kview.model.events import Event, EventKind, Severity
from kview.model.findings import Finding, FindingKind
from kview.model.snapshot import Flags, Longs, Snapshot
from kview.model.units import UNKNOWN


class Hold(Struct, frozen=True):
    """A transaction that holds back partitions, or held them back when it was found.

    `rows` are their rows, in order, and `stable` the last stable offsets where it holds them.
    """

    rows: Longs
    stable: Longs
    hangs: bool
    producer_id: int
    transactional_id: str
    since_ms: int
    since_is_bound: bool

    def carried(self, alignment: Alignment) -> "Hold":
        """Return the same in this step's rows, without the partitions that no longer exist."""
        if alignment.rows is None:
            return self
        rows = np.flatnonzero(np.isin(alignment.rows, self.rows))
        at = np.searchsorted(self.rows, alignment.rows[rows])
        return replace(self, rows=rows, stable=self.stable[at])

    def held(self, snapshot: Snapshot) -> Longs:
        """Return the rows that are held where they were."""
        table = snapshot.partitions
        still = table.last_stable_since_ms[self.rows] != UNKNOWN
        held: Longs = self.rows[still & (table.last_stable[self.rows] == self.stable)]
        return held

    def moved(self, snapshot: Snapshot) -> Longs:
        """Return the rows that were read beyond where they were held. A log that was cut is not among
        them."""
        table = snapshot.partitions
        was_read = table.last_stable_ms[self.rows] != UNKNOWN
        moved: Longs = self.rows[was_read & (table.last_stable[self.rows] > self.stable)]
        return moved


def follow(
    before: tuple[Hold, ...],
    alignment: Alignment,
    snapshot: Snapshot,
    offsets: Callable[[], OffsetFigures],
) -> tuple[tuple[Hold, ...], tuple[Event, ...]]:
    """Return the transactions that are followed now, and the events of this moment.

    `offsets` is called only if groups may wait for a transaction.
    """
    figures = offsets() if waits_long(snapshot).any() else None
    findings = who_holds(snapshot, figures)
    if not before and not findings:
        return (), ()
    carried = [hold.carried(alignment) for hold in before]
    held = [hold for hold in carried if len(hold.held(snapshot))]
    events = [
        _event(snapshot, hold, hold.moved(snapshot), EventKind.TRANSACTION_ENDED, Severity.GOOD)
        for hold in carried
        if not len(hold.held(snapshot)) and len(hold.moved(snapshot))
    ]
    now, known_again = [], set[int]()
    for finding, rows in findings:
        same = [at for at, hold in enumerate(held) if np.isin(rows, hold.held(snapshot)).any()]
        hold = _hold(snapshot, finding, rows)
        if same and hold.producer_id == UNKNOWN:
            continue  # whose it is was known before
        known_again.update(same)
        hold = _together(hold, [held[at] for at in same])
        if not same or (hold.hangs and not all(held[at].hangs for at in same)):
            kind = EventKind.TRANSACTION_HANGS if hold.hangs else EventKind.TRANSACTION_HOLDS
            events.append(_event(snapshot, hold, hold.held(snapshot), kind, finding.severity))
        now.append(hold)
    left = [hold for at, hold in enumerate(held) if at not in known_again]
    return (*left, *now), tuple(events)


def _hold(snapshot: Snapshot, finding: Finding, rows: Longs) -> Hold:
    opened = finding.transaction
    assert opened is not None
    return Hold(
        rows,
        snapshot.partitions.last_stable[rows],
        finding.kind is FindingKind.HANGING_TRANSACTION,
        opened.producer_id,
        opened.transactional_id,
        finding.since_ms,
        finding.since_is_bound,
    )


def _together(hold: Hold, earlier: Sequence[Hold]) -> Hold:
    """Return a transaction with all partitions that the same producer was known to hold before."""
    for known in earlier:
        more = ~np.isin(known.rows, hold.rows)
        if known.producer_id != hold.producer_id or not more.any():
            continue
        rows = np.concatenate((hold.rows, known.rows[more]))
        stable = np.concatenate((hold.stable, known.stable[more]))
        order = np.argsort(rows)
        hold = replace(hold, rows=rows[order], stable=stable[order])
    return hold


def _event(snapshot: Snapshot, hold: Hold, rows: Longs, kind: EventKind, severity: Severity) -> Event:
    table = snapshot.partitions
    mask: Flags = np.zeros(len(table), np.bool_)
    mask[rows] = True
    return replace(
        Picker(table, snapshot.observation.ended_ms).event(mask, kind, severity),
        producer_id=hold.producer_id,
        transactional_id=hold.transactional_id,
        since_ms=hold.since_ms,
        since_is_bound=hold.since_is_bound,
    )
