"""The placements of `--placement` as clients see them, compared with the tables in Kafka's courses and of its
older code."""

from collections.abc import Callable

import pytest
from kafka.protocol.admin import DescribeClusterRequest

from tests.served import Served

TEACHING = [
    [0, 3, 1],
    [3, 1, 4],
    [1, 4, 2],
    [4, 2, 5],
    [2, 5, 0],
    [5, 0, 3],
    [0, 3, 1],
    [3, 1, 4],
    [1, 4, 2],
    [4, 2, 5],
]
RACK_AWARE = [*TEACHING[:6], [0, 4, 2], [3, 2, 5], [1, 5, 0], [4, 0, 3]]
RACKS = {0: "R1", 1: "R1", 2: "R1", 3: "R2", 4: "R2", 5: "R2"}


def replicas_of(cluster: Served, topic: str) -> list[list[int]]:
    partitions = sorted(cluster.metadata(topic).partitions, key=lambda p: p.partition_index)
    assert all(p.leader_id == p.replica_nodes[0] for p in partitions), "each is led by its preferred replica"
    return [list(p.replica_nodes) for p in partitions]


@pytest.mark.parametrize(("placement", "table"), [("teaching", TEACHING), ("rack-aware", RACK_AWARE)])
def test_placement_over_the_wire(
    simulated_cluster_factory: Callable[..., Served], placement: str, table: list[list[int]]
) -> None:
    cluster = simulated_cluster_factory("--placement", placement, "--topic", "invoice:10:3", "--no-traffic")
    assert replicas_of(cluster, "invoice") == table
    brokers = cluster.ask(0, DescribeClusterRequest(version=2)).brokers
    assert {b.broker_id: b.rack for b in brokers} == RACKS


def test_striped_placement_draws_from_the_seed_and_spreads_racks(
    simulated_cluster_factory: Callable[..., Served],
) -> None:
    flags = ("--placement", "striped", "--topic", "invoice:10:3", "--no-traffic", "--seed")
    first, again, other = (replicas_of(simulated_cluster_factory(*flags, seed), "invoice") for seed in "778")
    assert first == again
    assert first != other
    for replicas in [*first, *other]:
        assert len(set(replicas)) == 3
        assert {RACKS[b] for b in replicas} == {"R1", "R2"}


def test_the_default_world_takes_as_many_replicas_as_there_are_brokers(
    simulated_cluster_factory: Callable[..., Served],
) -> None:
    cluster = simulated_cluster_factory("--brokers", "2", "--no-traffic")
    for topic in ("invoice", "payment"):
        assert all(len(replicas) == 2 for replicas in replicas_of(cluster, topic))
    assert all(len(p.replica_nodes) == 2 for p in cluster.metadata("__consumer_offsets").partitions)
