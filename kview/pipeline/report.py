"""Makes a report: rolls up what is new, and asks for the figures."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from fnmatch import translate
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from kview.errors import BadUse, ErrorKind, KviewError
from kview.model.report import Note, NoteKind, Period, Report
from kview.model.report_tables import Table, TableName, comparison_of
from kview.model.units import UNKNOWN
from kview.pipeline.kept import begin, place_of, remove_damaged
from kview.pipeline.kernel.figures import Filters
from kview.pipeline.periods import asked, shares, widened
from kview.pipeline.report_tasks import period_of, step_s_of
from kview.pipeline.rolling import RolledUp, Rolling
from kview.pipeline.session import is_local
from kview.pipeline.sources import Source, open_source
from kview.recording.places import Place

if TYPE_CHECKING:
    from pyspark import SparkContext

THRESHOLD_MS = 60_000
"""The lag in time above which a group counts as late, unless another one is given."""


class Stage(Enum):
    """What is being worked on."""

    ROLL_UP = "roll_up"
    """Segments are rolled up: how many are done, out of how many."""
    FIGURES = "figures"
    """Figures are asked for: how many are known, out of how many."""


@dataclass(frozen=True, slots=True)
class Question:
    """What a report is about. Times are epoch ms, None for no limit. `topics` and `groups` are patterns with
    `*` and `?`, none for all."""

    since_ms: int | None = None
    until_ms: int | None = None
    against: tuple[int | None, int | None] | None = None
    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    threshold_ms: int = THRESHOLD_MS
    price_per_gb: float = float("nan")
    step_s: int | None = None
    """The length of a step of throughput, None for one that fits."""


def report(
    context: "SparkContext",
    recordings: Sequence[Path | Place],
    question: Question,
    scratch: Path,
    cache: Path | None = None,
    on_stage: Callable[[Stage, int, int], None] | None = None,
) -> Report:
    """Return a report about recordings. `scratch` is for files that are not kept.

    Raises KviewError if there is nothing to report on, and whatever Spark raises.
    """
    tell = on_stage or (lambda stage, done, total: None)

    def rolling_up(done: int, total: int) -> None:
        tell(Stage.ROLL_UP, done, total)

    for is_last in (False, True):
        sources, notes = open_sources(recordings)
        with _shared(context, scratch, sources, cache) as work:
            rolled = Rolling(context, work, cache, rolling_up).roll_up(sources)
            notes += [note for recording in rolled for note in recording.source.notes]
            try:
                return _answered(context, rolled, question, notes, tell)
            except KviewError:
                raise
            except Exception:
                rolling_up(0, 0)  # raises if the report was cancelled
                batches = [batch for recording in rolled for batch in recording.batches]
                if is_last or not remove_damaged(batches):
                    raise
    raise AssertionError("the last attempt returns or raises")


def _answered(
    context: "SparkContext",
    rolled: Sequence[RolledUp],
    question: Question,
    notes: Sequence[Note],
    tell: Callable[[Stage, int, int], None],
) -> Report:
    filters = Filters(_regex(question.topics), _regex(question.groups))

    def period(since_ms: int | None, until_ms: int | None, step_s: int | None) -> tuple[Period, int]:
        seconds = asked(since_ms, until_ms)
        counted, period_notes = shares(rolled, seconds)
        period_notes += widened(since_ms, until_ms, seconds)
        if not counted:
            raise BadUse(ErrorKind.REPORT_NOTHING_KNOWN)
        whole_s = max(s.seconds.until_s for s in counted) - min(s.seconds.from_s for s in counted)
        step_s = step_s or step_s_of(whole_s)
        answered = period_of(
            context,
            counted,
            filters,
            step_s,
            question.threshold_ms,
            question.price_per_gb,
            lambda done, total: tell(Stage.FIGURES, done, total),
        )
        period_notes += _unmatched(answered, question)
        all_notes = (*notes, *period_notes, *answered.notes)
        return Period(answered.since_ms, answered.until_ms, answered.tables, all_notes), step_s

    now, step_s = period(question.since_ms, question.until_ms, question.step_s)
    before = period(*question.against, step_s)[0] if question.against is not None else None
    return Report(
        period=now,
        step_s=step_s,
        threshold_ms=question.threshold_ms,
        price_per_gb=question.price_per_gb,
        against=before,
        comparison=None if before is None else compared(before, now),
        topics=question.topics,
        groups=question.groups,
    )


def _unmatched(period: Period, question: Question) -> list[Note]:
    """Note the patterns that match nothing: they may be misspelt."""
    asked = ((TableName.TOPICS, question.topics), (TableName.GROUPS, question.groups))
    return [
        Note(NoteKind.NO_MATCH, {"kind": name.value, "patterns": ", ".join(patterns)})
        for name, patterns in asked
        if patterns and not len(period.tables[name])
    ]


@contextmanager
def _shared(
    context: "SparkContext", scratch: Path, sources: Sequence[Source], cache: Path | None
) -> Iterator[Path]:
    """Return a folder for what is not kept, which Spark's workers see, too: they see that of the roll-ups."""
    if is_local(context):
        yield scratch
        return
    place = cache or place_of(sources[0], None)
    try:
        folder = begin(place, "work")
    except OSError as error:
        raise BadUse(ErrorKind.REPORT_NEEDS_CACHE, recording=str(place)) from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def open_sources(recordings: Sequence[Path | Place]) -> tuple[list[Source], list[Note]]:
    """Open each recording once, whatever its name, and note those that cannot be read.

    Raises KviewError if there are no others.
    """
    sources, notes = [], []
    failed: KviewError | None = None
    places = [Place.of(recording) if isinstance(recording, Path) else recording for recording in recordings]
    for place in {place.identity: place for place in places}.values():
        try:
            sources.append(open_source(place))
        except KviewError as error:
            failed = failed or error
            reason = str(error.values.get("reason", error.kind.value))
            notes.append(Note(NoteKind.LEFT_OUT, {"recording": place.address, "reason": reason}))
    if failed is not None and not sources:
        raise failed
    names = Counter(source.name for source in sources)
    for source in sources:
        if names[source.name] > 1:
            source.name = source.address
    return sources, notes


