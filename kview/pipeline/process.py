"""Runs the live job in a child process, which is watched, restarted after a failure, and ended."""

import contextlib
import logging
import socket
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.json import Decoder

from kview.config.children import Child, exit_error
from kview.config.messages import BytesFollow, encode, messages
from kview.config.scratch import LIVE_JOB, Scratch
from kview.errors import ErrorFacts, ErrorKind, KviewError, error_of
from kview.model.aggregates import Aggregates, Rollups, SparkState, SparkStatus
from kview.model.backoff import Backoff
from kview.model.units import UNKNOWN

if TYPE_CHECKING:
    from kview.pipeline.store import RollupStore

FIRST_BACK_OFF_S = 2.0
MAX_BACK_OFF_S = 60.0
"""Limits of the pause before an automatic restart. A start takes ten seconds of one core."""

STEADY_S = 60.0
"""If a job ran for this long before it failed, the pause before the next restart is short again."""

END_WITHIN_S = 0.3
"""Longest time that the child has to end by itself. kview as a whole must end within a second."""

_said: Decoder[bytes | ErrorFacts] = Decoder(BytesFollow | ErrorFacts)
"""What the child says. The bytes are an Arrow IPC stream of what `kview.pipeline.reading.next_rollups`
returns."""

_log = logging.getLogger(__name__)


class LiveJob:
    """Rolls up a recording while it is being written. Implements `kview.model.ports.SparkJob`.

    `on_aggregates` is called on a thread of this object whenever the status or the roll-ups change.
    `clock_ms` is the clock of the observations.
    """

    def __init__(
        self,
        recording: Path,
        on_aggregates: Callable[[Aggregates], None],
        clock_ms: Callable[[], int],
        *,
        python: str = sys.executable,
        first_back_off_s: float = FIRST_BACK_OFF_S,
        steady_s: float = STEADY_S,
    ) -> None:
        """Prepare a job that does not run yet. `python` runs the child."""
        self._recording = recording
        self._on_aggregates = on_aggregates
        self._clock_ms = clock_ms
        self._python = python
        self._first_back_off_s = first_back_off_s
        self._steady_s = steady_s
        self.rollups = Rollups()
        """The roll-ups so far."""
        self._changed = threading.Condition()
        self._ending = False
        self._is_watched = True
        self._wanted = 0
        """The number of restarts requested. When it changes, a pause or the running job ends at once."""
        self._child: Child | None = None
        self._thread = threading.Thread(target=self._run, name="spark", daemon=True)

    @property
    def pid(self) -> int | None:
        """The child's process id, None if there is none."""
        child = self._child
        return child.process.pid if child else None

    def start(self) -> None:
        """Start the thread, and return at once."""
        self._thread.start()

    def restart(self) -> None:
        """End the job if it runs, and start it immediately. Returns at once."""
        with self._changed:
            self._wanted += 1
            if self._child is not None:
                self._child.hang_up()
            self._changed.notify_all()

    def watch(self, is_watched: bool) -> None:
        """Say whether somebody looks at the roll-ups. If not, steps are longer. Returns at once."""
        with self._changed:
            self._is_watched = is_watched
            self._say_watched()

    def _say_watched(self) -> None:
        if self._child is not None:
            with contextlib.suppress(OSError):  # it has ended, or does not read
                self._child.control.send(encode(self._is_watched), socket.MSG_DONTWAIT)

    def stop(self) -> None:
        """End the job and its JVM, within about half a second. No callback comes after this returns."""
        with self._changed:
            self._ending = True
            if self._child is not None:
                self._child.hang_up()
            self._changed.notify_all()
        if self._thread.is_alive():
            self._thread.join(3 * END_WITHIN_S)

    def _run(self) -> None:
        # Imported here, because Arrow must not delay the first frame.
        from kview.pipeline.store import RollupStore

        store = RollupStore()
        back_off = Backoff(self._first_back_off_s, MAX_BACK_OFF_S)
        while not self._ending:
            asked = self._wanted
            self._tell(store, SparkStatus(SparkState.STARTING, since_ms=self._clock_ms()))
            began_s = time.monotonic()
            why = self._run_once(store)
            with self._changed:
                if self._ending:
                    return
                if self._wanted != asked:
                    back_off.reset()
                    continue
            if time.monotonic() - began_s > self._steady_s:
                back_off.reset()
            now_ms = self._clock_ms()
            next_ms = now_ms + int(back_off.pause_s * 1000)
            _log.warning("the Spark job has ended: %s", why)
            self._tell(store, SparkStatus(SparkState.FAILED, why.facts, now_ms, next_start_ms=next_ms))
            with self._changed:
                is_asked = self._changed.wait_for(
                    lambda: self._ending or self._wanted != asked,  # noqa: B023
                    back_off.pause_s,
                )
            if is_asked:
                back_off.reset()
            else:
                back_off.failed()

    def _run_once(self, store: "RollupStore") -> KviewError:
        """Run the job until it ends, and return why it ended."""
        import pyarrow as pa

        try:
            scratch = Scratch(LIVE_JOB)
        except KviewError as error:
            return error
        child: Child | None = None
        why: KviewError | None = None
        try:
            command = [
                self._python,
                *("-m", "kview.pipeline.child", "--recording", str(self._recording)),
                *("--after", str(store.last_sequence), "--scratch", str(scratch.path)),
            ]
            child = Child(command, _log, scratch.held_by)
            with self._changed:
                self._child = child
                self._say_watched()
                if self._ending:
                    child.hang_up()
            since_ms = UNKNOWN
            for message in messages(child.control, _said):
                if isinstance(message, ErrorFacts):
                    why = error_of(message)
                else:
                    store.add(pa.ipc.open_stream(message).read_all())
                    now_ms = self._clock_ms()
                    since_ms = now_ms if since_ms == UNKNOWN else since_ms
                    self.rollups = store.rollups
                    self._tell(store, SparkStatus(SparkState.RUNNING, None, since_ms))
        except OSError as error:
            why = KviewError(ErrorKind.SPARK_NOT_STARTED, reason=error.strerror or str(error))
        except ValueError as error:
            why = KviewError(ErrorKind.SPARK_GARBLED, reason=str(error))
        finally:
            with self._changed:
                self._child = None
            if child is not None:
                code = child.end(END_WITHIN_S)
                why = why or exit_error(code, ErrorKind.SPARK_KILLED, ErrorKind.SPARK_ENDED)
            scratch.remove()
        assert why is not None, "a child that was started says how it ended"
        return why

    def _tell(self, store: "RollupStore", status: SparkStatus) -> None:
        if not self._ending:
            self._on_aggregates(Aggregates(status, store.rollups))
