"""The HTTP server, and clients that take their time."""

import socket
import time
from http import HTTPStatus

from kview.config.http_server import Handler, HttpServer
from kview.model.address import Address

PAGE = bytes(8 << 20)
SILENT_S = 0.02


class Long(Handler):
    def do_GET(self) -> None:
        self.answer(HTTPStatus.OK, PAGE)


def test_a_client_may_read_longer_than_it_may_ask() -> None:
    server = HttpServer(Address("127.0.0.1", 0), Long, 1, asked_within_s=SILENT_S)
    server.start("test")
    try:
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=20) as slow:
            slow.sendall(b"GET / HTTP/1.0\r\n\r\n")
            received = len(slow.recv(1))
            time.sleep(5 * SILENT_S)  # The answer is longer than what sockets hold.
            while data := slow.recv(1 << 20):
                received += len(data)
    finally:
        server.stop()
    assert received > len(PAGE)
