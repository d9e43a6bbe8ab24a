"""The child processes that kview starts: their start, their errors and their end."""

import contextlib
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping, Sequence
from logging import Logger
from pathlib import Path

import kview
from kview.errors import ErrorKind, KviewError


def child_environment() -> dict[str, str]:
    """Return this process's environment, extended so that a child imports the same kview, from any working
    folder.
    """
    ours = str(Path(kview.__file__).resolve().parent.parent)
    others = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{ours}{os.pathsep}{others}" if others else ours}


def exit_error(code: int, killed: ErrorKind, exited: ErrorKind) -> KviewError:
    """Return how a process ended, by its exit code: `killed` by a signal, or `exited` by itself."""
    if code < 0:
        return KviewError(killed, signal=signal.Signals(-code).name)
    return KviewError(exited, code=code)


class Child:
    """A child process with a control socket, the number of whose end it gets as `--control-fd`.

    It ends when our end of the socket closes, which also happens if this process is killed. It leads a
    process group, so Ctrl-C on the terminal does not reach it. What it writes to standard error is logged.
    It keeps the descriptors `held` open, and has the variables `given` besides this process's own. Raises
    OSError if it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        log: Logger,
        held: Sequence[int] = (),
        given: Mapping[str, str] | None = None,
    ) -> None:
        self.control, theirs = socket.socketpair()
        with theirs:
            try:
                self.process = subprocess.Popen(
                    [*command, "--control-fd", str(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    pass_fds=[theirs.fileno(), *held],
                    process_group=0,
                    env={**child_environment(), **(given or {})},
                )
            except OSError:
                self.control.close()
                raise
        self._log = log
        self._ended: int | None = None
        threading.Thread(target=self._log_errors, name="child's log", daemon=True).start()

    def hang_up(self) -> None:
        """Ask it to end."""
        with contextlib.suppress(OSError):  # Shutting the socket down ends its duplicates, too.
            self.control.shutdown(socket.SHUT_RDWR)

    def end(self, within_s: float) -> int:
        """Ask it to end, kill it after `within_s`, and return its exit code, negative for a signal.

        If it was killed, a JVM of its own may live on, because a JVM notices the end of its parent only once
        it has started. So the rest of its group is killed, too.
        """
        if self._ended is not None:
            return self._ended
        self.hang_up()
        self.control.close()
        try:
            code = self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self._ended = code
        return code

    def _log_errors(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr:
            for line in self.process.stderr:
                self._log.warning("%s", line.decode(errors="replace").rstrip())
