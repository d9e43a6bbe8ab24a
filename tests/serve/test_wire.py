"""How a broker of the simulated cluster reacts to raw bytes, without a client library in between."""

import socket
from struct import pack
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.protocol.admin import DescribeConfigsRequest, DescribeLogDirsRequest, DescribeQuorumRequest
from kafka.protocol.consumer import FetchRequest, OffsetForLeaderEpochRequest
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse, MetadataRequest

from kview.serve.frames import MAX_REQUEST_BYTES
from tests.served import DEBUGGING, EARLIEST, Served

REAL = {
    0: (0, 13), 1: (4, 18), 2: (1, 11), 3: (0, 13), 8: (2, 10), 9: (1, 10), 10: (0, 6), 11: (0, 9),
    12: (0, 4), 13: (0, 5), 14: (0, 5), 15: (0, 6), 16: (0, 5), 17: (0, 1), 18: (0, 4), 19: (2, 7),
    20: (1, 6), 21: (0, 2), 22: (0, 5), 23: (2, 4), 24: (0, 5), 25: (0, 4), 26: (0, 5), 27: (1, 2),
    28: (0, 5), 29: (1, 3), 30: (1, 3), 31: (1, 3), 32: (1, 4), 33: (0, 2), 34: (1, 2), 35: (1, 5),
    36: (0, 2), 37: (0, 3), 38: (1, 3), 39: (1, 2), 40: (1, 2), 41: (1, 3), 42: (0, 2), 43: (0, 2),
    44: (0, 1), 45: (0, 1), 46: (0, 0), 47: (0, 0), 48: (0, 1), 49: (0, 1), 50: (0, 0), 51: (0, 0),
    55: (0, 2), 57: (0, 2), 60: (0, 2), 61: (0, 0), 64: (0, 0), 65: (0, 0), 66: (0, 2), 68: (0, 1),
    69: (0, 1), 74: (0, 1), 75: (0, 0), 76: (1, 1), 77: (1, 1), 78: (1, 2), 79: (1, 2), 80: (0, 1),
    81: (0, 0), 83: (0, 0), 84: (0, 0), 85: (0, 1), 86: (0, 0), 87: (0, 1), 88: (0, 0), 89: (0, 0),
    90: (0, 1), 91: (0, 0), 92: (0, 0),
}  # fmt: skip
"""The versions that a broker of Kafka 4.3.1 advertises, of all its APIs."""

API_VERSIONS_V0 = pack(">hhih", 18, 0, 7, -1)


def connect(cluster: Served, broker: int = 0) -> socket.socket:
    return socket.create_connection(cluster.addresses[broker], timeout=10)


def framed(body: bytes) -> bytes:
    return pack(">i", len(body)) + body


def read_frame(connection: socket.socket) -> bytes:
    stream = connection.makefile("rb")
    size = int.from_bytes(stream.read(4), "big")
    return stream.read(size)


