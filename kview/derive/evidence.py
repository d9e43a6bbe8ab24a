"""Evidence about brokers that do not answer us: whether the cluster has lost them too, or only we cannot
reach them.

Silence alone proves nothing, because the network between kview and a broker may be the cause.
"""

from collections.abc import Mapping

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kview.derive.align import Alignment, among, positions, take
from kview.derive.brokers.quorum import is_old
from kview.derive.brokers.silence import HEARD_MARGIN_MS, Silence, still_heard
from kview.derive.standing import Standing
from kview.model.failures import FailureKind
from kview.model.snapshot import Flags, Ids, Longs, Offsets, Snapshot
from kview.model.states import BrokerState
from kview.model.units import UNKNOWN

IN_FLIGHT_MS = 1_000
"""A follower's log may grow this long after its leader's end, by what was already on its way."""

LATE_COMMIT_MS = 6_000
"""A group may commit this long after its leader's end what it read before: Kafka's default commit interval is
5 s."""

PROOF_HOLDS_MS = 10_000
"""A sign of life counts for this long. It is two default commit intervals."""

JUDGED_AFTER_MS = 3_000
"""If the quorum says nothing about a broker, followers decide after a silence this long."""

Proofs = Mapping[int, int]
"""By broker that does not answer us: when we last saw a sign that it lives, epoch ms."""


class Evidence(Struct, frozen=True):
    """What is known about brokers that do not answer us. The arrays have the rows of `Brokers`.

    A silent broker that is neither lost nor unreached may be either: nobody has told us yet.
    """

    ids: Ids
    lost: Flags
    """The cluster has lost the broker: its port refuses connections, it stopped fetching from the quorum or
    feeding its followers, or it is fenced or gone."""
    unreached: Flags
    """The broker lives, and only we cannot reach it."""

    def has_lost(self, brokers: Ids) -> NDArray[np.bool_]:
        """Return whether the cluster has lost each of `brokers` (ids, any shape)."""
        return take(self.lost, positions(self.ids, brokers), False)

    def cannot_reach(self, brokers: Ids) -> NDArray[np.bool_]:
        """Return whether only we cannot reach each of `brokers` (ids, any shape)."""
        return take(self.unreached, positions(self.ids, brokers), False)


def evidence(now: Standing, proofs: Proofs) -> Evidence:
    """Return what is known about the silent brokers of a snapshot.

    `proofs` are the signs of life up to this snapshot.
    """
    snapshot, quiet = now.snapshot, now.quiet
    brokers, now_ms = snapshot.brokers, snapshot.observation.ended_ms
    if not quiet.silent.any():
        none = np.zeros(len(brokers), np.bool_)
        return Evidence(brokers.id, none, none)
    state = brokers.state
    listed = np.asarray((state == BrokerState.SILENT) | (state == BrokerState.STARTING), np.bool_)
    old = is_old(snapshot.observation, now.interval_ms)
    still, heard_of = _not_fetching(snapshot, quiet)
    heard = still_heard(snapshot, quiet)
    if old:
        still = heard_of = heard = np.zeros(len(brokers), np.bool_)
    proved = np.array([proofs.get(broker, UNKNOWN) for broker in brokers.id.tolist()], np.int64)
    lives = proved > now_ms - PROOF_HOLDS_MS
    unreached = listed & (heard | (lives & ~still))
    refused = np.asarray(brokers.error == FailureKind.REFUSED, np.bool_)
    starved = ~heard_of & _starves_followers(now)
    starting = np.asarray(state == BrokerState.STARTING, np.bool_)
    lost = quiet.silent & ~unreached & ~starting & (~listed | refused | still | starved)
    return Evidence(brokers.id, lost, unreached)


def _not_fetching(snapshot: Snapshot, quiet: Silence) -> tuple[Flags, Flags]:
    """Return which silent brokers no longer fetch from the quorum, and about which ones the quorum tells.

    Its times are only compared with each other, because a controller's clock may differ from ours.
    """
    brokers, seen = snapshot.brokers, snapshot.observation
    latest, received = snapshot.quorum.last_fetch_ms.max(initial=UNKNOWN), seen.quorum_received_ms
    if latest == UNKNOWN or received == UNKNOWN:
        nothing = np.zeros(len(brokers), np.bool_)
        return nothing, nothing
    heard_of = quiet.silent & (brokers.last_fetch_ms != UNKNOWN) & (received >= quiet.since_ms)
    gap = np.where(heard_of, latest - np.where(heard_of, brokers.last_fetch_ms, 0), 0)
    return heard_of & (gap >= HEARD_MARGIN_MS), heard_of


