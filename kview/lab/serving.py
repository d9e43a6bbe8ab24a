"""Runs the simulated cluster, which serves clients and carries out requests until something ends it.

SIGTERM, Ctrl-C and the line `quit` end the cluster. A child process also ends when its control channel is
closed, because then its parent has ended.
"""

import asyncio
import contextlib
import gc
import logging
import os
import secrets
import signal
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from msgspec.structs import replace

from kview.config.messages import encode, next_message
from kview.errors import BadUse, ErrorKind, KviewError
from kview.lab.console import Console
from kview.lab.lines import MAX_LINE_BYTES, answer, lines_of
from kview.lab.messages import MAX_REQUEST_BYTES, Answer, Ready, Request, requests
from kview.lab.saving import PAUSES_PER_SAVE, SAVE_EVERY_S, DataFolder
from kview.lab.securing import Secured
from kview.language import listening as words
from kview.language.errors import sentence
from kview.model.address import Address
from kview.serve.listener import Port
from kview.serve.precise_loop import precise_loop
from kview.serve.security import PLAINTEXT
from kview.serve.server import Server
from kview.simulate.cluster import Cluster, build
from kview.simulate.world import World

_log = logging.getLogger(__name__)

FRAME_S = 0.25
"""The time between two snapshots of a film. Time that the cluster skips has none."""

T = TypeVar("T")


class Face(Protocol):
    """Another way than the control channel and standard input to ask a cluster."""

    @property
    def lines(self) -> tuple[str, ...]:
        """What is printed once it listens."""

    @property
    def warning(self) -> str:
        """Who can reach it from other machines, "" if nobody can."""

    def start(self, name: str) -> None:
        """Answer requests on threads of its own."""

    def stop(self) -> None:
        """Stop listening."""


FaceOf = Callable[[asyncio.AbstractEventLoop, Callable[[Request], Answer]], Face]
"""What makes a face, from the loop on which the cluster runs and what answers there. Raises BadUse."""


class Film(Protocol):
    """Keeps what a cluster does."""

    def begin(self) -> None:
        """Forget what was taken."""

    def take(self) -> None:
        """Take a snapshot."""

    def write(self, folder: Path) -> None:
        """Write what was taken as a recording. Raises KviewError."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to serve: a world that is made from a seed and has already lived for `past_ms` when it begins to
    serve, on ports, one for each broker. `security` is that of all listeners, or None for plaintext."""

    world: World
    seed: int
    ports: Sequence[Port]
    past_ms: int = 0
    security: Secured | None = None
    data: DataFolder | None = None
    """Where the cluster is kept over restarts."""


def serve(
    plan: Plan,
    control: socket.socket | None,
    film_of: Callable[[Cluster], Film],
    face_of: FaceOf | None = None,
) -> None:
    """Serve the cluster until something ends it.

    `control` is a child's end of its control channel, if any. `film_of` makes what films the cluster, and
    `face_of` another face. Raises BadUse.
    """
    with asyncio.Runner(loop_factory=precise_loop) as runner:
        runner.run(_Run(plan, control, film_of, face_of).run())


class _Clients:
    """What can be done to the clients of a server."""

    def __init__(self, server: Server, film_of: Callable[[Cluster], Film]) -> None:
        self.on_demand = server.on_demand
        self.skip, self.stand = server.skip, server.stand
        self._cluster = server.cluster
        self._film_of = film_of
        self._film: Film | None = None
        self._loop = asyncio.get_running_loop()

    def film(self) -> None:
        """Begin to film, and forget what was filmed before."""
        if self._film is None:
            self._film = self._film_of(self._cluster)
            self._go_on(self._film)
        self._film.begin()

    def record(self, folder: Path) -> None:
        """Write what was filmed. Raises KviewError."""
        if self._film is None:
            raise BadUse(ErrorKind.NOT_FILMED)
        self._film.write(folder)

    def _go_on(self, film: Film) -> None:
        if not self._cluster.kernel.stands:
            film.take()
        self._loop.call_later(FRAME_S, self._go_on, film)


