"""`kview check` as scripts run it: lines, exit codes, files, and quiet ends."""

import json
import os
import shlex
import signal
import subprocess
import textwrap
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from socket import create_server, socket
from xml.etree import ElementTree as Xml

import pytest

from kview.run.checking import write
from tests.cli.commands import KVIEW, ROOT, run_here, run_kview
from tests.served import Served
from tests.waiting import PATIENCE_S, wait_until

START_S = 120
"""A check has its time to observe, on a machine that has other things to do."""

QUICK = ("--for", "1s", "--allow-not-judged")


SOUND = ("--brokers", "3", "--racks", "3", "--no-traffic", "--topic", "orders:6:3:min.insync.replicas=2")
"""The flags of a cluster with one weakness: Kafka's default of min.insync.replicas for internal topics."""


@pytest.fixture(scope="module")
def healthy() -> Iterator[Served]:
    """A cluster with nothing wrong."""
    with Served(*SOUND) as cluster:
        yield cluster


def check(target: Served, *flags: str) -> subprocess.CompletedProcess[str]:
    return run_kview("check", target.bootstrap, *flags, timeout_s=START_S)


def test_healthy_broken_and_gone(healthy: Served, tmp_path: Path) -> None:
    """Exit code 0, 1 and 3, in the order in which a cluster dies."""
    report = tmp_path / "report.xml"
    done = check(healthy, *QUICK, "--junit", str(report))
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    *_, weakness, result = (line for line in done.stdout.splitlines() if "not judged  " not in line)
    assert weakness.startswith("· weakness  min_isr_1:__consumer_offsets  ")
    assert result.startswith("healthy: 1 weakness (--fail-on weakness makes it fail)")
    assert Xml.parse(report).getroot()[0].get("failures") == "0"
    assert check(healthy, *QUICK, "--fail-on", "weakness").returncode == 1

    healthy.do("crash 1")
    done = check(healthy, *QUICK, "--junit", str(report), "--format", "json")
    assert done.returncode == 1, done.stdout
    read = json.loads(done.stdout)
    (short,) = (
        row for row in read["findings"] if row["kind"] == "under_replicated" and row["name"] == "orders"
    )
    assert (read["healthy"], short["brokers"], short["partition_count"]) == (False, [1], 6)
    assert int(Xml.parse(report).getroot()[0].get("failures", "0")) > 0
    assert os.listdir(tmp_path) == ["report.xml"]

    healthy.do("crash 0")
    healthy.do("crash 2")
    done = check(healthy, *QUICK, "--junit", str(report))
    assert (done.returncode, done.stdout) == (3, "")
    assert "nothing is listening" in done.stderr


