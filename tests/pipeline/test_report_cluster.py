"""A report by a standalone Spark cluster is the same as a local one, and a worker may die."""

import json
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kview.pipeline.report import Question, report
from tests.benchmarks.synthetic import write_recording
from tests.pipeline.commanded import DONE_WITHIN_S, ended, start
from tests.pipeline.here import HERE
from tests.pipeline.recorded import figures_of
from tests.pipeline.standalone import FLAGS, SETTINGS, Standalone
from tests.real_kafka.nodes import free_ports
from tests.served import kview_environment
from tests.waiting import wait_until

PARTITIONS, OBSERVATIONS, SEGMENTS = 40, 140, 6

ALONE = ("--conf", "spark.cores.max=1")
BOTH_AT_FIRST = {"spark.cores.max": "2", "spark.scheduler.minRegisteredResourcesRatio": "1.0"}
"""No task begins before both workers are there, else the first one may do all of it."""

OTHER_VERSION = (
    "import sys, collections; names = 'major minor micro releaselevel serial';"
    " sys.version_info = collections.namedtuple('V', names)({version}, 0, 'final', 0)"
)

BY_WORKERS = """
import json, sys, tempfile
from pathlib import Path
from kview.pipeline import report as reporting, rolling
from kview.pipeline.batch_session import BatchSession
from kview.pipeline.report import Question, report
from tests.pipeline.recorded import figures_of

rolling.LEAST_TASK_BYTES = rolling.TASK_BYTES = reporting.TASK_ROWS = 1
master, python, folder, cache, settings = sys.argv[1:]
with BatchSession(master, worker_python=python, settings=json.loads(settings)) as session:
    made = report(session.context, [Path(folder)], Question(), session.scratch, Path(cache))
    print(json.dumps(figures_of(made)))
"""
"""A report in as many tasks as there can be."""

ANSWER_WITHIN_S = 30
"""How soon kview says that a master cannot be reached."""


def python_with(folder: Path, *modules: str, version: str = "") -> Path:
    """Make a Python that has these modules and no kview, and return its path. With a `version`, it says that
    it is of that one."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python3*/site-packages")
    for module in modules:
        for found in Path(sysconfig.get_paths()["platlib"]).glob(f"{module}*"):
            (packages / found.name).symlink_to(found)
    if version:
        (packages / "other.pth").write_text(OTHER_VERSION.format(version=version))
    return folder / "bin" / "python"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, spark_java: None) -> Iterator[Standalone]:
    """Two workers, until the test that kills one."""
    (port,) = free_ports(1)
    with Standalone(tmp_path_factory.mktemp("cluster"), port) as started:
        yield started


@pytest.mark.slow
@pytest.mark.parametrize(
    ("modules", "version", "said"),
    [
        (("numpy",), "", "lacks pyarrow: install it there, or name another Python with --worker-python"),
        (("numpy", "pyarrow"), "3, 99", "is Python 3.99, and kview runs on 3."),
        ((), "", "cannot run"),
    ],
)
def test_a_python_of_workers_that_cannot_do_the_work(
    cluster: Standalone, tmp_path: Path, modules: tuple[str, ...], version: str, said: str
) -> None:
    folder = tmp_path / "r"
    write_recording(folder, 1, 3, 1)
    python = python_with(tmp_path / "python", *modules, version=version) if modules else tmp_path / "none"
    to: tuple[str | Path, ...] = ("--cache", tmp_path / "cache", "--master", cluster.url, *FLAGS, *ALONE)
    code, output, errors = ended(start(folder, *to, "--worker-python", python, state=tmp_path))
    assert (code, output) == (2, "")
    assert errors.startswith("kview: ") and str(python) in errors and said in errors, errors
    assert errors.count("\n") == 1


@pytest.mark.slow
def test_a_cluster_reports_the_same_although_a_worker_is_killed(cluster: Standalone, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    write_recording(folder, PARTITIONS, OBSERVATIONS, SEGMENTS)
    python = python_with(tmp_path / "python", "numpy", "pyarrow")
    lacks_kview = subprocess.run([python, "-c", "import kview"], cwd="/", capture_output=True, check=False)
    assert lacks_kview.returncode == 1
    expected = figures_of(report(HERE, [folder], Question(), tmp_path, tmp_path / "local"))
    earlier = [cluster.finished_tasks(at) for at in range(2)]
    arguments = (cluster.url, python, folder, tmp_path / "cluster", json.dumps(SETTINGS | BOTH_AT_FIRST))
    made = subprocess.Popen(
        [sys.executable, "-c", BY_WORKERS, *map(str, arguments)],
        stdout=subprocess.PIPE,
        text=True,
        env=kview_environment(),
    )
    # One run for all of it, because executors that have just started are slow.
    wait_until(
        lambda: all(cluster.finished_tasks(at) > earlier[at] + 1 for at in range(2)), "work on both workers"
    )
    cluster.kill_worker(0)
    before = cluster.finished_tasks(1)
    assert made.poll() is None, "killed in the middle"
    output, _ = made.communicate(timeout=DONE_WITHIN_S)
    assert expected["partitions"] and expected["groups"]
    assert json.loads(output) == json.loads(json.dumps(expected))
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
