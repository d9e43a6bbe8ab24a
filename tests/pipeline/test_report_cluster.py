"""A report by a standalone Spark cluster is the same as a local one, and a worker may die."""

import time
from pathlib import Path

import pytest

from tests.benchmarks.synthetic import write_recording
from tests.pipeline.commanded import document, ended, start
from tests.pipeline.standalone import FLAGS, Standalone
from tests.real_kafka.nodes import free_ports
from tests.waiting import wait_until

PARTITIONS, OBSERVATIONS, SEGMENTS = 40, 140, 6

ANSWER_WITHIN_S = 30
"""How soon kview says that a master cannot be reached."""


@pytest.mark.slow
def test_a_cluster_reports_the_same_although_a_worker_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    write_recording(folder, PARTITIONS, OBSERVATIONS, SEGMENTS)
    (port,) = free_ports(1)
    to = ("--format", "json", "--cache")
    local = start(folder, *to, tmp_path / "local")
    with Standalone(tmp_path, port) as cluster:
        made = start(folder, *to, tmp_path / "cluster", "--master", cluster.url, *FLAGS)
        # One run for all of it, because executors that have just started are slow.
        wait_until(lambda: all(map(cluster.finished_tasks, range(2))), "work on both workers")
        cluster.kill_worker(0)
        before = cluster.finished_tasks(1)
        assert made.poll() is None, "killed in the middle"
        expected = document(local)
        assert expected["tables"]["partitions"] and expected["tables"]["groups"]
        assert document(made) == expected
        assert cluster.finished_tasks(1) > before


def test_a_master_that_nobody_reaches_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    write_recording(folder, 1, 3, 1)
    (port,) = free_ports(1)
    began_s = time.monotonic()
    code, output, errors = ended(start(folder, "--master", f"spark://127.0.0.1:{port}", state=tmp_path))
    assert time.monotonic() - began_s < ANSWER_WITHIN_S
    assert (code, output) == (3, "")
    assert errors == (
        f"kview: the Spark master spark://127.0.0.1:{port} cannot be reached: check its host and port, and "
        "that it runs, or leave out --master to use this machine\n"
    )