class _Run:
    def __init__(
        self,
        plan: Plan,
        control: socket.socket | None,
        film_of: Callable[[Cluster], Film],
        face_of: FaceOf | None,
    ) -> None:
        self._film_of = film_of
        self._face_of = face_of
        self._plan = plan
        self._has_warned = False
        self._control = control
        data = plan.data
        start_ms = _wall_ms() - plan.past_ms + (data.ahead_ms if data is not None else 0)
        # Each start is another cluster, so that nobody takes what an earlier one did for its past.
        world = replace(plan.world, cluster_id=secrets.token_urlsafe(16))
        self._cluster = build(world, plan.seed, start_ms, data.saved if data is not None else None)
        if plan.past_ms:
            for _ in range(2):  # The second time, only what has passed during the first one is left.
                self._cluster.run_until(time.time_ns() // 1_000)

    async def run(self) -> None:
        """Serve until something ends the run. An exception is a bug in the engine or in an API."""
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
        secured = self._plan.security
        listeners = PLAINTEXT if secured is None else secured.listeners(self._cluster.settings)
        server = Server(self._cluster, self._plan.ports, fail, listeners)
        console = Console(
            self._cluster,
            self._cluster.counters,
            lambda: server.clock.held_us // 1000,
            end,
            _Clients(server, self._film_of),
        )

        def now(act: Callable[[], T]) -> T:
            """Advance the cluster to the current time, and return the result of `act`."""
            try:
                server.driver.advance()
                given = act()
                server.driver.rearm()
            except Exception as error:
                fail(error)
                raise
            return given

        face = None
        try:
            server.start()
            if self._face_of is not None:
                face = self._face_of(loop, lambda request: now(lambda: console.answer(request)))
                face.start("HTTP")
            gc.collect()
            # The cluster exists until the end, and scanning it in each collection would delay answers.
            gc.freeze()
            _print(f"bootstrap.servers={server.bootstrap_servers}")
            if secured is not None:
                _print(secured.line)
            for line in () if face is None else face.lines:
                _print(line)
            if self._control is None:
                self._warn(face)
            listening = None
            if self._control is None:
                _read_lines(loop, lambda line: _print(now(lambda: answer(console, line))))
            else:
                ready = Ready(
                    tuple(server.bootstrap_servers.split(",")), str(secured.client_file) if secured else ""
                )
                channel = _control(
                    self._control, ready, lambda request: now(lambda: console.answer(request)), end
                )
                listening = loop.create_task(channel)
            self._save(loop, fail)
            await ended
            if listening is not None:
                listening.cancel()
        finally:
            if face is not None:
                face.stop()
            server.close()
            if self._plan.data is not None:
                self._plan.data.close(self._cluster, _wall_ms())

    def _save(self, loop: asyncio.AbstractEventLoop, fail: Callable[[Exception], None]) -> None:
        """Save the cluster again and again, if it is to be kept. Say once that this has failed. What cannot
        even be collected is a bug, which ends the run."""
        data = self._plan.data
        if data is None:
            return
        warning = data.warning
        if warning is not None and not self._has_warned:
            with contextlib.suppress(OSError):
                os.write(2, f"kview: {sentence(warning)}\n".encode())
        self._has_warned = warning is not None
        began_s = loop.time()
        try:
            data.save(self._cluster, _wall_ms())
        except Exception as error:
            fail(error)
            return
        pause_s = (loop.time() - began_s) * PAUSES_PER_SAVE
        loop.call_later(max(SAVE_EVERY_S, pause_s), self._save, loop, fail)

    def _warn(self, face: Face | None) -> None:
        """Say on standard error who else can connect, if anybody can."""
        said = []
        ports, secured = self._plan.ports, self._plan.security
        if not ports[0].interface.is_loopback:
            where = str(Address(ports[0].interface.host, ports[0].number))
            if secured is None:
                text = words.OPEN
            else:
                text = words.WITH_USERS if secured.knows_users else words.WITHOUT_USERS
            said.append(text.format(address=where))
        if face is not None and face.warning:
            said.append(face.warning)
        with contextlib.suppress(OSError):
            for each in said:
                os.write(2, f"kview: {each}\n".encode())


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


async def _control(
    control: socket.socket, ready: Ready, answer: Callable[[Request], Answer], end: Callable[[], None]
) -> None:
    """Answer the requests on the control channel. When the channel is closed, end the run."""
    try:
        reader, writer = await asyncio.open_connection(sock=control, limit=MAX_REQUEST_BYTES)
        writer.write(encode(ready))
        while True:
            writer.write(encode(answer(await next_message(reader, requests))))
            await writer.drain()
    except (OSError, EOFError):
        pass  # The parent has ended.
    except ValueError as error:
        _log.warning("ending: the control channel carried something other than a request (%s)", error)
    end()


def _read_lines(loop: asyncio.AbstractEventLoop, take: Callable[[str | None], None]) -> None:
    """Pass the lines of standard input to `take`, on the loop's thread, until there are no more.

    A thread reads the lines, because making a terminal non-blocking would affect its shell, and an event loop
    cannot wait for a file. In the background of a shell, reading from the terminal would stop the process.
    Here reading fails instead, which ends the thread.
    """
    signal.signal(signal.SIGTTIN, signal.SIG_IGN)
    threading.Thread(target=_listen, args=(loop, take), name="standard input", daemon=True).start()


def _listen(loop: asyncio.AbstractEventLoop, take: Callable[[str | None], None]) -> None:
    with contextlib.suppress(
        OSError, RuntimeError
    ):  # no standard input, or the loop has ended: nothing left to read
        for line in lines_of(lambda: os.read(0, MAX_LINE_BYTES)):
            loop.call_soon_threadsafe(take, line)


def control_socket(descriptor: int) -> socket.socket:
    """Return a child's end of its control channel. Raises BadUse if the descriptor is not a socket."""
    try:
        return socket.socket(fileno=descriptor)
    except (OSError, ValueError, OverflowError):
        raise BadUse(ErrorKind.NOT_A_CONTROL_SOCKET, descriptor=descriptor) from None


def report_not_started(control: socket.socket, error: KviewError) -> None:
    """Send the parent the reason why the cluster did not start."""
    with contextlib.suppress(OSError):  # The parent may have ended.
        control.sendall(encode(error.facts))


def _print(line: str) -> None:
    """Write a line at once, unbuffered. If nobody reads standard output, the line is lost."""
    with contextlib.suppress(OSError):
        os.write(1, line.encode() + b"\n")
