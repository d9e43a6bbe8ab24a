"""Rows of `kview.pipeline.rollup.DELTAS` on their way into Spark, packed as one row with a list per column.

Spark stores the input of a stream row by row, with a Java object per figure. At 10,000 partitions that is a
third of a batch's work. A list is stored in one piece.
"""

from pyspark.sql import DataFrame
from pyspark.sql import types as t

from kview.pipeline.rollup import DELTAS

WORDS = tuple(field.name for field in DELTAS if isinstance(field.dataType, t.StringType))
"""The columns of strings."""

PACKED = t.StructType(
    [
        t.StructField("count", t.IntegerType()),
        *(
            t.StructField(field.name, t.ArrayType(t.IntegerType() if field.name in WORDS else field.dataType))
            for field in DELTAS
        ),
        *(t.StructField(f"{name}_words", t.ArrayType(t.StringType())) for name in WORDS),
    ]
)
"""`count` rows packed as one. An empty column is null. A string is an index into the list of words."""


def unpacked(rows: DataFrame) -> DataFrame:
    """Return rows of DELTAS, unpacked from rows of PACKED."""
    return rows.sparkSession.sql(UNPACKED, rows=rows)


def _element(name: str) -> str:
    place = f"`{name}`[at]"
    return f"{name}_words[{place}] as `{name}`" if name in WORDS else f"{place} as `{name}`"


UNPACKED = f"""
    select {", ".join(map(_element, DELTAS.names))}
    from (select *, explode(sequence(0, count - 1)) as at from {{rows}})"""
