"""Consumers that read from a follower in their rack (KIP-392), in the simulated and in a real cluster.

Read from Apache Kafka 4.3.1.
"""

import json
from collections.abc import Callable, Iterator
from functools import partial

import confluent_kafka
import pytest

from kview.simulate.records import encode_batch
from kview.simulate.settings import RACK_AWARE_SELECTOR
from tests.real_kafka.asking import Address, create_topic
from tests.real_kafka.cluster import RealKafka
from tests.serve import questions as q
from tests.serve.fetch_client import Client
from tests.served import QUICK_TIMES, Served
from tests.waiting import wait_until

SELECTOR = {"replica.selector.class": RACK_AWARE_SELECTOR}
BY_NAME, BY_ID = 12, 17
LONG_MS = 30_000
TIME_MS = 1_700_000_000_000


def converse(at: Callable[[int], Address], version: int, name: str) -> list[bytes]:
    """Fetch from a leader in rack R1 and its follower in R2, and return the answers."""
    assert not create_topic(at(0), name, [[0, 1, 2]], {})
    wait_until(lambda: not any(q.metadata(at(b), name) for b in range(3)), "the topic is known")
    leader, near, far = (Client(at(b), version, [name]) for b in range(3))
    here = {(name, 0): 0}
    batch = encode_batch([(None, b"one", TIME_MS), (None, b"two", TIME_MS)])
    wait_until(lambda: q.produce(at(0), name, batch) == 0, "the leader leads")
    for client in (leader, near, far):
        wait_until(partial(_has_two, client, name), "copied")
        client.frames.clear()

    def answered(client: Client, rack: str, offset: int = 0, wait_ms: int = 0) -> tuple[int, int, bool, int]:
        (row,) = client.fetch(0, -1, {(name, 0): offset}, rack=rack, wait_ms=wait_ms).rows
        return row.error, row.watermark, row.size > 0, row.preferred

    assert answered(leader, "") == answered(leader, "R1") == answered(leader, "R3") == (0, 2, True, -1)
    assert answered(leader, "R2", wait_ms=LONG_MS) == (0, 2, False, 2), "at once, though there are no records"
    assert answered(leader, "R2", offset=2, wait_ms=LONG_MS) == (0, 2, False, 2)
    assert answered(leader, "R2", offset=3) == (1, -1, False, -1), "no replica reaches that far"
    assert answered(far, "R2") == answered(far, "") == answered(near, "R2") == (0, 2, True, -1)
    assert answered(far, "R2", offset=2) == (0, 2, False, -1)
    assert answered(far, "R2", offset=3) == (1, -1, False, -1)
    (row,) = leader.fetch(0, -1, here, rack="R2", current_epoch=9).rows
    assert (row.error, row.preferred) == (75, -1)
    session = leader.fetch(0, 0, here, rack="R2").session
    assert [row.preferred for row in leader.fetch(session, 1, rack="R2").rows] == [2], "it comes again"
    assert [row.preferred for row in leader.fetch(session, 2, rack="R1").rows] == [-1]
    return [*leader.frames, *near.frames, *far.frames]


def _has_two(client: Client, name: str) -> bool:
    return [row.watermark for row in client.fetch(0, -1, {(name, 0): 0}).rows] == [2]


def reader_of(bootstrap: str, topic: str, rack: str) -> int:
    """Read all records as a consumer in this rack, and return the broker that it has read them from."""
    brokers: list[int] = []

    def seen(statistics: str) -> None:
        partitions = json.loads(statistics)["topics"].get(topic, {}).get("partitions", {})
        brokers.extend(one["broker"] for number, one in partitions.items() if number == "0")

    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "followers",
            "client.rack": rack,
            "statistics.interval.ms": 50,
            "stats_cb": seen,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    read = 0

    def has_read() -> bool:
        nonlocal read
        read += len(consumer.consume(10, timeout=0.1))
        return read == 2

    wait_until(has_read, "both records")
    brokers.clear()
    wait_until(lambda: consumer.poll(0.05) is None and bool(brokers), "statistics")
    consumer.close()
    return brokers[-1]


@pytest.fixture(scope="module")
def simulated() -> Iterator[Served]:
    """Brokers in the racks of the real cluster: 0 and 1 in R1, 2 in R2."""
    settings = (*QUICK_TIMES, *(f"{key}={value}" for key, value in SELECTOR.items()))
    with Served("--no-traffic", "--brokers", "3", "--racks", "2", settings=settings) as served:
        yield served


def test_a_leader_sends_a_consumer_to_its_rack(simulated: Served) -> None:
    converse(simulated.addresses.__getitem__, BY_ID, "sent")
    assert [reader_of(simulated.bootstrap, "sent", rack) for rack in ("R1", "R2")] == [0, 2]


@pytest.mark.parametrize("version", [BY_NAME, BY_ID])
def test_a_real_leader_does_the_same(real_kafka: RealKafka, simulated: Served, version: int) -> None:
    name = f"same-{version}"
    assert converse(real_kafka.address, version, name) == converse(
        simulated.addresses.__getitem__, version, name
    )
    for bootstrap in (real_kafka.bootstrap_servers, simulated.bootstrap):
        assert [reader_of(bootstrap, name, rack) for rack in ("R1", "R2")] == [0, 2]
