"""The recording's thread: takes snapshots from the observer without ever making it wait."""

import logging
import queue
import threading
from collections.abc import Callable
from typing import Protocol

from kview.errors import ErrorKind, KviewError
from kview.model.notices import Notice, NoticeKind
from kview.model.snapshot import Snapshot

QUEUE_OBSERVATIONS = 16
"""What may wait while a segment is closed: seconds at the usual interval, megabytes at 100,000 partitions."""

CLOSE_WITHIN_S = 0.5
"""How long the end of a run waits for the open segment; one that is not closed by then stays a stream, which
is read as well."""

_log = logging.getLogger(__name__)


class Writes(Protocol):
    """What the thread needs of a writer."""

    def append(self, snapshot: Snapshot) -> None:
        """Record one observation. Raises KviewError where recording has stopped."""
        ...

    def close(self) -> None:
        """Bring what is open to its end. Raises KviewError."""
        ...


class RecordingThread:
    """Records what is offered, on a daemon thread of its own, on which the writer is made, too.

    What happens is told by `on_notice`, which is called on that thread: that recording has stopped and why
    (once; what is offered afterwards is let go), and that it cannot keep up."""

    def __init__(self, new_writer: Callable[[], Writes], on_notice: Callable[[Notice], None]) -> None:
        self._new_writer = new_writer
        self._on_notice = on_notice
        self._waiting: queue.Queue[Snapshot | Callable[[Writes], Notice] | None] = queue.Queue(
            QUEUE_OBSERVATIONS
        )
        self._thread = threading.Thread(target=self._run, name="recording", daemon=True)
        self._left_out = 0
        self._told_left_out = 0
        self.recording = True
        """False once recording has stopped by itself."""

    def start(self) -> None:
        """Begin; returns at once."""
        self._thread.start()

    def offer(self, snapshot: Snapshot) -> None:
        """Record it soon. Returns at once; where the disk is too slow, it is left out and counted."""
        if self.recording:
            try:
                self._waiting.put_nowait(snapshot)
            except queue.Full:
                self._left_out += 1

    def ask(self, job: Callable[[Writes], Notice]) -> bool:
        """Have something done with the writer, on its thread, after what was offered before; its notice is
        passed on.

        Returns whether it will be: not where too much is waiting or recording has stopped.
        """
        if not self.recording:
            return False
        try:
            self._waiting.put_nowait(job)
        except queue.Full:
            return False
        return True

    def stop(self, within_s: float = CLOSE_WITHIN_S) -> None:
        """Record what was offered, close the recording, and wait so long for it at most."""
        try:
            self._waiting.put(None, timeout=within_s)
        except queue.Full:
            return
        self._thread.join(within_s)

    def _run(self) -> None:
        try:
            self._record(self._new_writer())
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
            if isinstance(item, Snapshot):
                writer.append(item)
            else:
                self._on_notice(self._answer(item, writer))
            if self._left_out > self._told_left_out and self._waiting.empty():
                self._told_left_out = self._left_out
                self._on_notice(Notice(NoticeKind.RECORDING_SLOW, {"count": self._left_out}))
        writer.close()

    def _answer(self, job: Callable[[Writes], Notice], writer: Writes) -> Notice:
        """A job that fails leaves the recording going."""
        try:
            return job(writer)
        except KviewError as error:
            return Notice(NoticeKind.NOT_KEPT, {"error": error.facts})
        except OSError as error:
            failed = KviewError(ErrorKind.KEEPING_FAILED, reason=error.strerror or str(error))
            return Notice(NoticeKind.NOT_KEPT, {"error": failed.facts})
