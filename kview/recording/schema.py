"""The columns of a recording on disk as Arrow types."""

from collections.abc import Mapping

import pyarrow as pa

from kview.recording.fact_schema import FACTS

SCHEMA_VERSION = 9
"""Changes whenever what is written changes. A recording of another version is not read."""

_FAILURE = pa.struct(
    [
        ("part", pa.string()),
        ("broker", pa.int32()),
        ("kind", pa.string()),
        ("code", pa.int32()),
        ("shown_since_ms", pa.int64()),
    ]
)
OBSERVATIONS = pa.schema(
    [
        ("sequence", pa.int64()),
        ("observed_sequence", pa.int64()),
        ("began_ms", pa.int64()),
        ("ended_ms", pa.int64()),
        ("cluster_id", pa.string()),
        ("controller_id", pa.int32()),
        ("controller_epoch", pa.int32()),
        ("quorum_received_ms", pa.int64()),
        ("apis_differ_since_ms", pa.int64()),
        ("connectors_received_ms", pa.int64()),
        ("asked", pa.list_(pa.string())),
        ("requests", pa.int64()),
        ("bytes_sent", pa.int64()),
        ("bytes_received", pa.int64()),
        ("failures", pa.list_(_FAILURE)),
        ("capabilities", pa.list_(pa.string())),
    ]
)
"""`sequence` numbers the observations of the recording, `observed_sequence` those of the observer."""

_CELL = [("column", pa.int16()), ("row", pa.int32()), ("sequence", pa.int64())]
NUMBERS = pa.schema([*_CELL, ("value", pa.int64())])
WORDS = pa.schema([*_CELL, ("value", pa.string())])
CLOSED_NUMBERS = pa.schema([*_CELL, ("change", pa.int64())])
"""In Parquet, a number is stored as the difference to the previous number at the same position (the first
number as the difference to 0), modulo 2⁶⁴, with its sign in the lowest bit. Small numbers compress best."""

PARTITION_DELTAS = pa.schema(
    [
        ("sequence", pa.int64()),
        ("observed_ms", pa.int64()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("internal", pa.bool_()),
        ("leader", pa.int32()),
        ("leader_rack", pa.string()),
        ("topic_partitions", pa.int32()),
        ("began_ms", pa.int64()),
        ("ended_ms", pa.int64()),
        ("records_in", pa.int64()),
        ("record_centibytes", pa.int64()),
        ("truncated", pa.int64()),
        ("records_in_gap", pa.int64()),
        ("replicated", pa.int64()),
        ("cross_rack", pa.int64()),
        ("state_ms", pa.int32()),
        ("offline", pa.bool_()),
        ("silent", pa.bool_()),
        ("under_min_isr", pa.bool_()),
        ("under_replicated", pa.bool_()),
    ]
)
"""The rows of kview.derive.deltas.PartitionDeltas. `state_ms` is how long the states of the row lasted, until
`observed_ms`; 0 if the partition is in none of these states. Rows in which nothing happened and no such state
lasted are left out. Incoming bytes are records_in × record_centibytes ÷ 100, rounded down."""

OFFSET_DELTAS = pa.schema(
    [
        ("sequence", pa.int64()),
        ("observed_ms", pa.int64()),
        ("group", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("leader", pa.int32()),
        ("leader_rack", pa.string()),
        ("since_ms", pa.int64()),
        ("ended_ms", pa.int64()),
        ("records_out", pa.int64()),
        ("rewound", pa.int64()),
        ("records_out_gap", pa.int64()),
    ]
)
"""The rows of kview.derive.deltas.OffsetDeltas. Rows in which nothing happened are left out."""

STREAMED = {
    "observations": OBSERVATIONS,
    "numbers": NUMBERS,
    "words": WORDS,
    "partition_deltas": PARTITION_DELTAS,
    "offset_deltas": OFFSET_DELTAS,
}
"""The parts of a segment that are written with every observation: snapshots and deltas."""

PARTS = {**STREAMED, **FACTS}
"""All parts of a segment."""


def stream_of(parts: Mapping[str, pa.Schema]) -> pa.Schema:
    """Return the schema of an open segment that consists of `parts`."""
    return pa.schema([(name, pa.list_(pa.struct(list(schema)))) for name, schema in parts.items()])


STREAM = stream_of(STREAMED)
"""The stream's schema. Each row is one complete observation, with the rows that it adds to each part."""
