"""Makes a report: rolls up what is new, and asks Spark for the figures, each table in tasks."""

import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from fnmatch import translate
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kview.errors import BadUse, ErrorKind, KviewError
from kview.model.report import MOST_INCIDENTS, Note, NoteKind, Period, Report
from kview.model.report_tables import TABLES, Table, TableName, comparison_of
from kview.model.units import UNKNOWN
from kview.pipeline.answers import Answers
from kview.pipeline.kept import begin, place_of, remove_damaged
from kview.pipeline.kernel.columns import Counted, FigureRows, Names, files_of
from kview.pipeline.kernel.figures import NAMED, Asked, Filters, Part, answer
from kview.pipeline.periods import Share, shares, whole_minutes, widened
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
    def period(since_ms: int | None, until_ms: int | None, step_s: int | None) -> tuple[Period, int]:
        minutes = whole_minutes(since_ms, until_ms)
        counted, period_notes = shares(rolled, minutes)
        period_notes += widened(since_ms, until_ms, minutes)
        if not counted:
            raise BadUse(ErrorKind.REPORT_NOTHING_KNOWN)
        from_s = min(share.seconds.from_s for share in counted)
        until_s = max(share.seconds.until_s for share in counted)
        step_s = step_s or _step_s_of(until_s - from_s)
        tables, left_out = _tables(
            context, counted, question, step_s, lambda done, total: tell(Stage.FIGURES, done, total)
        )
        all_notes = (*notes, *period_notes, *_unmatched(tables, question), *left_out)
        return Period(from_s * 1000, until_s * 1000, tables, all_notes), step_s

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


