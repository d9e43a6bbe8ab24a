"""Measures what grows with what clients have left behind: `python -m tests.benchmarks.bench_limits`.

Measures single-record batches appended to one partition and topics created one by one (the last of many
against the first), a new leader's first append, how long one huge request holds another client, and the
memory that many half-sent requests take.
"""

import socket
import threading
import time
from contextlib import suppress
from struct import pack
from typing import Any

from kafka.protocol.admin import AlterConfigsRequest, CreateTopicsRequest, DescribeConfigsRequest
from kafka.protocol.metadata import MetadataRequest

from kview.simulate.cluster import Cluster
from kview.simulate.records import encode_batch
from kview.simulate.requests.records import Acks
from kview.simulate.results import ProduceResult
from kview.simulate.topics import CreatableTopic
from tests.serve.test_limits import resident_bytes
from tests.served import Served
from tests.simulate.engine import START_MS, TOPIC, cluster_of, go

BATCHES = 200_000
BATCHES_MEASURED = 10_000
TOPICS = 10_000
TOPICS_MEASURED = 500
UNKNOWN_TOPICS = 20_000
RESOURCES = 20_000
NEW_TOPICS = 10_000
HALF_SENT_CLIENTS = 40
HALF_SENT_BYTES = 48 << 20
HELD_MS_MAX = 250
PAUSE_S = 0.002
API_VERSIONS = pack(">ihhih", 10, 18, 0, 7, -1)


def quiet_cluster() -> Cluster:
    """Return a cluster without checks of its invariants."""
    cluster = cluster_of(brokers=3)
    cluster.kernel.after_event = None
    cluster.touched.keys = None
    go(cluster, 5)
    return cluster


def appended(cluster: Cluster, begin: int, end: int) -> float:
    """Append single-record batches of an idempotent producer, and return the CPU time of one in µs."""
    answers: list[ProduceResult] = []
    began = time.process_time()
    for number in range(begin, end):
        batch = encode_batch([(b"k", b"v" * 20, START_MS)], 0, -1, 7, 0, number)
        cluster.records.produce(0, TOPIC, 0, batch, Acks(-1, 1000, answers.append))
        cluster.run_until(cluster.kernel.now_us + 700)
    took = time.process_time() - began
    assert all(answer.error_code == 0 for answer in answers)
    return took / (end - begin) * 1e6


def batches() -> None:
    """Measure appends to one partition, and the first append to its next leader."""
    cluster = quiet_cluster()
    first = appended(cluster, 0, BATCHES_MEASURED)
    appended(cluster, BATCHES_MEASURED, BATCHES - BATCHES_MEASURED)
    last = appended(cluster, BATCHES - BATCHES_MEASURED, BATCHES)
    print(f"{BATCHES} batches in one partition: {first:.0f} µs each at first, {last:.0f} µs at last")
    go(cluster, 1)
    cluster.faults.stop(0)
    go(cluster, 5)
    image = cluster.metadata.image.partition(TOPIC, 0)
    assert image is not None
    batch = encode_batch([(b"k", b"v" * 20, START_MS)], 0, -1, 7, 0, BATCHES)
    began = time.process_time()
    cluster.records.produce(image.leader, TOPIC, 0, batch, Acks(1, 1000))
    print(f"the next leader's first append: {(time.process_time() - began) * 1000:.1f} ms")


def created(cluster: Cluster, begin: int, end: int) -> float:
    """Create topics, and return the CPU time of one in µs."""
    began = time.process_time()
    for number in range(begin, end):
        cluster.topics.create_topic(
            0, CreatableTopic(f"topic-{number}", 1, 3), False, 1000, lambda result: None
        )
        cluster.run_until(cluster.kernel.now_us + 20_000)
    return (time.process_time() - began) / (end - begin) * 1e6


