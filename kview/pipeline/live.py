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

from kview.pipeline.ahead import rehearse
from kview.pipeline.packed import unpacked
from kview.pipeline.reading import next_rows, packed_table
from kview.pipeline.rollup import pieces, summed
from kview.pipeline.source import RecordingSource
from kview.recording.reader import Recording

CYCLE_S = 1.0
"""How often a batch begins where batches are quick."""

REST = 1.6
"""Otherwise the job rests after a batch so many times as long as that took: so it leaves half of a core alone
at 10,000 partitions."""

MAX_REST_S = 1.5
"""On a machine that others keep busy a batch takes longer without taking more: resting longer would only make
the figures older."""

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Spark's settings to work out a query without Java made and compiled for it."""

INTERPRETED_ROWS = 5_000
"""For more the making and compiling, most of a second, pays."""

FIRST_ROWS = 1_000
"""The first figures are of the first observations that have so many rows, or of what there is."""


def start(
    spark: SparkSession, recording: Path, after: int, scratch: Path, on_rollups: Callable[[pa.Table], None]
) -> StreamingQuery:
    """Begins after that observation's number (−1: at the beginning); returns when it runs. Raises
    KviewError where there is no recording.

    `on_rollups` is given the columns of `kview.pipeline.rollup.rolled`, batch after batch, each observation
    once.
    """

    def roll_up(deltas: DataFrame) -> None:
        # In one piece: no row is sent from one task to another.
        table = summed(deltas.coalesce(1)).toArrow()
        if table.num_rows:
            on_rollups(table)

    def roll_up_next(batch: DataFrame, number: int) -> None:
        began_s = time.monotonic()
        roll_up(batch)
        took_s = time.monotonic() - began_s
        if number:
            time.sleep(max(CYCLE_S - took_s, min(REST * took_s, MAX_REST_S)))

    # What there is already needs no source, whose processes take seconds to start.
    batches, last = next_rows(Recording.open(recording), after, FIRST_ROWS)
    if batches:
        interpreted = INTERPRETED if sum(batch.num_rows for batch in batches) <= INTERPRETED_ROWS else {}
        for name, value in interpreted.items():
            spark.conf.set(name, value)
        threading.Thread(target=rehearse, args=(spark,), name="rehearsal", daemon=True).start()
        roll_up(pieces(unpacked(spark.createDataFrame(packed_table(batches)))))
        for name in interpreted:
            spark.conf.unset(name)
    spark.dataSource.register(RecordingSource)
    source = spark.readStream.format(RecordingSource.name()).option("path", str(recording))
    coming = pieces(unpacked(source.option("after", str(last)).load()))
    stream = coming.writeStream.foreachBatch(roll_up_next)
    return stream.option("checkpointLocation", str(scratch / "checkpoint")).start()
