"""A run of the simulated cluster: served to clients, told its faults by lines, until something ends it.

Ends: SIGTERM, Ctrl-C, the line `quit`, and, for a child, the end of its control socket (the parent is gone).
"""

import asyncio
import contextlib
import gc
import os
import signal
import socket
import threading
import time
from collections.abc import Callable

from kview.errors import BadUse, ErrorKind
from kview.lab.console import Console
from kview.serve.server import Server, reserve_ports
from kview.simulate.cluster import build
from kview.simulate.world import World

MAX_LINE_BYTES = 4096
"""The longest command is some twenty bytes; what has no end of line by then is no command."""


def serve(world: World, seed: int, port: int | None, control_fd: int | None) -> None:
    """Serve the cluster until it is ended. `control_fd` is a child's end of its control socket. Raises
    BadUse."""
    asyncio.run(_Run(world, seed, port, control_fd).run())


class _Run:
    def __init__(self, world: World, seed: int, port: int | None, control_fd: int | None) -> None:
        self._control = None if control_fd is None else _control_socket(control_fd)
        self._ports = reserve_ports(len(world.brokers), port)
        self._cluster = build(world, seed, time.time_ns() // 1_000_000)

    async def run(self) -> None:
        """Serve until the end; an exception is a bug in the engine or in an API."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()

        def end() -> None:
            if not ended.done():
                ended.set_result(None)

        def fail(error: Exception) -> None:
            if not ended.done():
                ended.set_exception(error)

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, end)
        server = Server(self._cluster, self._ports, fail)
        console = Console(self._cluster, self._cluster.counters, lambda: server.clock.held_us // 1000, end)

        def answer(line: str) -> str:
            try:
                server.driver.advance()
                answered = console.answer(line)
                server.driver.rearm()
            except Exception as error:
                fail(error)
                return f"error a bug: {error!r}: the cluster ends"
            return answered

        try:
            server.start()
            gc.collect()
            gc.freeze()  # the cluster as built stays: to look through it again and again would delay answers
            _print(f"bootstrap.servers={server.bootstrap_servers}")
            listening = None
            if self._control is None:
                _read_lines(loop, answer)
            else:
                listening = loop.create_task(_control(self._control, answer, end))
            await ended
            if listening is not None:
                listening.cancel()
        finally:
            server.close()


async def _control(control: socket.socket, answer: Callable[[str], str], end: Callable[[], None]) -> None:
    """Answer the lines of the control socket; its end is the end of the run."""
    with contextlib.suppress(
        OSError, ValueError
    ):  # a parent that is gone, or sends what is no line, has no more use for us
        reader, writer = await asyncio.open_connection(sock=control, limit=MAX_LINE_BYTES)
        while line := await reader.readline():
            writer.write(answer(line.decode(errors="replace")).encode() + b"\n")
            await writer.drain()
    end()


def _read_lines(loop: asyncio.AbstractEventLoop, answer: Callable[[str], str]) -> None:
    """Answer the lines of standard input, on standard output, as long as there are any.

    A thread reads them: a terminal must not be made non-blocking, which its shell would find so, and a file
    cannot be waited for. In the background of a shell, reading a terminal is an error instead of a stop, and
    ends the reading.
    """
    signal.signal(signal.SIGTTIN, signal.SIG_IGN)
    threading.Thread(target=_listen, args=(loop, answer), name="standard input", daemon=True).start()


def _listen(loop: asyncio.AbstractEventLoop, answer: Callable[[str], str]) -> None:
    unread = b""
    with contextlib.suppress(
        OSError, RuntimeError
    ):  # no standard input, or the loop has ended: nothing left to read for
        while read := os.read(0, MAX_LINE_BYTES):
            *lines, unread = (unread + read).split(b"\n")
            if len(unread) > MAX_LINE_BYTES:
                unread = b""
            for line in lines:
                if line.strip():
                    loop.call_soon_threadsafe(
                        lambda text: _print(answer(text)), line.decode(errors="replace")
                    )


def _control_socket(descriptor: int) -> socket.socket:
    try:
        return socket.socket(fileno=descriptor)
    except OSError:
        raise BadUse(ErrorKind.NOT_A_CONTROL_SOCKET, descriptor=descriptor) from None


def _print(line: str) -> None:
    """Write a line at once, unbuffered; where nobody reads standard output any more it is lost, and the
    cluster goes on."""
    with contextlib.suppress(OSError):
        os.write(1, line.encode() + b"\n")
