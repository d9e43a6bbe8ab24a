"""Records a run on a thread of its own. The dashboard steps through the recording, and Spark reads it."""

import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kview.derive.facts import Facts
from kview.derive.view import View
from kview.errors import BadUse, ErrorFacts, ErrorKind, KviewError
from kview.model.notices import Notice, NoticeKind
from kview.model.snapshot import Snapshot
from kview.model.units import UNKNOWN
from kview.recording.names import MANIFEST
from kview.recording.thread import RecordingThread, Writes
from kview.run.settings import Record

if TYPE_CHECKING:
    from kview.recording.ring import FlightRecorder
    from kview.recording.upload import Uploading
    from kview.recording.writer import RecordingWriter

DASHBOARD_CLOSES_WITHIN_S = 0.4
"""How long a dashboard, which must end within a second, waits for the recording to be closed."""

TEXT_CLOSES_WITHIN_S = 10.0
"""How long text output, which restores no terminal, waits for the last segment to be closed and uploaded."""


class Recorder:
    """Records the snapshots that it is offered, on a thread that also imports the libraries for recording.

    `on_folder` is called on that thread once the recording's folder exists. `on_stopped` is called with the
    reason if recording stops because of an error.
    """

    def __init__(self, record: Record, starts_after_s: float = 0.0) -> None:
        """Create a recorder that waits `starts_after_s` before recording starts.

        The wait lets the first view be drawn undisturbed. Snapshots offered in the meantime are queued.
        """
        self._record = record
        self._starts_after_s = starts_after_s
        self._ending = threading.Event()
        self._thread = RecordingThread(self._new_writer, self._notify)
        self._started = False
        self._closed = False
        self._uploading: Uploading | None = None
        self._on_notice: Callable[[Notice], None] = lambda notice: None
        self.folder: Path | None = None
        """The recording's folder, None until it exists."""
        self.first_ms = UNKNOWN
        """The first moment of the recording, in epoch ms; UNKNOWN until an observation has been written."""
        self.stopped: ErrorFacts | None = None
        """The error that stopped the recording, None if there was none or recording has continued."""
        self.unfinished: ErrorFacts | None = None
        """What could not be completed, set by `stop`; None if everything was completed."""
        self.on_folder: Callable[[Path], None] = lambda folder: None
        self.on_stopped: Callable[[ErrorFacts], None] = lambda why: None

    def start(self, on_notice: Callable[[Notice], None]) -> None:
        """Start recording. Returns at once. Does nothing after `end`."""
        if self._ending.is_set():
            return
        self._on_notice = on_notice
        self._started = True
        self._thread.start()

    def offer(self, snapshot: Snapshot, view: View | None) -> None:
        """Record a snapshot soon, with the facts of its view if it could be folded. Returns at once."""
        if not self._ending.is_set():
            self._thread.offer(snapshot, Facts.of(view) if view is not None else None)

    def keep(self, name: str) -> Notice | None:
        """Keep what has been recorded so far under `name`.

        Returns a notice if that is not possible now. Otherwise a notice with the outcome follows later.
        """
        if self.stopped is not None:
            return Notice(NoticeKind.NOT_KEPT, {"error": self.stopped})
        if not self._started or not self._thread.ask(lambda writer: self._keep(name)):
            return Notice(NoticeKind.RECORDING_BUSY)
        return None

    def end(self) -> None:
        """Stop recording. Returns at once; `stop` waits until everything is written."""
        self._ending.set()
        if self._started:
            self._thread.stop(0)

    def stop(self, within_s: float) -> None:
        """Stop recording, and wait at most `within_s` seconds until everything is written and uploaded."""
        if not self._started:
            return
        until_s = time.monotonic() + within_s
        self.end()
        self._thread.stop(within_s)
        uploading = self._uploading
        if uploading is None:
            return
        uploaded = uploading.stop(max(0.0, until_s - time.monotonic()))
        if not (self._closed and uploaded):
            self.unfinished = KviewError(ErrorKind.UPLOAD_UNFINISHED, folder=str(self.folder)).facts

    def _new_writer(self) -> Writes:
        self._ending.wait(self._starts_after_s)
        writer = self._ring() if self._record.folder is None else self._recording(self._record.folder)
        self.folder = writer.folder
        self.on_folder(writer.folder)
        return _ProgressWriter(writer, self)

    def _ring(self) -> "FlightRecorder":
        from kview.recording.names import state_folder
        from kview.recording.ring import FlightRecorder

        return FlightRecorder(state_folder(), _run_name())

    def _recording(self, folder: Path) -> "RecordingWriter":
        from kview.recording.writer import RecordingWriter

        if not self._record.upload:
            return RecordingWriter(folder)
        from kview.recording.upload import Uploading

        uploading = Uploading(folder, self._record.upload, self._notify)
        writer = RecordingWriter(folder, on_closed=uploading.closed)
        uploading.start()
        self._uploading = uploading
        return writer

    def wrote(self, first_ms: int) -> None:
        """Note that an observation was written, and that the recording now begins at `first_ms`."""
        self.first_ms = first_ms

    def closed(self) -> None:
        """Note that the recording was closed."""
        self._closed = True

    def _keep(self, name: str) -> Notice:
        from kview.recording.names import state_folder
        from kview.recording.ring import keep

        assert self.folder is not None
        keep(self.folder, name, state_folder())
        return Notice(NoticeKind.KEPT, {"name": name})

    def _notify(self, notice: Notice) -> None:
        error = notice.values.get("error")
        if notice.kind is NoticeKind.RECORDING_AGAIN:
            self.stopped = None
        lost = notice.values.get("lost")
        if notice.kind is NoticeKind.RECORDING_INTERRUPTED and isinstance(lost, ErrorFacts):
            self.stopped = lost
        if notice.kind is NoticeKind.RECORDING_STOPPED and isinstance(error, ErrorFacts):
            self.stopped = error
            self.on_stopped(error)
        self._on_notice(notice)


class _ProgressWriter:
    """A writer that reports its progress to the recorder."""

    def __init__(self, writer: "FlightRecorder | RecordingWriter", recorder: Recorder) -> None:
        self._writer = writer
        self._recorder = recorder

    def append(self, snapshot: Snapshot, facts: "Facts | None" = None) -> None:
        self._writer.append(snapshot, facts)
        # The first moment changes because a ring drops its oldest segments.
        self._recorder.wrote(self._writer.segments[0].began_ms)

    def close(self) -> None:
        self._writer.close()
        self._recorder.closed()


def check_target(record: Record) -> None:
    """Check that the folder can be recorded to and the URL uploaded to. Raises BadUse if not."""
    folder = record.folder
    if folder is None:
        return
    try:
        if (folder / MANIFEST).exists():
            raise BadUse(ErrorKind.FOLDER_HAS_RECORDING, folder=str(folder))
        if record.upload:
            from kview.recording.upload import open_target

            open_target(record.upload)
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadUse(
            ErrorKind.FOLDER_NOT_MADE, folder=str(folder), reason=error.strerror or str(error)
        ) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BadUse(ErrorKind.FOLDER_NOT_WRITABLE, folder=str(folder))


def _run_name() -> str:
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}"
