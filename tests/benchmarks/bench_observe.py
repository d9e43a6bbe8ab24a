"""Compares one observation with kafka-python's admin client.

    python -m tests.benchmarks.bench_observe [PARTITIONS…]

Both observe the same simulated cluster in one run, with six brokers and one topic with three replicas. The
admin client returns less, because it cannot ask for the log ends of leaders and followers.
"""

import statistics
import sys
import time
from collections.abc import Callable

from kafka import KafkaAdminClient, TopicPartition
from kafka.protocol.consumer import OffsetSpec

from kview.observe.observer import Observer, ObserveSettings
from tests.served import Served

PARTITIONS = (1_000, 10_000)
ROUNDS = 10
TOPIC = "bench"
INTERVAL_S = 1.0


def measured(look: Callable[[], object]) -> tuple[float, float]:
    """Return the median wall time and the median CPU time of this process, in ms, that one call of `look`
    takes."""
    walls, cpus = [], []
    for _ in range(ROUNDS):
        wall, cpu = time.perf_counter(), time.process_time()
        look()
        walls.append((time.perf_counter() - wall) * 1000)
        cpus.append((time.process_time() - cpu) * 1000)
        time.sleep(max(0.0, INTERVAL_S - walls[-1] / 1000))
    return statistics.median(walls), statistics.median(cpus)


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


def bench(partitions: int) -> None:
    """Print one line for kview and one for the admin client."""
    with Served("--topic", f"{TOPIC}:{partitions}:3", settings=()) as cluster:
        began = time.perf_counter()
        observer = Observer(cluster.addresses, ObserveSettings(interval_s=INTERVAL_S))
        observer.connect()
        observer.observe()
        first_s = time.perf_counter() - began
        observer.observe()
        wall, cpu = measured(observer.observe)
        seen = observer.observe()
        late = (seen.observation.ended_ms - seen.partitions.high_watermark_ms).max()
        print(
            f"{partitions:>6} partitions  observer  {wall:7.1f} ms wall  {cpu:7.1f} ms CPU  "
            f"first data after {first_s:.2f} s; oldest watermark {late} ms; "
            f"{seen.observation.requests} requests, {seen.observation.bytes_received / 1e6:.2f} MB in"
        )
        observer.close()
        admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
        wall, cpu = measured(lambda: admin_look(admin, partitions))
        print(f"{partitions:>6} partitions  wrappers  {wall:7.1f} ms wall  {cpu:7.1f} ms CPU")
        admin.close()


if __name__ == "__main__":
    for number in [int(argument) for argument in sys.argv[1:]] or PARTITIONS:
        bench(number)
