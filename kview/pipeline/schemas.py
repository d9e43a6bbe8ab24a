"""The schemas of what Spark reads and keeps, so that it need not open files to find them out."""

from functools import cache

from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema

from kview.model.aggregates import SUMS
from kview.pipeline.minutes import SUMMED
from kview.recording.fact_schema import FACTS
from kview.recording.schema import PARTS

SECONDS_TABLE, MINUTES_TABLE = "seconds", "minutes"
"""The tables of a batch, besides those of facts."""

HOTTEST = t.StructType(
    [
        t.StructField("rate", t.LongType()),
        t.StructField("topic", t.StringType()),
        t.StructField("partition", t.IntegerType()),
    ]
)

_BATCH = t.StructField("batch", t.LongType())

SECONDS = t.StructType(
    [
        _BATCH,
        t.StructField("second", t.LongType()),
        t.StructField("kind", t.StringType()),
        t.StructField("name", t.StringType()),
        *(t.StructField(name, t.LongType()) for name in map(str, SUMS)),
        t.StructField("hottest", HOTTEST),
        t.StructField("topic_partitions", t.IntegerType()),
    ]
)
"""The one-second roll-ups of `kview.pipeline.rollup.rolled`, with the id of their batch."""

MINUTES = t.StructType(
    [
        _BATCH,
        t.StructField("slot", t.LongType()),
        t.StructField("topic", t.StringType()),
        t.StructField("partition", t.IntegerType()),
        t.StructField("internal", t.BooleanType()),
        *(t.StructField(name, t.LongType()) for name in SUMMED),
        t.StructField("peak", t.LongType()),
    ]
)
"""The one-minute roll-ups of `kview.pipeline.minutes.minutes`, with the id of their batch."""


@cache
def schema_of_part(part: str) -> t.StructType:
    """Return the columns of a part of a segment that a report reads."""
    if part == "observations":
        names = [t.StructField(name, t.LongType()) for name in ("sequence", "ended_ms")]
        return t.StructType(names)
    return from_arrow_schema(PARTS[part])


@cache
def schema_of_table(table: str) -> t.StructType:
    """Return the columns of a table of a batch."""
    if table == SECONDS_TABLE:
        return SECONDS
    if table == MINUTES_TABLE:
        return MINUTES
    return t.StructType([_BATCH, *from_arrow_schema(FACTS[table]).fields])
