"""TLS between a fake socket and a fake connection: who gets turns, what is read, what certificates say."""

import asyncio
import contextlib
import ssl
from pathlib import Path
from typing import cast

from kview.serve.certificates import Authority, server_context
from kview.serve.tls import TlsLayer
from tests.serve.fake_connections import FakeLoop, FakeTransport

RECORDS, SIZE = 40, 1000


class Loop(FakeLoop):
    """A loop whose timers never end."""

    def call_later(self, delay_s: float, *call: object) -> asyncio.TimerHandle:
        return asyncio.TimerHandle(0.0, print, (), cast(asyncio.AbstractEventLoop, self))

    def get_debug(self) -> bool:
        return False

    def _timer_handle_cancelled(self, handle: object) -> None:
        """Do nothing, because no timer ends."""


class Socket(FakeTransport):
    """A socket that says whether it is read from."""

    reads = True

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True


class Inner(asyncio.BufferedProtocol):
    """A connection that counts bytes."""

    def __init__(self) -> None:
        self.got = 0
        self.fails = False

    def get_buffer(self, sizehint: int) -> bytearray:
        return bytearray(1 << 14)

    def buffer_updated(self, nbytes: int) -> None:
        if self.fails:
            raise ValueError
        self.got += nbytes


class Secured:
    """A client whose handshake is done, both sides as strict as Python 3.13."""

    def __init__(self, folder: Path) -> None:
        authority = Authority()
        for name, hosts in (("server", ["localhost", "127.0.0.1"]), ("client", [])):
            (folder / name).write_text(authority.issue(name, hosts))
        context = server_context(folder / "server", authority.pem)
        client_context = ssl.create_default_context(cadata=authority.pem)
        client_context.load_cert_chain(folder / "client")
        for each in (context, client_context):
            each.verify_flags |= ssl.VERIFY_X509_STRICT
        self.known: set[TlsLayer] = set()
        self.loop, self.socket, self.inner = Loop(), Socket(), Inner()
        loop = cast(asyncio.AbstractEventLoop, self.loop)
        self.layer = TlsLayer(context, self.inner, loop, self)
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.client = client_context.wrap_bio(self._in, self._out, server_hostname="127.0.0.1")
        self.layer.connection_made(self.socket)
        assert self.known == {self.layer}
        while self.known:
            with contextlib.suppress(ssl.SSLWantReadError):
                self.client.do_handshake()
            self.pass_on()
            self._in.write(self.socket.written)
            self.socket.written = b""

    def handshake_begun(self, layer: TlsLayer) -> None:
        self.known.add(layer)

    def handshake_over(self, layer: TlsLayer, done: bool) -> None:
        self.known.remove(layer)

    def pass_on(self) -> None:
        self.layer.data_received(self._out.read())


def test_a_client_that_sends_much_gets_turns(tmp_path: Path) -> None:
    secured = Secured(tmp_path)
    for _ in range(RECORDS):
        secured.client.write(bytes(SIZE))
    secured.pass_on()
    assert 0 < secured.inner.got < RECORDS * SIZE // 4
    assert not secured.socket.reads, "not more is read than is handled"
    secured.loop.until_idle()
    assert secured.inner.got == RECORDS * SIZE and secured.socket.reads


def test_a_client_that_does_not_read_is_not_read_from(tmp_path: Path) -> None:
    secured = Secured(tmp_path)
    secured.layer.pause_writing()
    secured.client.write(bytes(SIZE))
    secured.pass_on()
    secured.loop.until_idle()
    assert secured.inner.got == 0 and not secured.socket.reads
    secured.layer.resume_writing()
    secured.loop.until_idle()
    assert secured.inner.got == SIZE and secured.socket.reads


def test_a_bug_on_a_later_turn_ends_the_connection(tmp_path: Path) -> None:
    secured = Secured(tmp_path)
    for _ in range(RECORDS):
        secured.client.write(bytes(SIZE))
    secured.pass_on()
    secured.inner.fails = True
    secured.loop.until_idle()
    assert secured.socket.reset
