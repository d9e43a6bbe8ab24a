"""Reads what is new in a recording as Arrow batches of `kview.pipeline.rollup.DELTAS`, and packs it for
Spark."""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import to_arrow_schema

from kview.model.aggregates import SET_BACK_MS
from kview.model.snapshot import Longs
from kview.pipeline.packed import PACKED, WORDS
from kview.pipeline.rollup import DELTAS, NAMES_IN_DELTAS
from kview.recording.reader import Recording
from kview.recording.segment_reader import DeltaBatches

ENOUGH_ROWS = 200_000
"""Number of rows after which a batch ends, so that catching up with an hour does not need memory for an hour
of data. An observation is never split."""

SCHEMA: pa.Schema = to_arrow_schema(DELTAS, timezone="UTC")
"""The columns of DELTAS as Arrow types."""

_PACKED_SCHEMA: pa.Schema = to_arrow_schema(PACKED, timezone="UTC")


def next_rows(
    recording: Recording, after: int, enough: int = ENOUGH_ROWS
) -> tuple[list[pa.RecordBatch], int]:
    """Return the rows after observation `after`, and the last observation that they include.

    Reading stops after the observation with which there are `enough` rows, and before one at which the clock
    was set back. If there is nothing new, the second value is `after`.
    """
    taken: list[pa.RecordBatch] = []
    count, last, latest_ms = 0, after, 0
    for batches in recording.delta_batches(after):
        some = first_rows(before_set_back(batches, latest_ms), enough - count)
        if not some.moments.num_rows:
            break
        taken += rows(some)
        count += some.partitions.num_rows + some.offsets.num_rows
        last = some.last_sequence
        latest_ms = max(latest_ms, pc.max(some.moments["observed_ms"]).as_py())
        if last < batches.last_sequence or count >= enough:
            break
    return taken, last


def rows(batches: DeltaBatches) -> Iterator[pa.RecordBatch]:
    """Yield the same data as rows of DELTAS, or nothing if there are no rows."""
    for batch in batches.partitions, batches.offsets, batches.moments:
        if batch.num_rows:
            named = {NAMES_IN_DELTAS.get(name, name): batch.column(name) for name in batch.schema.names}
            yield pa.RecordBatch.from_arrays(
                [named.get(field.name, pa.nulls(batch.num_rows, field.type)) for field in SCHEMA],
                schema=SCHEMA,
            )


def up_to(batches: DeltaBatches, sequence: int) -> DeltaBatches:
    """Return the batches without observations after `sequence`."""

    def kept(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(pc.less_equal(batch["sequence"], sequence))

    parts = kept(batches.partitions), kept(batches.offsets), kept(batches.moments)
    return DeltaBatches(*parts, min(batches.last_sequence, sequence))


def first_rows(batches: DeltaBatches, count: int) -> DeltaBatches:
    """Return the first observations, as few as it takes to have `count` rows."""
    if batches.partitions.num_rows + batches.offsets.num_rows <= count:
        return batches
    numbers = batches.moments["sequence"].to_numpy()
    ends = sum(
        np.searchsorted(batch["sequence"].to_numpy(), numbers, "right")
        for batch in (batches.partitions, batches.offsets)
    )
    return up_to(batches, int(numbers[int(np.searchsorted(ends, count))]))


def before_set_back(batches: DeltaBatches, latest_ms: int) -> DeltaBatches:
    """Return the observations before the clock was first set back, or all if it was not.

    The first observation is compared with `latest_ms`, the latest time before the batches.
    """
    back = set_backs(np.concatenate([[latest_ms], batches.moments["observed_ms"].to_numpy()]))
    if not back:
        return batches
    return up_to(batches, int(batches.moments["sequence"][back[0] - 1].as_py()) - 1)


def set_backs(moments: Longs) -> list[int]:
    """Return the indices of observations before which the clock was set back. Moments are epoch ms."""
    places: list[int] = []
    since = 0
    while True:
        reached = np.maximum.accumulate(moments[since:])[:-1]
        back = np.flatnonzero(reached - moments[since + 1 :] > SET_BACK_MS)
        if not len(back):
            return places
        since += int(back[0]) + 1
        places.append(since)


def packed_table(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """Return rows of PACKED, one for each batch. At least one batch is required."""
    return pa.Table.from_batches(map(pack, batches))


def pack(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows of DELTAS, at least one, as a single row of PACKED."""
    lists = {"count": pa.array([batch.num_rows], pa.int32())}

    def put(name: str, values: pa.Array) -> None:
        offsets = pa.array([0, len(values)], pa.int32())
        lists[name] = pa.ListArray.from_arrays(offsets, values, _PACKED_SCHEMA.field(name).type)

    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if column.null_count == len(column):
            continue
        if name in WORDS:
            coded = column.dictionary_encode()
            put(name, coded.indices)
            put(f"{name}_words", coded.dictionary)
        else:
            put(name, column)
    return pa.RecordBatch.from_arrays(
        [lists.get(field.name, pa.nulls(1, field.type)) for field in _PACKED_SCHEMA], schema=_PACKED_SCHEMA
    )
