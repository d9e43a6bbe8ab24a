"""kview in a real pseudo-terminal, and its screen as a person sees it."""

import os
import re
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import pexpect
import pyte

from tests.edges import without_edges
from tests.waiting import PATIENCE_S

T = TypeVar("T")

READ_BYTES = 1 << 16
READ_TIMEOUT_S = 0.05
SETTLED_S = 0.04
"""Without a byte for this long a frame is whole: a dashboard draws five a second when nobody types."""
READS_A_FRAME = 50
"""A program that never stops writing is looked at all the same."""

HOLD_BYTES = 1 << 24
"""Raw output kept for a look at its bytes: minutes of a dashboard."""

COLOURS = re.compile(rb"\x1b\[[\d;]*m")
"""Most of a frame's bytes, and nothing of its text: the emulator, which takes a byte at a time, gets none."""

BEGUN = re.compile(rb"\x1b(\[[\d;]*)?\Z")
"""The beginning of a sequence that may be one of them."""


class PseudoTerminal:
    """A process on a pseudo-terminal of its own, read by a terminal emulator.

    `settled_s` is how long no byte must come before the screen is looked at; 0 looks at half-drawn frames.
    """

    def __init__(
        self,
        command: list[str],
        columns: int,
        rows: int,
        environment: dict[str, str],
        settled_s: float = SETTLED_S,
        limit_file_bytes: int | None = None,
    ) -> None:
        self.began_s = time.monotonic()
        self._settled_s = settled_s
        self.child = pexpect.spawn(
            command[0],
            command[1:],
            dimensions=(rows, columns),
            env=environment,
            timeout=None,
            preexec_fn=partial(_begin, limit_file_bytes),
        )
        self.child.delaybeforesend = None
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._begun = b""
        self._lines: dict[int, str] = {}
        self.raw = bytearray()
        self.closed = False

    @property
    def pid(self) -> int:
        """The process id."""
        return int(self.child.pid)

    def read(self) -> None:
        """Take in what the process has written, waiting a moment for more, up to the end of a frame."""
        for number in range(READS_A_FRAME):
            try:
                data = self.child.read_nonblocking(READ_BYTES, self._settled_s if number else READ_TIMEOUT_S)
            except pexpect.TIMEOUT:
                return
            except pexpect.EOF:
                self.closed = True
                return
            if len(self.raw) < HOLD_BYTES:
                self.raw += data
            self._draw(data)

    def _draw(self, data: bytes) -> None:
        """Let the emulator draw what was written, but for its colours."""
        data = COLOURS.sub(b"", self._begun + data)
        begun = BEGUN.search(data)
        self._begun = begun[0] if begun else b""
        self._stream.feed(data.removesuffix(self._begun))

    def lines(self) -> list[str]:
        """The screen's lines, without the spaces at their ends and the edges of panels."""
        for row in self.screen.dirty:
            cells = self.screen.buffer[row]
            line = "".join(cells[column].data for column in range(self.screen.columns))
            self._lines[row] = without_edges(line).rstrip()
        self.screen.dirty.clear()
        return [self._lines[row] for row in range(self.screen.lines)]

    def text(self) -> str:
        """The screen as one text."""
        return "\n".join(self.lines())

    def wait_for(self, probe: Callable[[], T | None], what: str, timeout_s: float = PATIENCE_S) -> T:
        """Read until `probe` is true of the screen; returns its answer. Raises AssertionError with the
        screen."""
        deadline_s = time.monotonic() + timeout_s
        while not (answer := probe()):
            if time.monotonic() > deadline_s or self.closed:
                ended = "it has ended: " if self.closed else f"not within {timeout_s:g} s: "
                raise AssertionError(f"{ended}{what}; the screen:\n{self.text()}")
            self.read()
        return answer

    def wait_for_text(self, pattern: str, timeout_s: float = PATIENCE_S) -> re.Match[str]:
        """Read until the screen holds the pattern."""
        return self.wait_for(lambda: re.search(pattern, self.text()), f"a screen with {pattern!r}", timeout_s)

    def press(self, keys: str) -> None:
        """Type."""
        self.child.send(keys)

    def wait_for_end(self, timeout_s: float = PATIENCE_S) -> int:
        """Read until the process has ended; its exit code, negative for a signal. Raises AssertionError."""
        deadline_s = time.monotonic() + timeout_s
        while self.child.isalive() or not self.closed:
            if time.monotonic() > deadline_s:
                raise AssertionError(f"still running after {timeout_s:g} s; the screen:\n{self.text()}")
            self.read()
        status = self.child.exitstatus
        return -int(self.child.signalstatus) if status is None else int(status)

    def go_away(self) -> None:
        """Close the terminal under the process."""
        self.child.ptyproc.fileobj.close()
        self.closed = True

    def end(self) -> None:
        """Kill what is left of it."""
        if self.child.isalive():
            self.child.kill(signal.SIGKILL)
        self.child.close(force=True)


def _begin(limit_file_bytes: int | None) -> None:
    """Begin as a shell on a terminal has it, also if these tests run in the background and ignore Ctrl-C."""
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    if limit_file_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit_file_bytes, limit_file_bytes))


@contextmanager
def kview_on_a_terminal(
    *arguments: str,
    columns: int = 120,
    rows: int = 40,
    environment: Mapping[str, str] | None = None,
    limit_file_bytes: int | None = None,
    spark: bool = False,
    tour: bool = False,
) -> Iterator[PseudoTerminal]:
    """`kview` with these arguments on a pseudo-terminal of that size; killed at the end if it still runs.

    Without Spark unless that is what is tested: a start takes all that a small machine has. Without the tour,
    too. Its state folder
    is empty unless `environment` names one, because it keeps what was shown last.

    `limit_file_bytes`: no file that it writes can get larger, as on a full disk.
    """
    plain = {
        name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")
    }
    without = [] if spark else ["--no-spark"]
    if "--simulate" in arguments and not tour:
        without.append("--no-tour")
    terminal = PseudoTerminal(
        [sys.executable, "-m", "kview", *arguments, *without],
        columns,
        rows,
        {
            **plain,
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "LC_ALL": "C.UTF-8",
            "XDG_STATE_HOME": tempfile.mkdtemp(dir=os.environ["XDG_STATE_HOME"]),
            **(environment or {}),
        },
        limit_file_bytes=limit_file_bytes,
    )
    try:
        yield terminal
    finally:
        terminal.end()
