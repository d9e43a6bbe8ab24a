"""Looks for one key among many records: `kview records --where` next to `kcat | grep`, on the same cluster.

    python -m tests.benchmarks.bench_find [--records 10000000] [--runs 2] [--codec none]
    python -m tests.benchmarks.bench_find --servers HOST:PORT --topic NAME --key KEY

Without --servers it starts a real broker, and produces records of about 110 bytes with JSON values to four
partitions. The two run in turns. It prints what each needed: wall and processor time, and the ratio of their
wall times (below 1: kview is faster).
"""

import argparse
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.real_kafka.cluster import RealKafka
from tests.real_kafka.jars import KAFKA_4, fetch_jars, find_java

HERE = Path(__file__).resolve().parents[2]
PARTITIONS = 4
TOPIC = "find"


class Cost(NamedTuple):
    """Seconds that a command took, and what it printed."""

    wall_s: float
    processor_s: float
    output: str


@contextmanager
def broker() -> Iterator[str]:
    """Run a real broker, and yield its address."""
    java = find_java()
    with (
        tempfile.TemporaryDirectory(prefix="kview-kafka-") as folder,
        RealKafka(Path(folder), java, fetch_jars(java, KAFKA_4), brokers=1) as cluster,
    ):
        yield cluster.bootstrap_servers


def produce(servers: str, count: int, codec: str) -> None:
    """Produce orders with keys of their own."""
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result()
    producer = Producer({
        "bootstrap.servers": servers, "compression.type": codec, "linger.ms": 20, "acks": 1,
        "queue.buffering.max.messages": 500_000, "partitioner": "murmur2_random",
    })  # fmt: skip
    for number in range(count):
        value = b'{"order":%d,"customer":{"id":%d,"name":"customer %d"},"status":"PAID","amount":%d.%02d}' % (
            number,
            number % 100_003,
            number % 977,
            number % 500,
            number % 100,
        )
        while True:
            try:
                producer.produce(TOPIC, value, b"order-%d" % number)
            except BufferError:
                producer.poll(0.05)
            else:
                break
        producer.poll(0)
    producer.flush()


def run(command: str) -> Cost:
    """Run a shell's command to its end."""
    before, began_s = os.times(), time.monotonic()
    environment = {**os.environ, "PYTHONPATH": str(HERE)}
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, env=environment, check=False
    )
    wall_s, after = time.monotonic() - began_s, os.times()
    spent_s = after.children_user - before.children_user + after.children_system - before.children_system
    if done.stderr:
        print(done.stderr.strip(), file=sys.stderr)
    return Cost(wall_s, spent_s, done.stdout.strip())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=2)
    parser.add_argument("--codec", default="none")
    parser.add_argument("--servers")
    parser.add_argument("--topic", default=TOPIC)
    parser.add_argument("--key")
    options = parser.parse_args()
    if options.servers:
        compare(options.servers, options.topic, options.key, options.runs)
        return
    with broker() as servers:
        produce(servers, options.records, options.codec)
        compare(servers, TOPIC, f"order-{options.records * 3 // 4}", options.runs)


def compare(servers: str, topic: str, key: str, runs: int) -> None:
    """Run both in turns, and print what they needed."""
    python = shlex.quote(sys.executable)
    where = shlex.quote(f"key = {key}")
    unbounded = "--max-bytes 1t --max-rate 1t"
    kview = f"{python} -m kview records {servers} {topic} --where {where} {unbounded} --format json"
    kcat = f"kcat -C -b {servers} -t {topic} -o beginning -e -q -K '|' | grep '^{key}|'"
    ratios = []
    for number in range(runs):
        ours, theirs = run(kview), run(kcat)
        assert ours.output.count("\n") == theirs.output.count("\n") and ours.output, (ours, theirs)
        ratios.append(ours.wall_s / theirs.wall_s)
        print(
            f"run {number + 1}: kview {ours.wall_s:.2f} s wall, {ours.processor_s:.2f} s processor; "
            f"kcat | grep {theirs.wall_s:.2f} s wall, {theirs.processor_s:.2f} s processor; "
            f"ratio {ratios[-1]:.2f}; load {os.getloadavg()[0]:.1f}",
            flush=True,
        )
    print(f"median ratio of wall times: {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
