"""Records a run on a thread of its own. The dashboard steps through the recording, and Spark reads it."""

import itertools
import logging
import os
import queue
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from kview.derive.facts import Facts
from kview.derive.view import View
from kview.errors import BadUse, ErrorFacts, ErrorKind, KviewError
from kview.model.notices import Notice, NoticeKind
from kview.model.snapshot import Snapshot
from kview.model.units import UNKNOWN
from kview.recording.names import MANIFEST
from kview.run.settings import Record

if TYPE_CHECKING:
    from kview.recording.ring import FlightRecorder
    from kview.recording.upload import Uploading
    from kview.recording.writer import RecordingWriter

QUEUE_OBSERVATIONS = 16
"""Limit of snapshots that wait while a segment is closed. At the usual interval they cover seconds; at
100,000 partitions they take megabytes."""

CLOSE_WITHIN_S = 0.5
"""Longest time that the end of a run waits until the open segment is closed. A segment that is not closed by
then stays a stream, which is readable too."""

DASHBOARD_CLOSES_WITHIN_S = 0.4
"""How long a dashboard, which must end within a second, waits for the recording to be closed."""

TEXT_CLOSES_WITHIN_S = 10.0
"""How long text output, which restores no terminal, waits for the last segment to be closed and uploaded."""

STARTS_AFTER_S = 0.3
"""The time from the first view, once it is on the screen, to the start of recording, so that the imports for
recording do not slow down the drawing of that view."""

AFTER_VIEW_S = 0.25
"""How long an observation waits before it is recorded, if there is a screen. Its view is drawn in that time,
and a key that comes meanwhile would wait for both."""

RETRY_S = 10.0
"""Pause between attempts to continue a recording that has stopped, for example until somebody has freed some
space. An attempt costs a few writes."""

ARROW_POOL = "ARROW_DEFAULT_MEMORY_POOL"
"""The environment variable that names the pool of pyarrow's memory. It is read when pyarrow is imported."""

_log = logging.getLogger(__name__)


class Writes(Protocol):
    """The methods of a writer that the thread needs."""

    def append(self, snapshot: Snapshot, facts: Facts | None = None) -> None:
        """Record one observation, with its facts if it was folded. Raises KviewError if recording has
        stopped."""
        ...

    def close(self) -> None:
        """Close the open files. Raises KviewError."""
        ...


class _Seen(NamedTuple):
    """An observation to record."""

    snapshot: Snapshot
    facts: Facts | None


class RecordingThread:
    """Records the snapshots offered to it on its own daemon thread, where it also creates the writer.

    There is nothing to record if `new_writer` returns None.

    `on_notice` is called on that thread when the disk is full or cannot be written, when recording continues
    after that, when it has ended for good, and when the thread cannot keep up. Until recording continues,
    snapshots are discarded.
    """

    def __init__(
        self,
        new_writer: Callable[[], Writes | None],
        on_notice: Callable[[Notice], None],
        clock_s: Callable[[], float] = time.monotonic,
        after_s: float = 0.0,
    ) -> None:
        """Create a thread that records a snapshot `after_s` seconds after it was offered, or at once if more
        are waiting or the end is near."""
        self._clock_s = clock_s
        self._after_s = after_s
        self.ending = threading.Event()
        """Set once no more snapshots will be offered."""
        self._missed = 0
        """The number of snapshots that were discarded because writing failed, 0 while it works."""
        self._missed_since_ms = 0
        self._retry_at_s = 0.0
        self._new_writer = new_writer
        self._on_notice = on_notice
        self._waiting: queue.Queue[_Seen | Callable[[Writes], Notice] | None] = queue.Queue(
            QUEUE_OBSERVATIONS
        )
        self._thread = threading.Thread(target=self._run, name="recording", daemon=True)
        self._left_out = 0
        self._reported_left_out = 0
        self.recording = True
        """False once recording has stopped because of an error."""

    def start(self) -> None:
        """Start the thread that writes segments, and return at once."""
        self._thread.start()

    def offer(self, snapshot: Snapshot, facts: Facts | None = None) -> None:
        """Record `snapshot` soon, with its facts if it was folded, and return at once.

        If the disk is too slow, the snapshot is skipped and counted.
        """
        if self.recording:
            try:
                self._waiting.put_nowait(_Seen(snapshot, facts))
            except queue.Full:
                self._left_out += 1

    def ask(self, job: Callable[[Writes], Notice]) -> bool:
        """Run `job` with the writer on the recording thread, after the snapshots already waiting.

        The notice that `job` returns is passed on. Returns whether `job` will run: False if too much is
        waiting or recording has stopped.
        """
        if not self.recording:
            return False
        try:
            self._waiting.put_nowait(job)
        except queue.Full:
            return False
        return True

    def stop(self, within_s: float = CLOSE_WITHIN_S) -> None:
        """Record what is waiting and close the recording, with at most `within_s` for each of the two."""
        self.ending.set()
        try:
            self._waiting.put(None, timeout=within_s)
        except queue.Full:
            return
        self._thread.join(within_s)

    def _run(self) -> None:
        try:
            writer = self._new_writer()
            if writer is not None:
                self._record(writer)
        except KviewError as error:
            self.recording = False
            self._on_notice(Notice(NoticeKind.RECORDING_STOPPED, {"error": error.facts}))
        except Exception as error:
            self.recording = False
            _log.exception("the recording has ended by an error")
            failed = KviewError(ErrorKind.RECORDING_FAILED, bug=f"{type(error).__name__}: {error}")
            self._on_notice(Notice(NoticeKind.RECORDING_STOPPED, {"error": failed.facts}))

    def _record(self, writer: Writes) -> None:
        while (item := self._waiting.get()) is not None:
            if isinstance(item, _Seen):
                if self._waiting.empty():
                    self.ending.wait(self._after_s)
                self._append(writer, item)
            else:
                self._on_notice(self._answer(item, writer))
            if self._left_out > self._reported_left_out and self._waiting.empty():
                self._reported_left_out = self._left_out
                self._on_notice(Notice(NoticeKind.RECORDING_SLOW, {"count": self._left_out}))
        writer.close()

    def _append(self, writer: Writes, seen: _Seen) -> None:
        """Record a snapshot, or discard it if writing has failed and it is too early to try again."""
        if self._missed and self._clock_s() < self._retry_at_s:
            self._missed += 1
            return
        try:
            writer.append(seen.snapshot, seen.facts)
        except KviewError as error:
            if error.facts.kind is not ErrorKind.RECORDING_STOPPED:
                raise
            if not self._missed:
                self._missed_since_ms = seen.snapshot.observation.ended_ms
                self._on_notice(Notice(NoticeKind.RECORDING_INTERRUPTED, {"lost": error.facts}))
            self._missed += 1
            self._retry_at_s = self._clock_s() + RETRY_S
            return
        if self._missed:
            values = {"count": self._missed, "since_ms": self._missed_since_ms}
            self._missed = 0
            self._on_notice(Notice(NoticeKind.RECORDING_AGAIN, values))

    def _answer(self, job: Callable[[Writes], Notice], writer: Writes) -> Notice:
        """Run `job`. If it fails, recording continues."""
        try:
            return job(writer)
        except KviewError as error:
            return Notice(NoticeKind.NOT_KEPT, {"error": error.facts})
        except OSError as error:
            failed = KviewError(ErrorKind.KEEPING_FAILED, reason=error.strerror or str(error))
            return Notice(NoticeKind.NOT_KEPT, {"error": failed.facts})


