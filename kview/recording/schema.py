"""The columns of a recording on disk as Arrow types, and the rows of one observation."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec.structs import asdict

from kview.derive.deltas import OffsetDeltas, PartitionDeltas
from kview.model.failures import FailureKind, Part
from kview.model.snapshot import Failure, Observation, Snapshot
from kview.recording.columns import Cells
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


@dataclass(frozen=True, slots=True)
class Entry:
    """The rows that one observation adds to the recording."""

    sequence: int
    snapshot: Snapshot
    numbers: Cells
    words: Cells
    partition_deltas: PartitionDeltas
    offset_deltas: OffsetDeltas
    state_ms: int

    def batch(self) -> pa.RecordBatch:
        """Return the entry as one row of STREAM."""
        parts = {
            "observations": self._observation(),
            "numbers": _cells(self.numbers, NUMBERS),
            "words": _cells(self.words, WORDS),
            "partition_deltas": self._partition_deltas(),
            "offset_deltas": self._offset_deltas(),
        }
        lists = [
            pa.ListArray.from_arrays(
                pa.array([0, len(arrays[0])], pa.int32()),
                pa.StructArray.from_arrays(arrays, fields=list(STREAMED[name])),
            )
            for name, arrays in parts.items()
        ]
        return pa.RecordBatch.from_arrays(lists, schema=STREAM)

    def _observation(self) -> list[pa.Array]:
        seen = self.snapshot.observation
        row: dict[str, Any] = asdict(seen)
        row |= {"sequence": self.sequence, "observed_sequence": seen.sequence}
        row["failures"] = list(map(asdict, seen.failures))
        row["capabilities"], row["asked"] = sorted(seen.capabilities), list(seen.asked)
        return [pa.array([row[field.name]], field.type) for field in OBSERVATIONS]

    def _partition_deltas(self) -> list[pa.Array]:
        deltas, table = self.partition_deltas, self.snapshot.partitions
        counts = ("records_in", "truncated", "records_in_gap", "replicated")
        states = ("offline", "silent", "under_min_isr", "under_replicated")
        held = np.any([getattr(deltas, name) for name in states], axis=0) & (self.state_ms > 0)
        rows = np.flatnonzero(np.any([getattr(deltas, name) != 0 for name in counts], axis=0) | held)
        given = {
            "topic": table.topic,
            "partition": table.partition,
            "internal": table.internal,
            "leader": table.leader,
        }
        given["state_ms"] = np.where(held, self.state_ms, 0)
        return self._rows(PARTITION_DELTAS, deltas, given, rows)

    def _offset_deltas(self) -> list[pa.Array]:
        deltas, table = self.offset_deltas, self.snapshot.offsets
        rows = np.flatnonzero(
            (deltas.records_out != 0) | (deltas.rewound != 0) | (deltas.records_out_gap != 0)
        )
        given = {"group": table.group, "topic": table.topic, "partition": table.partition}
        return self._rows(OFFSET_DELTAS, deltas, given, rows)

    def _rows(self, schema: pa.Schema, deltas: Any, given: dict[str, Any], rows: Any) -> list[pa.Array]:
        same: dict[str, int] = {
            "sequence": self.sequence,
            "observed_ms": self.snapshot.observation.ended_ms,
        }
        arrays = []
        for field in schema:
            if field.name in same:
                values = np.full(len(rows), same[field.name])
            else:
                values = (given[field.name] if field.name in given else getattr(deltas, field.name))[rows]
            arrays.append(pa.array(values, field.type))
        return arrays


def _cells(cells: Cells, schema: pa.Schema) -> list[pa.Array]:
    return [pa.array(getattr(cells, field.name), field.type) for field in schema]


def observations(rows: Iterable[dict[str, Any]]) -> dict[int, Observation]:
    """Return the observations in rows of OBSERVATIONS, keyed by the recording's own sequence."""
    out = {}
    for row in rows:
        number, row["sequence"] = row["sequence"], row.pop("observed_sequence")
        row["failures"] = tuple(map(_failure, row["failures"]))
        row["asked"], row["capabilities"] = tuple(map(Part, row["asked"])), frozenset(row["capabilities"])
        out[number] = Observation(**row)
    return out


def _failure(row: dict[str, Any]) -> Failure:
    return Failure(**row | {"part": Part(row["part"]), "kind": FailureKind(row["kind"])})
