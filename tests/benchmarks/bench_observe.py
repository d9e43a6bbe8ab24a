"""Compares one observation with kafka-python's admin client.

    python -m tests.benchmarks.bench_observe [--real] [PARTITIONS…]

Both observe the same cluster in turns, which has one topic with three replicas: a simulated cluster of six
brokers, or a real one of three. The admin client returns less, because it cannot ask for the log ends of
leaders and followers.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from kafka import KafkaAdminClient, TopicPartition
from kafka.protocol.consumer import OffsetSpec

from kview.model.address import Address
from kview.observe.observer import Observer, ObserveSettings
from tests.real_kafka.cluster import RealKafka
from tests.real_kafka.jars import fetch_jars, find_java
from tests.served import Served

PARTITIONS = (1_000, 10_000)
ROUNDS = 10
TOPIC = "bench"
INTERVAL_S = 1.0


def took(look: Callable[[], object]) -> tuple[float, float]:
    """Return the wall time and the CPU time of this process, in ms, that one call of `look` takes."""
    wall, cpu = time.perf_counter(), time.process_time()
    look()
    return (time.perf_counter() - wall) * 1000, (time.process_time() - cpu) * 1000


def admin_look(admin: KafkaAdminClient, partitions: int) -> None:
    """Request everything that the admin client offers: topics, both ends of the partitions, and groups."""
    admin.describe_cluster()
    admin.describe_topics([TOPIC])
    keys = [TopicPartition(TOPIC, p) for p in range(partitions)]
    admin.list_partition_offsets(dict.fromkeys(keys, OffsetSpec.LATEST))
    admin.list_partition_offsets(dict.fromkeys(keys, OffsetSpec.EARLIEST))
    groups = [group["group_id"] for group in admin.list_groups()]
    admin.describe_groups(groups)
    admin.list_group_offsets(groups)


def compare(name: str, addresses: Sequence[Address], bootstrap: str, partitions: int) -> None:
    """Print a line for kview, one for the admin client, and the median ratio of their turns."""
    began = time.perf_counter()
    observer = Observer(addresses, ObserveSettings(interval_s=INTERVAL_S))
    observer.connect()
    observer.observe()
    first_s = time.perf_counter() - began
    observer.observe()
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    ours, theirs = [], []
    for _ in range(ROUNDS):  # in turns, so that a busy moment of the machine affects both
        time.sleep(INTERVAL_S)
        ours.append(took(observer.observe))
        theirs.append(took(lambda: admin_look(admin, partitions)))
    seen = observer.observe()
    late = (seen.observation.ended_ms - seen.partitions.high_watermark_ms).max()
    title = f"{name}, {partitions} partitions"
    for who, looks in (("observer", ours), ("wrappers", theirs)):
        wall, cpu = (statistics.median(column) for column in zip(*looks, strict=True))
        print(f"{title}  {who}  {wall:7.1f} ms wall  {cpu:7.1f} ms CPU")
    ratios = [(a[0] / b[0], a[1] / b[1]) for a, b in zip(ours, theirs, strict=True)]
    wall, cpu = (statistics.median(column) for column in zip(*ratios, strict=True))
    print(
        f"{title}  ratio     {wall:7.2f}    wall  {cpu:7.2f}    CPU  first data after {first_s:.2f} s; "
        f"oldest watermark {late} ms; {seen.observation.requests} requests, "
        f"{seen.observation.bytes_received / 1e6:.2f} MB in"
    )
    observer.close()
    admin.close()


def simulated(partitions: int) -> None:
    """Compare on a simulated cluster of six brokers."""
    with Served("--topic", f"{TOPIC}:{partitions}:3", settings=()) as cluster:
        compare("simulated", cluster.addresses, cluster.bootstrap, partitions)


def real(partitions: int) -> None:
    """Compare on a real cluster of three brokers."""
    java = find_java()
    with (
        tempfile.TemporaryDirectory(prefix="kview-kafka-") as folder,
        RealKafka(Path(folder), java, fetch_jars(java), brokers=3) as cluster,
    ):
        cluster.create_topic(TOPIC, [[(p + r) % 3 for r in range(3)] for p in range(partitions)])
        addresses = [cluster.address(broker) for broker in cluster.broker_ids]
        compare("real", addresses, cluster.bootstrap_servers, partitions)


def main() -> None:
    """Compare on clusters of these sizes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("partitions", type=int, nargs="*", default=PARTITIONS)
    parser.add_argument("--real", action="store_true", help="a real cluster; needs Java and some minutes")
    arguments = parser.parse_args()
    for partitions in arguments.partitions:
        (real if arguments.real else simulated)(partitions)


if __name__ == "__main__":
    main()
