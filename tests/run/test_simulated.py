"""The start, the faults and the end of the simulated cluster as a child process."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kview.errors import BadUse, ErrorKind, KviewError
from kview.lab.child import SimulatedCluster
from kview.lab.client import ControlClient
from kview.language.errors import message
from kview.model.lab import ActiveFault, Command, CommandKind, FaultState
from kview.run.observing import SourceEnded
from kview.run.simulated import SimulatedSource
from tests.e2e.processes import runs
from tests.errors import raises_saying
from tests.waiting import wait_until

SMALL = ("--brokers", "3", "--topic", "invoice:1:3", "--no-traffic")


@pytest.fixture
def cluster() -> Iterator[SimulatedCluster]:
    started = SimulatedCluster(SMALL)
    yield started
    if not started.ended():
        started.end()


def test_it_serves_takes_faults_and_ends(cluster: SimulatedCluster) -> None:
    servers = cluster.bootstrap_servers()
    assert len(servers) == 3
    for server in servers:
        socket.create_connection(server, timeout=5).close()
    faults = ControlClient(cluster.control.dup())
    reply = asyncio.run(faults.apply(Command(CommandKind.CRASH, 1)))
    assert reply.active == (ActiveFault(1, FaultState.CRASHED),)
    cluster.end()
    assert not runs(cluster.pid)


def test_ctrl_c_on_the_terminal_does_not_reach_it(cluster: SimulatedCluster) -> None:
    assert os.getpgid(cluster.pid) == cluster.pid


def test_how_it_ended_is_said_in_words(cluster: SimulatedCluster) -> None:
    cluster.bootstrap_servers()
    assert cluster.ended() is None
    os.kill(cluster.pid, signal.SIGKILL)
    how = wait_until(cluster.ended, "its end")
    assert how is not None and message(how) == "the simulated cluster was killed (SIGKILL)"


def test_bad_use_of_the_child_is_bad_use() -> None:
    cluster = SimulatedCluster(["--topic", "invoice:1:9"])
    with raises_saying(BadUse, "asks for 9 replicas, but --brokers is 6"):
        cluster.bootstrap_servers()
    how = wait_until(cluster.ended, "its end")
    assert how is not None and how.values == {"code": 2}


Stub = Callable[[str], SimulatedCluster]


@pytest.fixture
def stub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    """Start a program instead of the cluster. In the program, `control` is its end of the channel."""
    started = []

    def start(program: str) -> SimulatedCluster:
        path = tmp_path / "stub"
        begin = "import socket, sys, time; control = socket.socket(fileno=int(sys.argv[-1]))"
        path.write_text(f"#!{sys.executable}\n{begin}\n{program}\n")
        path.chmod(0o700)
        monkeypatch.setattr(sys, "executable", str(path))
        started.append(SimulatedCluster(()))
        return started[-1]

    yield start
    for cluster in started:
        cluster.end()


@pytest.mark.parametrize(
    ("program", "kind"),
    [
        ("control.close(); time.sleep(60)", ErrorKind.CLUSTER_NOT_STARTED),
        ("control.sendall(b'{' * (2 << 20))", ErrorKind.CLUSTER_GARBLED),
    ],
)
def test_a_child_that_keeps_its_parent_waiting_is_not_waited_for(
    stub: Stub, program: str, kind: ErrorKind
) -> None:
    with pytest.raises(KviewError) as caught:
        stub(program).bootstrap_servers()
    assert caught.value.kind is kind


@pytest.mark.parametrize(
    "message",
    [
        '{"type":"ready","servers":[]}',
        '{"type":"ready","servers":["kafka"]}',
        '{"type":"ending"}',
        *(
            f'{{"type":"error","kind":"{kind}","values":{values}}}'
            for kind, values in (
                ("port in use", "{}"),
                ("port in use", '{"kind":"x","port":1}'),
                ("no such kind", "{}"),
                ("cluster not ready", '{"within_s":"long"}'),
                ("no bootstrap server", '{"tried":[["a:1","no such failure"]]}'),
            )
        ),
    ],
)
def test_a_first_message_that_does_not_fit_is_an_error(stub: Stub, message: str) -> None:
    with raises_saying(KviewError, "kview does not understand the simulated cluster's answer"):
        stub(f"control.sendall({message.encode()!r} + b'\\n')").bootstrap_servers()


def test_a_source_says_that_its_cluster_died_and_finds_another_one() -> None:
    source = SimulatedSource(SMALL, interval_s=1)
    try:
        source.connect()
        first = source.observe()
        assert len(first.brokers) == 3
        os.kill(source.pid, signal.SIGKILL)
        with pytest.raises(SourceEnded) as ended:
            wait_until(lambda: not source.observe(), "its end")
        assert ended.value.error == KviewError(ErrorKind.CLUSTER_KILLED, signal="SIGKILL").facts
        source.connect()
        assert len(source.observe().brokers) == 3
        reply = asyncio.run(source.apply(Command(CommandKind.CRASH, 1)))
        assert reply.done, "faults reach the new cluster"
    finally:
        source.close()
    with pytest.raises(SourceEnded):
        source.connect()
