"""Warms up the JVM while the live job starts: loads and compiles the classes that a roll-up uses.

Half of the time to the first roll-ups is spent by Java looking for classes, one after another, when they are
first used. Failures here are only logged, because the code that needs the class will report them.
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
"""A query with the same elements as a roll-up."""


def learn() -> None:
    """Load Spark's functions, and parse the roll-ups' queries, in the JVM that `Gateway` started.

    This needs no session. Raises Py4JError.
    """
    load_functions()
    parses = parser()
    for query in UNPACKED, PIECES, SUMMED:
        parses.parsePlan(query.format(rows="rows", deltas="deltas", pieces="pieces"))


def rehearse(spark: SparkSession) -> None:
    """Plan and run a query once, so that Java compiles the code for it. Raises Py4JError or any PySpark
    exception."""
    spark.sql(REHEARSAL).coalesce(1).toArrow()
