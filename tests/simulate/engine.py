"""Small clusters for scenarios, without traffic, whose invariants are checked after every event."""

from collections.abc import Callable, Mapping, Sequence

from kview.simulate.brokers.replica import Replica
from kview.simulate.cluster import Cluster, build
from kview.simulate.metadata import PartitionImage
from kview.simulate.records import encode_batch
from kview.simulate.releases import KAFKA_4_3, Release
from kview.simulate.requests.records import Acks
from kview.simulate.results import ProduceResult
from kview.simulate.world import CLIENT_BYTES_MAX, TopicSpec, World, racked_brokers
from tests.simulate.invariants import Checker

START_MS = 1_700_000_000_000
TOPIC = "t"


def cluster_of(
    brokers: int = 3,
    racks: int = 1,
    partitions: int = 1,
    replication: int = 3,
    settings: Mapping[str, str] | None = None,
    configs: Mapping[str, str] | None = None,
    seed: int = 1,
    client_bytes_max: int = CLIENT_BYTES_MAX,
    release: Release = KAFKA_4_3,
) -> Cluster:
    """Build a cluster with one empty topic `t`. With one rack, partition 0 is on brokers 0, 1 and 2."""
    world = World(
        brokers=racked_brokers(brokers, racks),
        topics=(TopicSpec(TOPIC, partitions, replication, dict(configs or {})),),
        settings={"offsets.topic.num.partitions": "1", **(settings or {})},
        traffic=False,
        client_bytes_max=client_bytes_max,
        release=release,
    )
    cluster = build(world, seed, START_MS)
    Checker(cluster, every_event=True)
    return cluster


def go(cluster: Cluster, seconds: float) -> None:
    """Let simulated time pass."""
    cluster.run_until(cluster.kernel.now_us + round(seconds * 1_000_000))


def seconds_until(
    cluster: Cluster, condition: Callable[[PartitionImage], bool], limit: float = 60.0
) -> float:
    """Let time pass until the controller's image of partition 0 fulfils the condition, and return the seconds
    it took."""
    begin = cluster.kernel.now_us
    while not condition(partition(cluster)):
        assert cluster.kernel.now_us - begin < limit * 1_000_000, f"still {partition(cluster)}"
        go(cluster, 0.01)
    took_us = cluster.kernel.now_us - begin
    go(cluster, 0.01)  # so that the brokers know it too
    return took_us / 1_000_000


def partition(cluster: Cluster, number: int = 0, topic: str = TOPIC) -> PartitionImage:
    """Return the controller's image of a partition."""
    found = cluster.metadata.image.partition(topic, number)
    assert found is not None
    return found


def replica(cluster: Cluster, broker: int, number: int = 0, topic: str = TOPIC) -> Replica:
    """Return a broker's replica of a partition."""
    return cluster.brokers[broker].replicas[topic, number]


def batch(values: Sequence[bytes], time_ms: int = START_MS) -> bytes:
    """Return a batch as a client would send it."""
    return encode_batch([(None, value, time_ms) for value in values])


def produce(
    cluster: Cluster,
    broker: int,
    values: Sequence[bytes] = (b"a",),
    acks: int = -1,
    data: bytes | None = None,
    timeout_ms: int = 30_000,
) -> list[ProduceResult]:
    """Append as a client would. The answers are added to the returned list as they arrive."""
    answers: list[ProduceResult] = []
    data = batch(values) if data is None else data
    cluster.records.produce(broker, TOPIC, 0, data, Acks(acks, timeout_ms, answers.append))
    return answers
