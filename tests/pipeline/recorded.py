"""Recordings with facts to report on, and the figures that the screen would show of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from kview.derive.facts import Facts
from kview.derive.view import View
from kview.model.aggregates import Rollups
from kview.model.report import Report
from kview.model.report_tables import TableName
from kview.pipeline.reading import next_rows
from kview.pipeline.report import Question, report
from kview.pipeline.rolling import Engine
from kview.pipeline.rollup import DELTAS, rolled
from kview.pipeline.store import RollupStore
from kview.recording.reader import Recording
from kview.recording.writer import RecordingWriter


def record(folder: Path, views: Sequence[View], *, segment_s: float = 12, close: bool = True) -> Path:
    """Record views with their facts. Unless `close`, the last segment stays open, as after a kill."""
    writer = RecordingWriter(folder, segment_s=segment_s, small_segment_bytes=0)
    for view in views:
        writer.append(view.snapshot, Facts.of(view))
    if close:
        writer.close()
    else:
        writer.abandon()
    return folder


def report_on(
    spark: SparkSession,
    scratch: Path,
    *folders: Path,
    question: Question | None = None,
    engine: Engine | None = None,
) -> Report:
    """Report on recordings, which keep their roll-ups."""
    return report(spark, folders, question or Question(), scratch, engine=engine)


def rolled_live(spark: SparkSession, folder: Path) -> Rollups:
    """Return the roll-ups that the dashboard would have of a recording."""
    recording, store = Recording.open(folder), RollupStore()
    while True:
        arrived, last = next_rows(recording, store.last_sequence)
        if last == store.last_sequence:
            return store.rollups
        store.add(rolled(spark.createDataFrame(pa.Table.from_batches(arrived), DELTAS)).toArrow())


def rows_of(made: Report, name: TableName, *key: str) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Return the rows of a table by these columns."""
    rows = [made[name].row(at) for at in range(len(made[name]))]
    found = {tuple(row[column] for column in key): row for row in rows}
    assert len(found) == len(rows), "the key is unique"
    return found


def figures_of(made: Report) -> dict[str, list[dict[str, Any]]]:
    """Return all tables as rows, without what says where the figures come from."""
    return {
        name.value: [table.row(at) for at in range(len(table))]
        for name, table in made.period.tables.items()
        if name is not TableName.PERIODS
    }
