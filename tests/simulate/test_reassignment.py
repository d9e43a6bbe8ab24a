"""Replicas move to other brokers: a copy takes its time, and the partition is never without its records."""

from collections.abc import Callable, Sequence
from typing import Any

from kview.simulate.alterations import Alteration, Operation
from kview.simulate.cluster import Cluster
from kview.simulate.requests.records import Acks
from kview.simulate.results import AdminResult
from kview.simulate.stream import NewRun
from tests.simulate.engine import START_MS, TOPIC, cluster_of, go, partition, produce, replica, seconds_until

RECORD_BYTES = 1_000
MEGABYTE = 1_000_000


def filled(megabytes: int, **options: Any) -> Cluster:
    """Return a cluster whose partition on brokers 0, 1 and 2 has so many megabytes of records."""
    cluster = cluster_of(brokers=6, **options)
    go(cluster, 3)
    number = cluster.records.register_producer("p", None)
    cluster.records.append_run(
        0, TOPIC, 0, NewRun(megabytes * 1_000, START_MS * 1_000, 1, RECORD_BYTES, number), Acks(1, 30_000)
    )
    go(cluster, 20)
    return cluster


def moved(cluster: Cluster, target: Sequence[int] | None) -> int:
    """Begin or cancel a reassignment, and return its error number."""
    return int(cluster.admin.reassign((TOPIC, 0), target, True).error_code)


def altered(cluster: Cluster, alter: Callable[..., AdminResult], name: str, key: str, value: str) -> None:
    assert int(alter(name, [Alteration(key, Operation.SET, value)], False, False).error_code) == 0
    go(cluster, 0.1)


def seconds_to_move(cluster: Cluster, target: tuple[int, ...], limit: float = 60.0) -> float:
    assert moved(cluster, target) == 0
    return seconds_until(cluster, lambda p: p.replicas == target, limit)


def test_a_copy_takes_the_time_that_the_network_needs() -> None:
    assert seconds_to_move(filled(500), (3, 4, 5)) > 3.0, "500 MB over 125 MB/s, with a burst at the start"
    assert seconds_to_move(filled(1), (3, 4, 5)) < 1.0


def test_meanwhile_the_partition_has_its_old_and_its_new_replicas() -> None:
    cluster = filled(500)
    assert moved(cluster, (3, 1, 4)) == 0
    (row,) = cluster.admin.reassignments()
    assert row == ((TOPIC, 0), (3, 1, 4, 0, 2), (3, 4), (0, 2))
    go(cluster, 0.5)
    assert partition(cluster).leader == 0 and set(partition(cluster).isr) == {0, 1, 2}
    answers = produce(cluster, 0, acks=-1)
    go(cluster, 0.2)
    assert [int(answer.error_code) for answer in answers] == [0], "it goes on working"
    seconds_until(cluster, lambda p: p.replicas == (3, 1, 4))
    found = partition(cluster)
    assert found.leader in found.isr and set(found.isr) == {3, 1, 4}
    assert (found.adding, found.removing, found.leader_epoch) == ((), (), 1)
    assert replica(cluster, found.leader).log.end == 500_001
    assert [b for b in cluster.broker_ids() if (TOPIC, 0) in cluster.brokers[b].replicas] == [1, 3, 4]
    assert cluster.admin.reassignments() == []
    go(cluster, 1)
    assert replica(cluster, found.leader).high_watermark == 500_001


def test_a_cancelled_reassignment_leaves_what_was_there() -> None:
    cluster = filled(500)
    assert moved(cluster, None) == 85
    assert moved(cluster, (3, 4, 5)) == 0
    go(cluster, 0.3)
    assert moved(cluster, None) == 0
    go(cluster, 0.3)
    found = partition(cluster)
    assert (set(found.replicas), set(found.isr), found.leader) == ({0, 1, 2}, {0, 1, 2}, 0)
    assert all((TOPIC, 0) not in cluster.brokers[b].replicas for b in (3, 4, 5))


def test_a_throttle_slows_the_copy_and_nothing_else() -> None:
    cluster = filled(20)
    altered(cluster, cluster.admin.alter_broker, "3", "follower.replication.throttled.rate", str(MEGABYTE))
    altered(cluster, cluster.admin.alter_topic, TOPIC, "follower.replication.throttled.replicas", "0:3")
    assert moved(cluster, (0, 1, 3)) == 0
    go(cluster, 5)
    copied = replica(cluster, 3).log.end * RECORD_BYTES
    assert 4 * MEGABYTE < copied < 7 * MEGABYTE, "1 MB/s, and half a second's worth at once"
    answers = produce(cluster, 0, acks=-1)
    go(cluster, 0.2)
    assert [int(answer.error_code) for answer in answers] == [0]
    seconds_until(cluster, lambda p: p.replicas == (0, 1, 3))


def test_a_reassignment_to_a_dead_broker_waits_for_it() -> None:
    cluster = filled(1)
    cluster.faults.crash(5)
    go(cluster, 12)
    assert moved(cluster, (0, 1, 5)) == 0
    go(cluster, 30)
    assert (partition(cluster).adding, partition(cluster).replicas) == ((5,), (0, 1, 5, 2))
    cluster.faults.start(5)
    seconds_until(cluster, lambda p: p.replicas == (0, 1, 5))


def test_another_order_of_the_same_replicas_needs_no_copy() -> None:
    cluster = filled(1)
    assert moved(cluster, (2, 1, 0)) == 0
    found = partition(cluster)
    assert (found.replicas, found.leader, found.leader_epoch, found.adding) == ((2, 1, 0), 0, 0, ())
    assert cluster.admin.elect_leaders([(TOPIC, 0)], False)[0][1].error_code == 0
    assert (partition(cluster).leader, partition(cluster).leader_epoch) == (2, 1)


def test_a_leader_that_is_to_go_leads_until_the_others_have_all() -> None:
    cluster = filled(200)
    assert moved(cluster, (1, 2)) == 0, "nothing to copy: broker 0 leaves at once"
    go(cluster, 0.2)
    found = partition(cluster)
    assert (found.replicas, found.leader in (1, 2), found.leader_epoch) == ((1, 2), True, 1)
    assert replica(cluster, found.leader).log.end == 200_000