def topics() -> None:
    """Measure topics created one by one."""
    cluster = quiet_cluster()
    first = created(cluster, 0, TOPICS_MEASURED)
    created(cluster, TOPICS_MEASURED, TOPICS)
    last = created(cluster, TOPICS, TOPICS + TOPICS_MEASURED)
    print(f"{TOPICS} topics one by one: {first:.0f} µs each at first, {last:.0f} µs at last")


def large_requests() -> dict[str, Any]:
    """Return requests with the longest lists that clients send."""
    topic = MetadataRequest.MetadataRequestTopic
    unknown = [topic(version=9, name=f"unknown-topic-{number}") for number in range(UNKNOWN_TOPICS)]
    described = DescribeConfigsRequest.DescribeConfigsResource
    resources = [
        described(version=4, resource_type=2, resource_name="invoice", configuration_keys=None)
        for _ in range(RESOURCES)
    ]
    altered = AlterConfigsRequest.AlterConfigsResource
    changes = [
        altered(version=2, resource_type=2, resource_name=f"topic-{number}", configs=[])
        for number in range(RESOURCES)
    ]
    created = CreateTopicsRequest.CreatableTopic
    topics = [
        created(
            version=7,
            name=f"new-{number}",
            num_partitions=1,
            replication_factor=3,
            assignments=[],
            configs=[],
        )
        for number in range(NEW_TOPICS)
    ]
    return {
        f"{UNKNOWN_TOPICS} unknown topics": MetadataRequest(
            version=9, topics=unknown, allow_auto_topic_creation=True
        ),
        f"the settings of {RESOURCES} topics": DescribeConfigsRequest(
            version=4, resources=resources, include_synonyms=True, include_documentation=False
        ),
        f"changes of {RESOURCES} topics": AlterConfigsRequest(
            version=2, resources=changes, validate_only=False
        ),
        f"{NEW_TOPICS} new topics": CreateTopicsRequest(
            version=7, topics=topics, timeout_ms=30_000, validate_only=False
        ),
    }


def held(what: str, request: Any) -> None:
    """Measure the longest that another client waits while somebody sends a large request."""
    request.with_header(1, "bench")
    frame = bytes(request.encode(header=True, framed=True))
    with Served("--no-traffic") as cluster:
        host, port = cluster.addresses[0]
        done = threading.Event()

        def ask() -> None:
            with socket.create_connection((host, port)) as connection:
                connection.sendall(frame)
                stream = connection.makefile("rb")
                stream.read(int.from_bytes(stream.read(4), "big"))
            done.set()

        longest, asked = 0.0, 0
        with socket.create_connection((host, port)) as other:
            thread = threading.Thread(target=ask)
            thread.start()
            began_all = time.perf_counter()
            while not done.wait(PAUSE_S):
                began = time.perf_counter()
                other.sendall(API_VERSIONS)
                other.recv(65_536)
                asked += 1
                longest = max(longest, time.perf_counter() - began)
            took = time.perf_counter() - began_all
            thread.join()
    print(
        f"a request for {what} takes {took:.1f} s, and {asked} requests of another client meanwhile take"
        f" {longest * 1000:.0f} ms at most (limit: {HELD_MS_MAX})"
    )


def half_sent() -> None:
    """Measure the memory that clients take who send half of a request of 100 MB each."""
    half = pack(">i", 2 * HALF_SENT_BYTES) + bytes(HALF_SENT_BYTES)
    with Served("--no-traffic") as cluster:
        before = resident_bytes(cluster.process.pid)
        clients = []
        for _ in range(HALF_SENT_CLIENTS):
            clients.append(socket.create_connection(cluster.addresses[0]))
            with suppress(ConnectionError):  # the largest ones end
                clients[-1].sendall(half)
        took_mb = (resident_bytes(cluster.process.pid) - before) >> 20
        for client in clients:
            client.close()
    print(f"{HALF_SENT_CLIENTS} half requests of {HALF_SENT_BYTES >> 20} MiB take {took_mb} MiB")


def main() -> None:
    """Measure and print."""
    batches()
    topics()
    for what, request in large_requests().items():
        held(what, request)
    half_sent()


if __name__ == "__main__":
    main()
