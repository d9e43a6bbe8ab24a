"""The default world at its start."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

from kview.simulate.cluster import build
from kview.simulate.coordination.placement import partition_of
from kview.simulate.world import OFFSETS_TOPIC, Placement, default_world
from tests.simulate.engine import START_MS, go
from tests.simulate.invariants import Checker

TEACHING = ["031", "314", "142", "425", "250", "503", "031", "314", "142", "425"]


def test_the_default_world_looks_as_if_it_had_run_for_ten_minutes() -> None:
    cluster = build(default_world(), 1, START_MS)
    Checker(cluster).check_all()
    image = cluster.image(3)
    assert {n: len(t.partitions) for n, t in image.topics.items()} == {
        "invoice": 10,
        "payment": 6,
        "audit-log": 4,
        OFFSETS_TOPIC: 50,
    }
    assert ["".join(map(str, p.replicas)) for p in image.topics["invoice"].partitions] == TEACHING
    assert all(p.isr == p.replicas and p.leader == p.replicas[0] for _, p in image.all_partitions())
    assert {b.rack for b in image.brokers.values() if b.id < 3} == {"R1"}
    for topic, per_second in (("invoice", 4400), ("payment", 2500), ("audit-log", 1000)):
        ends = [
            cluster.records.list_offset(p.leader, topic, n, -1).offset
            for n, p in enumerate(image.topics[topic].partitions)
        ]
        assert abs(sum(ends) - 600 * per_second) < 600 * per_second * 0.01
        first = image.topics[topic].partitions[0]
        ago = cluster.records.list_offset(first.leader, topic, 0, START_MS - 300_000)
        assert abs(ago.offset - ends[0] / 2) < ends[0] * 0.01
        assert abs(ago.timestamp_ms - (START_MS - 300_000)) < 1000


def test_commits_and_groups_are_there_from_the_start() -> None:
    cluster = build(default_world(), 1, START_MS)
    states = {}
    for group in ("billing", "reporting", "fraud-check", "audit-export"):
        partition = partition_of(group, 50)
        coordinator = cluster.groups(cluster.image(0).topics[OFFSETS_TOPIC].partitions[partition].leader)
        described = coordinator.describe(group)
        states[group] = described.state, len(described.members)
        offsets = coordinator.fetch_offsets(group, None).offsets
        assert offsets and all(o.offset > 0 for o in offsets)
    assert states == {
        "billing": ("Stable", 3),
        "reporting": ("Stable", 2),
        "fraud-check": ("Stable", 5),
        "audit-export": ("Empty", 0),
    }


def test_traffic_goes_on_where_the_past_ended() -> None:
    cluster = build(default_world(), 1, START_MS)
    before = cluster.counters()["topics"]
    go(cluster, 10)
    after = cluster.counters()["topics"]
    assert isinstance(before, dict) and isinstance(after, dict)
    for topic, per_second in (("invoice", 4400), ("payment", 2500), ("audit-log", 1000)):
        grown = after[topic]["log_end"] - before[topic]["log_end"]
        assert abs(grown - 10 * per_second) < 500
        assert after[topic]["log_end"] - after[topic]["high_watermark"] < 1000


def test_without_traffic_topics_are_empty_and_stay_so() -> None:
    cluster = build(default_world(traffic=False), 1, START_MS)
    go(cluster, 5)
    rows = [
        row for b in cluster.broker_ids() for found in cluster.descriptions.log_dirs(b) for row in found.rows
    ]
    assert len(rows) == 10 * 3 + 6 * 3 + 4 + 50 * 3 and all(row.size_bytes == 0 for row in rows)


def test_placements_and_sizes_of_worlds() -> None:
    rack_aware = build(default_world(placement=Placement.RACK_AWARE, traffic=False), 1, START_MS)
    assert rack_aware.image(0).topics["invoice"].partitions[6].replicas == (0, 4, 2)
    one, other = (
        build(default_world(placement=Placement.STRIPED, traffic=False), s, START_MS) for s in (1, 2)
    )
    assert one.image(0).topics["invoice"].partitions != other.image(0).topics["invoice"].partitions
    leaders = Counter(p.leader for p in one.image(0).topics["payment"].partitions)
    assert set(leaders.values()) == {1}
    small = build(default_world(brokers=1, racks=1), 1, START_MS)
    go(small, 5)
    assert {len(p.isr) for _, p in small.image(0).all_partitions()} == {1}


TRACE = """
import hashlib
from kview.simulate.cluster import build
from kview.simulate.world import default_world
digest = hashlib.sha256()
cluster = build(default_world(), {seed}, 1_700_000_000_000)
cluster.kernel.trace_sink = lambda line: digest.update(line.encode() + b"\\n")
def go(seconds):
    cluster.run_until(cluster.kernel.now_us + seconds * 1_000_000)
faults = cluster.faults
go(3); faults.crash(0); go(12); faults.crash_controller(); faults.hang(4); go(5); faults.undo(); go(10)
for b in cluster.broker_ids():
    digest.update(repr(cluster.descriptions.log_dirs(b)).encode())
digest.update(repr(cluster.counters()).encode())
digest.update(repr(cluster.image(1).partition("invoice", 0)).encode())
leader = cluster.image(1).partition("invoice", 1).leader
digest.update(cluster.records.read(leader, "invoice", 1, 1000, 9999).records)
print(digest.hexdigest())
"""


def digest(seed: int, hash_seed: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", TRACE.format(seed=seed)],
        env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout


def test_the_same_seed_gives_the_same_trace_in_another_process() -> None:
    first = digest(7, "1")
    assert first == digest(7, "4242")
    assert first != digest(8, "1")
