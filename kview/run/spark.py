"""The Spark job of a run, with the rules for when it starts, what it reads, and when it ends."""

import threading
from collections.abc import Callable
from pathlib import Path

from kview.errors import ErrorFacts
from kview.model.aggregates import Aggregates, SparkState, SparkStatus
from kview.pipeline.process import LiveJob

STARTS_AFTER_S = 0.5
"""Time between the start of recording and the start of the job, in seconds. Starting the job uses the entire
machine, which must not delay the first view."""


class Spark:
    """Runs the live job of a run. Implements `kview.model.ports.SparkJob`.

    Calls `publish` with every change, on the job's thread.
    """

    def __init__(self, publish: Callable[[Aggregates], None], clock_ms: Callable[[], int]) -> None:
        self._publish = publish
        self._clock_ms = clock_ms
        self._changing = threading.Lock()
        self._ended = False
        self._is_watched = True
        self._job: LiveJob | None = None
        self._starting: threading.Timer | None = None
        publish(Aggregates(SparkStatus(SparkState.STARTING, since_ms=clock_ms())))

    def read(self, recording: Path) -> None:
        """Start rolling up the recording soon, if nobody has. Returns at once."""
        with self._changing:
            if self._ended or self._job is not None:
                return
            self._job = LiveJob(recording, self._publish, self._clock_ms)
            self._job.watch(self._is_watched)
            self._starting = threading.Timer(STARTS_AFTER_S, self._start)
            self._starting.daemon = True
            self._starting.start()

    def nothing_to_read(self, why: ErrorFacts) -> None:
        """End the job because the recording has stopped. The roll-ups made so far remain."""
        job = self._job
        self.stop()
        rollups = job.rollups if job is not None else Aggregates().rollups
        self._publish(Aggregates(SparkStatus(SparkState.FAILED, why, self._clock_ms()), rollups))

    def restart(self) -> None:
        """End the job if it is running, and start it immediately. Returns at once."""
        with self._changing:
            if self._job is not None and not self._ended:
                self._job.restart()

    def watch(self, is_watched: bool) -> None:
        """Say whether its figures are on the screen. Returns at once."""
        with self._changing:
            self._is_watched = is_watched
            if self._job is not None:
                self._job.watch(is_watched)

    def stop(self) -> None:
        """End the job and its JVM within a second. Nothing is published after this returns."""
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
