"""What Java learns of Spark beside the start of the live job, which leaves one of two cores alone.

Half of the time to the first roll-ups goes into classes that Java looks for one after the other, when they
are asked for. What fails here is told in the log alone: whoever needs it will say so.
"""

from pyspark.sql import SparkSession

from kview.pipeline.packed import UNPACKED
from kview.pipeline.rollup import PIECES, SUMMED
from kview.pipeline.spark_internals import load_functions, parser

REHEARSAL = """
    select x div 2 as half, count(*), sum(if(x > 1, x * x, 0)), max(named_struct('x', x, 'name', 'a'))
    from (select explode(sequence(0L, id + 3)) as x from range(3))
    where x is not null
    group by x div 2"""
"""A query with what a roll-up is made of."""


def learn() -> None:
    """Functions and how to read the roll-ups' queries, which needs no session, in the JVM that `Gateway` has
    started. Raises Py4JError."""
    load_functions()
    parses = parser()
    for query in UNPACKED, PIECES, SUMMED:
        parses.parsePlan(query.format(rows="rows", deltas="deltas", pieces="pieces"))


def rehearse(spark: SparkSession) -> None:
    """Planning and working out a query. Raises Py4JError, and what PySpark raises."""
    spark.sql(REHEARSAL).coalesce(1).toArrow()
