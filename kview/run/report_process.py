"""Reports for the dashboard, each made by a child process that ends together with kview."""

import asyncio
import contextlib
import logging
import pickle
import sys
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

from msgspec import Struct
from msgspec.json import Decoder

from kview.config.children import Child, exit_error
from kview.config.messages import BytesFollow, encode, messages
from kview.config.scratch import REPORTS, Scratch
from kview.errors import ErrorFacts, ErrorKind, KviewError, error_of
from kview.model.report import Report
from kview.model.reporting import ReportLine, ReportProgress, ReportScope

END_WITHIN_S = 0.5
"""The time that the child has to kill its JVM and to end. kview itself has one second to end."""

_said: Decoder[bytes | ErrorFacts | ReportProgress] = Decoder(BytesFollow | ErrorFacts | ReportProgress)
"""What the child says. The bytes are the fields of Made, pickled."""

_log = logging.getLogger(__name__)


class Made(Struct, frozen=True):
    """A report with the page that was written. Implements `kview.model.reporting.MadeReport`."""

    path: str
    report: Report

    @property
    def url(self) -> str:
        """The page's address."""
        return Path(self.path).as_uri()

    def lines(self, width: int, ascii_only: bool) -> Sequence[ReportLine]:
        """Return the report as text of `width` cells."""
        from kview.plain.report.text import text_lines

        return list(text_lines(self.report, width, ascii_only))


class ReportMaker:
    """Makes reports about the recording of a run. Implements `kview.model.reporting.Reports`.

    `recording` returns the recording's folder, None as long as there is none. Pages are written to `folder`.
    """

    def __init__(
        self, recording: Callable[[], Path | None], folder: Path, python: str = sys.executable
    ) -> None:
        self._recording = recording
        self._folder = folder
        self._python = python
        self._making: _Making | None = None

    @property
    def pid(self) -> int | None:
        """The child's process id, None if there is none."""
        making = self._making
        return making.pid if making is not None else None

    async def make(self, scope: ReportScope, on_progress: Callable[[ReportProgress], None]) -> Made:
        """Make a report about all of the recording so far. Raises KviewError."""
        recording = self._recording()
        if recording is None:
            raise KviewError(ErrorKind.REPORT_NO_RECORDING)
        loop = asyncio.get_running_loop()
        made: asyncio.Future[Made] = loop.create_future()

        def end(result: Made | KviewError) -> None:
            if made.done():
                return
            if isinstance(result, Made):
                made.set_result(result)
            else:
                made.set_exception(result)

        def later(call: Callable[..., None], value: object) -> None:
            with contextlib.suppress(RuntimeError):  # kview has ended, and its loop with it
                loop.call_soon_threadsafe(call, value)

        name = f"kview-report-{datetime.now():%Y%m%d-%H%M%S}"
        command = [
            self._python,
            *("-m", "kview.run.report_child", "--recording", str(recording)),
            *("--folder", str(self._folder), "--name", name),
        ]
        making = self._making = _Making(
            command, scope, lambda progress: later(on_progress, progress), lambda how: later(end, how)
        )
        try:
            return await made
        finally:
            making.cancel()

    def cancel(self) -> None:
        """Cancel the report that is being made. Returns at once."""
        if self._making is not None:
            self._making.cancel()

    def stop(self) -> None:
        """Cancel, and wait until the child has ended, at most a second."""
        if self._making is not None:
            self._making.cancel()
            self._making.join(2 * END_WITHIN_S)


class _Making:
    """A report that is being made, on a thread of its own and by a child process.

    `end` gets the report, or why there is none.
    """

    def __init__(
        self,
        command: Sequence[str],
        scope: ReportScope,
        on_progress: Callable[[ReportProgress], None],
        end: Callable[[Made | KviewError], None],
    ) -> None:
        self._command = command
        self._scope = scope
        self._on_progress = on_progress
        self._end = end
        self._changing = threading.Lock()
        self._cancelled = False
        self._child: Child | None = None
        self._thread = threading.Thread(target=self._run, name="report", daemon=True)
        self._thread.start()

    @property
    def pid(self) -> int | None:
        return self._child.process.pid if self._child is not None else None

    def cancel(self) -> None:
        with self._changing:
            self._cancelled = True
            if self._child is not None:
                self._child.hang_up()

    def join(self, within_s: float) -> None:
        self._thread.join(within_s)

    def _run(self) -> None:
        result: Made | KviewError
        try:
            scratch = Scratch(REPORTS)
        except KviewError as error:
            self._end(error)
            return
        try:
            result = self._made(scratch)
        except OSError as error:
            reason = error.strerror or str(error)
            result = KviewError(ErrorKind.REPORT_NOT_STARTED, reason=reason)
        except Exception as error:
            _log.exception("what the report's process sent could not be read")
            result = KviewError(ErrorKind.REPORT_FAILED, cause=type(error).__name__)
        finally:
            scratch.remove()
        self._end(KviewError(ErrorKind.REPORT_CANCELLED) if self._is_unwanted(result) else result)

    def _is_unwanted(self, result: Made | KviewError) -> bool:
        return self._cancelled and not isinstance(result, Made)

    def _made(self, scratch: Scratch) -> Made | KviewError:
        """Start the child, and return what it made or why it made nothing. Raises OSError."""
        environment = {"TMPDIR": str(scratch.path)}
        with self._changing:
            child = self._child = Child(self._command, _log, scratch.held_by, environment)
            if self._cancelled:
                child.hang_up()
        result: Made | KviewError | None = None
        try:
            with contextlib.suppress(BrokenPipeError):
                child.control.sendall(encode(self._scope))
            for message in messages(child.control, _said):
                if isinstance(message, ReportProgress):
                    self._on_progress(message)
                elif isinstance(message, ErrorFacts):
                    result = error_of(message)
                else:
                    # From our own child, on a socket that nobody else has.
                    result = Made(*pickle.loads(message))
                    import kview.plain.report.text  # noqa: F401 — while the screen does something else
        finally:
            with self._changing:
                self._child = None
            code = child.end(END_WITHIN_S)
        return result or exit_error(code, ErrorKind.REPORT_KILLED, ErrorKind.REPORT_ENDED)
