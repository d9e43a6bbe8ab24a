"""The recording thread, which takes snapshots from the observer and never makes the observer wait."""

import logging
import queue
import threading
import time
from collections.abc import Callable
from typing import NamedTuple, Protocol

from kview.derive.facts import Facts
from kview.errors import ErrorKind, KviewError
from kview.model.notices import Notice, NoticeKind
from kview.model.snapshot import Snapshot

QUEUE_OBSERVATIONS = 16
"""Limit of snapshots that wait while a segment is closed. At the usual interval they cover seconds; at
100,000 partitions they take megabytes."""

CLOSE_WITHIN_S = 0.5
"""Longest time that the end of a run waits until the open segment is closed. A segment that is not closed by
then stays a stream, which is readable too."""

RETRY_S = 10.0
"""Pause between attempts to continue a recording that has stopped, for example until somebody has freed some
space. An attempt costs a few writes."""

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

    `on_notice` is called on that thread when the disk is full or cannot be written, when recording continues
    after that, when it has ended for good, and when the thread cannot keep up. Until recording continues,
    snapshots are discarded.
    """

    def __init__(
        self,
        new_writer: Callable[[], Writes],
        on_notice: Callable[[Notice], None],
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock_s = clock_s
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
            if isinstance(item, _Seen):
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