def _unmatched(tables: Mapping[TableName, Table], question: Question) -> list[Note]:
    """Note the patterns that match nothing: they may be misspelt."""
    asked = ((TableName.TOPICS, question.topics), (TableName.GROUPS, question.groups))
    return [
        Note(NoteKind.NO_MATCH, {"kind": name.value, "patterns": ", ".join(patterns)})
        for name, patterns in asked
        if patterns and not len(tables[name])
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


# -- tasks: what Spark is asked for a period


TASK_ROWS = 3_000_000
"""The rows of a table in one task, if they can be divided. A column of them takes 24 MB."""

MOST_PARTITIONS = 200

MOST_STEPS = 1_440
"""The most steps of the table `throughput`: a day of minutes."""

MOST_THROUGHPUT_ROWS = 60_000

LEAST_STEPS = 60
"""With fewer steps of a minute than this, steps are shorter, so that a plot shows a course."""

SHORT_STEPS_S = (15, 5, 1)
STEPS_S = (60, 300, 900, 3_600, 21_600, 86_400)

FIGURES = (
    *("sums", "percentiles", "hottest", "throughput", "partitions", "traffic"),
    *("group_lags", "findings", "incidents", "elections", "sizes"),
)


def _step_s_of(length_s: int) -> int:
    """Return the length of a step such that a period has LEAST_STEPS to MOST_STEPS, if possible."""
    if length_s < LEAST_STEPS * STEPS_S[0]:
        return next((step for step in SHORT_STEPS_S if length_s / step >= LEAST_STEPS), SHORT_STEPS_S[-1])
    return next((step for step in STEPS_S if length_s / step <= MOST_STEPS), STEPS_S[-1])


def _tables(
    context: "SparkContext",
    counted: Sequence[Share],
    question: Question,
    step_s: int,
    on_figures: Callable[[int, int], None],
) -> tuple[dict[TableName, Table], list[Note]]:
    """Return the tables about what counts of some recordings, and what was left out of them. Raises whatever
    Spark raises.

    `on_figures` is called with the number of tasks for figures that are done, and of all.
    """
    known_s: dict[str, int] = {}
    for share in counted:
        known_s[share.cluster] = known_s.get(share.cluster, 0) + share.known_s()
    steps = sum(-(-share.seconds.length_s // step_s) + 1 for share in counted)
    asked = Asked(
        filters=Filters(_regex(question.topics), _regex(question.groups)),
        known_s=known_s,
        threshold_ms=question.threshold_ms,
        step_s=step_s,
        incident_columns=[field.name for field in TABLES[TableName.INCIDENTS] if field.name != "cluster"],
        most_partitions=MOST_PARTITIONS,
        most_incidents=MOST_INCIDENTS,
        most_topics=max(1, MOST_THROUGHPUT_ROWS // steps),
    )
    parts = list(_parts(counted))
    on_figures(0, len(parts))
    figures: dict[str, FigureRows] = {name: [] for name in FIGURES}
    if parts:
        of_asked = partial(answer, asked=asked)
        for answered in context.parallelize(parts, len(parts)).map(of_asked).collect():
            for name, rows in answered.items():
                figures[name] += rows
    figures["partitions"] = _chosen(figures["partitions"])
    figures["incidents"].sort(key=lambda row: (row["began_ms"], row["cluster"], row["kind"]))
    del figures["incidents"][MOST_INCIDENTS:]
    answers = Answers(counted, figures, step_s, question.price_per_gb)
    topics = answers.topics_by_records()
    shown = topics[: asked.most_topics]
    answers.cut_off(TableName.THROUGHPUT, len(shown), len(topics))
    on_figures(len(parts), len(parts))
    return answers.tables(shown), answers.notes


def _parts(counted: Sequence[Share]) -> Iterator[Part]:
    """Yield the parts of all tables: a cluster, or several that are small, or some names of a large one."""
    clusters: dict[str, list[Counted]] = {}
    for number, share in enumerate(counted):
        for batch in share.rolled.batches:
            clusters.setdefault(share.cluster, []).append(
                Counted(
                    folder=str(batch.folder),
                    cluster=share.cluster,
                    recording=number,
                    from_s=share.seconds.from_s,
                    until_s=share.seconds.until_s,
                    out_until_s=share.out.until_s,
                )
            )
    for table, named in NAMED.items():
        small: list[Counted] = []
        count = 0
        for _, batches in sorted(clusters.items()):
            ends = {
                batch.folder: [pq.read_metadata(path) for path in files_of(batch, table)] for batch in batches
            }
            batches = [batch for batch in batches if ends[batch.folder]]
            rows = sum(end.num_rows for some in ends.values() for end in some)
            if rows > TASK_ROWS and named:
                for names in _ranges(batches, table, named, -(-rows // TASK_ROWS)):
                    yield Part(table, batches, names)
                continue
            if small and count + rows > TASK_ROWS:
                yield Part(table, small)
                small, count = [], 0
            small += batches
            count += rows
        if small:
            yield Part(table, small)


def _ranges(batches: Sequence[Counted], table: str, named: str, count: int) -> Iterator[Names]:
    """Yield ranges of names that have about equally many rows."""
    counts: Counter[str] = Counter()
    for batch in batches:
        for path in files_of(batch, table):
            column = pq.ParquetFile(path, read_dictionary=[named]).read(columns=[named])[named]
            for chunk in column.chunks:
                for word_count in pc.value_counts(chunk).to_pylist():
                    counts[word_count["values"] or ""] += word_count["counts"]
    most = counts.total() // count
    first, rows = "", 0
    for name, rows_of_name in sorted(counts.items()):
        if rows and rows + rows_of_name > most:
            yield Names(first, name)
            first, rows = name, 0
        rows += rows_of_name
    yield Names(first, None)


def _chosen(rows: FigureRows) -> FigureRows:
    """Return the partitions of all parts that are shown, as `PartitionFigures.partitions` chooses them."""

    def place(row: dict[str, object]) -> tuple[object, ...]:
        return row["cluster"], row["topic"], row["partition"]

    busiest = sorted(rows, key=lambda row: (-row["records_in"], *place(row)))[:MOST_PARTITIONS]
    skewed = [row for row in rows if row["uneven"] is not None]
    skewed.sort(key=lambda row: (-row["uneven"], *place(row)))
    worst = sorted((row for row in rows if row["bad_ms"]), key=lambda row: (-row["bad_ms"], *place(row)))
    chosen = {place(row) for row in (*busiest, *skewed[:MOST_PARTITIONS], *worst[:MOST_PARTITIONS])}
    return [row for row in rows if place(row) in chosen]


# -- two periods


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
