"""The writer, which turns snapshots into segments. Use it from one thread only."""

import logging
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from msgspec.structs import asdict, replace

from kview.derive.deltas import (
    CarriedOffsets,
    CarriedPartitions,
    OffsetDeltas,
    PartitionDeltas,
    offset_deltas,
    partition_deltas,
    state_ms,
)
from kview.derive.facts import Facts
from kview.errors import BadUse, ErrorKind, KviewError
from kview.model.snapshot import Snapshot
from kview.recording.columns import Cells, Codec, Encoded, changes
from kview.recording.facts import FactRows, Part
from kview.recording.manifest import Manifest, SegmentEntry, write_manifest
from kview.recording.names import MANIFEST
from kview.recording.schema import (
    NUMBERS,
    OBSERVATIONS,
    OFFSET_DELTAS,
    PARTITION_DELTAS,
    STREAM,
    STREAMED,
    WORDS,
)
from kview.recording.segment import STREAM_FILE, STREAM_FILES, fact_stream, write_closed

SEGMENT_S = 60
"""A segment of this age is closed, unless it is small."""

SMALL_SEGMENT_BYTES = 8 << 20
"""A segment whose stream is smaller than this stays open longer, because its first observation (which is
complete) and Parquet's footers would outweigh everything else."""

LONGEST_SEGMENT_S = 600
"""A segment of this age is closed, however small it is."""

LARGEST_SEGMENT_BYTES = 120 << 20
"""A segment of this size is closed, however young it is, because a reader loads an entire segment to find a
moment. Much smaller segments would take longer to replay, because the first observation of a segment is as
large as ten others."""

FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
"""How streams are opened. What an earlier attempt left is removed before."""

_log = logging.getLogger(__name__)


class RecordingStopped(KviewError):
    """Raised when recording cannot continue, because the disk is full or the folder cannot be written."""


