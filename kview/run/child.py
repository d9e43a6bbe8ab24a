"""The simulated cluster as a child process: how it starts, its first message, and how it ends."""

import logging
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence

import msgspec

from kview.config.children import Child
from kview.errors import ErrorKind, KviewError, error_of
from kview.lab.messages import NotStarted, Ready, answer_of
from kview.language.errors import sentence
from kview.model.address import Address

READY_WITHIN_S = 20.0
"""Limit of the child's start, which takes about a second. If it takes longer than this, the machine is too
busy to show anything useful."""

MAX_FIRST_BYTES = 16_384
"""Limit of the child's first message, in bytes. The addresses of a hundred brokers take 2 kB."""

_END_WITHIN_S = 0.6
"""The time that the child has to end after its control socket is closed. kview itself has one second to
end."""

_SAYS_HOW_WITHIN_S = 2.0
"""How long a child may take to end after it has closed its end of the channel."""

_log = logging.getLogger(__name__)


class SimulatedCluster:
    """A child process running `kview serve`. `arguments` are that command's flags."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._child = Child([sys.executable, "-m", "kview", "serve", *arguments], _log)

    @property
    def control(self) -> socket.socket:
        """Our end of the control channel."""
        return self._child.control

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._child.process.pid

    def bootstrap_servers(self) -> tuple[Address, ...]:
        """Wait until the cluster listens, and return its addresses. Raises KviewError if it cannot start."""
        line = self._first_line()
        if not line.endswith(b"\n") and len(line) < MAX_FIRST_BYTES:
            raise KviewError(ErrorKind.CLUSTER_NOT_STARTED, code=self._exit_code())
        first = _in_first(line)
        if isinstance(first, KviewError):
            raise first
        return first

    def ended(self) -> KviewError | None:
        """Return how the child ended, None while it is running."""
        code = self._child.process.poll()
        if code is None:
            return None
        if code < 0:
            return KviewError(ErrorKind.CLUSTER_KILLED, signal=signal.Signals(-code).name)
        return KviewError(ErrorKind.CLUSTER_EXITED, code=code)

    def end(self) -> None:
        """End the child process."""
        self._child.end(_END_WITHIN_S)

    def _exit_code(self) -> int:
        """Return the exit code of a child that has closed its end of the channel. Kill the child if it does
        not end."""
        try:
            return self._child.process.wait(_SAYS_HOW_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._child.process.kill()
            return self._child.process.wait()

    def _first_line(self) -> bytes:
        """Return the first message on the control channel, cut short if the child ends. Raises KviewError."""
        deadline_s = time.monotonic() + READY_WITHIN_S
        line = bytearray()
        while not line.endswith(b"\n") and len(line) < MAX_FIRST_BYTES:
            left_s = deadline_s - time.monotonic()
            if left_s <= 0 or not select.select([self.control], [], [], left_s)[0]:
                raise KviewError(ErrorKind.CLUSTER_NOT_READY, within_s=READY_WITHIN_S)
            # One byte at a time, because everything after the first line is for the channel's client.
            try:
                byte = self.control.recv(1)
            except OSError:
                byte = b""
            if not byte:
                break
            line += byte
        return bytes(line)


def _in_first(line: bytes) -> tuple[Address, ...] | KviewError:
    """Return the addresses in the first message, or the error in it, or CLUSTER_GARBLED if it has neither."""
    try:
        match answer_of(line):
            case Ready(servers) if servers:
                return tuple(map(Address.parse, servers))
            case NotStarted(facts):
                error = error_of(facts)
                sentence(error)  # raises an exception if the error lacks a value that its text needs
                return error
    except (msgspec.DecodeError, ValueError, TypeError, LookupError):
        _log.warning("the simulated cluster's first message was %r", line)
    return KviewError(ErrorKind.CLUSTER_GARBLED)
