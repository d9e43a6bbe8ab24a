"""Reads one segment of a recording, from its Parquet files or from the stream of one that is still open."""

from bisect import bisect_right
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kview.model.snapshot import Longs
from kview.recording.damage import damage_in
from kview.recording.manifest import SegmentEntry
from kview.recording.schema import PARTS, STREAM
from kview.recording.segment import STREAM_FILE, fact_rows, news, parquet_part, part_of, whole_batches


class DeltaBatches(NamedTuple):
    """The rows recorded after a moment, as PARTITION_DELTAS and OFFSET_DELTAS in the order of moments."""

    partitions: pa.RecordBatch
    offsets: pa.RecordBatch
    moments: pa.RecordBatch
    """The `sequence` and `observed_ms` of each moment, including moments without rows."""
    last_sequence: int
    """The last moment recorded, even if it has no rows."""


class Segment:
    """A part of a recording that can be read independently of the others.

    An open segment knows the observations that the last `read_new` found, but stores only where each of them
    starts.
    """

    def __init__(self, recording: Path, entry: SegmentEntry) -> None:
        self.folder = recording / entry.folder
        self._entry = entry
        self._begins = [0]
        self._sequences: list[int] = []
        self._ended_ms: list[int] = []

    @property
    def number(self) -> int:
        """The segment's number: 1, 2, 3 …"""
        return self._entry.number

    @property
    def closed(self) -> bool:
        """Whether nothing will be added to the segment."""
        return self._entry.closed

    def read_new(self) -> None:
        """Read what was added to an open segment. Raises FileNotFoundError if the segment has been closed."""
        for batch, end in whole_batches(self.folder / STREAM_FILE, self._begins[-1], STREAM):
            seen = batch.column("observations").flatten()
            self._begins.append(end)
            self._sequences.append(seen.field("sequence")[0].as_py())
            self._ended_ms.append(seen.field("ended_ms")[0].as_py())

    @cached_property
    def _closed_times(self) -> tuple[Longs, Longs]:
        table = self._parts(-1, "observations")[0]
        return table["sequence"].to_numpy(), table["ended_ms"].to_numpy()

    @property
    def times(self) -> tuple[Longs, Longs]:
        """The sequences of the segment's observations, and when the observations ended (epoch ms)."""
        if self._sequences:
            return np.array(self._sequences, np.int64), np.array(self._ended_ms, np.int64)
        return self._closed_times

    def tables(self) -> list[pa.Table]:
        """Return the segment's numbers, words and observations, read from disk each time. Raises
        FileNotFoundError."""
        with damage_in(self.folder):
            return self._parts(-1, "numbers", "words", "observations")

    def delta_batches(self, after_sequence: int = -1) -> DeltaBatches:
        """Return what was recorded after `after_sequence`, as empty batches if there is nothing.

        Raises FileNotFoundError if the segment no longer exists, because a ring drops its oldest segments.
        """
        names = ("partition_deltas", "offset_deltas", "observations")
        with damage_in(self.folder):
            partitions, offsets, seen = self._parts(after_sequence, *names)
            last = int(seen["sequence"][-1].as_py()) if len(seen) else -1
            moments = seen.select(["sequence", "ended_ms"]).rename_columns(["sequence", "observed_ms"])
            batches = [news(table, after_sequence) for table in (partitions, offsets, moments)]
        return DeltaBatches(batches[0], batches[1], batches[2], last)

    def facts(self, part: str, after_sequence: int = -1) -> pa.Table:
        """Return the rows of a part of facts that were written after `after_sequence`, in their order.

        An open segment has those of the observations that the last `read_new` found. Raises
        FileNotFoundError.
        """
        with damage_in(self.folder):
            if not self._entry.closed:
                last = self._sequences[-1] if self._sequences else -1
                with suppress(FileNotFoundError):  # it was closed after the manifest was read
                    table = fact_rows(self.folder, part, last)
                    return table.filter(pc.greater(table["sequence"], after_sequence))
            table = parquet_part(self.folder, part, self._entry.size_bytes, PARTS)
            return table.filter(pc.greater(table["sequence"], after_sequence))

    def deltas_of(self, part: str, topic: str, columns: tuple[str, ...]) -> pa.Table:
        """Return some columns of a topic's rows in a part of deltas. `topic` must be one of the columns.

        Much faster than reading all rows. Raises FileNotFoundError and KviewError.
        """
        with damage_in(self.folder):
            table = None
            if not self._entry.closed:
                with suppress(FileNotFoundError):  # it was closed after the manifest was read
                    batches = [batch for batch, _ in whole_batches(self.folder / STREAM_FILE, 0, STREAM)]
                    table = part_of(batches, part, PARTS).select(list(columns))
            if table is None:
                table = parquet_part(self.folder, part, self._entry.size_bytes, PARTS, columns)
            return table.filter(pc.equal(table["topic"], topic))

    def _parts(self, after_sequence: int, *names: str) -> list[pa.Table]:
        """Return the rows of these parts after `after_sequence`, and possibly some earlier rows."""
        if not self._entry.closed:
            begin = self._begins[bisect_right(self._sequences, after_sequence)]
            try:
                stream = whole_batches(self.folder / STREAM_FILE, begin, STREAM)
                batches = [batch for batch, _ in stream]
            except FileNotFoundError:
                pass  # it was closed after the manifest was read
            else:
                return [part_of(batches, name, PARTS) for name in names]
        return [parquet_part(self.folder, name, self._entry.size_bytes, PARTS) for name in names]