@pytest.mark.slow  # a check without --for takes its time, twice
def test_the_script_in_the_readme(tmp_path: Path) -> None:
    """In a shell that ends at the first error, as in CI: what is printed is all that anybody sees."""
    section = (ROOT / "README.md").read_text().split("## Check a cluster in a script")[1].split("\n\n")
    script = textwrap.dedent(section[1])
    assert script.startswith("kview check")
    program = tmp_path / "kview"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(KVIEW)} "$@"\n')
    program.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"

    def run(servers: str) -> tuple[int, str, str]:
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "SERVERS": servers}
        done = subprocess.run(
            ["sh", "-eu", "-c", script + "\necho deployed"],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=2 * START_S, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    with Served(*SOUND) as cluster:
        code, out, err = run(cluster.bootstrap)
        assert (code, out.splitlines()[-1], err) == (0, "deployed", ""), out
        assert Xml.parse(tmp_path / "kview.xml").getroot()[0].get("failures") == "0"
        cluster.do("crash 2")
        code, out, err = run(cluster.bootstrap)
        assert (code, err) == (1, "not healthy: see kview.xml\n"), out
        assert "broker 2" in out and "deployed" not in out
        assert int(Xml.parse(tmp_path / "kview.xml").getroot()[0].get("failures", "0")) > 0
        servers = cluster.bootstrap
    code, out, err = run(servers)
    assert (code, out, err.splitlines()[-1]) == (2, "", "no result")


@pytest.mark.slow  # tests/derive/test_checks.py has the rule, tests/run/test_checking.py the time
def test_without_time_to_judge_it_is_not_healthy() -> None:
    done = run_kview(
        *("check", "--simulate", "--brokers", "3", "--racks", "3", "--no-traffic"),
        *("--topic", "a:3:3:min.insync.replicas=2"),
        *("--ignore", "min_isr_1:__*", "--for", "1s"),
        timeout_s=START_S,
    )
    assert done.returncode == 1, done.stderr
    assert (
        "? not judged  broker_slow  more observations are needed: observe for longer (--for 90s)"
        in done.stdout
    )
    assert "not healthy: no findings" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "Missing argument 'HOST:PORT[,…]|PROFILE'"),
        (["localhost"], "'localhost' has no port"),
        (["a:1", "--simulate"], "leave it out, or leave out HOST:PORT or the profile"),
        (["a:1", "--brokers", "3"], "--brokers is for simulated clusters: use it with --simulate"),
        (["a:1", "--ignore", "ofline"], "did you mean offline? The kinds are offline, silent_leader"),
        (
            ["a:1", "--ignore", "zzz:a"],
            "'zzz' is not a kind of finding: the kinds are offline, silent_leader",
        ),
        (["a:1", "--ignore", ""], "'' is not a kind of finding: the kinds are offline"),
        (["a:1", "--ignore", "offline:"], "'offline:' has no name after the colon"),
        (["a:1", "--for", "soon"], "'soon' is not a valid duration"),
        (["a:1", "--for", "2h"], "'2h' is not a valid duration"),
        (["a:1", "--fail-on", "good"], "'good' is not one of 'risk', 'warn', 'weakness'"),
        (["a:1", "--leader-skew", "1"], "1.0 is not in the range x>1.0"),
        (["a:1", "--disk-skew", "nan"], "nan is not a valid number"),
        (["a:1", "--junit", "/nowhere/at/all.xml"], "cannot write /nowhere/at/all.xml (no such folder)"),
        (["a:1", "--junit", ""], "cannot write . (no file name)"),
        (["a:1", "--junit", "/tmp"], "File '/tmp' is a directory"),
        (["--simulate", "--racks", "9"], "racks"),
    ],
)
def test_bad_use(arguments: list[str], sentence: str) -> None:
    done = run_here("check", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in " ".join(done.stderr.split()) and "Traceback" not in done.stderr


@pytest.mark.slow  # tests/observe/test_bootstrap.py has the cause, test_healthy_broken_and_gone the exit code
def test_a_silent_port_is_unreachable() -> None:
    with closing(create_server(("127.0.0.1", 0))) as listening:
        done = run_kview("check", address(listening), timeout_s=START_S)
    assert (done.returncode, done.stdout) == (3, "")
    assert "accepts connections but does not answer" in done.stderr


def address(listening: socket) -> str:
    return f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.mark.slow  # the exit codes of other failures are quick
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this machine has no /dev/full")
def test_a_full_disk_is_neither_healthy_nor_a_finding() -> None:
    """Exit code 70, whatever was found: 1 would say that there are findings."""
    world = ("--simulate", "--brokers", "1", "--no-traffic", "--topic", "a:1:1")
    done = run_kview("check", *world, *QUICK, "--junit", "/dev/full", timeout_s=START_S)
    assert done.returncode == 70
    assert "kview: cannot write /dev/full (No space left on device)" in done.stderr
    assert "replication_factor_1:a" in done.stdout, "what was found is printed all the same"
    script = '"$@" > /dev/full'
    command = ["sh", "-c", script, "sh", *KVIEW, "check", *world, *QUICK]
    full = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=START_S, check=False)
    assert full.returncode == 70, full.stderr
    assert "cannot write to standard output" in full.stderr


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "report.xml"
    target.write_bytes(b"old")
    write(target, b"new")
    assert target.read_bytes() == b"new" and os.listdir(tmp_path) == ["report.xml"]


def test_a_link_stays_a_link_and_what_it_leads_to_is_written(tmp_path: Path) -> None:
    link, target = tmp_path / "latest.xml", tmp_path / "report.xml"
    link.symlink_to(target)
    write(link, b"new")
    assert link.is_symlink() and target.read_bytes() == b"new"


def test_sigterm_while_it_observes_ends_it_at_once_and_its_cluster_too(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    flags = ("--brokers", "1", "--no-traffic", "--for", "10m", "--junit", str(report))
    with subprocess.Popen(
        [*KVIEW, "check", "--simulate", *flags], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        (child,) = wait_until(lambda: children(process.pid), "the cluster's process", START_S)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == -signal.SIGTERM
    assert (out, err, os.listdir(tmp_path)) == (b"", b"", [])
    wait_until(lambda: not Path(f"/proc/{child}").exists(), "the cluster has ended, too")


def children(pid: int) -> list[int]:
    """The processes that `pid` has started."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
