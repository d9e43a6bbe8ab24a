"""The roll-ups of a complete recording at once, from the Parquet files of its closed segments."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from kview.pipeline.reading import set_backs
from kview.pipeline.rollup import DELTAS, NAMES_IN_DELTAS, pieces, summed
from kview.recording.manifest import SegmentEntry, read_manifest
from kview.recording.reader import Recording
from kview.recording.segment import parquet_file

_PARTS = ("partition_deltas", "offset_deltas", "observations")


def rollups(spark: SparkSession, recording: Path) -> DataFrame:
    """Return the columns of `kview.pipeline.rollup.rolled`. Raises KviewError if there is no recording.

    If the same seconds came twice because the clock was set back, the later ones count, as in
    `kview.pipeline.store`. Only Spark's own expressions are used, so executors on other machines need nothing
    from kview.
    """
    closed = [segment for segment in read_manifest(recording).segments if segment.closed]
    folders = [recording / segment.folder for segment in closed]
    deltas = spark.createDataFrame([], DELTAS)
    for part in _PARTS:
        paths = [str(path) for folder in folders if (path := parquet_file(folder, part)).exists()]
        if paths:
            deltas = deltas.unionByName(_as_deltas(spark.read.parquet(*paths), part))
    shares = pieces(deltas)
    for sequence, second in _set_backs(recording, closed):
        shares = shares.where((f.col("sequence") >= sequence) | (f.col("second") < second))
    return summed(shares)


def _set_backs(recording: Path, closed: list[SegmentEntry]) -> list[tuple[int, int]]:
    """Return (first observation after it, that observation's second) for each time the clock was set back."""
    seen = Recording.open(recording)
    sequences, moments = seen.sequences(), seen.moments()
    moments = moments[sequences <= max((entry.last_sequence for entry in closed), default=-1)]
    return [(int(sequences[place]), int(moments[place]) // 1000) for place in set_backs(moments)]


def _as_deltas(table: DataFrame, part: str) -> DataFrame:
    if part == "observations":
        table = table.select("sequence", f.col("ended_ms").alias("observed_ms"))
    there = {NAMES_IN_DELTAS.get(name, name): name for name in table.columns}
    return table.select(
        [
            (f.col(there[field.name]) if field.name in there else f.lit(None))
            .cast(field.dataType)
            .alias(field.name)
            for field in DELTAS
        ]
    )
