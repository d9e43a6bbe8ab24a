"""The first contact: what is said when there is none, and that one broker is enough."""

import http.server
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from kview.errors import ClusterUnreachable, ErrorKind
from kview.language.errors import message, remedy
from kview.model.address import Address
from kview.observe.observer import Observer
from tests.observe.fake_broker import FakeBroker, Server, says, silent
from tests.waiting import PATIENCE_S

DEADLINE_S = 3.0
LATE_S = 2 * DEADLINE_S
"""An error that comes later has not kept the deadline, also on a machine that stalls for a while."""


def refusal(*servers: Address, deadline_s: float = DEADLINE_S) -> ClusterUnreachable:
    """The error of connecting to `servers`, which must keep the deadline."""
    began_s = time.monotonic()
    with pytest.raises(ClusterUnreachable) as caught:
        Observer(servers).connect(deadline_s)
    assert time.monotonic() - began_s < LATE_S
    assert caught.value.exit_code == 3
    assert not message(caught.value).endswith(".")
    return caught.value


@pytest.fixture
def closed_port() -> Address:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return Address(*probe.getsockname())


@pytest.fixture
def http_server() -> Iterator[Address]:
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield Address("127.0.0.1", server.server_address[1])
        server.shutdown()
        thread.join()


def test_a_closed_port_is_refused_at_once(closed_port: Address) -> None:
    error = refusal(closed_port, deadline_s=PATIENCE_S)
    assert error.kind is ErrorKind.CONNECTION_REFUSED
    assert message(error) == f"nothing is listening on {closed_port} (connection refused)"


def test_a_port_that_says_nothing() -> None:
    with Server(silent) as server:
        error = refusal(server.address)
    assert error.kind is ErrorKind.NO_ANSWER
    assert "does not answer" in message(error)


def test_an_http_server_is_recognised_by_its_answer(http_server: Address) -> None:
    error = refusal(http_server)
    assert error.kind is ErrorKind.HTTP_SERVER
    assert "HTTP" in message(error)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", ErrorKind.HTTP_SERVER),
        (b"\x15\x03\x03\x00\x02\x02\x16", ErrorKind.TLS_LISTENER),
        (b"SSH-2.0-OpenSSH_9.6\r\n", ErrorKind.NOT_A_BROKER),
        (b"\x00\x00\x00\x08\x00\x00\x00\x01\xff\xff\xff\xff", ErrorKind.NOT_A_BROKER),
        (b"", ErrorKind.CLOSES_CONNECTIONS),
    ],
)
def test_other_servers(answer: bytes, kind: ErrorKind) -> None:
    with Server(says(answer)) as server:
        assert refusal(server.address).kind is kind


@pytest.mark.parametrize("host", ["no-such-host.invalid", "a..b", ".", f"{'a' * 300}.b", "ä..ö"])
def test_a_name_that_is_not_known(host: str) -> None:
    error = refusal(Address(host, 9092))
    assert error.kind is ErrorKind.UNKNOWN_HOST
    assert f"{host}:9092" in message(error)


def test_several_servers_are_each_named(closed_port: Address) -> None:
    with Server(says(b"")) as server:
        error = refusal(closed_port, server.address)
    assert error.kind is ErrorKind.NO_BOOTSTRAP_SERVER
    assert f"{closed_port}: connection refused; {server.address}: closes connections" in message(error)


def test_no_advertised_address_answers(closed_port: Address) -> None:
    with FakeBroker(advertised={0: closed_port, 1: closed_port}) as broker:
        error = refusal(broker.address)
    assert error.kind is ErrorKind.ADVERTISED_UNREACHABLE
    assert f"{closed_port}: connection refused" in message(error)
    assert "advertised.listeners" in remedy(error)


def test_hung_and_closed_servers_do_not_delay_one_that_answers(closed_port: Address) -> None:
    with Server(silent) as hung, FakeBroker() as broker:
        observer = Observer([closed_port, hung.address, broker.address])
        began_s = time.monotonic()
        observer.connect(PATIENCE_S)
        snapshot = observer.observe()
        assert time.monotonic() - began_s < LATE_S
        observer.close()
    assert snapshot.partitions.high_watermark.tolist() == [100]


def test_one_broker_of_those_advertised_is_enough(closed_port: Address) -> None:
    with Server(silent) as hung, FakeBroker(node=1) as broker:
        broker.advertised = {1: broker.address, 2: closed_port, 3: hung.address}
        observer = Observer([broker.address])
        observer.connect(DEADLINE_S)
        snapshot = observer.observe()
        observer.close()
    states = dict(zip(snapshot.brokers.id.tolist(), snapshot.brokers.state, strict=True))
    assert (states[1], states[2]) == ("up", "silent")
