"""The fixture `kafka` in another project's pytest."""

import os
import re
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from kview.recording.reader import Recording
from tests.recording.snapshots import all_of

ROOT = Path(__file__).resolve().parents[2]

PROJECT = '''
import sys

import pytest
from kview.testing import Cluster

names = []


def test_the_first_has_a_topic(kafka):
    names.append(kafka.new_topic("orders"))
    assert kafka.leader(names[0]) in (0, 1, 2)
    kafka.crash(kafka.leader(names[0]))
    pids.append(kafka.pid)


pids = []


def test_the_second_has_the_same_cluster_healed(kafka):
    assert kafka.pid == pids[0] and kafka.status().healthy
    with pytest.raises(Exception, match="no partition 0"):
        kafka.leader(names[0])


@pytest.mark.kafka(brokers=1, settings={"num.partitions": "5"})
def test_a_mark_makes_another_one(kafka):
    assert kafka.brokers == (0,) and kafka.pid != pids[0]
    kafka.close()


@pytest.mark.kafka(brokers=1, settings={"num.partitions": "5"})
def test_one_that_has_ended_is_replaced(kafka):
    assert kafka.running


def test_asyncio(async_kafka):
    import asyncio

    assert asyncio.run(async_kafka.new_topic())


@pytest.mark.kafka(3)
def test_wrong_use_is_said(kafka):
    """Fails."""


def test_a_failure_has_a_recording(async_kafka):
    import asyncio

    asyncio.run(async_kafka.crash(2))
    raise AssertionError("on purpose")


def test_nothing_heavy_was_imported():
    with Cluster(brokers=1) as kafka:
        kafka.new_topic()
        mapped = open(f"/proc/{kafka.pid}/maps").read()
    assert "_crc32c" in mapped and "numpy" not in mapped and "pyarrow" not in mapped
    assert not {"pyspark", "pyarrow", "textual", "numpy", "rich", "click"} & set(sys.modules)
'''


def test_it_works_in_a_project_that_has_kview_installed(tmp_path: Path) -> None:
    if not entry_points(group="pytest11", name="kview"):
        pytest.fail("the installed kview is older than its pytest plugin: pip install --no-deps -e .")
    (tmp_path / "test_theirs.py").write_text(PROJECT)
    (tmp_path / "pytest.ini").write_text("[pytest]\nkafka_recordings = kept\n")
    (readme,) = re.findall("```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (tmp_path / "test_readme.py").write_text(readme)
    plain = {key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "CI"))}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", "--strict-markers"],
        cwd=tmp_path,
        env={**plain, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 7 passed, 1 error" in ran.stdout, ran.stdout + ran.stderr
    assert "what the Kafka cluster did" in ran.stdout
    (recording,) = re.findall(r"^kview replay (\S+)", ran.stdout, re.MULTILINE)
    assert Path(recording).parent == tmp_path / "kept"
    first, *_, last = all_of(Recording.open(recording))
    assert (first.brokers.answers.tolist(), last.brokers.answers.tolist()) == (
        [True] * 3,
        [True, True, False],
    )
    assert "the mark kafka takes names: write kafka(brokers=3)" in ran.stdout
