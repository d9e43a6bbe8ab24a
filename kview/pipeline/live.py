"""The live job: a recording is read as it is written, and what is new is rolled up.

Spark keeps nothing from batch to batch. Each batch gives the roll-ups of its own rows, and these add up with
those given before: so no state grows, nothing is too late, and a clock that jumps spoils nothing.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from kview.pipeline.rollup import DELTAS, pieces, rolled, summed
from kview.pipeline.source import RecordingSource

CYCLE_S = 1.0
"""How often a batch begins where batches are quick."""

REST = 1.5
"""Otherwise the job rests after a batch so many times as long as that took: it leaves most of a core alone,
whatever the size of the cluster."""


def start(
    spark: SparkSession, recording: Path, after: int, scratch: Path, on_rollups: Callable[[pa.Table], None]
) -> StreamingQuery:
    """Begins after that observation's number (−1: at the beginning); returns at once.

    `on_rollups` is given the columns of `kview.pipeline.rollup.rolled`, batch after batch, each observation
    once.
    """
    threading.Thread(target=_warm_up, args=(spark,), name="warm-up", daemon=True).start()
    spark.dataSource.register(RecordingSource)
    deltas = spark.readStream.format(RecordingSource.name()).option("path", str(recording))

    def roll_up(batch: DataFrame, number: int) -> None:
        began_s = time.monotonic()
        # In one piece: no row is sent from one task to another.
        table = summed(batch.coalesce(1)).toArrow()
        if table.num_rows:
            on_rollups(table)
        took_s = time.monotonic() - began_s
        if number:
            time.sleep(max(CYCLE_S - took_s, REST * took_s))

    stream = pieces(deltas.option("after", str(after)).load()).writeStream.foreachBatch(roll_up)
    return stream.option("checkpointLocation", str(scratch / "checkpoint")).start()


def _warm_up(spark: SparkSession) -> None:
    """Runs the query once on nothing while Python's side of the source starts: what Java loads and compiles
    for it, the first batch need not wait for."""
    rolled(spark.createDataFrame([], DELTAS).coalesce(1)).toArrow()