def _starves_followers(now: Standing) -> Flags:
    """Return which silent brokers lead partitions whose followers answer us, after JUDGED_AFTER_MS.

    A caller has found no sign of life, so the followers' logs stand still.
    """
    table, quiet, brokers = now.snapshot.partitions, now.quiet, now.snapshot.brokers
    long = quiet.silent & (now.snapshot.observation.ended_ms - quiet.since_ms >= JUDGED_AFTER_MS)
    since = now.placed.leader_silent_since_ms
    led = since != UNKNOWN
    read = now.readings.times_ms > (np.where(led, since, 0) + IN_FLIGHT_MS)[:, None]
    follower = (table.replicas != table.leader[:, None]) & ~now.placed.replica_silent
    leaders = table.leader[led & (read & follower & (now.readings.ends != UNKNOWN)).any(1)]
    return long & among(brokers.id, leaders)


def signs_of_life(
    proofs: Proofs,
    before: Standing,
    now: Standing,
    rows: Alignment,
    commits: tuple[Offsets, Alignment, Longs],
) -> Proofs:
    """Add this snapshot's signs of life of silent leaders to those of the steps before.

    A follower's log grows only by what its leader sends, and a group reads only what its leader serves.
    `commits` are the previous offsets, their alignment, and each current offset's partition row.
    """
    now_ms, leader = now.snapshot.observation.ended_ms, now.snapshot.partitions.leader
    since = now.placed.leader_silent_since_ms
    if not (since != UNKNOWN).any():
        return {}
    proven = _copied(before, now, rows) | _read(now, *commits)
    alive = set(leader[proven & (since != UNKNOWN)].tolist())
    kept = {broker: at_ms for broker, at_ms in proofs.items() if at_ms > now_ms - PROOF_HOLDS_MS}
    silent = set(now.quiet.ids[now.quiet.silent].tolist())
    return {broker: at for broker, at in (kept | dict.fromkeys(alive, now_ms)).items() if broker in silent}


def _copied(before: Standing, now: Standing, rows: Alignment) -> Flags:
    """Return the partitions of silent leaders in which a follower's log grew since the previous snapshot."""
    table, since = now.snapshot.partitions, now.placed.leader_silent_since_ms
    then_of = rows.carry(before.snapshot.partitions.replicas, -1)
    if then_of.shape != table.replicas.shape:
        return np.zeros(len(table), np.bool_)
    then, then_ms = rows.carry(before.readings.ends, UNKNOWN), rows.carry(before.readings.times_ms, UNKNOWN)
    follower = (table.replicas != table.leader[:, None]) & (then_of == table.replicas)
    grew = (then != UNKNOWN) & (now.readings.ends > then) & follower
    late = then_ms > (np.where(since == UNKNOWN, 0, since) + IN_FLIGHT_MS)[:, None]
    return np.asarray((grew & late).any(1) & (since != UNKNOWN), np.bool_)


def _read(now: Standing, then: Offsets, alignment: Alignment, partition: Longs) -> Flags:
    """Return the partitions of silent leaders in which a group read beyond the last watermark we know."""
    table, offsets = now.snapshot.partitions, now.snapshot.offsets
    since = take(now.placed.leader_silent_since_ms, partition, UNKNOWN)
    beyond = offsets.committed > take(table.high_watermark, partition, np.iinfo(np.int64).max)
    known = (since != UNKNOWN) & beyond & (offsets.received_ms > np.where(since == UNKNOWN, 0, since))
    before = alignment.carry(then.committed, UNKNOWN)
    late = alignment.carry(then.received_ms, UNKNOWN) > np.where(known, since, 0) + LATE_COMMIT_MS
    proven = known & late & (before != UNKNOWN) & (offsets.committed > before)
    out = np.zeros(len(table), np.bool_)
    out[partition[proven]] = True
    return out