def _regex(patterns: Sequence[str]) -> str:
    """Return patterns with `*` and `?` as one regular expression, '' if there are none."""
    return "|".join(f"^{translate(pattern)}" for pattern in patterns)


COMPARED = (
    *("records_in", "bytes_in", "records_out", "in_rate", "in_p50", "in_p95", "in_p99", "in_most"),
    *("offline_ms", "silent_ms", "under_min_isr_ms", "under_replicated_ms"),
)
"""The figures of topics and clusters that are compared."""


def compared(before: Period, now: Period) -> Table:
    """Return how the figures of clusters and topics have changed from one period to another."""
    columns: dict[str, list[object]] = {
        name: [] for name in ("cluster", "topic", "figure", "before", "now", "change")
    }
    for table in (TableName.CLUSTERS, TableName.TOPICS):
        values = [_values(period.tables[table]) for period in (before, now)]
        for key in dict.fromkeys([*values[1], *values[0]]):
            for figure in COMPARED:
                was, is_now = (of_period.get(key, {}).get(figure) for of_period in values)
                if was is None and is_now is None:
                    continue
                columns["cluster"].append(key[0])
                columns["topic"].append(key[1])
                columns["figure"].append(figure)
                columns["before"].append(was)
                columns["now"].append(is_now)
                columns["change"].append(is_now / was - 1 if was and is_now is not None else None)
    return comparison_of(columns)


def _values(table: Table) -> dict[tuple[str, str], dict[str, float]]:
    """Return the known figures of each row of `clusters` or `topics`."""
    topics = table["topic"] if "topic" in table.columns else [""] * len(table)
    values: dict[tuple[str, str], dict[str, float]] = {}
    for at, key in enumerate(zip(table["cluster"].tolist(), list(topics), strict=True)):
        row = {name: table[name][at] for name in COMPARED}
        values[key] = {
            name: float(value) for name, value in row.items() if value != UNKNOWN and not np.isnan(value)
        }
    return values