class RecordingWriter:
    """Appends observations to a new recording in `folder`, which is created if necessary.

    Whatever happens, the files stay readable: segments, the manifest, and each complete observation of the
    open segment. After RecordingStopped, the next `append` begins another segment, and what was written
    remains a valid recording.

    `on_closed` is called with the folder and the entry of each segment once the segment is closed.
    """

    def __init__(
        self,
        folder: Path,
        *,
        segment_s: float = SEGMENT_S,
        small_segment_bytes: int = SMALL_SEGMENT_BYTES,
        on_closed: Callable[[Path, SegmentEntry], None] | None = None,
    ) -> None:
        """Create the recording.

        Raises BadUse if the folder already has a recording, or RecordingStopped if the recording cannot be
        created.
        """
        self.folder = folder
        self._segment_ms = int(segment_s * 1000)
        self._small_segment_bytes = small_segment_bytes
        self._on_closed = on_closed
        self._manifest = Manifest()
        self._open: SegmentEntry | None = None
        self._stream = -1
        self._stream_bytes = 0
        self._unused = 0
        """The number of a segment that was opened and got no observation, 0 if there is none."""
        self._sequence = 0
        self._codec = Codec()
        self._before: Encoded | None = None
        self._previous: Snapshot | None = None
        self._partitions: CarriedPartitions | None = None
        self._offsets: CarriedOffsets | None = None
        self._facts = FactRows()
        self._facts_failed = False
        self._fact_streams: _FactStreams | None = None
        if (folder / MANIFEST).exists():
            raise BadUse(ErrorKind.FOLDER_HAS_RECORDING, folder=str(folder))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_manifest(folder, self._manifest)
        except OSError as error:
            raise self._stopped(error) from error

    def append(self, snapshot: Snapshot, facts: Facts | None = None) -> None:
        """Record one observation, with what the fold concluded if it was folded. Raises RecordingStopped."""
        try:
            if self._open is not None and self._is_due(snapshot.observation.ended_ms):
                self._close_segment()
            if self._open is None:
                self._open_segment(snapshot)
            self._append(snapshot, facts)
        except OSError as error:
            raise self._stopped(error) from error

    def close(self) -> None:
        """Close the open segment. Raises RecordingStopped."""
        try:
            if self._open is not None:
                self._close_segment()
        except OSError as error:
            raise self._stopped(error) from error

    def abandon(self) -> None:
        """End without closing the open segment, which stays a stream and can be read."""
        with suppress(OSError):
            self._write_facts(self._facts.pending())
        self._drop()

    def _drop(self) -> None:
        if self._stream >= 0:
            os.close(self._stream)
        if self._fact_streams is not None:
            self._fact_streams.close()
            self._fact_streams = None
        if self._open is not None and self._open.last_sequence < self._open.first_sequence:
            self._unused = self._open.number
        self._stream, self._open = -1, None

    @property
    def segments(self) -> tuple[SegmentEntry, ...]:
        """The recording's segments, oldest first."""
        return self._manifest.segments

    @property
    def stream_bytes(self) -> int:
        """The size of the open segment, in bytes."""
        return self._stream_bytes

    def forget(self, entries: tuple[SegmentEntry, ...]) -> None:
        """Drop closed segments from the manifest. The caller deletes their folders.

        Raises RecordingStopped.
        """
        try:
            self._write_segments(tuple(e for e in self._manifest.segments if e not in entries))
        except OSError as error:
            raise self._stopped(error) from error

    def _is_due(self, now_ms: int) -> bool:
        assert self._open is not None
        age_ms = now_ms - self._open.began_ms
        if age_ms < 0 or age_ms >= LONGEST_SEGMENT_S * 1000 or self._stream_bytes >= LARGEST_SEGMENT_BYTES:
            return True
        return age_ms >= self._segment_ms and self._stream_bytes >= self._small_segment_bytes

    def _write_segments(self, segments: tuple[SegmentEntry, ...]) -> None:
        manifest = Manifest(segments=segments)
        write_manifest(self.folder, manifest)
        self._manifest = manifest

    def _open_segment(self, snapshot: Snapshot) -> None:
        segments = tuple(entry for entry in self._manifest.segments if entry.number != self._unused)
        last = segments[-1].number if segments else 0
        at_ms = snapshot.observation.ended_ms
        entry = SegmentEntry(
            number=last + 1,
            first_sequence=self._sequence,
            last_sequence=self._sequence - 1,
            began_ms=at_ms,
            ended_ms=at_ms,
            clusters=_with_cluster((), snapshot),
        )
        folder = self.folder / entry.folder
        folder.mkdir(exist_ok=True)
        for name in STREAM_FILES:
            (folder / name).unlink(missing_ok=True)  # of an attempt that failed before anything was in it
        self._stream = os.open(folder / STREAM_FILE, FLAGS, 0o600)
        head = STREAM.serialize()
        _write_all(self._stream, memoryview(head))
        self._stream_bytes = head.size
        self._write_segments((*segments, entry))
        self._open, self._before = entry, None
        self._fact_streams = _FactStreams(folder)
        self._facts.begin_segment()

    def _append(self, snapshot: Snapshot, facts: Facts | None) -> None:
        assert self._open is not None
        if isinstance(facts, Facts):
            snapshot = replace(snapshot, unclean=facts.unclean, oldest_unread=facts.oldest_unread)
        encoded = self._codec.encode(snapshot)
        numbers, words = changes(self._before, encoded, self._sequence)
        partitions = partition_deltas(self._previous, snapshot, self._partitions)
        offsets = offset_deltas(self._previous, snapshot, self._offsets)
        interval_ms = state_ms(self._previous, snapshot)
        entry = _Entry(self._sequence, snapshot, numbers, words, partitions, offsets, interval_ms)
        message = entry.batch().serialize()
        _write_all(self._stream, memoryview(message))
        self._stream_bytes += message.size
        self._before, self._previous = encoded, snapshot
        self._partitions, self._offsets = CarriedPartitions.of(partitions), CarriedOffsets.of(offsets)
        self._open = SegmentEntry(
            number=self._open.number,
            first_sequence=self._open.first_sequence,
            last_sequence=self._sequence,
            began_ms=self._open.began_ms,
            ended_ms=snapshot.observation.ended_ms,
            clusters=_with_cluster(self._open.clusters, snapshot),
        )
        self._sequence += 1
        self._write_facts(self._fact_rows(self._sequence - 1, snapshot, facts, interval_ms))

    def _fact_rows(
        self, sequence: int, snapshot: Snapshot, facts: Facts | None, interval_ms: int
    ) -> list[Part]:
        """Return the facts to write. A bug in them must not end the recording."""
        try:
            return self._facts.rows(sequence, snapshot, facts, interval_ms)
        except Exception:
            if not self._facts_failed:
                _log.exception("the facts of an observation could not be recorded")
            self._facts, self._facts_failed = FactRows(), True
            return []

    def _write_facts(self, rows: list[Part]) -> None:
        if self._fact_streams is not None:
            self._stream_bytes += self._fact_streams.append(rows)

    def _close_segment(self) -> None:
        assert self._open is not None and self._fact_streams is not None
        folder = self.folder / self._open.folder
        self._write_facts(self._facts.pending())
        os.close(self._stream)
        self._fact_streams.close()
        self._stream, self._fact_streams = -1, None
        size = write_closed(folder)
        entry = SegmentEntry(
            number=self._open.number,
            closed=True,
            first_sequence=self._open.first_sequence,
            last_sequence=self._open.last_sequence,
            began_ms=self._open.began_ms,
            ended_ms=self._open.ended_ms,
            size_bytes=size,
            clusters=self._open.clusters,
        )
        self._open = None
        self._write_segments((*self._manifest.segments[:-1], entry))
        for name in STREAM_FILES:
            (folder / name).unlink(missing_ok=True)
        self._stream_bytes = 0
        if self._on_closed is not None:
            self._on_closed(folder, entry)

    def _stopped(self, error: OSError) -> RecordingStopped:
        self._facts.written_is_lost()
        self._drop()
        why = os.strerror(error.errno) if error.errno else str(error)
        return RecordingStopped(ErrorKind.RECORDING_STOPPED, reason=why, folder=str(self.folder))


