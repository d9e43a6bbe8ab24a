"""The state of the cluster in one snapshot: silent brokers, ISRs, and what each replica answered."""

from msgspec import Struct

from kview.derive.align import same
from kview.derive.brokers import Silence, silence
from kview.derive.partitions import Placement, Readings, listed_replicas, placement, replica_readings
from kview.model.snapshot import Snapshot
from kview.model.units import UNKNOWN


class Standing(Struct, frozen=True):
    """The state of the cluster in one snapshot.

    Placement and readings have the rows of the snapshot's partitions.
    """

    snapshot: Snapshot
    quiet: Silence
    placed: Placement
    readings: Readings
    interval_ms: int
    """The time since the previous observation, UNKNOWN for the first one."""


def standing(snapshot: Snapshot, before: Standing | None = None) -> Standing:
    """Return the standing of a snapshot, reusing the parts of `before` that did not change."""
    table, replicas, quiet = snapshot.partitions, snapshot.replicas, silence(snapshot.brokers)
    placed, listed, interval_ms = None, None, UNKNOWN
    if before is not None:
        then, was, old = before.snapshot.partitions, before.snapshot.replicas, before.quiet
        interval_ms = snapshot.observation.ended_ms - before.snapshot.observation.ended_ms
        stayed = same(old.ids, quiet.ids) and same(old.silent, quiet.silent)
        if stayed and same(old.since_ms, quiet.since_ms) and _one_placement(before.snapshot, snapshot):
            placed = before.placed
        if then.replicas is table.replicas and was.row is replicas.row and was.broker is replicas.broker:
            listed = before.readings.listed
    if placed is None:
        placed = placement(table, snapshot.reassignments, quiet)
    if listed is None:
        listed = listed_replicas(table, replicas)
    return Standing(snapshot, quiet, placed, replica_readings(table, replicas, listed), interval_ms)


def _one_placement(then: Snapshot, now: Snapshot) -> bool:
    a, b = then.partitions, now.partitions
    moves = all(
        same(getattr(then.reassignments, name), getattr(now.reassignments, name))
        for name in ("topic", "partition", "adding", "removing")
    )
    return moves and a.replicas is b.replicas and a.isr is b.isr and a.leader is b.leader
