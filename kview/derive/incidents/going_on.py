"""Incidents that go on: what each step adds to them, and in which of them a partition in trouble counts."""

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kview.derive.align import Alignment, take
from kview.derive.brokers.quorum import Term
from kview.derive.groups.commits import Reading
from kview.derive.incidents import hit as hits
from kview.derive.incidents import phases
from kview.derive.incidents.hit import Hit, Layer
from kview.derive.seen import Seen
from kview.model.incidents import Incident
from kview.model.snapshot import Longs
from kview.model.states import BrokerState
from kview.model.units import NO_BROKER, NO_OFFSET, UNKNOWN, UNKNOWN_ID

MAX_GROUPS = 1_000
"""The most waiting groups counted for an incident."""

MAX_GROUPS_NAMED = 50


class Open(Struct, frozen=True):
    """An incident that goes on, and what is needed to follow it."""

    incident: Incident
    hit: Hit
    groups: frozenset[str] = frozenset()


class Step(Struct, frozen=True):
    """What one step of the fold saw."""

    then: Seen
    now: Seen
    alignment: Alignment
    changed_ms: Longs
    """When leader or ISR last changed, with the rows of the previous snapshot."""
    term: Term
    offset_partitions: Longs
    """The partition row of each offset."""
    reading: Reading

    @property
    def now_ms(self) -> int:
        return self.now.snapshot.observation.ended_ms

    @property
    def then_ms(self) -> int:
        return self.then.snapshot.observation.ended_ms


def charged(going: Sequence[Open], step: Step) -> dict[tuple[str, int], Longs]:
    """Return the partitions that are frozen or have no leader, by the key of the open incident in which each
    of them counts.

    That is the incident that has a lost broker in the partition's ISR, the first of them if there are
    several. If none has, it is the newest one that hit the partition.
    """
    now = step.now
    table = now.snapshot.partitions
    hurt = np.asarray((now.frozen_since_ms != UNKNOWN) | (table.leader == NO_BROKER), np.bool_)
    if not hurt.any():
        return {}
    gone = now.snapshot.brokers.id[np.asarray(now.snapshot.brokers.state != BrokerState.UP, np.bool_)]
    left = hurt.copy()
    mine: dict[tuple[str, int], list[Longs]] = {}
    waits = []
    for running in going:
        rows = running.hit.rows[left[running.hit.rows]]
        ids = gone[np.isin(gone, running.incident.brokers)]
        waits.append((running, rows[np.isin(table.isr[rows], ids).any(1) | np.isin(table.leader[rows], ids)]))
    for running, rows in (
        *waits,
        *((running, running.hit.rows) for running in reversed(going)),
    ):
        rows = rows[left[rows]]
        left[rows] = False
        mine.setdefault(running.incident.key, []).append(rows)
    return {key: np.concatenate(parts) for key, parts in mine.items()}


