"""Measures the speed of the simulated cluster on the network: `python -m tests.benchmarks.bench_serve`.

Measures the MB/s that librdkafka produces and consumes in records of 1 kB, the delay from produce to consume
at a steady rate, and the CPU time of the default world without observers.
"""

import os
import time

import confluent_kafka

from tests.serve import questions as q
from tests.served import Served

RECORD_BYTES = 1000
RECORDS = 200_000
DELAY_RECORDS_PER_S = 10_000
DELAY_SECONDS = 6.0
IDLE_SECONDS = 15.0
SINGLE_RECORDS = 500


def cpu_seconds(pid: int) -> float:
    """Return the CPU time in seconds that a process has used."""
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def throughput(cluster: Served, replicas: list[int]) -> tuple[float, float]:
    """Return the MB/s produced with acks=all and the MB/s consumed, on four partitions with these replicas
    each."""
    topic = f"throughput-{len(replicas)}"
    cluster.create(topic, [[(r + p) % 6 for r in replicas] for p in range(4)])
    client = confluent_kafka.Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "acks": "all",
            "linger.ms": 20,
            "batch.size": 900_000,
            "queue.buffering.max.messages": 2 * RECORDS,
            "queue.buffering.max.kbytes": 1 << 20,
        }
    )
    value = os.urandom(RECORD_BYTES)
    client.list_topics(topic, timeout=10)
    began = time.perf_counter()
    for n in range(RECORDS):
        client.produce(topic, value, partition=n % 4)
        if n % 1000 == 0:
            client.poll(0)
    assert client.flush(120) == 0
    produced = RECORDS * RECORD_BYTES / 1e6 / (time.perf_counter() - began)
    reader = confluent_kafka.Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": "bench", "fetch.message.max.bytes": 8 << 20}
    )
    reader.assign([confluent_kafka.TopicPartition(topic, p, 0) for p in range(4)])
    read = 0
    began = time.perf_counter()
    while read < RECORDS:
        read += len(reader.consume(10_000, timeout=1))
    consumed = RECORDS * RECORD_BYTES / 1e6 / (time.perf_counter() - began)
    reader.close()
    return produced, consumed


def delay_ms(cluster: Served) -> tuple[float, float]:
    """Return the median and the 99th percentile of the ms from produce to consume, at DELAY_RECORDS_PER_S
    with acks=all and three replicas."""
    cluster.create("delay", [[0, 3, 1]])
    client = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all", "linger.ms": 5})
    reader = confluent_kafka.Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": "bench", "fetch.wait.max.ms": 100}
    )
    reader.assign([confluent_kafka.TopicPartition("delay", 0, 0)])
    delays: list[float] = []
    began = time.perf_counter()
    sent = 0
    total = int(DELAY_RECORDS_PER_S * DELAY_SECONDS)
    while len(delays) < total:
        due = min(total, int((time.perf_counter() - began) * DELAY_RECORDS_PER_S))
        for _ in range(due - sent):
            client.produce("delay", str(time.perf_counter()).encode(), partition=0)
        sent = due
        client.poll(0)
        for message in reader.consume(1000, timeout=0.001):
            delays.append((time.perf_counter() - float(message.value() or b"nan")) * 1000)
    reader.close()
    delays.sort()
    return delays[len(delays) // 2], delays[len(delays) * 99 // 100]


def acknowledged_ms(cluster: Served) -> float:
    """Return the median ms until a single record is acknowledged by three replicas, one after another."""
    cluster.create("single", [[0, 3, 1]])
    batch, waits = q.records([b"v" * 100]), []
    q.produce(cluster.addresses[0], "single", batch)
    for _ in range(SINGLE_RECORDS):
        began = time.perf_counter()
        assert q.produce(cluster.addresses[0], "single", batch) == 0
        waits.append(1000 * (time.perf_counter() - began))
    return sorted(waits)[SINGLE_RECORDS // 2]


def main() -> None:
    """Measure and print."""
    began = time.perf_counter()
    with Served(settings=()) as cluster:
        print(f"default world: listening after {time.perf_counter() - began:.2f} s")
        time.sleep(5)
        before, began = cpu_seconds(cluster.process.pid), time.perf_counter()
        time.sleep(IDLE_SECONDS)
        used = (cpu_seconds(cluster.process.pid) - before) / (time.perf_counter() - began)
        print(f"default world, nobody looking: {100 * used:.1f} % of a core")
    with Served("--no-traffic", settings=()) as cluster:
        before, began = cpu_seconds(cluster.process.pid), time.perf_counter()
        time.sleep(IDLE_SECONDS / 3)
        used = (cpu_seconds(cluster.process.pid) - before) / (time.perf_counter() - began)
        print(f"without traffic: {100 * used:.1f} % of a core")
        for replicas in ([0], [0, 3, 1]):
            produced, consumed = throughput(cluster, replicas)
            rates = f"{produced:.0f} MB/s produced, {consumed:.0f} MB/s consumed"
            print(f"{len(replicas)} replicas, acks=all: {rates}")
        print(f"a single record, acks=all, connection included: {acknowledged_ms(cluster):.1f} ms")
        median, high = delay_ms(cluster)
        print(f"delay at {DELAY_RECORDS_PER_S} records/s: median {median:.1f} ms, 99 % {high:.1f} ms")


if __name__ == "__main__":
    main()
