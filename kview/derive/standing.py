"""The state of the cluster in one snapshot: silent brokers, ISRs, and what each replica answered."""

from msgspec import Struct

from kview.derive.align import first_rows, same
from kview.derive.brokers.silence import Held, Silence, held, silence
from kview.derive.partitions.placement import (
    Placement,
    Readings,
    listed_replicas,
    placement,
    replica_readings,
)
from kview.derive.partitions.racks import RackCodes, rack_codes
from kview.model.snapshot import Brokers, Longs, Snapshot
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
    topic_rows: Longs
    """The first row of each topic."""
    rack_codes: RackCodes
    """Whether each partition survives the loss of any one rack."""
    held: Held


def standing(snapshot: Snapshot, before: Standing | None = None) -> Standing:
    """Return the standing of a snapshot, reusing the parts of `before` that did not change."""
    table, replicas, quiet = snapshot.partitions, snapshot.replicas, silence(snapshot.brokers)
    placed = listed = topic_rows = racks = holds = None
    interval_ms = UNKNOWN
    if before is not None:
        then, was, old = before.snapshot.partitions, before.snapshot.replicas, before.quiet
        interval_ms = snapshot.observation.ended_ms - before.snapshot.observation.ended_ms
        stayed = same(old.ids, quiet.ids) and same(old.silent, quiet.silent)
        if stayed and same(old.since_ms, quiet.since_ms) and _one_placement(before.snapshot, snapshot):
            placed = before.placed
        if then.replicas is table.replicas and was.row is replicas.row and was.broker is replicas.broker:
            listed = before.readings.listed
        if then.topic is table.topic:
            topic_rows = before.topic_rows
        if then.replicas is table.replicas and _same_racks(before.snapshot.brokers, snapshot.brokers):
            racks = before.rack_codes
        columns = ("leader", "replicas", "internal")
        if same(old.ids, quiet.ids) and all(getattr(then, name) is getattr(table, name) for name in columns):
            holds = before.held
    if placed is None:
        placed = placement(table, snapshot.reassignments, quiet)
    if listed is None:
        listed = listed_replicas(table, replicas)
    if topic_rows is None:
        topic_rows = first_rows(table.topic)
    if racks is None:
        racks = rack_codes(table, snapshot.brokers)
    if holds is None:
        holds = held(snapshot)
    readings = replica_readings(table, replicas, listed)
    return Standing(snapshot, quiet, placed, readings, interval_ms, topic_rows, racks, holds)


def _same_racks(then: Brokers, now: Brokers) -> bool:
    return same(then.id, now.id) and same(then.rack, now.rack)


def _one_placement(then: Snapshot, now: Snapshot) -> bool:
    a, b = then.partitions, now.partitions
    moves = all(
        same(getattr(then.reassignments, name), getattr(now.reassignments, name))
        for name in ("topic", "partition", "adding", "removing")
    )
    return moves and a.replicas is b.replicas and a.isr is b.isr and a.leader is b.leader
