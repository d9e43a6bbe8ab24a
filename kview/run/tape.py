"""The tape: the recording that a run writes, which its dashboard steps through and its jobs read."""

import os
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from kview.errors import BadUse, ErrorFacts, ErrorKind, KviewError
from kview.model.notices import Notice, NoticeKind
from kview.model.snapshot import Snapshot
from kview.model.units import UNKNOWN
from kview.recording.names import MANIFEST
from kview.recording.thread import RecordingThread, Writes
from kview.run.observing import Source
from kview.run.settings import Record

if TYPE_CHECKING:
    from kview.recording.ring import FlightRecorder
    from kview.recording.upload import Uploading
    from kview.recording.writer import RecordingWriter

DASHBOARD_CLOSES_WITHIN_S = 0.4
"""Of the second that a dashboard may take to end."""

TEXT_CLOSES_WITHIN_S = 10.0
"""Where nobody waits for a terminal, the last segment is closed and uploaded in peace."""


class Tape:
    """Records what is offered, on a thread of its own, on which the libraries for it are imported, too.

    `on_folder` is called on that thread once the recording's folder is there; `on_stopped`, with why, where
    recording has stopped by itself."""

    def __init__(self, record: Record, starts_after_s: float = 0.0) -> None:
        """`starts_after_s`: how long the start of recording lets the first picture be drawn in peace; what is
        offered meanwhile waits."""
        self._record = record
        self._starts_after_s = starts_after_s
        self._ending = threading.Event()
        self._thread = RecordingThread(self._new_writer, self._tell)
        self._started = False
        self._closed = False
        self._uploading: Uploading | None = None
        self._on_notice: Callable[[Notice], None] = lambda notice: None
        self.folder: Path | None = None
        """The recording's folder, once it is there."""
        self.first_ms = UNKNOWN
        """The first moment on it, epoch ms."""
        self.stopped: ErrorFacts | None = None
        """Why recording has stopped by itself."""
        self.unfinished: ErrorFacts | None = None
        """After `stop`: what could not be brought to its end."""
        self.on_folder: Callable[[Path], None] = lambda folder: None
        self.on_stopped: Callable[[ErrorFacts], None] = lambda why: None

    def start(self, on_notice: Callable[[Notice], None]) -> None:
        """Begin; returns at once. Does nothing after `end`."""
        if self._ending.is_set():
            return
        self._on_notice = on_notice
        self._started = True
        self._thread.start()

    def offer(self, snapshot: Snapshot) -> None:
        """Record it soon; returns at once."""
        if not self._ending.is_set():
            self._thread.offer(snapshot)

    def keep(self, name: str) -> Notice | None:
        """Keep what was recorded until now under a name; what becomes of it is a notice later on, or why not
        is one now."""
        if self.stopped is not None:
            return Notice(NoticeKind.NOT_KEPT, {"error": self.stopped})
        if not self._started or not self._thread.ask(lambda writer: self._keep(name)):
            return Notice(NoticeKind.RECORDING_BUSY)
        return None

    def end(self) -> None:
        """Begin to end; returns at once. Nothing is recorded any more."""
        self._ending.set()
        if self._started:
            self._thread.stop(0)

    def stop(self, within_s: float) -> None:
        """Bring the recording to its end, and wait so long for it at most."""
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
        return _Told(writer, self)

    def _ring(self) -> "FlightRecorder":
        from kview.recording.ring import FlightRecorder, state_folder

        return FlightRecorder(state_folder(), _run_name())

    def _recording(self, folder: Path) -> "RecordingWriter":
        from kview.recording.writer import RecordingWriter

        if not self._record.upload:
            return RecordingWriter(folder)
        from kview.recording.upload import Uploading

        uploading = Uploading(folder, self._record.upload, self._tell)
        writer = RecordingWriter(folder, on_closed=uploading.closed)
        uploading.start()
        self._uploading = uploading
        return writer

    def wrote(self, first_ms: int) -> None:
        """An observation was recorded; the recording begins at that moment."""
        self.first_ms = first_ms

    def closed(self) -> None:
        """The recording was brought to its end."""
        self._closed = True

    def _keep(self, name: str) -> Notice:
        from kview.recording.ring import keep, state_folder

        assert self.folder is not None
        keep(self.folder, name, state_folder())
        return Notice(NoticeKind.KEPT, {"name": name})

    def _tell(self, notice: Notice) -> None:
        error = notice.values.get("error")
        if notice.kind is NoticeKind.RECORDING_STOPPED and isinstance(error, ErrorFacts):
            self.stopped = error
            self.on_stopped(error)
        self._on_notice(notice)


class _Told:
    """A writer that tells the tape how far it is."""

    def __init__(self, writer: "FlightRecorder | RecordingWriter", tape: Tape) -> None:
        self._writer = writer
        self._tape = tape

    def append(self, snapshot: Snapshot) -> None:
        self._writer.append(snapshot)
        # A ring's first moment moves on.
        self._tape.wrote(self._writer.segments[0].began_ms)

    def close(self) -> None:
        self._writer.close()
        self._tape.closed()


class TapedSource:
    """A `Source` whose observations are offered to a tape."""

    def __init__(self, source: Source, tape: Tape) -> None:
        self._source = source
        self._tape = tape

    def connect(self) -> None:
        """Find the cluster. Raises KviewError."""
        self._source.connect()

    def observe(self) -> Snapshot:
        """Look once. Raises SourceEnded."""
        snapshot = self._source.observe()
        self._tape.offer(snapshot)
        return snapshot

    def close(self) -> None:
        """End the connections; the tape is its owner's to stop."""
        self._source.close()


def check(record: Record) -> None:
    """Raises BadUse where nothing can be recorded to that folder, or uploaded to that URL."""
    folder = record.folder
    if folder is None:
        return
    if (folder / MANIFEST).exists():
        raise BadUse(ErrorKind.FOLDER_HAS_RECORDING, folder=str(folder))
    if record.upload:
        from kview.recording.upload import open_target

        open_target(record.upload)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadUse(
            ErrorKind.FOLDER_NOT_MADE, folder=str(folder), reason=error.strerror or str(error)
        ) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BadUse(ErrorKind.FOLDER_NOT_WRITABLE, folder=str(folder))


def _run_name() -> str:
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}"
