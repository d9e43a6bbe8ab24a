"""Compares how much the simulated cluster, librdkafka's mock cluster and a real cluster take and give.

    python -m tests.benchmarks.bench_rates [--real] [--rounds 5] [--records 100000]

One client, librdkafka, produces records of 1 kB with acks=all to four partitions of three replicas, and then
reads records again. The clusters, each in processes of its own, take turns. The script prints the medians of
the MB per second, and of the MB per second of processor time that the cluster's processes use, which a busy
machine changes less. The mock cluster does not replicate, and keeps only the last 5 MB of a partition; so of
every partition the last READ_AGAIN records are read several times.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import confluent_kafka
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.benchmarks.bench_against import cpu_s
from tests.real_kafka.cluster import RealKafka
from tests.real_kafka.jars import fetch_jars, find_java
from tests.served import Served

BROKERS = 3
PARTITIONS = 4
RECORD_BYTES = 1000
READ_AGAIN = 4_000
TOPIC = "rates"
QUIET = {"log_level": 2}
MOCK = f"""
import sys, confluent_kafka
settings = {{"bootstrap.servers": "-", "test.mock.num.brokers": {BROKERS}, "log_level": 2}}
client = confluent_kafka.Producer(settings)
brokers = client.list_topics(timeout=10).brokers.values()
print(",".join(f"{{broker.host}}:{{broker.port}}" for broker in brokers), flush=True)
sys.stdin.read()
"""


class Cluster(NamedTuple):
    """A cluster to measure, and the processes that it consists of."""

    name: str
    bootstrap: str
    pids: Sequence[int]

    def cpu_s(self) -> float:
        """Return the processor time in seconds that it has used."""
        return sum(cpu_s(pid) for pid in self.pids)


class Rate(NamedTuple):
    """MB per second, and per second of the cluster's processor time."""

    wall: float
    cpu: float


def measured(cluster: Cluster, records: int, began: tuple[float, float]) -> Rate:
    """Return the rates of so many records since `began` (time, processor time)."""
    megabytes = records * RECORD_BYTES / 1e6
    wall_s, cpu = time.perf_counter() - began[0], cluster.cpu_s() - began[1]
    return Rate(megabytes / wall_s, megabytes / max(cpu, 0.01))


def produced(cluster: Cluster, records: int) -> Rate:
    """Produce records to all partitions in turn."""
    client = confluent_kafka.Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "acks": "all",
            "linger.ms": 20,
            "batch.size": 900_000,
            "queue.buffering.max.messages": 2 * records,
            "queue.buffering.max.kbytes": 1 << 20,
            **QUIET,
        }
    )
    value = os.urandom(RECORD_BYTES)
    client.list_topics(TOPIC, timeout=10)
    began = time.perf_counter(), cluster.cpu_s()
    for number in range(records):
        client.produce(TOPIC, value, partition=number % PARTITIONS)
        if number % 1000 == 0:
            client.poll(0)
    assert client.flush(300) == 0
    return measured(cluster, records, began)


def read(cluster: Cluster, records: int) -> Rate:
    """Read the last records of every partition, again and again."""
    client = confluent_kafka.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "rates",
            "fetch.message.max.bytes": 8 << 20,
            "queued.min.messages": 1_000_000,
            **QUIET,
        }
    )
    places = [confluent_kafka.TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    ends = [client.get_watermark_offsets(place, timeout=30)[1] for place in places]
    begin = [
        confluent_kafka.TopicPartition(TOPIC, place.partition, end - READ_AGAIN)
        for place, end in zip(places, ends, strict=True)
    ]
    began, count = (time.perf_counter(), cluster.cpu_s()), 0
    while count < records:
        client.assign(begin)
        until = count + PARTITIONS * READ_AGAIN
        while count < until:
            count += len(client.consume(min(10_000, until - count), timeout=1))
    rate = measured(cluster, count, began)
    client.close()
    return rate


def create(cluster: Cluster, replicas: int) -> None:
    """Create the topic."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap, **QUIET})
    for answer in admin.create_topics([NewTopic(TOPIC, PARTITIONS, replicas)]).values():
        answer.result(30)


def mock(stack: ExitStack) -> Cluster:
    """Start librdkafka's mock cluster, whose topics appear when they are used and have four partitions."""
    process = stack.enter_context(
        subprocess.Popen(
            [sys.executable, "-c", MOCK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
    )
    assert process.stdin is not None and process.stdout is not None
    stack.callback(process.stdin.close)
    return Cluster("mock", process.stdout.readline().strip(), [process.pid])


def simulated(stack: ExitStack) -> Cluster:
    """Start a simulated cluster with Kafka's own times."""
    served = stack.enter_context(Served("--no-traffic", "--brokers", str(BROKERS), settings=()))
    return Cluster("simulated", served.bootstrap, [served.process.pid])


def real(stack: ExitStack) -> Cluster:
    """Start a real cluster with Kafka's own times."""
    java, folder = find_java(), stack.enter_context(tempfile.TemporaryDirectory(prefix="kview-rates-"))
    kafka = stack.enter_context(RealKafka(Path(folder), java, fetch_jars(java), brokers=BROKERS))
    pids = [node.process.pid for node in kafka.nodes.values() if node.process is not None]
    return Cluster("real", kafka.bootstrap_servers, pids)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--records", type=int, default=100_000)
    options = parser.parse_args()
    with ExitStack() as stack:
        clusters = [mock(stack), simulated(stack), *([real(stack)] if options.real else [])]
        for cluster in clusters[1:]:
            create(cluster, 3)
        for cluster in clusters:
            produced(cluster, options.records)
        rows: dict[str, list[tuple[Rate, Rate]]] = {cluster.name: [] for cluster in clusters}
        for _ in range(options.rounds):
            for cluster in clusters:
                rows[cluster.name].append(
                    (produced(cluster, options.records), read(cluster, options.records))
                )
    print(f"{'MB/s (MB per second of CPU time)':34} {'produced':>20} {'read':>20}")
    for name, rates in rows.items():
        cells = [
            f"{statistics.median(r.wall for r in kind):.0f} ({statistics.median(r.cpu for r in kind):.0f})"
            for kind in zip(*rates, strict=True)
        ]
        print(f"{name:34} {cells[0]:>20} {cells[1]:>20}")


if __name__ == "__main__":
    main()
