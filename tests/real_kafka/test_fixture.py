"""The features of the real cluster that kview's tests rely on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from tests.e2e.processes import exists
from tests.real_kafka.cluster import RealKafka
from tests.real_kafka.nodes import ClusterFailed
from tests.waiting import wait_until

pytestmark = pytest.mark.slow  # what uses the cluster would notice, too

ROOT = Path(__file__).resolve().parents[2]
TEACHING_TABLE = [
    [0, 3, 1], [3, 1, 4], [1, 4, 2], [4, 2, 5], [2, 5, 0],
    [5, 0, 3], [0, 3, 1], [3, 1, 4], [1, 4, 2], [4, 2, 5],
]  # fmt: skip


def test_a_topic_is_placed_as_asked_and_keeps_records(real_kafka: RealKafka) -> None:
    placed = [[0, 1], [2, 0], [1, 2]]
    real_kafka.create_topic("placed", placed, {"min.insync.replicas": "1"})
    seen = real_kafka.partitions("placed")
    assert [seen[partition].replicas for partition in range(3)] == placed

    with KafkaProducer(bootstrap_servers=real_kafka.bootstrap_servers, acks="all") as producer:
        for number in range(30):
            producer.send("placed", b"%d" % number, partition=number % 3).get(timeout=30)
    consumer = KafkaConsumer(bootstrap_servers=real_kafka.bootstrap_servers, auto_offset_reset="earliest")
    consumer.assign([TopicPartition("placed", partition) for partition in range(3)])
    read: list[int] = []

    def all_read() -> bool:
        for records in consumer.poll(timeout_ms=500).values():
            read.extend(int(record.value) for record in records)
        return len(read) >= 30

    wait_until(all_read, "30 records are read")
    consumer.close()
    assert sorted(read) == list(range(30))


def test_a_crash_is_one_metadata_step_and_a_restart_fills_the_isr(real_kafka: RealKafka) -> None:
    real_kafka.create_topic("crashed", [[2, 0, 1]])
    before = real_kafka.partitions("crashed")[0]
    assert before.leader == 2
    real_kafka.kill(2)
    assert real_kafka.partitions("crashed")[0] == before, "the dead leader is named until it is fenced"
    after = wait_until(
        lambda: (seen := real_kafka.partitions("crashed")[0]) != before and seen, "the metadata step", 30
    )
    assert after
    assert (after.leader, sorted(after.isr), after.leader_epoch) == (0, [0, 1], before.leader_epoch + 1)

    with pytest.raises(ClusterFailed, match="not running"):
        real_kafka.pause(2)
    real_kafka.restart(2)
    real_kafka.wait_for_full_isr("crashed", partitions=1)


def test_a_hung_broker_is_fenced_and_heals(real_kafka: RealKafka) -> None:
    real_kafka.create_topic("hung", [[1, 2, 0]])
    real_kafka.pause(1)
    wait_until(lambda: real_kafka.partitions("hung")[0].leader == 2, "another leader")
    real_kafka.heal()
    assert sorted(real_kafka.partitions("hung")[0].isr) == [0, 1, 2]


def test_a_clean_stop_leaves_no_moment_without_the_isr_known(real_kafka: RealKafka) -> None:
    real_kafka.create_topic("stopped", [[0, 1], [0, 2]])
    real_kafka.stop(0)
    seen = real_kafka.partitions("stopped")
    assert [seen[0].isr, seen[1].isr] == [[1], [2]]


def test_no_node_outlives_a_killed_test_process(kafka_runtime: tuple[Path, Path], tmp_path: Path) -> None:
    runner = subprocess.Popen(
        [sys.executable, "-m", "tests.real_kafka", "--brokers", "1"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert runner.stdout is not None
    assert runner.stdout.readline().startswith("bootstrap.servers=127.0.0.1:")
    pids = [int(word) for word in runner.stdout.readline().removeprefix("pids=").split(",")]
    assert len(pids) == 2
    runner.kill()
    runner.wait()
    wait_until(lambda: not any(map(exists, pids)), "all nodes are gone")
