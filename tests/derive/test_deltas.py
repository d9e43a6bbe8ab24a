"""Deltas between two snapshots: additive, never negative, and counted as what they are."""

import itertools
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.deltas import (
    MAX_INTERVAL_MS,
    MAX_SPREAD_MS,
    CarriedOffsets,
    CarriedPartitions,
    OffsetDeltas,
    offset_deltas,
    partition_deltas,
    state_ms,
)
from kview.model.snapshot import Offsets, Snapshot, empty
from kview.model.units import UNKNOWN
from tests.worlds import World, default_world


def row(snapshot: Snapshot, topic: str, partition: int) -> int:
    table = snapshot.partitions
    return int(np.flatnonzero((table.topic == topic) & (table.partition == partition))[0])


def offset_row(snapshot: Snapshot, group: str, topic: str, partition: int) -> int:
    table = snapshot.offsets
    return int(
        np.flatnonzero((table.group == group) & (table.topic == topic) & (table.partition == partition))[0]
    )


def ticked(world: World, count: int) -> list[Snapshot]:
    return [world.tick() for _ in range(count)]


def test_sums_of_deltas_are_what_came_in() -> None:
    snapshots = ticked(default_world(), 20)
    pairs = list(itertools.pairwise(snapshots))
    total = np.sum([partition_deltas(a, b).records_in for a, b in pairs], axis=0)
    first, last = snapshots[0].partitions.log_end, snapshots[-1].partitions.log_end
    assert np.array_equal(total, last - first)
    assert total.sum() > 0


def test_the_interval_is_that_of_the_readings() -> None:
    a, b = ticked(default_world(), 2)
    deltas = partition_deltas(a, b)
    assert np.array_equal(deltas.began_ms, a.partitions.log_end_ms)
    assert np.array_equal(deltas.ended_ms, b.partitions.log_end_ms)
    assert state_ms(a, b) == 1000


def test_first_sight_counts_nothing() -> None:
    (only,) = ticked(default_world(), 1)
    deltas, offsets = partition_deltas(None, only), offset_deltas(None, only)
    for counts in (deltas.records_in, deltas.truncated, deltas.records_in_gap, deltas.replicated):
        assert not counts.any()
    assert np.array_equal(deltas.began_ms, deltas.ended_ms)
    assert not offsets.records_out.any() and not offsets.rewound.any()
    assert state_ms(None, only) == 0


def test_followers_and_racks_are_told_apart() -> None:
    a, b = ticked(default_world(), 2)
    deltas = partition_deltas(a, b)
    at = row(b, "invoice", 0)
    grown = b.replicas.log_end - a.replicas.log_end
    followers = (b.replicas.row == at) & (b.replicas.broker != b.partitions.leader[at])
    assert deltas.replicated[at] == grown[followers].sum() > 0
    racks = dict(zip(b.brokers.id.tolist(), b.brokers.rack, strict=True))
    other = followers & np.array([racks[broker] != deltas.leader_rack[at] for broker in b.replicas.broker])
    assert deltas.cross_rack[at] == grown[other].sum() > 0
    assert deltas.cross_rack[at] < deltas.replicated[at]
    assert not deltas.replicated[row(b, "audit-log", 0)]


def test_a_stale_cell_counts_nothing_and_its_records_come_with_the_next_reading() -> None:
    world = default_world()
    before = world.tick()
    world.crash(4)
    silent = ticked(world, 5)
    at = row(before, "audit-log", 3)
    for a, b in zip([before, *silent], silent, strict=False):
        deltas = partition_deltas(a, b)
        assert not deltas.records_in[at] and deltas.began_ms[at] == deltas.ended_ms[at]
    world.back(4)
    again = world.tick()
    deltas = partition_deltas(silent[-1], again)
    assert deltas.records_in[at] == again.partitions.log_end[at] - before.partitions.log_end[at] > 0
    assert deltas.began_ms[at] == before.partitions.log_end_ms[at]


def test_truncation_is_not_a_negative_rate() -> None:
    world = default_world()
    a = world.tick()
    log = world.log("invoice", 0)
    for broker in log.ends:
        log.ends[broker] -= 5_000
    b = world.tick()
    deltas = partition_deltas(a, b)
    at = row(b, "invoice", 0)
    assert deltas.records_in[at] == 0
    assert deltas.truncated[at] == a.partitions.log_end[at] - b.partitions.log_end[at] > 0
    assert deltas.replicated[at] == 0


def test_a_topic_created_again_counts_nothing() -> None:
    world = default_world()
    a = world.tick()
    log = world.log("invoice", 0)
    log.topic_id, log.ends = "another-id", {broker: 9e9 for broker in log.ends}
    b = world.tick()
    deltas = partition_deltas(a, b)
    at = row(b, "invoice", 0)
    assert deltas.records_in[at] == deltas.truncated[at] == deltas.records_in_gap[at] == 0
    assert deltas.replicated[at] == 0
    assert deltas.records_in[row(b, "invoice", 1)] > 0
    offsets = offset_deltas(a, b)
    assert not offsets.records_out[offset_row(b, "billing", "invoice", 0)]


