"""The features of the real cluster that kview's tests rely on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.processes import exists
from tests.real_kafka.cluster import RealKafka
from tests.waiting import wait_until

pytestmark = pytest.mark.slow  # what uses the cluster would notice, too

ROOT = Path(__file__).resolve().parents[2]


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
