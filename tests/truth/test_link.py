"""The link passes what is sent, nothing while it is cut, and everything late while it is slow."""

import socket
import time
from collections.abc import Iterator

import pytest

from tests.observe.fake_broker import Server
from tests.truth.link import Link


def echo(connection: socket.socket) -> None:
    while data := connection.recv(100):
        connection.sendall(data)


@pytest.fixture
def link() -> Iterator[Link]:
    with Server(echo) as server, Link(0, server.address) as link:
        yield link


def test_cut_and_mended(link: Link) -> None:
    with socket.create_connection(link.address, timeout=10) as client:
        client.sendall(b"one")
        assert client.recv(100) == b"one"
        link.cut()
        client.sendall(b"two")
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.recv(100)
        with socket.create_connection(link.address, timeout=0.2) as other:
            other.sendall(b"three")
            with pytest.raises(TimeoutError):
                other.recv(100)
        link.mend()
        client.settimeout(10)
        assert client.recv(100) == b"two"


def test_slow(link: Link) -> None:
    with socket.create_connection(link.address, timeout=10) as client:
        link.slow(0.1)
        began_s = time.monotonic()
        client.sendall(b"one")
        assert client.recv(100) == b"one"
        assert time.monotonic() - began_s >= 0.2
        link.mend()