def test_a_gap_has_records_but_no_interval() -> None:
    world = default_world()
    a = world.tick()
    world.skip(MAX_INTERVAL_MS // 1000)
    b = world.tick()
    deltas, offsets = partition_deltas(a, b), offset_deltas(a, b)
    grown = b.partitions.log_end - a.partitions.log_end
    assert not deltas.records_in.any() and not deltas.replicated.any()
    assert np.array_equal(deltas.records_in_gap, grown)
    assert np.array_equal(deltas.began_ms, deltas.ended_ms)
    assert not offsets.records_out.any() and offsets.records_out_gap.sum() > 0
    assert state_ms(a, b) == 0


def test_a_clock_that_jumps_back_gives_no_rate() -> None:
    world = default_world()
    a = world.tick()
    b = world.tick()
    earlier = replace(
        b,
        observation=replace(b.observation, ended_ms=a.observation.ended_ms - 60_000),
        partitions=replace(b.partitions, log_end_ms=b.partitions.log_end_ms - 61_000),
    )
    deltas = partition_deltas(a, earlier)
    assert not deltas.records_in.any() and deltas.records_in_gap.sum() > 0
    assert state_ms(a, earlier) == 0


@pytest.mark.parametrize("what", [{"cluster_id": "another"}, {"sequence": -1}], ids=["id", "observer"])
def test_another_cluster_counts_nothing(what: dict[str, Any]) -> None:
    a, b = ticked(default_world(), 2)
    other = replace(b, observation=replace(b.observation, **what))
    carried = CarriedOffsets.of(offset_deltas(None, a))
    deltas, offsets = partition_deltas(a, other), offset_deltas(a, other, carried)
    assert not deltas.records_in.any() and not deltas.records_in_gap.any()
    nothing = replace(other, offsets=empty(Offsets))
    assert not len(offset_deltas(a, nothing, carried).records_out)
    assert not offsets.records_out.any()


def test_without_log_ends_the_high_watermark_counts() -> None:
    world = default_world()
    world.capabilities = world.capabilities - {"debugging_replica"}
    a, b = ticked(world, 2)
    assert (b.partitions.log_end == UNKNOWN).all()
    deltas = partition_deltas(a, b)
    assert np.array_equal(deltas.records_in, b.partitions.high_watermark - a.partitions.high_watermark)
    assert deltas.records_in.sum() > 0 and not deltas.replicated.any()


def test_bytes_are_records_times_size_over_offsets() -> None:
    a, b = ticked(default_world(), 2)
    b = replace(b, replicas=replace(b.replicas, size_bytes=np.full(len(b.replicas), 10**9)))
    deltas = partition_deltas(a, b)
    exact = deltas.records_in * 10**9 / (b.partitions.log_end - b.partitions.log_start)
    busy = deltas.records_in > 100
    assert busy.any()
    assert np.allclose(deltas.bytes_in[busy], exact[busy], rtol=0.006)
    unknown = replace(b, replicas=replace(b.replicas, size_bytes=np.full(len(b.replicas), UNKNOWN)))
    assert not partition_deltas(a, unknown).bytes_in.any()


def test_the_states_of_a_crash() -> None:
    world = default_world()
    world.tick()
    world.crash(4)
    silent = ticked(world, 12)
    at = row(silent[0], "invoice", 3)
    early = partition_deltas(silent[0], silent[1])
    assert early.silent[at] and not early.under_replicated[at] and not early.offline[at]
    late = partition_deltas(silent[-2], silent[-1])
    assert not late.silent[at] and late.under_replicated[at]
    assert late.offline[row(silent[0], "audit-log", 3)]
    before, after = ticked(default_world(), 2)
    healthy = partition_deltas(before, after)
    assert not (healthy.silent | healthy.offline | healthy.under_replicated | healthy.under_min_isr).any()


def test_a_topics_partitions_are_counted() -> None:
    a, b = ticked(default_world(), 2)
    deltas = partition_deltas(a, b)
    assert deltas.topic_partitions[row(b, "invoice", 9)] == 10
    assert deltas.topic_partitions[row(b, "audit-log", 0)] == 4


def committed(snapshots: list[Snapshot]) -> list[OffsetDeltas]:
    out: list[OffsetDeltas] = []
    for a, b in zip([None, *snapshots], snapshots, strict=False):
        out.append(offset_deltas(a, b, CarriedOffsets.of(out[-1]) if out else None))
    return out


def test_commits_reach_back_to_the_change_before() -> None:
    """`reporting` commits every five seconds."""
    snapshots = ticked(default_world(), 21)
    deltas = committed(snapshots)
    at = offset_row(snapshots[0], "reporting", "invoice", 0)
    moved = [i for i, delta in enumerate(deltas) if delta.records_out[at]]
    assert len(moved) >= 3 and np.all(np.diff(moved) == 5)
    for earlier, later in itertools.pairwise(moved):
        assert deltas[later].since_ms[at] == snapshots[earlier].offsets.received_ms[at]
        assert deltas[later].ended_ms[at] == snapshots[later].offsets.received_ms[at]
    total = sum(int(delta.records_out[at]) for delta in deltas)
    assert total == snapshots[-1].offsets.committed[at] - snapshots[0].offsets.committed[at]


def test_who_resumes_after_minutes_did_not_read_for_minutes() -> None:
    world = default_world()
    group = world.group("audit-export")
    snapshots = ticked(world, MAX_SPREAD_MS // 1000 + 30)
    group.committed["audit-log", 0] += 500
    snapshots.append(world.tick())
    last = committed(snapshots)[-1]
    at = offset_row(snapshots[-1], "audit-export", "audit-log", 0)
    assert last.records_out[at] == 500
    assert last.ended_ms[at] - last.since_ms[at] == MAX_SPREAD_MS


def test_commits_after_a_clock_was_set_back_reach_back_to_the_first_reading_since() -> None:
    """`reporting` commits every five seconds, and the change before was seen in the future."""
    world = default_world()
    snapshots = ticked(world, 8)
    world.now_ms -= 10_000
    world.next_ms -= 10_000
    snapshots += ticked(world, 12)
    at = offset_row(snapshots[0], "reporting", "invoice", 0)
    deltas = committed(snapshots)
    first, second = [i for i, delta in enumerate(deltas) if i > 8 and delta.records_out[at]][:2]
    assert deltas[first].since_ms[at] == snapshots[8].offsets.received_ms[at]
    assert deltas[second].since_ms[at] == snapshots[first].offsets.received_ms[at]
    assert all((delta.since_ms <= delta.ended_ms).all() for delta in deltas)


def test_a_reset_is_a_rewind() -> None:
    world = default_world()
    a = world.tick()
    world.group("audit-export").committed["audit-log", 0] -= 700
    b = world.tick()
    deltas = offset_deltas(a, b)
    at = offset_row(b, "audit-export", "audit-log", 0)
    assert deltas.rewound[at] == 700 and deltas.records_out[at] == 0


def test_a_first_commit_counts_nothing() -> None:
    world = default_world()
    world.group("audit-export").committed["audit-log", 0] = -1
    a = world.tick()
    world.group("audit-export").committed["audit-log", 0] = 300_000
    b = world.tick()
    assert not offset_deltas(a, b).records_out[offset_row(b, "audit-export", "audit-log", 0)]


@pytest.mark.parametrize("crash", [0, 2, 4])
def test_nothing_is_ever_negative(crash: int) -> None:
    world = default_world()
    snapshots = ticked(world, 3)
    world.crash(crash)
    snapshots += ticked(world, 14)
    world.back(crash)
    snapshots += ticked(world, 5)
    carried = None
    for a, b in itertools.pairwise(snapshots):
        deltas = partition_deltas(a, b)
        offsets = offset_deltas(a, b, carried)
        carried = CarriedOffsets.of(offsets)
        for counts in (
            deltas.records_in,
            deltas.bytes_in,
            deltas.truncated,
            deltas.records_in_gap,
            deltas.replicated,
            deltas.cross_rack,
            deltas.ended_ms - deltas.began_ms,
            offsets.records_out,
            offsets.rewound,
            offsets.records_out_gap,
            offsets.ended_ms - offsets.since_ms,
        ):
            assert (counts >= 0).all()


def test_a_size_belongs_to_the_log_end_that_it_was_read_with() -> None:
    """Sizes are read every few seconds: a log that has doubled since has not got smaller records."""
    world = default_world()
    first, later, again = (sized(snapshot, 50) for snapshot in ticked(world, 3))
    later = replace(later, replicas=replace(later.replicas, size_bytes=first.replicas.size_bytes))
    doubled = replace(later.partitions, log_end=later.partitions.log_end * 2)
    later = replace(later, partitions=doubled)
    a = partition_deltas(None, first)
    b = partition_deltas(first, later, CarriedPartitions.of(a))
    c = partition_deltas(later, again, CarriedPartitions.of(b))
    at = row(first, "invoice", 0)
    assert a.record_centibytes[at] == b.record_centibytes[at] == c.record_centibytes[at] == 5_000
    assert partition_deltas(first, later).record_centibytes[at] < 2_600

    # A leader that has come keeps what the one before was known for, until it reports a size of its own.
    larger = sized(again, 60)
    moved = replace(larger.partitions, leader=np.roll(larger.partitions.leader, 1))
    changed = moved.leader != again.partitions.leader
    carried = CarriedPartitions.of(c)
    d = partition_deltas(again, replace(larger, partitions=moved), carried)
    assert (d.record_centibytes == c.record_centibytes)[changed].all() and changed[at]
    assert partition_deltas(again, larger, carried).record_centibytes[at] == 6_000


def sized(snapshot: Snapshot, record_bytes: int) -> Snapshot:
    """Every replica of a partition has so many bytes for each record that its log holds."""
    table, replicas = snapshot.partitions, snapshot.replicas
    held = (table.log_end - table.log_start)[replicas.row]
    return replace(snapshot, replicas=replace(replicas, size_bytes=held * record_bytes))
