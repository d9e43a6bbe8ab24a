"""The simulated cluster as a child process: its start, its first message, and its end."""

import contextlib
import logging
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

import kview
from kview.errors import ErrorKind, KviewError, error_of
from kview.lab.messages import MAX_REPLY_BYTES, NotStarted, Ready, reply_of
from kview.model.address import Address

READY_WITHIN_S = 20.0
"""A start takes about a second; a machine so loaded that it takes longer than this shows nothing useful."""

_END_WITHIN_S = 0.3
"""Of the second that kview may take to end, what a child gets after its descriptor is closed, and again
after SIGTERM."""

_log = logging.getLogger(__name__)


class SimulatedCluster:
    """A child process `kview serve`; `arguments` are that command's flags.

    It ends when this object's end of its control socket is closed, so also when this process is killed. It
    has a process group of its own: Ctrl-C on the terminal does not reach it.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self.control, theirs = socket.socketpair()
        with theirs:
            command = [
                sys.executable,
                "-m",
                "kview",
                "serve",
                "--control-fd",
                str(theirs.fileno()),
                *arguments,
            ]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                process_group=0,
                env=_environment(),
            )
        threading.Thread(target=self._log_errors, name="simulated cluster's log", daemon=True).start()

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    def bootstrap_servers(self) -> tuple[Address, ...]:
        """Where it listens. Waits until it does. Raises KviewError if it cannot start."""
        line = self._first_line()
        if not line.endswith(b"\n"):
            raise KviewError(ErrorKind.CLUSTER_NOT_STARTED, code=self._process.wait())
        try:
            first = reply_of(line)
        except msgspec.DecodeError:
            raise KviewError(ErrorKind.CLUSTER_GARBLED) from None
        match first:
            case Ready(servers):
                return tuple(map(Address.parse, servers))
            case NotStarted(error):
                raise error_of(error)
            case _:
                raise KviewError(ErrorKind.CLUSTER_GARBLED)

    def ended(self) -> KviewError | None:
        """How it ended; None while it runs."""
        code = self._process.poll()
        if code is None:
            return None
        if code < 0:
            return KviewError(ErrorKind.CLUSTER_KILLED, signal=signal.Signals(-code).name)
        return KviewError(ErrorKind.CLUSTER_EXITED, code=code)

    def end(self) -> None:
        """End it, within about half a second."""
        with contextlib.suppress(OSError):
            # Duplicates of the descriptor end with it. Where the child has gone already there is nothing to
            # shut down.
            self.control.shutdown(socket.SHUT_RDWR)
        self.control.close()
        for insist in (self._process.terminate, self._process.kill):
            try:
                self._process.wait(_END_WITHIN_S)
                return
            except subprocess.TimeoutExpired:
                insist()
        self._process.wait()

    def _first_line(self) -> bytes:
        """The first message on the control channel; cut off if the child ends before. Raises KviewError."""
        deadline_s = time.monotonic() + READY_WITHIN_S
        line = b""
        while not line.endswith(b"\n") and len(line) < MAX_REPLY_BYTES:
            ready, _, _ = select.select([self.control], [], [], max(0.0, deadline_s - time.monotonic()))
            if not ready:
                raise KviewError(ErrorKind.CLUSTER_NOT_READY, within_s=READY_WITHIN_S)
            # One byte at a time: what follows the first line is left to the client of the channel.
            try:
                byte = self.control.recv(1)
            except OSError:
                byte = b""
            if not byte:
                return line
            line += byte
        return line

    def _log_errors(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            _log.warning("%s", line.decode(errors="replace").rstrip())


def _environment() -> dict[str, str]:
    """This process's environment, in which the child finds the same kview, whatever its working folder."""
    ours = str(Path(kview.__file__).resolve().parent.parent)
    others = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{ours}{os.pathsep}{others}" if others else ours}
