"""A report by a standalone Spark cluster is the same as a local one, and a worker may die."""

import threading
from pathlib import Path

import pytest

from kview.errors import ClusterUnreachable, ErrorKind
from kview.model.report import Report
from kview.pipeline.batch_session import BatchSession, Tasks
from kview.pipeline.report import Question, report
from tests.benchmarks.synthetic import write_recording
from tests.pipeline.recorded import figures_of
from tests.pipeline.standalone import SETTINGS, STARTS_WITHIN_S, Standalone
from tests.real_kafka.nodes import free_ports
from tests.waiting import wait_until

PARTITIONS, OBSERVATIONS, SEGMENTS = 500, 240, 12
DONE_WITHIN_S = 240


def reported(master: str, folder: Path, cache: Path, settings: dict[str, str] | None = None) -> Report:
    with BatchSession(master, settings=settings, cluster_within_s=STARTS_WITHIN_S) as session:
        return report(session.spark, [folder], Question(), session.scratch, cache)


@pytest.mark.slow
def test_a_cluster_reports_the_same_also_if_a_worker_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    write_recording(folder, PARTITIONS, OBSERVATIONS, SEGMENTS)
    expected = figures_of(reported("local[2]", folder, tmp_path / "local"))
    (port,) = free_ports(1)
    with Standalone(tmp_path, port) as cluster:
        made = reported(cluster.url, folder, tmp_path / "cluster", SETTINGS)
        assert figures_of(made) == expected
        assert all(cluster.finished_tasks(number) > 0 for number in range(2)), "both workers had work"

        tasks: list[Tasks] = []
        results: list[Report] = []

        def run() -> None:
            with BatchSession(
                cluster.url, settings=SETTINGS, on_tasks=tasks.append, cluster_within_s=STARTS_WITHIN_S
            ) as session:
                results.append(
                    report(session.spark, [folder], Question(), session.scratch, tmp_path / "again")
                )

        thread = threading.Thread(target=run)
        thread.start()
        wait_until(lambda: any(one.done for one in tasks), "the first finished task", DONE_WITHIN_S)
        cluster.kill_worker(0)
        thread.join(DONE_WITHIN_S)
        assert [figures_of(made) for made in results] == [expected]


def test_a_master_that_nobody_reaches_is_reported() -> None:
    (port,) = free_ports(1)
    with pytest.raises(ClusterUnreachable) as caught, BatchSession(f"spark://127.0.0.1:{port}"):
        pass
    assert caught.value.kind is ErrorKind.SPARK_MASTER_UNREACHABLE