def _with_cluster(clusters: tuple[str, ...], snapshot: Snapshot) -> tuple[str, ...]:
    """Return the ids of clusters with that of a snapshot, if it is known."""
    cluster = snapshot.observation.cluster_id
    return clusters if cluster in ("", *clusters) else (*clusters, cluster)


# -- the rows that an observation adds


@dataclass(frozen=True, slots=True)
class _Entry:
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


# -- the streams of an open segment


def _write_all(descriptor: int, content: memoryview) -> None:
    """Write all of `content`, even if a single write takes only a part of it. Raises OSError."""
    while content:
        content = content[os.write(descriptor, content) :]


class _FactStreams:
    """Appends rows to the streams of the segment in `folder`, one file per part.

    A part gets its file with its first row.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptors: dict[str, int] = {}

    def append(self, rows: Iterable[Part]) -> int:
        """Append batches of rows by the names of their parts, and return how many bytes. Raises OSError."""
        size = 0
        for part, batch in rows:
            descriptor = self._descriptors.get(part)
            if descriptor is None:
                descriptor = os.open(fact_stream(self._folder, part), FLAGS, 0o600)
                self._descriptors[part] = descriptor
                head = batch.schema.serialize()
                _write_all(descriptor, memoryview(head))
                size += head.size
            message = batch.serialize()
            _write_all(descriptor, memoryview(message))
            size += message.size
        return size

    def close(self) -> None:
        """Close the files, which stay as they are."""
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors = {}
