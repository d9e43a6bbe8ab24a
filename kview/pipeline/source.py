"""A recording as a source of Spark's, streamed while it is written or read as a whole: rows of
`kview.pipeline.rollup.DELTAS`.

An offset is the number of the last observation read, which holds in streams and in Parquet alike.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.datasource import DataSource, DataSourceReader, SimpleDataSourceStreamReader
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from kview.pipeline.rollup import DELTAS
from kview.recording.reader import DeltaBatches, Recording

MAX_BATCH_ROWS = 200_000
"""About how many rows are taken at a time: catching up with an hour must not need the memory of an hour. One
observation is never divided."""

_NAMES = {
    "since_ms": "began_ms",
    "records_in": "records",
    "records_out": "records",
    "truncated": "fell",
    "rewound": "fell",
    "records_in_gap": "in_gap",
    "records_out_gap": "in_gap",
}
"""What a recording's columns are called in DELTAS, where they are called otherwise."""

_SCHEMA: pa.Schema = to_arrow_schema(DELTAS, timezone="UTC")


class RecordingSource(DataSource):
    """`spark.readStream.format("kview")`, options `path` and `after` (the first observation's number − 1; −1
    is the beginning)."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "kview"

    def schema(self) -> StructType:
        """Always the same."""
        return DELTAS

    def reader(self, schema: StructType) -> DataSourceReader:
        """All that is there."""
        return _Whole(self.options["path"], int(self.options.get("after", -1)))

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:
        """What comes, in Spark's own words: one process reads it."""
        return _Coming(self.options["path"], int(self.options.get("after", -1)))


class _Whole(DataSourceReader):
    def __init__(self, path: str, after: int) -> None:
        self._path, self._after = path, after

    def read(self, partition: object) -> Iterator[pa.RecordBatch]:
        for batches in Recording.open(self._path).delta_batches(self._after):
            yield from rows(batches)


class _Coming(SimpleDataSourceStreamReader):
    def __init__(self, path: str, after: int) -> None:
        self._path, self._after = path, after
        self._recording: Recording | None = None

    def initialOffset(self) -> dict[str, int]:
        return {"sequence": self._after}

    def read(self, start: dict[str, int]) -> tuple[Iterator[pa.RecordBatch], dict[str, int]]:
        if self._recording is None:
            self._recording = Recording.open(self._path)
        else:
            self._recording.refresh()
        taken: list[pa.RecordBatch] = []
        count, last = 0, start["sequence"]
        for batches in self._recording.delta_batches(last):
            batches = first_rows(batches, MAX_BATCH_ROWS - count)
            taken += rows(batches)
            count += batches.partitions.num_rows + batches.offsets.num_rows
            last = batches.last_sequence
            if count >= MAX_BATCH_ROWS:
                break
        return iter(taken), {"sequence": last}

    def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> Iterator[pa.RecordBatch]:
        for batches in Recording.open(self._path).delta_batches(start["sequence"]):
            yield from rows(up_to(batches, end["sequence"]))


def rows(batches: DeltaBatches) -> Iterator[pa.RecordBatch]:
    """The same as rows of DELTAS; nothing where there are none."""
    for batch in batches.partitions, batches.offsets, batches.moments:
        if batch.num_rows:
            named = {_NAMES.get(name, name): batch.column(name) for name in batch.schema.names}
            yield pa.RecordBatch.from_arrays(
                [named.get(field.name, pa.nulls(batch.num_rows, field.type)) for field in _SCHEMA],
                schema=_SCHEMA,
            )


def up_to(batches: DeltaBatches, sequence: int) -> DeltaBatches:
    """Without the observations after that one."""

    def kept(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(pc.less_equal(batch["sequence"], sequence))

    parts = kept(batches.partitions), kept(batches.offsets), kept(batches.moments)
    return DeltaBatches(*parts, min(batches.last_sequence, sequence))


def first_rows(batches: DeltaBatches, count: int) -> DeltaBatches:
    """About the first `count` rows, and no observation in part; one at least."""
    if batches.partitions.num_rows + batches.offsets.num_rows <= count:
        return batches
    numbers = batches.moments["sequence"].to_numpy()
    ends = sum(
        np.searchsorted(batch["sequence"].to_numpy(), numbers, "right")
        for batch in (batches.partitions, batches.offsets)
    )
    fitting = int(np.searchsorted(ends, count, "right"))
    return up_to(batches, int(numbers[max(0, fitting - 1)]))