def hung_up(connection: socket.socket) -> bool:
    """Return whether the broker closes the connection without sending a byte."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("version", range(5))
def test_it_advertises_what_kafka_does(simulated_cluster: Served, version: int) -> None:
    request = ApiVersionsRequest(version=version, client_software_name="tests", client_software_version="1")
    answer = simulated_cluster.ask(0, request)
    assert answer.error_code == 0
    assert {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys} == REAL


def test_api_versions_of_a_later_version_is_answered_in_version_0(simulated_cluster: Served) -> None:
    with connect(simulated_cluster) as connection:
        connection.sendall(framed(pack(">hhih", 18, 99, 42, -1) + b"\x7f\x00bytes of a later age"))
        frame = read_frame(connection)
        assert int.from_bytes(frame[:4], "big") == 42
        answer = ApiVersionsResponse.decode(frame[4:], version=0)
        assert answer.error_code == 35
        assert len(answer.api_keys) == len(REAL)
        connection.sendall(framed(API_VERSIONS_V0))
        assert read_frame(connection)[:6] == pack(">ih", 7, 0), "and the connection goes on"


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        pack(">i", -1),
        pack(">i", MAX_REQUEST_BYTES + 1),
        framed(pack(">hhih", 999, 0, 1, -1)),
        framed(pack(">hhih", 3, 99, 1, -1)),
        framed(pack(">hhih", 0, 0, 1, -1)),
        framed(pack(">hhih", 3, 12, 1, 500)),
        framed(pack(">hhih", 3, 12, 1, -1) + b"\x00\xff\xff\xff\xff\x7f"),
        framed(pack(">hhih", 3, 1, 1, -1) + pack(">i", 2**31 - 1)),
        framed(pack(">hhih", 3, 1, 1, -1) + pack(">ih", 1, 2) + b"\xff\xfe"),
    ],
)
def test_garbage_ends_the_connection_and_nothing_else(simulated_cluster: Served, garbage: bytes) -> None:
    with connect(simulated_cluster) as other, connect(simulated_cluster) as connection:
        connection.sendall(garbage)
        assert hung_up(connection)
        other.sendall(framed(API_VERSIONS_V0))
        assert read_frame(other)[:4] == pack(">i", 7)
    assert "Traceback" not in simulated_cluster.errors()


@settings(max_examples=150)
@given(key=st.sampled_from(sorted(REAL)), body=st.binary(max_size=60), data=st.data())
def test_any_bytes_leave_the_cluster_answering(
    shared_simulated: Served, key: int, body: bytes, data: Any
) -> None:
    version = data.draw(st.integers(*REAL[key]))
    with connect(shared_simulated) as connection:
        connection.sendall(framed(pack(">hhih", key, version, 1, -1) + body))
        connection.shutdown(socket.SHUT_WR)
    with connect(shared_simulated) as connection:
        connection.sendall(framed(API_VERSIONS_V0))
        assert read_frame(connection)[:4] == pack(">i", 7)


def test_pipelined_requests_are_answered_in_order(simulated_cluster: Served) -> None:
    count = 500
    with connect(simulated_cluster) as connection:
        connection.sendall(b"".join(framed(pack(">hhih", 18, 0, n, -1)) for n in range(count)))
        stream = connection.makefile("rb")
        numbers = []
        for _ in range(count):
            frame = stream.read(int.from_bytes(stream.read(4), "big"))
            numbers.append(int.from_bytes(frame[:4], "big"))
    assert numbers == list(range(count))


def fetch_frame(topic: str, wait_ms: int, correlation_id: int) -> bytes:
    per_topic = FetchRequest.FetchTopic
    partition = per_topic.FetchPartition(version=11, partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        version=11,
        max_wait_ms=wait_ms,
        min_bytes=1,
        topics=[per_topic(version=11, topic=topic, partitions=[partition])],
        forgotten_topics_data=[],
    )
    request.with_header(correlation_id)
    return bytes(request.encode(header=True, framed=True))


def test_a_fetch_that_waits_holds_back_its_own_connection_alone(simulated_cluster: Served) -> None:
    simulated_cluster.create("waits", [[0]])
    with connect(simulated_cluster) as waiting, connect(simulated_cluster) as other:
        waiting.sendall(fetch_frame("waits", 3_000, 1) + framed(API_VERSIONS_V0))
        for _ in range(20):
            other.sendall(framed(API_VERSIONS_V0))
            assert read_frame(other)[:4] == pack(">i", 7)
        waiting.settimeout(0.2)
        with pytest.raises(TimeoutError):
            waiting.recv(1)
        waiting.settimeout(10)
        assert read_frame(waiting)[:4] == pack(">i", 1), "the fetch is answered first"


def test_a_frame_in_many_pieces_and_several_in_one(simulated_cluster: Served) -> None:
    with connect(simulated_cluster) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in framed(API_VERSIONS_V0):
            connection.sendall(bytes((byte,)))
        assert read_frame(connection)[:4] == pack(">i", 7)


def test_configs_say_where_they_come_from(simulated_cluster: Served) -> None:
    simulated_cluster.create("configured", [[0, 1]], min_insync_replicas="2")
    resource = DescribeConfigsRequest.DescribeConfigsResource
    resources = [
        resource(
            version=4, resource_type=2, resource_name="configured", configuration_keys=["min.insync.replicas"]
        ),
        resource(
            version=4, resource_type=4, resource_name="0", configuration_keys=["broker.session.timeout.ms"]
        ),
        resource(version=4, resource_type=4, resource_name="1", configuration_keys=None),
        resource(version=4, resource_type=2, resource_name="none", configuration_keys=None),
    ]
    topic, broker, other, none = simulated_cluster.ask(
        0, DescribeConfigsRequest(version=4, resources=resources)
    ).results
    assert [(c.name, c.value, c.config_source) for c in topic.configs] == [("min.insync.replicas", "2", 1)]
    assert [(c.name, c.value, c.config_source) for c in broker.configs] == [
        ("broker.session.timeout.ms", "1500", 4)
    ]
    assert (other.error_code, none.error_code) == (42, 3)


def test_the_quorum_names_one_leader_its_voters_and_the_brokers(simulated_cluster: Served) -> None:
    per_topic = DescribeQuorumRequest.TopicData
    metadata = per_topic(
        version=2,
        topic_name="__cluster_metadata",
        partitions=[per_topic.PartitionData(version=2, partition_index=0)],
    )
    answer = (
        simulated_cluster.ask(3, DescribeQuorumRequest(version=2, topics=[metadata])).topics[0].partitions[0]
    )
    assert answer.leader_id in (101, 102, 103)
    assert sorted(v.replica_id for v in answer.current_voters) == [101, 102, 103]
    assert sorted(o.replica_id for o in answer.observers) == list(range(6))
    assert all(o.last_fetch_timestamp > 0 for o in answer.observers)


def test_the_debugging_replica_id_is_answered_by_followers_with_their_own_log_end(
    simulated_cluster: Served,
) -> None:
    simulated_cluster.create("debugged", [[0, 1]])
    assert simulated_cluster.offset(0, "debugged").error_code == 0
    assert simulated_cluster.offset(1, "debugged").error_code == 6
    assert simulated_cluster.offset(1, "debugged", replica_id=DEBUGGING).error_code == 0
    assert simulated_cluster.offset(1, "debugged", replica_id=DEBUGGING).offset == 0
    assert simulated_cluster.offset(2, "debugged", replica_id=DEBUGGING).error_code != 0
    assert simulated_cluster.offset(0, "absent").error_code == 3
    assert simulated_cluster.offset(0, "debugged", timestamp=EARLIEST).offset == 0


def test_metadata_names_any_live_broker_as_the_controller(simulated_cluster: Served) -> None:
    request = [simulated_cluster.ask(0, MetadataRequest(version=9, topics=[])) for _ in range(60)]
    named = {answer.controller_id for answer in request}
    assert named <= set(range(6)) and len(named) > 2


def test_log_dirs_and_leader_epochs_are_answered(simulated_cluster: Served) -> None:
    simulated_cluster.create("stored", [[2]])
    described = simulated_cluster.ask(2, DescribeLogDirsRequest(version=4, topics=None)).results[0]
    assert "stored" in {t.name for t in described.topics}
    per_topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    partition = per_topic.OffsetForLeaderPartition(
        version=4, partition=0, current_leader_epoch=-1, leader_epoch=0
    )
    entry = per_topic(version=4, topic="stored", partitions=[partition])
    answer = simulated_cluster.ask(2, OffsetForLeaderEpochRequest(version=4, replica_id=-1, topics=[entry]))
    assert answer.topics[0].partitions[0].error_code == 0
    assert answer.topics[0].partitions[0].end_offset == 0
