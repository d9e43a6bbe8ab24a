"""`kview records --follow`: what is written from now on, and where it begins."""

import subprocess
import uuid

import pytest

from tests.cli.commands import KVIEW, ROOT, run_here
from tests.serve.clients import producer
from tests.served import Served
from tests.waiting import wait_until


@pytest.mark.parametrize("flag", ["--last=3", "--from=-1h", "--to=14:05", "--offset=0:3", "--partition=1"])
def test_it_begins_at_the_end(flag: str) -> None:
    done = run_here("records", "127.0.0.1:1", "orders", "--follow", flag)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--follow begins at the end of all partitions: leave out" in done.stderr


def test_a_topic_that_is_not_there_is_bad_use(simulated_cluster: Served) -> None:
    done = run_here("records", simulated_cluster.bootstrap, "nothing", "--follow")
    assert (done.returncode, done.stdout) == (2, "") and "the cluster has no topic 'nothing'" in done.stderr


@pytest.mark.slow  # tests/observe/test_tail.py has what it reads
def test_it_prints_what_is_written_from_now_on(simulated_cluster: Served) -> None:
    topic = f"follow-{uuid.uuid4().hex[:8]}"
    simulated_cluster.create(topic, [[0, 1, 2], [1, 2, 0]])
    client = producer(simulated_cluster.bootstrap)
    client.produce(topic, b"old", partition=0)
    assert client.flush(20) == 0
    flags = ("--follow", "--where", "not value = odd", "--limit", "2")
    with subprocess.Popen(
        [*KVIEW, "records", simulated_cluster.bootstrap, topic, *flags],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    ) as child:
        try:

            def written() -> bool:
                for partition, value in enumerate((b"odd", b"even")):
                    client.produce(topic, value, partition=partition)
                return client.flush(20) == 0 and child.poll() is not None

            wait_until(written, "the end of the command")
            output = child.communicate()[0]
        finally:
            child.kill()
    assert child.returncode == 0
    lines = output.splitlines()
    assert len(lines) == 2 and all(
        line.startswith(f"{topic}-1:") and line.endswith("  even") for line in lines
    )
