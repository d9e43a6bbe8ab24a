"""What clients may take of the simulated cluster: memory, connections and everybody's time."""

import socket
import time
from pathlib import Path
from struct import pack
from typing import Any

import pytest
from kafka.protocol.admin import DescribeConfigsRequest
from kafka.protocol.consumer import FetchRequest, JoinGroupRequest, JoinGroupResponse
from kafka.protocol.metadata import MetadataRequest, MetadataResponse

from kview.serve.broker import MAX_CONNECTIONS
from kview.serve.memory import Unread
from kview.simulate.records import encode_batch
from tests.real_kafka.asking import ask
from tests.serve.fake_connections import FakeBroker, FakeLoop
from tests.serve.test_killers import produce
from tests.serve.unwired import Unwired, UnwiredClient
from tests.served import Served, ServedFactory
from tests.simulate.engine import cluster_of, go
from tests.waiting import wait_until

API_VERSIONS = pack(">ihhih", 10, 18, 0, 7, -1)
MB = 1_000_000
NO_DELAY = {"group.initial.rebalance.delay.ms": "0"}
WITHIN_S = 20.0


def test_those_who_read_least_end_when_all_answers_take_too_much() -> None:
    broker = FakeBroker(FakeLoop(), lambda connection, frame: None, limit_bytes=1 << 20)
    broker.unread = Unread(limit_bytes=100)
    small, large, larger, last = slow = [broker.connect() for _ in range(4)]
    for client, size in zip(slow, (10, 50, 60, 30), strict=True):
        client.transport.unread_bytes = size
    for client in (small, large):
        client.connection.pause_writing()
    assert not any(client.transport.reset for client in slow)
    larger.connection.pause_writing()
    assert [client.transport.reset for client in slow] == [False, False, True, False]
    large.connection.resume_writing()
    large.transport.unread_bytes = 0
    last.connection.pause_writing()
    assert [client.transport.reset for client in slow] == [False, False, True, False]


