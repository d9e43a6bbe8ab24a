"""Without a terminal: blocks and documents of a simulated cluster, and quiet ends."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from kview.model.address import Address
from tests.cli.commands import KVIEW, ROOT, run_here, run_kview
from tests.waiting import PATIENCE_S, wait_until

START_S = 120


Served = tuple[str, "subprocess.Popen[str]"]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """The bootstrap servers of a simulated cluster, and its process, which takes faults as lines."""
    with subprocess.Popen(
        [*KVIEW, "serve"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        first = process.stdout.readline().strip()
        assert first.startswith("bootstrap.servers="), first
        yield first.removeprefix("bootstrap.servers="), process
        process.terminate()


def tell(served: Served, line: str) -> str:
    """Give the cluster a fault; its answer."""
    process = served[1]
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()
    return process.stdout.readline()


def test_once_prints_one_block(served: Served) -> None:
    done = run_kview("connect", served[0], "--once", timeout_s=START_S)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("BROKER ") == 1
    row = next(line.split() for line in done.stdout.splitlines() if line.split()[:2] == ["R1", "0"])
    assert row[2:4] == ["●", "up"]
    assert "invoice" in done.stdout and "GROUP" in done.stdout


def test_a_document_an_interval(served: Served) -> None:
    with subprocess.Popen(
        [*KVIEW, "connect", served[0], "--format", "json", "--interval", "200ms"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        lines = process.stdout
        documents = [json.loads(lines.readline())]

        def next_has_rates_soon() -> bool:
            """Whether it has come after 200 ms, and not after the second that is usual."""
            documents.append(json.loads(lines.readline()))
            step_ms = documents[-1]["at_ms"] - documents[-2]["at_ms"]
            return bool(150 < step_ms < 900 and documents[-1]["in_records_per_second"])

        wait_until(next_has_rates_soon, "a document with rates after the interval that was asked for")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) in (0, 130, -signal.SIGINT)
        assert process.stderr.read() == ""
    invoice = [row for row in documents[-1]["partitions"] if row["topic"] == "invoice"]
    assert [row["replicas"][0]["broker_id"] for row in invoice] == [0, 3, 1, 4, 2, 5, 0, 3, 1, 4]
    assert all(row["status"] == "ok" for row in invoice)


def test_a_crash_in_documents(served: Served) -> None:
    assert tell(served, "crash 0").startswith("ok")
    try:
        done = run_kview("connect", served[0], "--once", "--format", "json", timeout_s=START_S)
        assert done.returncode == 0, done.stderr
        seen = json.loads(done.stdout)
        broker = next(row for row in seen["brokers"] if row["id"] == 0)
        assert broker["state"] == "silent" and not broker["answers"]
        assert seen["severity"] == "risk"
    finally:
        tell(served, "undo")


def test_a_reader_that_has_gone_ends_it_quietly(served: Served) -> None:
    with subprocess.Popen(
        [*KVIEW, "connect", served[0], "--interval", "100ms"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.wait(PATIENCE_S) == 0
        assert process.stderr.read() == ""


def test_latin_1_gets_ascii(served: Served) -> None:
    done = subprocess.run(
        [*KVIEW, "connect", served[0], "--once"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
    )
    assert done.stdout.isascii() and b"* up" in done.stdout


def test_simulate_prints_and_leaves_nothing_behind() -> None:
    done = run_kview("--simulate", "--brokers", "3", "--security", "sasl_ssl", "--once", timeout_s=START_S)
    assert done.returncode == 0, done.stderr
    assert "3 brokers" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--topic", "a:1:9"], "asks for 9 replicas, but --brokers is 6"),
        (["--racks", "7"], "--racks 7 is more than --brokers 6"),
        (["--set", "no.such.setting=1"], "no.such.setting"),
        (["--brokers", "0"], "--brokers"),
    ],
)
def test_a_world_that_cannot_be(arguments: list[str], sentence: str) -> None:
    done = run_here("--simulate", *arguments)
    assert done.returncode == 2, done.stderr
    assert sentence in done.stderr and "Traceback" not in done.stderr


def test_a_port_that_is_taken(served: Served) -> None:
    # The last one, because a test above crashes the first, which has no port until it is back.
    port = str(Address.parse(served[0].split(",")[-1]).port)
    done = run_here("--simulate", "--port", port)
    assert done.returncode == 2, done.stderr
    assert port in done.stderr and "Traceback" not in done.stderr
