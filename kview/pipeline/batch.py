"""The roll-ups of complete segments at once, from their Parquet files.

Only Spark's own expressions are used, so executors on other machines need nothing from kview.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from kview.pipeline.minutes import minutes
from kview.pipeline.rollup import DELTAS, NAMES_IN_DELTAS, pieces, summed
from kview.pipeline.schemas import MINUTES, SECONDS, schema_of_part
from kview.pipeline.sources import DELTA_PARTS, closed_moments, joined, open_source, set_backs_of
from kview.recording.segment import parquet_file


def rollups(spark: SparkSession, recording: Path) -> DataFrame:
    """Return the columns of `kview.pipeline.rollup.rolled` for the closed segments of a recording.

    If the same seconds came twice because the clock was set back, the later ones count, as in
    `kview.pipeline.store`. Raises KviewError if there is no recording.
    """
    source = open_source(recording)
    moments = joined([closed_moments(source, entry)[0] for entry in source.closed])
    folders = [recording / entry.folder for entry in source.closed]
    paths = {
        part: [str(path) for folder in folders if (path := parquet_file(folder, part)).exists()]
        for part in DELTA_PARTS
    }
    return seconds(closed_deltas(spark, paths), set_backs_of(moments))


def seconds(deltas: DataFrame, set_backs: Sequence[tuple[int, int]]) -> DataFrame:
    """Return the one-second roll-ups of rows of DELTAS.

    For each (sequence, second) of `set_backs`, observations before that sequence do not count from that
    second on.
    """
    shares = pieces(deltas)
    for sequence, second in set_backs:
        shares = shares.where((f.col("sequence") >= sequence) | (f.col("second") < second))
    return summed(shares)


def closed_deltas(spark: SparkSession, paths: Mapping[str, Sequence[str]]) -> DataFrame:
    """Return rows of DELTAS from the files of closed segments, given by part as paths or URLs."""
    deltas: DataFrame | None = None
    for part in DELTA_PARTS:
        if paths.get(part):
            some = _as_deltas(spark.read.schema(schema_of_part(part)).parquet(*paths[part]), part)
            deltas = some if deltas is None else deltas.unionByName(some)
    return spark.createDataFrame([], DELTAS) if deltas is None else deltas


def rolled_tables(
    deltas: DataFrame, id: int, head_s: int, tail_s: int, set_backs: Sequence[tuple[int, int]]
) -> tuple[DataFrame, DataFrame]:
    """Return what is kept of a batch: one-second roll-ups of everything, and one-minute roll-ups of
    partitions."""
    of_batch = f.lit(id).cast(t.LongType()).alias("batch")
    by_second = seconds(deltas, set_backs).select(of_batch, *SECONDS.names[1:])
    return by_second, minutes(deltas, head_s, tail_s, set_backs).select(of_batch, *MINUTES.names[1:])


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
