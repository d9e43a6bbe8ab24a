"""Reports about recordings, made by Spark in a JVM of their own."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kview.errors import BadUse, ErrorKind, KviewError
from kview.model.report import Report
from kview.recording.manifest import SegmentEntry
from kview.recording.names import MANIFEST, state_folder
from kview.recording.ring import find_recording
from kview.run.log import start_log

if TYPE_CHECKING:
    from kview.pipeline.report import Question

LONG_BYTES = 24 << 20
"""With more to read than this, compiling the queries pays off."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a report is.

    `stage` is "start", "roll_up" or "figures". `done` and `total` count segments or figures, `tasks_done` and
    `tasks` are Spark's tasks in the `stages` that run.
    """

    stage: str = "start"
    done: int = 0
    total: int = 0
    stages: int = 0
    tasks_done: int = 0
    tasks: int = 0


class Reporting:
    """Makes a report. `cancel` ends it from another thread, or from a signal's handler."""

    def __init__(
        self,
        paths: Sequence[str],
        question: "Question | None" = None,
        *,
        master: str = "",
        heap_mb: int | None = None,
        cache: Path | None = None,
        settings: Mapping[str, str] | None = None,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> None:
        """Prepare a report about recordings: folders, folders of recordings, or names of kept recordings.

        `on_progress` is called on several threads, one call at a time.
        """
        self._paths = tuple(paths)
        self._question = question
        self._master = master
        self._heap_mb = heap_mb
        self._cache = cache
        self._settings = dict(settings or {})
        self._on_progress = on_progress or (lambda progress: None)
        self._progress = Progress()
        self._lock = threading.Lock()
        self._cancelled = threading.Event()
        self._cancel: Callable[[], None] | None = None

    def make(self) -> Report:
        """Make the report, which takes a few seconds for the session alone. Raises KviewError."""
        from kview.pipeline.batch_session import HEAP_MB, BatchSession, Tasks
        from kview.pipeline.kept import work_bytes
        from kview.pipeline.report import Question, Stage, report
        from kview.pipeline.sources import open_source

        start_log()
        folders = recordings(self._paths)

        def on_tasks(tasks: Tasks) -> None:
            self._tell(stages=tasks.stages, tasks_done=tasks.done, tasks=tasks.total)

        def on_stage(stage: Stage, done: int, total: int) -> None:
            self._tell(stage=stage.value, done=done, total=total)

        self._tell()
        size = sum(work_bytes(open_source(folder), self._cache) for folder in folders)
        batch = BatchSession(
            self._master,
            heap_mb=self._heap_mb or HEAP_MB,
            is_long=size > LONG_BYTES,
            on_tasks=on_tasks,
            settings=self._settings,
        )
        self._cancel = batch.cancel
        self._check()
        with batch as session:
            try:
                self._check()
                question = self._question or Question()
                return report(session.spark, folders, question, session.scratch, self._cache, on_stage)
            except KviewError:
                self._check()
                raise
            except Exception as error:
                self._check()
                raise session.error_of(error) from error
            finally:
                self._cancel = None

    def cancel(self) -> None:
        """Cancel the report: `make` raises KviewError soon. Roll-ups that are complete stay."""
        self._cancelled.set()
        if (cancel := self._cancel) is not None:
            cancel()

    def _check(self) -> None:
        if self._cancelled.is_set():
            raise KviewError(ErrorKind.REPORT_CANCELLED)

    def _tell(self, **changes: object) -> None:
        with self._lock:
            self._progress = replace(self._progress, **changes)  # type: ignore[arg-type]
            self._on_progress(self._progress)


def span_ms(folders: Sequence[Path]) -> tuple[int, int]:
    """Return when the first of some recordings began and the last one ended (epoch ms).

    Raises BadUse if nothing is recorded.
    """
    from kview.pipeline.sources import closed_moments, no_moments, open_source, read_open

    first_ms, last_ms = [], []
    for folder in folders:
        source = open_source(folder)
        opened = read_open(source)
        ends = [
            closed_moments(source, entry)[0] for entry in {e.number: e for e in _ends(source.closed)}.values()
        ]
        ends.append(opened.moments if opened is not None else no_moments())
        for moments in ends:
            if len(moments):
                first_ms.append(int(moments.ended_ms.min()))
                last_ms.append(int(moments.ended_ms.max()))
    if not first_ms:
        raise BadUse(ErrorKind.NOTHING_RECORDED, folder=str(folders[0]))
    return min(first_ms), max(last_ms)


def _ends(closed: Sequence[SegmentEntry]) -> Sequence[SegmentEntry]:
    return [*closed[:1], *closed[-1:]]
