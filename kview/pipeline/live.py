"""The live job, which reads a recording while it is being written, and rolls up what is new.

Spark keeps no state between batches. Each batch yields the roll-ups of its own rows, which are added to
earlier ones. So no state grows, no row comes too late, and a clock that jumps does no harm.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from kview.pipeline.ahead import rehearse
from kview.pipeline.packed import unpacked
from kview.pipeline.reading import next_rows, packed_table
from kview.pipeline.rollup import pieces, summed
from kview.pipeline.session import interpreted
from kview.pipeline.source import RecordingSource
from kview.recording.reader import Recording

CYCLE_S = 1.0
"""Interval at which batches start, if a batch takes less time than this."""

REST = 1.6
"""After a longer batch, the job pauses for this many times the duration of the batch. At 10,000 partitions
that leaves about half of a core free."""

MAX_REST_S = 1.5
"""Limit of that pause. On a busy machine a batch takes longer without using more CPU time, so a longer pause
would only delay the figures."""

INTERPRETED_ROWS = 5_000
"""With more rows than this, generating and compiling code pays off, although it takes most of a second."""

FIRST_ROWS = 1_000
"""The first roll-ups cover as many observations as it takes to have this many rows, or all of them."""


def start(
    spark: SparkSession, recording: Path, after: int, scratch: Path, on_rollups: Callable[[pa.Table], None]
) -> StreamingQuery:
    """Start after observation number `after` (−1: at the beginning), and return once the job runs.

    `on_rollups` receives the columns of `kview.pipeline.rollup.rolled` for each batch. Each observation is in
    one batch only. Raises KviewError if there is no recording.
    """

    def roll_up(deltas: DataFrame) -> None:
        # A single partition avoids moving rows between tasks.
        table = summed(deltas.coalesce(1)).toArrow()
        if table.num_rows:
            on_rollups(table)

    def roll_up_next(batch: DataFrame, number: int) -> None:
        began_s = time.monotonic()
        roll_up(batch)
        took_s = time.monotonic() - began_s
        if number:
            time.sleep(max(CYCLE_S - took_s, min(REST * took_s, MAX_REST_S)))

    # For what is already recorded, no stream source is used, because its processes take seconds to start.
    batches, last = next_rows(Recording.open(recording), after, FIRST_ROWS)
    if batches:
        with interpreted(spark, sum(batch.num_rows for batch in batches) <= INTERPRETED_ROWS):
            threading.Thread(target=rehearse, args=(spark,), name="rehearsal", daemon=True).start()
            roll_up(pieces(unpacked(spark.createDataFrame(packed_table(batches)))))
    spark.dataSource.register(RecordingSource)
    source = spark.readStream.format(RecordingSource.name()).option("path", str(recording))
    coming = pieces(unpacked(source.option("after", str(last)).load()))
    stream = coming.writeStream.foreachBatch(roll_up_next)
    return stream.option("checkpointLocation", mkdtemp(prefix="checkpoint-", dir=scratch)).start()