class Recorder:
    """Records the snapshots that it is offered, on a thread that also imports the libraries for recording.

    `on_folder` is called on that thread once the recording's folder exists. `on_stopped` is called with the
    reason if recording stops because of an error.
    """

    def __init__(self, record: Record, with_screen: bool = False) -> None:
        """Create a recorder that starts with `start`, or after `hold` with `shown` if that comes later.

        With a screen, it waits STARTS_AFTER_S then, and AFTER_VIEW_S before each observation. Snapshots
        offered in the meantime are queued.
        """
        self._record = record
        self._starts_after_s = STARTS_AFTER_S if with_screen else 0.0
        self._shown = threading.Event()
        self._shown.set()
        self._offered = 0
        after_s = AFTER_VIEW_S if with_screen else 0.0
        self._thread = RecordingThread(self._new_writer, self._notify, after_s=after_s)
        self._started = False
        self._is_kept = False
        """Whether what is recorded is to be kept."""
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

    def hold(self) -> None:
        """Wait for `shown` before recording starts, unless so much is queued that some would be left out."""
        self._shown.clear()

    def shown(self) -> None:
        """Note that what is recorded is shown now."""
        self._shown.set()

    def start(self, on_notice: Callable[[Notice], None]) -> None:
        """Start recording. Returns at once. Does nothing after `end`."""
        if self._thread.ending.is_set():
            return
        self._on_notice = on_notice
        self._started = True
        self._thread.start()

    def offer(self, snapshot: Snapshot, view: View | None) -> None:
        """Record a snapshot soon, with the facts of its view if it could be folded. Returns at once."""
        if not self._thread.ending.is_set():
            self._thread.offer(snapshot, Facts.of(view) if view is not None else None)
            self._offered += 1
            if self._offered > QUEUE_OBSERVATIONS // 4:
                self._shown.set()

    def keep(self, name: str) -> Notice | None:
        """Keep what has been recorded so far under `name`.

        Returns a notice if that is not possible now. Otherwise a notice with the outcome follows later.
        """
        if self.stopped is not None:
            return Notice(NoticeKind.NOT_KEPT, {"error": self.stopped})
        self._is_kept = True
        if not self._started or not self._thread.ask(lambda writer: self._keep(name)):
            return Notice(NoticeKind.RECORDING_BUSY)
        return None

    def end(self) -> None:
        """Stop recording. Returns at once; `stop` waits until everything is written."""
        self._thread.ending.set()
        self._shown.set()
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

    def _new_writer(self) -> Writes | None:
        self._shown.wait()
        is_over = self._thread.ending.wait(self._starts_after_s)
        is_wanted = self._record.folder is not None or self._is_kept
        if is_over and not is_wanted and self._offered < 2:
            return None  # nobody looks back at one observation, and the end would wait for pyarrow's import
        import_arrow()
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


def import_arrow() -> None:
    """Import pyarrow with the C library's memory: its own pool keeps 30 MB of what a closed segment took.

    Another pool that the user chose stays, and a process that is started later chooses for itself.
    """
    is_chosen = ARROW_POOL in os.environ
    os.environ.setdefault(ARROW_POOL, "system")
    import kview.recording.writer  # noqa: F401

    if not is_chosen:
        os.environ.pop(ARROW_POOL, None)


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


_began = f"{datetime.now(UTC):%Y%m%dT%H%M%S}"
_runs = itertools.count()


def _run_name() -> str:
    """Return a name that no other run has, nor another cluster of this one."""
    number = next(_runs)
    return f"{_began}-{os.getpid()}{f'-{number}' if number else ''}"
