"""The simulated cluster as a child process: its start, its first line, what it said last, and its end."""

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
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import kview
from kview.errors import ErrorKind, KviewError

BOOTSTRAP = "bootstrap.servers="

READY_WITHIN_S = 20.0
"""A start takes about a second; a machine so loaded that it takes longer than this shows nothing useful."""

LAST_LINES = 20
"""Lines of standard error kept for the sentence about a child that could not start; all of them go to the
log file."""

MAX_FIRST_LINE_BYTES = 1 << 16
"""A line of bootstrap servers for thousands of brokers fits."""

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
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()],
                process_group=0,
                env=_environment(),
            )
        self._last_lines: deque[str] = deque(maxlen=LAST_LINES)
        self._listener = threading.Thread(target=self._listen, name="simulated cluster's log", daemon=True)
        self._listener.start()

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    def bootstrap_servers(self) -> tuple[str, ...]:
        """What it printed as its first line, `HOST:PORT` each. Waits for it. Raises KviewError where it
        ended before."""
        assert self._process.stdout is not None
        deadline_s = time.monotonic() + READY_WITHIN_S
        line = b""
        descriptor = self._process.stdout.fileno()
        while not line.endswith(b"\n") and len(line) < MAX_FIRST_LINE_BYTES:
            ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline_s - time.monotonic()))
            if not ready:
                raise KviewError(ErrorKind.CLUSTER_NOT_READY, within_s=READY_WITHIN_S)
            # One byte at a time: what follows the first line stays in the pipe.
            byte = os.read(descriptor, 1)
            if not byte:
                raise self._never_started()
            line += byte
        return tuple(line.decode().strip().removeprefix(BOOTSTRAP).split(","))

    def ended(self) -> str:
        """How it ended, as words that follow its name; '' while it runs."""
        code = self._process.poll()
        if code is None:
            return ""
        if code < 0:
            return f"was killed ({signal.Signals(-code).name})"
        return f"ended by itself (exit code {code})"

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

    def _listen(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            text = line.decode(errors="replace").rstrip()
            self._last_lines.append(text)
            _log.warning("%s", text)

    def _never_started(self) -> KviewError:
        code = self._process.wait()
        return KviewError(ErrorKind.CLUSTER_NOT_STARTED, code=code)


def _environment() -> dict[str, str]:
    """This process's environment, in which the child finds the same kview, whatever its working folder."""
    ours = str(Path(kview.__file__).resolve().parent.parent)
    others = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{ours}{os.pathsep}{others}" if others else ours}
