"""A link between kview and one broker that can be cut or made slow, for kview alone."""

import socket
import threading

from kview.model.address import Address
from tests.observe.fake_broker import Server

CHUNK = 65_536


class Link(Server):
    """Relays every connection to `target`.

    While it is `cut`, nothing passes and connections stay open, as when packets are dropped. With a delay
    every piece is late by `delay_s`.
    """

    def __init__(self, port: int, target: Address) -> None:
        self._target = target
        self._open = threading.Event()
        self._open.set()
        self._mended = threading.Event()
        self._delay_s = 0.0
        super().__init__(self._relay, port)

    def cut(self) -> None:
        """Let nothing through."""
        self._open.clear()

    def slow(self, delay_s: float) -> None:
        """Let everything through late."""
        self._mended.clear()
        self._delay_s = delay_s

    def mend(self) -> None:
        """Let everything through at once."""
        self._delay_s = 0.0
        self._mended.set()
        self._open.set()

    def _relay(self, client: socket.socket) -> None:
        self._open.wait()
        with socket.create_connection(self._target) as server:
            back = threading.Thread(target=self._pass, args=(server, client), daemon=True)
            back.start()
            self._pass(client, server)

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(CHUNK):
                self._open.wait()
                if self._delay_s:
                    self._mended.wait(self._delay_s)
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return  # one side is gone