def followed(before: Open, step: Step, counted: Longs, none_since: int, none_acts: bool) -> Open:
    """Add a step to an incident of brokers or partitions.

    `counted` are the rows of the frozen and leaderless partitions that count here, and `none_acts` says that
    no controller can act.
    """
    now, incident = step.now, before.incident
    before = replace(before, hit=_with_led_late(before.hit, incident, step))
    hit = hits.follow(
        before.hit, step.then, now, step.alignment, incident.began_ms, counted, incident.brokers
    )
    hit, longest_ms = _waits(before.hit, hit, step, counted)
    groups = before.groups | _waiting(hit, step) if len(before.groups) < MAX_GROUPS else before.groups
    table = now.snapshot.partitions
    internal = int(table.internal[hit.rows].sum())
    leaderless = (table.leader[hit.rows] == NO_BROKER) & ~hit.elsewhere
    known = hit.gone != UNKNOWN
    brokers = now.snapshot.brokers
    up = brokers.id[np.asarray(brokers.state == BrokerState.UP, np.bool_)].tolist()
    silent = brokers.id[np.asarray(brokers.state == BrokerState.SILENT, np.bool_)]
    gone = int(hit.gone[known].sum())
    if not gone and hit.lost_leader.any():  # a lower bound of 0 does not show that nothing is gone
        gone = UNKNOWN
    updated = replace(
        incident,
        away=tuple(id for id in incident.brokers if id not in up),
        unfenced=int(np.isin(silent, incident.brokers).sum()),
        no_controller=none_acts,
        partitions=len(hit) - internal,
        internal_partitions=internal,
        hit=hits.named(hit, table),
        moved=int((hit.to_another & hit.orphan & ~table.internal[hit.rows]).sum()),
        leaderless=int(leaderless.sum()),
        internal_leaderless=int((leaderless & table.internal[hit.rows]).sum()),
        gone=gone,
        gone_partitions=int((hit.gone[known] > 0).sum()),
        waited_ms=max(incident.waited_ms, longest_ms),
        is_waiting=len(counted) > 0,
        groups=tuple(sorted(groups)[:MAX_GROUPS_NAMED]),
        groups_count=len(groups),
    )
    return Open(phases.followed(updated, hit, now, none_since), hit, groups)


def _with_led_late(hit: Hit, incident: Incident, step: Step) -> Hit:
    """Return the hit with the partitions of which a lost broker has become the leader since the last step.

    The controller elects it as long as it has not noticed the loss.
    """
    table, brokers = step.now.snapshot.partitions, step.now.snapshot.brokers
    away = brokers.id[np.asarray(brokers.state != BrokerState.UP, np.bool_)]
    away = away[np.isin(away, incident.brokers)]
    if not len(away):
        return hit
    was = step.alignment.carry(step.then.snapshot.partitions.leader, UNKNOWN_ID)
    if was is table.leader:
        return hit
    rows = np.flatnonzero((table.leader != was) & np.isin(table.leader, away)).astype(np.int64)
    return hit.joined(hits.led(Layer.of(table, step.now_ms), rows)) if len(rows) else hit


def _waits(before: Hit, hit: Hit, step: Step, counted: Longs) -> tuple[Hit, int]:
    """Return the hit with since when each partition has made acks=all producers wait, and the longest wait so
    far of those that waited until this step; UNKNOWN if none did.

    They wait while the watermark is frozen or nobody leads.
    """
    now, rows = step.now, hit.rows
    frozen, silent = now.frozen_since_ms[rows], now.leader_lost_since_ms[rows]
    earlier = np.where(frozen != UNKNOWN, frozen, silent)
    known = (earlier != UNKNOWN) & ~before.elsewhere
    since = np.where(known, earlier - max(0, now.interval_ms), step.then_ms)
    since = np.where(before.waits_ms != UNKNOWN, before.waits_ms, since)
    here = np.isin(rows, counted)
    waited = here | (before.waits_ms != UNKNOWN)
    longest_ms = step.now_ms - int(since[waited].min()) if waited.any() else UNKNOWN
    return replace(hit, waits_ms=np.where(here, since, UNKNOWN)), longest_ms


def _waiting(hit: Hit, step: Step) -> frozenset[str]:
    """Return the groups with members that cannot read on: they are at a watermark that is frozen, or their
    partition's leader is lost."""
    reading, at = step.reading, step.offset_partitions
    mine = np.zeros(len(step.now.snapshot.partitions), np.bool_)
    mine[hit.rows] = True
    lost = take(step.now.leader_lost_since_ms, at, UNKNOWN) != UNKNOWN
    lost |= take(step.now.snapshot.partitions.leader, at, 0) == NO_BROKER
    at_end = (reading.committed > NO_OFFSET) & (reading.lag == 0)
    waits = (
        take(mine, at, False) & reading.held & reading.has_members & (lost | at_end) & (reading.group >= 0)
    )
    if not waits.any():
        return frozenset()
    names = step.now.snapshot.groups.group[np.unique(reading.group[waits])[:MAX_GROUPS]]
    return frozenset(str(name) for name in names)