def resident_bytes(pid: int) -> int:
    """Return the memory of a process. Skips the test if the system does not tell."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_text().split()
    except OSError:
        pytest.skip("no /proc")
    return int(fields[1]) * 4096


def fetch(topic: str) -> bytes:
    per_topic = FetchRequest.FetchTopic
    partition = per_topic.FetchPartition(version=11, partition=0, fetch_offset=0, partition_max_bytes=1 << 30)
    request: Any = FetchRequest(
        version=11,
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=52_428_800,
        topics=[per_topic(version=11, topic=topic, partitions=[partition])],
        forgotten_topics_data=[],
    )
    request.with_header(1, "never-reads")
    return bytes(request.encode(header=True, framed=True))


def test_clients_that_never_read_do_not_fill_the_memory(simulated_cluster_factory: ServedFactory) -> None:
    """Twelve fetches of 50 MB once took 550 MB."""
    cluster: Served = simulated_cluster_factory("--no-traffic", "--brokers", "1")
    cluster.create("large", [[0]])
    batch = encode_batch([(None, b"v" * MB, time.time_ns() // MB)])
    for _ in range(52):
        assert produce(cluster, 0, "large", batch) == 0
    before = resident_bytes(cluster.process.pid)
    clients = [socket.create_connection(cluster.addresses[0], timeout=WITHIN_S) for _ in range(12)]
    for client in clients:
        client.sendall(fetch("large"))
        assert int.from_bytes(client.recv(4), "big") > MB, "the answer is under way"
    assert resident_bytes(cluster.process.pid) - before < 200 * MB
    for client in clients:
        client.close()


def test_others_are_answered_while_somebody_asks_for_the_settings_of_20000_topics(
    shared_simulated: Served,
) -> None:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        version=4, resource_type=2, resource_name="invoice", configuration_keys=None
    )
    request: Any = DescribeConfigsRequest(version=4, resources=[resource] * 20_000, include_synonyms=True)
    request.with_header(1, "greedy")
    address = shared_simulated.addresses[0]
    with socket.create_connection(address) as greedy, socket.create_connection(address, WITHIN_S) as other:
        greedy.sendall(request.encode(header=True, framed=True))
        for _ in range(20):
            other.sendall(API_VERSIONS)
            assert len(other.recv(65_536)) > 4
        greedy.setblocking(False)
        with pytest.raises(BlockingIOError):
            greedy.recv(1)


@pytest.mark.parametrize("version", [1, 12])
def test_one_request_for_many_unknown_topics_is_answered_and_creates_few(version: int) -> None:
    wire, client = Unwired(cluster_of()), UnwiredClient(0)
    go(wire.cluster, 1)
    entry = MetadataRequest.MetadataRequestTopic
    names = [f"unknown-{n}" for n in range(20_000)]
    topics = [entry(version=version, name=name) for name in [*names, *names[:100]]]
    wire.ask(client, MetadataRequest(version=version, topics=topics, allow_auto_topic_creation=True))
    (answer,) = client.answers
    assert answer is not None
    decoded = MetadataResponse.decode(answer[8 + (version >= 9) :], version=version)
    assert [(t.name, t.error_code) for t in decoded.topics] == [(name, 3) for name in names]
    go(wire.cluster, 1)
    assert len(wire.cluster.metadata.image.topics) <= 2 + 100


def test_a_large_request_without_records_ends_its_connection_alone() -> None:
    wire, client, other = Unwired(cluster_of()), UnwiredClient(0), UnwiredClient(0)
    wire.send(client, pack(">hhih", 12, 0, 1, -1) + b"\0\1g" + bytes(17 << 20))
    assert client.closed and client.failures == [] and client.answers == []
    wire.ask(other, MetadataRequest(version=1, topics=[]))
    assert len(other.answers) == 1


@pytest.mark.parametrize(("size", "error"), [(1 << 20, 0), ((1 << 20) + 1, 42)])
def test_a_members_subscription_has_a_limit(size: int, error: int) -> None:
    wire, client = Unwired(cluster_of(settings=NO_DELAY)), UnwiredClient(0)
    go(wire.cluster, 1)
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(version=3, name="range", metadata=bytes(size))
    request = JoinGroupRequest(
        version=3, group_id="g", session_timeout_ms=10_000, protocol_type="consumer", protocols=[protocol]
    )
    wire.ask(client, request)
    go(wire.cluster, 1)
    (answer,) = client.answers
    assert answer is not None and JoinGroupResponse.decode(answer[8:], version=3).error_code == error


def test_a_connection_too_many_is_refused_and_the_others_are_served(
    simulated_cluster_factory: ServedFactory,
) -> None:
    cluster: Served = simulated_cluster_factory("--no-traffic", "--brokers", "2")
    before = resident_bytes(cluster.process.pid)
    clients = [
        socket.create_connection(cluster.addresses[1], timeout=WITHIN_S) for _ in range(MAX_CONNECTIONS)
    ]
    for client in clients[::50]:
        client.sendall(API_VERSIONS)
    for client in clients[::50]:
        assert int.from_bytes(client.recv(4), "big") > 4

    def refused() -> bool:
        try:
            with socket.create_connection(cluster.addresses[1], timeout=WITHIN_S) as one_more:
                one_more.sendall(API_VERSIONS)
                return one_more.recv(1) == b""
        except ConnectionError:  # as early as in `connect`, if this process is slow
            return True

    assert refused()
    clients[1].sendall(API_VERSIONS)
    assert len(clients[1].recv(65_536)) > 4, "those that are connected go on"
    assert ask(cluster.addresses[0], MetadataRequest(version=9, topics=[])).brokers, "so do other brokers"
    assert resident_bytes(cluster.process.pid) - before < 50 * MB
    clients.pop().close()
    wait_until(lambda: not refused(), "there is room again", WITHIN_S)
    for client in clients:
        client.close()
    assert "Traceback" not in cluster.errors()
