"""Recordings with facts to report on, and the figures that the screen would show of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark import SparkContext

from kview.derive.facts import Facts
from kview.derive.view import View
from kview.model.aggregates import Rollups
from kview.model.report import Report
from kview.model.report_tables import TableName
from kview.pipeline.reading import next_rollups
from kview.pipeline.report import Question, report
from kview.pipeline.store import RollupStore
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
    spark: SparkContext,
    scratch: Path,
    *folders: Path,
    question: Question | None = None,
) -> Report:
    """Report on recordings, which keep their roll-ups."""
    return report(spark, folders, question or Question(), scratch)


def rolled_live(folder: Path) -> Rollups:
    """Return the roll-ups that the dashboard would have of a recording."""
    store = RollupStore()
    while (found := next_rollups(str(folder), store.last_sequence)) is not None:
        store.add(found)
    return store.rollups


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
