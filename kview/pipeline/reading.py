"""Reads what is new in a recording, and rolls it up: what a task of the live job does."""

from collections.abc import Iterator
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kview.model.aggregates import SET_BACK_MS
from kview.model.snapshot import Longs
from kview.pipeline.kernel.summing import Scope, Summing
from kview.recording.reader import Recording
from kview.recording.segment_reader import DeltaBatches

ENOUGH_ROWS = 200_000
"""Number of rows after which a step ends, so that catching up with an hour does not need memory for an hour
of data. An observation is never split."""

_ALL = Scope(head_s=0, tail_s=0, set_backs=())

MORE = b"more"
"""Metadata of roll-ups after which there is more to roll up."""


def next_rollups(path: str, after: int, enough: int = ENOUGH_ROWS) -> pa.Table | None:
    """Return the roll-ups of what was recorded after observation `after`, None if there is nothing.

    Columns: those of `kview.pipeline.kernel.tables.SECONDS`, and from the observations included
    `last_sequence`, `first_ms` and `last_ms`, the same in each row. The schema's metadata have MORE if there
    is more to roll up. Raises KviewError if there is no recording.
    """
    recording = _opened(path)
    recording.refresh()
    batches, last = next_rows(recording, after, enough)
    if not batches:
        return None
    return rolled(batches).replace_schema_metadata({MORE: ""} if last < recording.sequences()[-1] else None)


@cache
def _opened(path: str) -> Recording:
    """Return a recording, open for as long as this process serves tasks."""
    return Recording.open(path)


def rolled(batches: list[pa.RecordBatch]) -> pa.Table:
    """Return the roll-ups of what `next_rows` returned."""
    summing = Summing(_ALL, by_partition=False)
    moments = [batch for batch in batches if "topic" not in batch.schema.names]
    for batch in batches:
        summing.add(batch)
    table = summing.seconds()
    seen = pa.Table.from_batches(moments)
    ends = pc.min_max(seen["ended_ms"]).as_py()
    for name, value in (
        ("last_sequence", pc.max(seen["sequence"]).as_py()),
        ("first_ms", ends["min"]),
        ("last_ms", ends["max"]),
    ):
        table = table.append_column(name, pa.array(np.full(len(table), value)))
    return table


def next_rows(
    recording: Recording, after: int, enough: int = ENOUGH_ROWS
) -> tuple[list[pa.RecordBatch], int]:
    """Return the rows after observation `after` as `rows` yields them, and the last observation that they
    include.

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
    """Yield the same rows as parts of a segment have them, nothing of a part without rows: those of
    partitions and of groups' offsets, and `sequence` and `ended_ms` of each observation."""
    moments = batches.moments.rename_columns(["sequence", "ended_ms"])
    for batch in batches.partitions, batches.offsets, moments:
        if batch.num_rows:
            yield batch


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
