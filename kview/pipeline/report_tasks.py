"""Asks for the figures of a report."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pyarrow.parquet as pq

from kview.model.report import MOST_INCIDENTS, Period
from kview.model.report_tables import TABLES, TableName
from kview.pipeline.answers import Answers
from kview.pipeline.kernel.columns import Counted, Names, Rows, files_of
from kview.pipeline.kernel.figures import NAMED, Asked, Filters, Part, answer
from kview.pipeline.periods import Share

if TYPE_CHECKING:
    from pyspark import SparkContext

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


def step_s_of(length_s: int) -> int:
    """Return the length of a step such that a period has LEAST_STEPS to MOST_STEPS, if possible."""
    if length_s < LEAST_STEPS * STEPS_S[0]:
        return next((step for step in SHORT_STEPS_S if length_s / step >= LEAST_STEPS), SHORT_STEPS_S[-1])
    return next((step for step in STEPS_S if length_s / step <= MOST_STEPS), STEPS_S[-1])


def period_of(
    context: "SparkContext",
    counted: Sequence[Share],
    filters: Filters,
    step_s: int,
    threshold_ms: int,
    price_per_gb: float,
    on_figures: Callable[[int, int], None],
) -> Period:
    """Return the tables about what counts of some recordings. Raises whatever Spark raises.

    `on_figures` is called with the number of tasks for figures that are done, and of all.
    """
    known_s: dict[str, int] = {}
    for share in counted:
        known_s[share.cluster] = known_s.get(share.cluster, 0) + share.known_s()
    steps = sum(-(-share.seconds.length_s // step_s) + 1 for share in counted)
    asked = Asked(
        filters=filters,
        known_s=known_s,
        threshold_ms=threshold_ms,
        step_s=step_s,
        incident_columns=[field.name for field in TABLES[TableName.INCIDENTS] if field.name != "cluster"],
        most_partitions=MOST_PARTITIONS,
        most_incidents=MOST_INCIDENTS,
        most_topics=max(1, MOST_THROUGHPUT_ROWS // steps),
    )
    tasks = list(_parts(counted))
    on_figures(0, len(tasks))
    figures: dict[str, Rows] = {name: [] for name in FIGURES}
    if tasks:
        of_asked = partial(answer, asked=asked)
        for answers in context.parallelize(tasks, len(tasks)).map(of_asked).collect():
            for name, rows in answers.items():
                figures[name] += rows
    figures["partitions"] = _chosen(figures["partitions"])
    figures["incidents"].sort(key=lambda row: (row["began_ms"], row["cluster"], row["kind"]))
    del figures["incidents"][MOST_INCIDENTS:]
    tables = Answers(counted, figures, step_s, price_per_gb)
    topics = tables.topics_by_records()
    shown = topics[: asked.most_topics]
    tables.cut_off(TableName.THROUGHPUT, len(shown), len(topics))
    on_figures(len(tasks), len(tasks))
    return Period(
        since_ms=min(share.seconds.from_s for share in counted) * 1000,
        until_ms=max(share.seconds.until_s for share in counted) * 1000,
        tables=tables.tables(shown),
        notes=tuple(tables.notes),
    )


FIGURES = (
    *("sums", "percentiles", "hottest", "throughput", "partitions", "traffic"),
    *("group_lags", "findings", "incidents", "elections", "sizes"),
)


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


def _chosen(rows: Rows) -> Rows:
    """Return the partitions of all parts that are shown, as `PartitionFigures.partitions` chooses them."""

    def place(row: dict[str, object]) -> tuple[object, ...]:
        return row["cluster"], row["topic"], row["partition"]

    busiest = sorted(rows, key=lambda row: (-row["records_in"], *place(row)))[:MOST_PARTITIONS]
    skewed = [row for row in rows if row["uneven"] is not None]
    skewed.sort(key=lambda row: (-row["uneven"], *place(row)))
    worst = sorted((row for row in rows if row["bad_ms"]), key=lambda row: (-row["bad_ms"], *place(row)))
    chosen = {place(row) for row in (*busiest, *skewed[:MOST_PARTITIONS], *worst[:MOST_PARTITIONS])}
    return [row for row in rows if place(row) in chosen]
