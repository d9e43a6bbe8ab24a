"""Reports about recordings, made by Spark in a JVM of their own."""

import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from kview.errors import BadUse, ErrorKind, KviewError
from kview.model.report import Report
from kview.model.reporting import ReportProgress
from kview.recording.names import state_folder
from kview.run.log import start_log

if TYPE_CHECKING:
    from kview.pipeline.report import Question
    from kview.recording.places import Place

BAD_INPUT = frozenset(
    {
        *(ErrorKind.NO_MANIFEST, ErrorKind.RECORDING_FORMAT, ErrorKind.NOTHING_RECORDED),
        *(ErrorKind.REPORT_OUT_OF_MEMORY, ErrorKind.SPARK_DISK_FULL, ErrorKind.SPARK_NO_FOLDER),
    }
)
"""What the user can mend by giving something else: a recording, a heap, a folder. For other commands, some of
these are errors of another kind."""


class SparkChoices(Struct, frozen=True):
    """Where and how Spark works for a report. `master` and `worker_python` are those of `BatchSession`."""

    master: str = ""
    worker_python: str | None = None
    heap_mb: int | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    own_group: bool = True
    """Without it, what ends this process's group ends Java."""


ON_THIS_MACHINE = SparkChoices()


class Reporting:
    """Makes a report. `cancel` ends it from another thread, or from a signal's handler."""

    def __init__(
        self,
        paths: Sequence[str],
        question: "Question | None" = None,
        *,
        spark: SparkChoices = ON_THIS_MACHINE,
        cache: Path | None = None,
        on_progress: Callable[[ReportProgress], None] | None = None,
    ) -> None:
        """Prepare a report about recordings: folders, folders of recordings, or names of kept recordings.

        `on_progress` is called on several threads, one call at a time.
        """
        self._paths = tuple(paths)
        self._question = question
        self._spark = spark
        self._cache = cache
        self._on_progress = on_progress or (lambda progress: None)
        self._progress = ReportProgress()
        self._lock = threading.Lock()
        self._cancelled = threading.Event()
        self._cancel: Callable[[], None] | None = None
        self._kill: Callable[[], None] = lambda: None

    def make(self) -> Report:
        """Make the report, which takes a few seconds for the session alone. Raises KviewError."""
        try:
            return self._make()
        except KviewError as error:
            if error.kind in BAD_INPUT:
                raise BadUse.of(error) from error
            raise

    def _make(self) -> Report:
        from kview.pipeline.batch_session import HEAP_MB, WORKER_PYTHON, BatchSession, Tasks
        from kview.pipeline.report import Question, Stage, open_sources, report

        start_log()
        places = recordings(self._paths)

        def on_tasks(tasks: Tasks) -> None:
            self._tell(stages=tasks.stages, tasks_done=tasks.done, tasks=tasks.total)

        def on_stage(stage: Stage, done: int, total: int) -> None:
            self._check()
            self._tell(stage=stage.value, done=done, total=total)

        self._tell()
        sources, _ = open_sources(places)
        if not any(source.closed or source.open for source in sources):
            raise BadUse(ErrorKind.NOTHING_RECORDED, folder=sources[0].address)
        spark = self._spark
        batch = BatchSession(
            spark.master,
            heap_mb=spark.heap_mb or HEAP_MB,
            worker_python=spark.worker_python or WORKER_PYTHON,
            on_tasks=on_tasks,
            settings=spark.settings,
            own_group=spark.own_group,
        )
        self._cancel, self._kill = batch.cancel, batch.kill
        self._check()
        with batch as session:
            try:
                self._check()
                question = self._question or Question()
                return report(session.context, places, question, session.scratch, self._cache, on_stage)
            except KviewError:
                self._check()
                raise
            except Exception as error:
                self._check()
                kept_in = [self._cache] if self._cache else [Path(p.path) for p in places if not p.is_remote]
                raise session.error_of(error, kept_in) from error
            finally:
                self._cancel = None

    def cancel(self) -> None:
        """Cancel the report: `make` raises KviewError soon. Roll-ups that are complete stay."""
        self._cancelled.set()
        if (cancel := self._cancel) is not None:
            cancel()

    def kill(self) -> None:
        """Kill Java, if it runs. `make` does not end properly then."""
        self._kill()

    def _check(self) -> None:
        if self._cancelled.is_set():
            raise KviewError(ErrorKind.REPORT_CANCELLED)

    def _tell(self, **changes: object) -> None:
        with self._lock:
            self._progress = replace(self._progress, **changes)
            self._on_progress(self._progress)


def recordings(paths: Sequence[str]) -> "list[Place]":
    """Return the recordings that these paths stand for: folders, patterns, names of kept recordings, and URLs
    of stores.

    Raises BadUse if a path stands for nothing.
    """
    from kview.recording.listing import find_recordings
    from kview.recording.places import Place, find_places, local_path, scheme_of

    found: list[Place] = []
    for path in paths:
        scheme = scheme_of(path)
        if scheme and scheme != "file":
            found += find_places(path)
        else:
            name = local_path(path) if scheme else path
            found += map(Place.of, find_recordings([name], state_folder()))
    return found


def span_ms(places: "Sequence[Place]") -> tuple[int, int]:
    """Return when the first of some recordings began and the last one ended (epoch ms).

    Raises BadUse if nothing is recorded.
    """
    from kview.pipeline.report import open_sources
    from kview.pipeline.sources import ends_ms

    spans = [span for source in open_sources(places)[0] if (span := ends_ms(source)) is not None]
    if not spans:
        raise BadUse(ErrorKind.NOTHING_RECORDED, folder=places[0].address)
    return min(first for first, _ in spans), max(last for _, last in spans)
