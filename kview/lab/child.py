"""A simulated cluster in a child process, as the process that started it sees it."""

import logging
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from kview.config.children import Child, exit_error
from kview.config.messages import messages
from kview.errors import ErrorFacts, ErrorKind, KviewError, error_of
from kview.lab.messages import Ready, answers
from kview.language.errors import sentence
from kview.model.address import Address

READY_WITHIN_S = 20.0
"""Limit of the child's start, which takes about a second. If it takes longer than this, the machine is too
busy to show anything useful."""

MAX_FIRST_BYTES = 16_384
"""Limit of the child's first message, in bytes. The addresses of a hundred brokers take 2 kB."""

END_WITHIN_S = 0.6
"""The time that the child has to end after its control socket is closed. kview itself has one second to
end."""

_SAYS_HOW_WITHIN_S = 2.0
"""How long a child may take to end after it has closed its end of the channel."""

_log = logging.getLogger(__name__)


class SimulatedCluster:
    """A child process running `kview serve`. `arguments` are that command's flags, and `end_within_s` is how
    long it may take to end."""

    def __init__(self, arguments: Sequence[str], end_within_s: float = END_WITHIN_S) -> None:
        self._end_within_s = end_within_s
        self.client_file: Path | None = None
        """The client.properties of a user who may do everything, if the cluster is secured. It is known once
        the bootstrap servers are."""
        self._servers: tuple[Address, ...] = ()
        self._child = Child([sys.executable, "-P", "-m", "kview", "serve", *arguments], _log)

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
        if self._servers:
            return self._servers
        self.control.settimeout(READY_WITHIN_S)
        try:
            # Nothing comes after the first message before something is asked.
            match next(messages(self.control, answers, MAX_FIRST_BYTES), None):
                case None:
                    raise KviewError(ErrorKind.CLUSTER_NOT_STARTED, code=self._exit_code())
                case Ready(servers, client_file) if servers:
                    self.client_file = Path(client_file) if client_file else None
                    self._servers = tuple(map(Address.parse, servers))
                    return self._servers
                case ErrorFacts() as facts:
                    error = error_of(facts)
                    sentence(error)  # raises an exception if the error lacks a value that its text needs
                    raise error
                case other:
                    raise ValueError(other)
        except TimeoutError:
            raise KviewError(ErrorKind.CLUSTER_NOT_READY, within_s=READY_WITHIN_S) from None
        except (ValueError, TypeError, LookupError) as error:
            _log.warning("the simulated cluster's first message is wrong: %r", error)
            raise KviewError(ErrorKind.CLUSTER_GARBLED) from None

    def ended(self) -> KviewError | None:
        """Return how the child ended, None while it is running."""
        code = self._child.process.poll()
        if code is None:
            return None
        return exit_error(code, ErrorKind.CLUSTER_KILLED, ErrorKind.CLUSTER_EXITED)

    def end(self) -> int:
        """End the child process, and return its exit code, negative for a signal."""
        return self._child.end(self._end_within_s)

    def _exit_code(self) -> int:
        """Return the exit code of a child that has closed its end of the channel. Kill the child if it does
        not end."""
        try:
            return self._child.process.wait(_SAYS_HOW_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._child.process.kill()
            return self._child.process.wait()
