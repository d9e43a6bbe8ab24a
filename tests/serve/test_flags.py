"""The flags of `kview serve`, its first line, the lines on its standard input, and the ways in which it
ends."""

import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pytest

from kview.lab.messages import Ask, Ending, Ready
from kview.model.address import Address
from kview.model.lab import Status
from tests.cli.commands import run_here
from tests.served import Served, kview_command, kview_environment
from tests.waiting import wait_until

ENDS_WITHIN_S = 10.0


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        kview_command("serve", *arguments),
        input="quit\n",
        capture_output=True,
        text=True,
        timeout=60,
        env=kview_environment(),
        check=False,
    )


@contextmanager
def serving(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run `kview serve` as a person would, with commands on standard input."""
    with subprocess.Popen(
        kview_command("serve", "--brokers", "2", "--no-traffic", *arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=kview_environment(),
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def first_port(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("bootstrap.servers=127.0.0.1:"), line
    return Address.parse(line.strip().removeprefix("bootstrap.servers=").split(",")[0]).port


def free_ports(count: int) -> int:
    """Return the first of `count` consecutive free ports, chosen at random because two tests run at a
    time."""
    starts = range(12_000, 19_000, 10)
    for start in random.sample(starts, len(starts)):
        try:
            for port in range(start, start + count):
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", port))
        except OSError:
            continue
        return start
    raise AssertionError("no free ports in a row")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["--topic", "big:3:4", "--brokers", "3"],
            "topic big asks for 4 replicas, but --brokers is 3",
        ),
        (["--topic", "a"], "is not complete: write NAME:PARTITIONS:REPLICAS"),
        (["--topic", "a:x:1"], "topic a cannot have 'x' partitions: give a number from 1"),
        (["--topic", "a:0:1"], "cannot have '0' partitions"),
        (["--topic", "a:1:0"], "cannot have '0' replicas"),
        (["--topic", "bad name:1:1"], "'bad name' is not a valid topic name"),
        (["--topic", "__own:1:1"], "internal topic"),
        (["--topic", "a:1:1", "--topic", "a:2:1"], "is given twice"),
        (
            ["--topic", "a:1:1:retention.ms"],
            "'retention.ms' in --topic 'a:1:1:retention.ms' is not a setting: write KEY=VALUE",
        ),
        (["--topic", "a:1:1:min.insync=2"], "did you mean min.insync.replicas?"),
        (["--set", "broker.session.timeout.ms"], "is not a setting: write KEY=VALUE"),
        (["--set", "broker.sesion.timeout.ms=1"], "broker.session.timeout.ms"),
        (["--set", "broker.session.timeout.ms=soon"], "broker.session.timeout.ms=soon"),
        (["--racks", "7", "--brokers", "6"], "--racks 7 is more than --brokers 6"),
        (["--port", "65534"], "port 65534 leaves no room for the ports of all brokers"),
        (["--port", "0"], "port 0 leaves no room"),
        (["--listen", "0.0.0.0:9092"], "0.0.0.0 is every address of this machine"),
        (["--listen", "nowhere.invalid"], "kview cannot listen on 'nowhere.invalid'"),
        (["--listen", "192.0.2.1"], "kview cannot listen on 192.0.2.1 (Cannot assign requested address)"),
        (["--listen", "::1"], "'::1' has more than one colon: put an IPv6 address in brackets"),
        (["--listen", "[::1]:9092", "--port", "1"], "--listen and --port both name a port"),
        (["--listen", "a,b"], "--listen 'a,b' has more than one place"),
        (["--listen", "127.0.0.2:65534"], "port 65534 leaves no room for the ports of all brokers"),
        (["--advertise", "a:65534"], "port 65534 leaves no room for the ports of all brokers"),
        (["--advertise", "a,b"], "--advertise gives 2 addresses for 6 brokers"),
        (["--advertise", "a:1,a:2", "--brokers", "3"], "--advertise gives 2 addresses for 3 brokers"),
        (["--advertise", "a:1,a:1", "--brokers", "2"], "a:1 is advertised for two brokers"),
        (["--advertise", "a:99999"], "'99999' in 'a:99999' is not a valid port"),
        (["--advertise", "[::]"], "clients cannot connect to '::'"),
        (["--advertise", "käfka"], "clients cannot connect to 'käfka'"),
        (["--advertise", "foo..bar:9092"], "clients cannot connect to 'foo..bar'"),
        (["--advertise", "[fe80::1%eth0]:9092"], "clients cannot connect to 'fe80::1%eth0'"),
        (["--data", "/dev/null/x", "--empty"], "/dev/null/x cannot be used (Not a directory)"),
        (["--data", "."], "--data keeps what clients write, and the simulated producers would fill the disk"),
        (["--set", "log.dirs=a,a"], "log.dirs=a,a has an empty item, or one twice"),
        (["--brokers", "0"], "0 is not in the range"),
        (["--placement", "random"], "'random' is not one of"),
        (["--release", "3.8"], "'3.8' is not one of '3.9', '4.3'"),
        (["--release", "3.9", "--set", "cordoned.log.dirs=a"], "cordoned.log.dirs"),
    ],
)
def test_bad_use_is_one_sentence_and_exit_2(arguments: list[str], says: str) -> None:
    ended = run_here("serve", *arguments)
    assert ended.returncode == 2
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr and ended.stdout == ""


def test_a_port_in_use_is_one_sentence_and_exit_2() -> None:
    first = free_ports(3)
    with socket.create_server(("127.0.0.1", first + 1)):
        ended = run("--brokers", "3", "--port", str(first))
    assert ended.returncode == 2
    assert ended.stderr.strip() == (
        f"kview: 127.0.0.1:{first + 1} is in use: choose another port, or leave it out to use free ports"
    )


def test_broker_i_listens_on_port_plus_i() -> None:
    first = free_ports(3)
    ended = run("--brokers", "3", "--no-traffic", "--port", str(first))
    assert ended.returncode == 0, ended.stderr
    servers = ",".join(f"127.0.0.1:{first + i}" for i in range(3))
    assert ended.stdout == f"bootstrap.servers={servers}\nok the cluster ends\n"
    assert ended.stderr == ""


def test_lines_are_answered_and_the_end_of_input_ends_only_the_reading() -> None:
    with serving() as process:
        port = first_port(process)
        assert process.stdin is not None and process.stdout is not None
        for line, answer in [
            ("status", "ok 2 brokers, 3 controllers; faults in force: none"),
            (
                "crash 1",
                "ok broker 1 was killed (kill −9): its port refuses connections; it is fenced when its"
                " session ends; to undo it: start 1\n",
            ),
            ("crash 1", "error broker 1 is already down: start 1 restores it\n"),
            (
                "slow 0 200ms",
                "ok broker 0 is slow: each of its answers and fetches takes 200 ms longer; to undo",
            ),
            (
                "status",
                "ok 2 brokers, 3 controllers; faults in force: broker 0 slow 200 ms; broker 1 crashed",
            ),
            ("crash 7", "error there is no node 7: the brokers are 0 to 1, the controllers 101, 102, 103"),
            ("lose-rack R9", "error there is no rack 'R9': available racks: R1, R2"),
            ("hang 102", "ok controller 102 is hung"),
            ("start 102", "ok controller 102 was resumed (kill −CONT): it votes again\n"),
            ("start 102", "error controller 102 is running normally: nothing to start\n"),
            ("undo", "ok all faults undone; nodes that were down are starting\n"),
            ("undo", "ok no fault in force\n"),
            ("crahs 1", "error unknown command 'crahs': did you mean crash?"),
        ]:
            process.stdin.write(line + "\n")
            process.stdin.flush()
            assert process.stdout.readline().startswith(answer), line
        process.stdin.close()
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            pass
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(ENDS_WITHIN_S) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it_without_a_traceback(number: signal.Signals) -> None:
    with serving() as process:
        port = first_port(process)
        process.send_signal(number)
        assert process.wait(ENDS_WITHIN_S) == 0
        assert process.stderr is not None and process.stderr.read() == ""
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=5)


def test_a_reader_that_goes_away_does_not_end_it() -> None:
    with serving() as process:
        port = first_port(process)
        assert process.stdin is not None and process.stdout is not None
        process.stdout.close()
        process.stdin.write("status\ncrash 1\nstatus\n")
        process.stdin.flush()
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            pass
        process.stdin.write("quit\n")
        process.stdin.flush()
        assert process.wait(ENDS_WITHIN_S) == 0


def test_a_child_ends_when_its_parent_is_killed() -> None:
    parent = """
import signal
from tests.served import Served
cluster = Served("--brokers", "1", "--no-traffic")
print(cluster.process.pid, flush=True)
signal.pause()
"""
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdout=subprocess.PIPE, text=True, env=kview_environment()
    ) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        os.kill(child, 0)
        process.kill()
        wait_until(lambda: not alive(child), "the child has ended", ENDS_WITHIN_S)


def alive(pid: int) -> bool:
    """Return whether a process runs, that is, it exists and is not a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_control_channel_takes_requests_and_its_end_is_the_end() -> None:
    with Served("--brokers", "1", "--no-traffic") as cluster:
        assert cluster.started == Ready((cluster.bootstrap,))
        assert msgspec.structs.replace(cluster.status(), behind_ms=0) == Status(1, 3, 0, (), True)
        assert isinstance(cluster.counters(), dict)
    assert cluster.process.returncode == 0


def test_quit_on_the_control_channel_ends_it() -> None:
    with Served("--brokers", "1", "--no-traffic") as cluster:
        assert cluster.request(Ask.QUIT) == Ending()
        assert cluster.process.wait(ENDS_WITHIN_S) == 0


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    "sent", [b"crash 0\n", b"{}\n", b"\xff\n", b'{"type":"fault","command":{"kind":"fly"}}\n', b"x" * 100_000]
)
def test_what_is_not_a_request_ends_the_channel_without_a_traceback(sent: bytes) -> None:
    with Served("--brokers", "1", "--no-traffic") as cluster:
        with contextlib.suppress(OSError):
            cluster.control.sendall(sent)
        assert cluster.process.wait(ENDS_WITHIN_S) == 0
        assert "Traceback" not in cluster.errors()
        assert "the control channel carried something other" in cluster.errors()


def test_a_control_descriptor_that_is_no_socket_is_exit_2() -> None:
    ended = run("--control-fd", "99")
    assert ended.returncode == 2
    assert "--control-fd 99 is not a socket" in ended.stderr
