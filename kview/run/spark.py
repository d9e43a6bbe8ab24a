"""The Spark job of a run: when it starts, what it reads, and when it ends with it."""

import threading
from collections.abc import Callable
from pathlib import Path

from kview.errors import ErrorFacts
from kview.model.aggregates import Aggregates, SparkState, SparkStatus
from kview.pipeline.process import LiveJob

STARTS_AFTER_S = 0.5
"""After the recording is there, which is after the first picture: a start takes all that a machine has."""


class Spark:
    """`kview.model.ports.SparkJob` of a run. `tell` is given every change, on a thread of the job's.

    `live` is false for a recording that is finished: how far the job is behind says nothing there.
    """

    def __init__(self, tell: Callable[[Aggregates], None], clock_ms: Callable[[], int], live: bool) -> None:
        self._tell = tell
        self._clock_ms = clock_ms
        self._live = live
        self._changing = threading.Lock()
        self._ended = False
        self._job: LiveJob | None = None
        self._starting: threading.Timer | None = None
        tell(Aggregates(SparkStatus(SparkState.STARTING, since_ms=clock_ms())))

    def read(self, recording: Path) -> None:
        """Roll up that recording, soon; returns at once."""
        with self._changing:
            if self._ended:
                return
            self._job = LiveJob(recording, self._tell, self._clock_ms, self._live)
            self._starting = threading.Timer(STARTS_AFTER_S, self._start)
            self._starting.daemon = True
            self._starting.start()

    def nothing_to_read(self, why: ErrorFacts) -> None:
        """The recording has stopped: what was read of it stays, and there is nothing to start for."""
        job = self._job
        self.stop()
        rollups = job.rollups if job is not None else Aggregates().rollups
        self._tell(Aggregates(SparkStatus(SparkState.FAILED, why, self._clock_ms()), rollups))

    def restart(self) -> None:
        """End the job if it runs, and start it now; returns at once."""
        with self._changing:
            if self._job is not None and not self._ended:
                self._job.restart()

    def stop(self) -> None:
        """End the job and its JVM, within a second. Nothing is told after it returns."""
        with self._changing:
            self._ended = True
            if self._starting is not None:
                self._starting.cancel()
            job = self._job
        if job is not None:
            job.stop()

    def _start(self) -> None:
        with self._changing:
            if not self._ended and self._job is not None:
                self._job.start()
