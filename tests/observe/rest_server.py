"""A REST server in a few lines, which answers what a test says, or misbehaves."""

import json
import socket
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.observe.fake_broker import Server

REAL = (Path(__file__).parent / "connectors-4.3.1.json").read_bytes()
"""What a worker of Kafka 4.3.1 answered to GET /connectors?expand=status: three sinks with failed tasks or
stopped, a source, a connector that could not start, and an exception with two causes."""


def http(body: bytes = REAL, status: str = "200 OK", headers: str = "") -> bytes:
    """An answer of HTTP."""
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{headers}\r\n"
    )
    return head.encode() + body


def entry(connector: str = "RUNNING", *tasks: str, kind: str = "sink", trace: str = "") -> dict[str, Any]:
    """A connector's status, with the states of its tasks."""
    at = {"worker_id": "w:8083"} | ({"trace": trace} if trace else {})
    states = [{"id": number, "state": state, **at} for number, state in enumerate(tasks)]
    return {"status": {"name": "-", "connector": {"state": connector, **at}, "tasks": states, "type": kind}}


def connectors(**entries: dict[str, Any]) -> bytes:
    """An answer with these connectors."""
    return http(json.dumps(entries).encode())


class RestServer(Server):
    """Answers every request with `answer`, or does what `acts` does with the connection instead."""

    def __init__(self, answer: bytes = b"", context: ssl.SSLContext | None = None) -> None:
        self.answer = answer or http()
        self.by_path: dict[str, bytes] = {}
        """What it answers to these paths instead."""
        self.context = context
        self.acts: Callable[[socket.socket], None] | None = None
        self.login = ""
        """The user and password that it asks for, as basic auth has them, '' if it asks for none."""
        self.heads: list[str] = []
        """The requests, with their headers."""
        self.times_s: list[float] = []
        """When each request came."""
        self.ended = threading.Event()
        """Set by the end of the test: what hangs, hangs until then."""
        super().__init__(self._speak)

    @property
    def url(self) -> str:
        return f"http{'s' if self.context else ''}://127.0.0.1:{self.port}"

    def _speak(self, connection: socket.socket) -> None:
        if self.context is not None:
            connection = self.context.wrap_socket(connection, server_side=True)
        if self.acts is not None:
            self.acts(connection)
            return
        head = b""
        while b"\r\n\r\n" not in head:
            piece = connection.recv(65536)
            if not piece:
                return
            head += piece
        self.times_s.append(time.monotonic())
        self.heads.append(head.decode())
        let_in = self.login in self.heads[-1]
        path = self.heads[-1].split(" ", 2)[1]
        answer = self.by_path.get(path, self.answer)
        connection.sendall(answer if let_in else http(b"", "401 Unauthorized"))

    def close(self) -> None:
        """End listening and connections."""
        self.ended.set()
        super().close()

    def hang(self, connection: socket.socket) -> None:
        """Accept a request, and say nothing."""
        self.ended.wait(60)

    def drip(self, connection: socket.socket) -> None:
        """Send the answer byte by byte, so that no single read takes long."""
        for at in range(len(self.answer)):
            connection.sendall(self.answer[at : at + 1])
            if self.ended.wait(0.02):
                return

    def half(self, connection: socket.socket) -> None:
        """Send the answer, and never end it."""
        connection.sendall(self.answer)
        self.ended.wait(60)

    def at_once(self, connection: socket.socket) -> None:
        """Send the answer after the first bytes, which may be anything."""
        connection.recv(9)
        connection.sendall(self.answer)

    def flood(self, connection: socket.socket) -> None:
        """Send an answer that never ends."""
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while not self.ended.is_set():
            connection.sendall(b" " * 65536)
