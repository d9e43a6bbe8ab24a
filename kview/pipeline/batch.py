"""The roll-ups of a whole recording at once, from the Parquet files of its closed segments."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from kview.pipeline.rollup import DELTAS, NAMES_IN_DELTAS, rolled
from kview.recording.manifest import read_manifest
from kview.recording.segment import parquet_file

_PARTS = ("partition_deltas", "offset_deltas", "observations")


def rollups(spark: SparkSession, recording: Path) -> DataFrame:
    """The columns of `kview.pipeline.rollup.rolled`. Raises KviewError where there is no recording.

    Spark's own expressions alone: executors on other machines need nothing of kview.
    """
    folders = [recording / segment.folder for segment in read_manifest(recording).segments if segment.closed]
    deltas = spark.createDataFrame([], DELTAS)
    for part in _PARTS:
        paths = [str(path) for folder in folders if (path := parquet_file(folder, part)).exists()]
        if paths:
            deltas = deltas.unionByName(_as_deltas(spark.read.parquet(*paths), part))
    return rolled(deltas)


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
