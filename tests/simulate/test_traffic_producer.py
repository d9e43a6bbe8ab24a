"""A simulated producer during failures: what it retries, when it tries another broker, and what it gives
up."""

import pytest

from kview.model.murmur2 import partition_for_key
from kview.simulate.cluster import Cluster, build
from kview.simulate.records import decode_batch
from kview.simulate.traffic.producer import IN_FLIGHT_MAX, SimulatedProducer
from kview.simulate.world import ProducerSpec, TopicSpec, World, racked_brokers

START_MS = 1_700_000_000_000
S = 1_000_000
RATE = 3000


def run(cluster: Cluster, seconds: float) -> None:
    cluster.run_until(cluster.kernel.now_us + int(seconds * S))


def at_work(replication: int = 3, acks: int = -1) -> tuple[Cluster, SimulatedProducer, int]:
    """Build a cluster with one producer that has run for 2 s, and return them with the leader of t-0."""
    topic = TopicSpec("t", 6, replication, {"min.insync.replicas": str(min(2, replication))})
    spec = ProducerSpec("p", "t", float(RATE), acks=acks, keys=500)
    cluster = build(World(racked_brokers(6, 2), (topic,), (spec,)), 1, START_MS)
    run(cluster, 2)
    return cluster, cluster.traffic.producers["p"], cluster.image(0).topics["t"].partitions[0].leader


def all_is_well(producer: SimulatedProducer) -> None:
    counters = producer.counters
    for created, acknowledged in zip(counters.created, counters.acknowledged, strict=True):
        assert created - acknowledged < RATE / 6 * 0.2  # records of a fifth of a second
    assert sum(producer.counters.expired) == producer.counters.blocked == 0


def test_while_a_watermark_is_frozen_five_requests_are_in_flight_to_a_leader() -> None:
    cluster, _, victim = at_work()
    cluster.faults.crash(victim)
    run(cluster, 6)
    topic = cluster.image((victim + 1) % 6).topics["t"]
    for leader in range(6):
        led = [p for p, image in enumerate(topic.partitions) if image.leader == leader != victim]
        uncommitted = sum(
            cluster.records.list_offset(leader, "t", p, -1, replica_id=-2).offset
            - cluster.records.list_offset(leader, "t", p, -1).offset
            for p in led
        )
        bunch = RATE / 20 * len(led) / 6
        assert uncommitted <= (IN_FLIGHT_MAX + 1) * bunch * 1.5  # out of 120 bunches that were due


def test_a_leader_that_stops_in_order_costs_nothing() -> None:
    cluster, producer, victim = at_work()
    cluster.faults.stop(victim)
    run(cluster, 5)
    assert cluster.nodes.state(victim).value == "stopped"
    all_is_well(producer)


def test_what_a_hung_leader_did_not_take_is_sent_again_when_it_dies() -> None:
    cluster, producer, victim = at_work()
    cluster.faults.hang(victim)
    run(cluster, 3)
    cluster.faults.crash(victim)
    run(cluster, 20)
    all_is_well(producer)


def test_a_hung_leader_that_goes_on_takes_what_waits_in_its_sockets() -> None:
    cluster, producer, victim = at_work()
    cluster.faults.hang(victim)
    run(cluster, 4)
    assert producer.buffered_records > RATE / 6
    cluster.faults.start(victim)
    run(cluster, 3)
    all_is_well(producer)


def test_a_hung_leader_is_left_after_the_request_time_out() -> None:
    cluster, producer, victim = at_work()
    cluster.faults.hang(victim)
    run(cluster, 20)
    acknowledged = producer.counters.acknowledged[0]
    run(cluster, 8)
    assert producer.counters.acknowledged[0] == acknowledged  # fenced long ago, but the client still waits
    run(cluster, 10)
    assert producer.counters.acknowledged[0] > acknowledged
    run(cluster, 5)
    all_is_well(producer)


def test_what_nobody_takes_for_two_minutes_is_given_up() -> None:
    cluster, producer, victim = at_work(replication=1)
    cluster.faults.crash(victim)
    run(cluster, 130)
    assert producer.counters.expired[0] > 0
    assert sum(producer.counters.expired) == sum(
        producer.counters.expired[p]
        for p, image in enumerate(cluster.image((victim + 1) % 6).topics["t"].partitions)
        if image.leader < 0
    )
    waits_s = producer.buffered_records / (RATE / 6)
    assert 100 < waits_s < 135


@pytest.mark.parametrize("acks", [0, 1])
def test_with_weaker_acks_a_frozen_watermark_stops_nobody(acks: int) -> None:
    cluster, producer, victim = at_work(acks=acks)
    before = list(producer.counters.acknowledged)
    cluster.faults.crash(victim)
    run(cluster, 6)
    partitions = cluster.image((victim + 1) % 6).topics["t"].partitions
    for p, image in enumerate(partitions):
        if image.leader != victim:
            assert producer.counters.acknowledged[p] - before[p] > 5 * RATE / 6 * 0.7


def test_every_record_s_key_belongs_to_its_partition() -> None:
    cluster, _, _ = at_work()
    for p, image in enumerate(cluster.image(0).topics["t"].partitions):
        end = cluster.records.list_offset(image.leader, "t", p, -1).offset
        for offset in (0, end - 100):  # one record from before the start, and one from after it
            read = cluster.records.read(image.leader, "t", p, offset, 1000)
            keys = [record.key for record in decode_batch(read.records) if record.key is not None]
            assert keys
            assert {partition_for_key(key, 6) for key in keys} == {p}
