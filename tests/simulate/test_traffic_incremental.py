"""Simulated members of the consumer protocol: what they keep and give back, as others come and go."""

from collections.abc import Sequence

from kview.simulate.cluster import Cluster, build
from kview.simulate.coordination.placement import partition_of
from kview.simulate.world import (
    CONSUMER,
    OFFSETS_TOPIC,
    GroupSpec,
    ProducerSpec,
    TopicSpec,
    World,
    racked_brokers,
)
from tests.simulate.engine import START_MS, go
from tests.simulate.invariants import Checker

INTERVALS = ("group.consumer.min.heartbeat.interval.ms", "group.consumer.heartbeat.interval.ms")
SETTINGS = dict.fromkeys(INTERVALS, "1000")


def group_world(members: int = 2) -> Cluster:
    world = World(
        brokers=racked_brokers(3, 1),
        topics=(TopicSpec("t", 6, 3),),
        producers=(ProducerSpec("p", "t", 600.0),),
        groups=(GroupSpec("g", ("t",), members, commit_interval_ms=500, protocol=CONSUMER),),
        settings=SETTINGS,
        warm_ms=60_000,
    )
    cluster = build(world, 3, START_MS)
    Checker(cluster)
    return cluster


def owned(cluster: Cluster) -> list[Sequence[int]]:
    return [sorted(number for _, number in m._reader.owned) for m in cluster.traffic.members["g"]]


def coordinator(cluster: Cluster) -> int:
    partition = cluster.metadata.image.topics[OFFSETS_TOPIC].partitions[partition_of("g", 50)]
    return partition.leader


def test_members_share_a_topic_from_where_the_group_was() -> None:
    cluster = group_world()
    go(cluster, 10)
    assert sorted(number for one in owned(cluster) for number in one) == list(range(6))
    assert [len(one) for one in owned(cluster)] == [3, 3]
    counters = cluster.counters()["groups"]["g"]  # type: ignore[index]
    assert (counters["reread"], counters["skipped"]) == (0, 0)
    assert 5_000 < counters["read"] < 8_000, "not what had been read before"
    described = cluster.groups(coordinator(cluster)).describe_consumer_group("g")
    assert (described.state, len(described.members)) == ("Stable", 2)


def test_one_that_joins_takes_from_the_others_and_they_read_on() -> None:
    cluster = group_world()
    go(cluster, 10)
    before = owned(cluster)
    cluster.traffic.add_member(cluster.traffic.groups["g"])
    for _ in range(4):
        positions = [dict(m._reader.positions) for m in cluster.traffic.members["g"][:2]]
        go(cluster, 3)
        for member, had in zip(cluster.traffic.members["g"][:2], positions, strict=True):
            kept = set(had) & set(member._reader.owned)
            assert len(kept) >= 2 and all(member._reader.positions[pair] > had[pair] for pair in kept)
    after = owned(cluster)
    assert [len(one) for one in after] == [2, 2, 2]
    assert all(set(now) < set(then) for now, then in zip(after[:2], before, strict=True))
    counters = cluster.counters()["groups"]["g"]  # type: ignore[index]
    assert (counters["reread"], counters["skipped"]) == (0, 0)


def test_the_others_take_over_from_one_that_leaves_and_from_one_that_dies() -> None:
    cluster = group_world(3)
    go(cluster, 10)
    cluster.traffic.members["g"][2].leave()
    go(cluster, 4)
    assert [len(one) for one in owned(cluster)[:2]] == [3, 3]
    cluster.traffic.members["g"][1].die()
    go(cluster, 40)
    assert len(owned(cluster)[0]) == 3
    go(cluster, 10)
    assert len(owned(cluster)[0]) == 6


def test_a_group_goes_on_when_its_coordinator_crashes() -> None:
    cluster = group_world(3)
    go(cluster, 10)
    before = owned(cluster)
    cluster.faults.crash(coordinator(cluster))
    go(cluster, 30)
    assert owned(cluster) == before
    described = cluster.groups(coordinator(cluster)).describe_consumer_group("g")
    assert (described.state, len(described.members)) == ("Stable", 3)
    assert cluster.counters()["groups"]["g"]["skipped"] == 0  # type: ignore[index]
    ends = {p: cluster.partitions.leader(("t", p)) for p in range(6)}
    for number, replica in ends.items():
        assert replica is not None
        member = next(m for m in cluster.traffic.members["g"] if ("t", number) in m._reader.positions)
        assert replica.high_watermark - member._reader.positions["t", number] < 300


def test_a_member_that_was_away_too_long_is_fenced_and_joins_again() -> None:
    cluster = group_world()
    go(cluster, 10)
    away = cluster.traffic.members["g"][1]
    step, away._step = away._step, lambda: None  # type: ignore[method-assign]
    go(cluster, 50)
    assert len(owned(cluster)[0]) == 6
    away._step = step  # type: ignore[method-assign]
    away._step()
    go(cluster, 10)
    assert [len(one) for one in owned(cluster)] == [3, 3]
