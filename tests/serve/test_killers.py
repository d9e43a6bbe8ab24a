"""Requests that once ended the simulated cluster, on real sockets. Afterwards another client is served."""

import socket
import time
from collections.abc import Iterator
from struct import pack
from typing import Any

import pytest
from kafka.protocol.admin import DescribeQuorumRequest
from kafka.protocol.consumer import JoinGroupRequest
from kafka.protocol.metadata import FindCoordinatorRequest
from kafka.protocol.producer import ProduceRequest

from kview.simulate.records import encode_batch
from kview.wire.compression import GZIP
from tests.real_kafka.asking import ask
from tests.serve.examples import with_checksum
from tests.served import EARLIEST, QUICK_TIMES, Served
from tests.simulate.client_batches import raw_batch
from tests.waiting import wait_until

RETENTION_CHECK = ("log.retention.check.interval.ms=200", "offsets.topic.num.partitions=1")
WITHIN_S = 15.0
ADMIN = "__admin_client"
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def shared() -> Iterator[Served]:
    with Served("--no-traffic", "--brokers", "3", settings=(*QUICK_TIMES, *RETENTION_CHECK)) as served:
        yield served


@pytest.fixture
def cluster(shared: Served, request: pytest.FixtureRequest) -> Iterator[Served]:
    """A cluster of three brokers whose retention is checked all the time, alive at the end."""
    yield shared
    shared.heal()
    topic = "after-" + "".join(c if c.isalnum() else "-" for c in request.node.name)
    shared.create(topic, [[1]])
    assert produce(shared, 1, topic, batch()) == 0, "another client is served"
    assert shared.process.poll() is None
    assert "Traceback" not in shared.errors()


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def batch(time_ms: int | None = None) -> bytes:
    return encode_batch([(b"key", b"value", now_ms() if time_ms is None else time_ms)])


def senseless() -> bytes:
    """Return a batch with the right checksum that announces five records and has none."""
    data = bytearray(batch()[:61])
    data[8:12] = pack(">i", len(data) - 12)
    data[23:27], data[57:61] = pack(">i", 4), pack(">i", 5)
    return with_checksum(bytes(data))


def produce(cluster: Served, broker: int, topic: str, records: bytes, client_id: str = "tests") -> int:
    """Produce one partition's records, and return the error number."""
    per_topic = ProduceRequest.TopicProduceData
    partition = per_topic.PartitionProduceData(version=7, index=0, records=records)
    request: Any = ProduceRequest(
        version=7,
        acks=-1,
        timeout_ms=5_000,
        topic_data=[per_topic(version=7, name=topic, partition_data=[partition])],
    )
    request.with_header(1, client_id)
    with socket.create_connection(cluster.addresses[broker], timeout=10) as connection:
        connection.sendall(request.encode(header=True, framed=True))
        stream = connection.makefile("rb")
        frame = stream.read(int.from_bytes(stream.read(4), "big"))
    answer = request.header.get_response_class().decode(frame, header=True)
    return int(answer.responses[0].partition_responses[0].error_code)


def retention_has_passed(cluster: Served) -> None:
    """Wait until broker 0 has deleted an old record of another topic, and so has looked at all its logs."""
    topic = f"short-lived-{now_ms()}"
    cluster.create(topic, [[0]], retention_ms="1")
    assert produce(cluster, 0, topic, batch(now_ms() - HOUR_MS)) == 0
    wait_until(lambda: cluster.offset(0, topic, timestamp=EARLIEST).offset == 1, "retention", WITHIN_S)


def test_describe_quorum_with_null_topics(cluster: Served) -> None:
    frame = pack(">hhih", 55, 0, 1, -1) + b"\0" + b"\0\0"
    with socket.create_connection(cluster.addresses[0], timeout=WITHIN_S) as connection:
        connection.sendall(pack(">i", len(frame)) + frame)
        assert connection.recv(1) == b"", "the connection is closed"
    metadata = DescribeQuorumRequest.TopicData(
        version=0,
        topic_name="__cluster_metadata",
        partitions=[DescribeQuorumRequest.TopicData.PartitionData(version=0, partition_index=0)],
    )
    answer = ask(cluster.addresses[0], DescribeQuorumRequest(version=0, topics=[metadata]))
    assert answer.topics[0].partitions[0].leader_id in (101, 102, 103)


@pytest.mark.parametrize("scale", [1_000_000, -(2**22)])
def test_a_timestamp_in_nanoseconds(cluster: Served, scale: int) -> None:
    topic = f"nanoseconds-{abs(scale)}"
    cluster.create(topic, [[0, 1, 2]])
    answered = produce(cluster, 0, topic, batch(now_ms() * scale))
    assert answered == (32 if scale > 0 else 0), "a time long ago is no error in Kafka"
    assert produce(cluster, 0, topic, batch()) == 0
    retention_has_passed(cluster)


def test_records_without_a_body(cluster: Served) -> None:
    cluster.create("senseless", [[0, 1, 2]], retention_ms="1000")
    assert produce(cluster, 0, "senseless", senseless()) == 87
    assert cluster.offset(0, "senseless").offset == 0, "nothing is appended"
    retention_has_passed(cluster)


def test_records_without_sense_in_the_offsets_topic_and_its_leader_crashes(cluster: Served) -> None:
    leader = cluster.partition("__consumer_offsets").leader_id
    assert produce(cluster, leader, "__consumer_offsets", batch()) == 17
    assert produce(cluster, leader, "__consumer_offsets", senseless(), ADMIN) == 87
    compressed = raw_batch(GZIP, b"not gzip", 1, now_ms())
    assert produce(cluster, leader, "__consumer_offsets", compressed, ADMIN) == -1
    assert produce(cluster, leader, "__consumer_offsets", batch(), ADMIN) == 0, "no key of a coordinator"
    cluster.do(f"crash {leader}")
    other = (leader + 1) % 3

    def coordinated() -> bool:
        request = FindCoordinatorRequest(version=3, key="g", key_type=0)
        return bool(ask(cluster.addresses[other], request).node_id not in (-1, leader))

    wait_until(coordinated, "the group has another coordinator", WITHIN_S)


def test_a_client_id_that_leaves_no_room_for_a_member_id(cluster: Served) -> None:
    coordinator = cluster.partition("__consumer_offsets").leader_id
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(version=3, name="range", metadata=b"")
    request: Any = JoinGroupRequest(
        version=3,
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id="",
        protocol_type="consumer",
        protocols=[protocol],
    )
    request.with_header(1, "c" * 32_760)
    with socket.create_connection(cluster.addresses[coordinator], timeout=WITHIN_S) as connection:
        connection.sendall(request.encode(header=True, framed=True))
        stream = connection.makefile("rb")
        frame = stream.read(int.from_bytes(stream.read(4), "big"))
    answer = request.header.get_response_class().decode(frame, header=True)
    assert (answer.error_code, answer.members) == (42, [])
    assert ask(cluster.addresses[coordinator], request).error_code == 0, "the group is free for others"
