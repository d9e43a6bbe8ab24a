"""What a report can read of a recording: its closed segments, what its open one has, and its moments."""

import os
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from kview.errors import KviewError
from kview.model.report import Note, NoteKind
from kview.model.snapshot import Longs
from kview.pipeline.reading import set_backs
from kview.recording.damage import damage_in, damaged
from kview.recording.fact_schema import FACTS
from kview.recording.manifest import Manifest, SegmentEntry
from kview.recording.places import Place
from kview.recording.reader import GROWS_WITHIN_S
from kview.recording.schema import PARTS, STREAM
from kview.recording.segment import STREAM_FILE, STREAM_FILES, fact_rows, whole_batches

DELTA_PARTS = ("partition_deltas", "offset_deltas", "observations")

_MAGIC = b"PAR1"
"""Parquet files begin and end with this."""


@dataclass(frozen=True, slots=True)
class Moments:
    """Observations in the order of recording: their sequences, and when they ended (epoch ms)."""

    sequences: Longs
    ended_ms: Longs

    def __len__(self) -> int:
        return len(self.sequences)


def no_moments() -> Moments:
    """Return no observations."""
    return Moments(np.empty(0, np.int64), np.empty(0, np.int64))


def joined(parts: list[Moments]) -> Moments:
    """Return the observations of all parts, in their order."""
    parts = [no_moments(), *parts]
    return Moments(
        np.concatenate([part.sequences for part in parts]), np.concatenate([part.ended_ms for part in parts])
    )


@dataclass(slots=True)
class Source:
    """A recording as it is now. What was found to be wrong with it is added to `notes`."""

    place: Place
    manifest: Manifest
    closed: list[SegmentEntry]
    open: SegmentEntry | None
    """The last segment, if it is not closed."""
    notes: list[Note] = field(default_factory=list)
    name: str = ""
    """The name of the recording on the screen."""

    @property
    def address(self) -> str:
        """The recording's path, or its URL without secrets."""
        return self.place.address

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of a segment that a report reads."""
        return (*DELTA_PARTS, *sorted(FACTS))

    def note(self, note: Note) -> None:
        """Add a note, once."""
        if note not in self.notes:
            self.notes.append(note)

    def leave_out(self, entry: SegmentEntry, error: KviewError) -> None:
        """Leave a damaged segment out, with a note that says why."""
        self.closed = [kept for kept in self.closed if kept.number != entry.number]
        reason = str(error.values.get("reason", error.kind.value))
        values = {"file": str(error.values.get("file", "")), "reason": reason}
        self.note(Note(NoteKind.SEGMENT_DAMAGED, {"recording": self.name, "segment": entry.number, **values}))


def open_source(recording: Path | Place) -> Source:
    """Read which segments a recording has. Raises KviewError if there is no recording."""
    place = Place.of(recording) if isinstance(recording, Path) else recording
    manifest = place.manifest()
    closed = [entry for entry in manifest.segments if entry.closed]
    still = [entry for entry in manifest.segments if not entry.closed]
    return Source(place, manifest, closed, still[-1] if still else None, name=place.name)


def check_files(source: Source, entry: SegmentEntry) -> None:
    """Raise KviewError if a file of a closed segment is missing or was cut, FileNotFoundError if the segment
    is gone."""
    folder = source.place / entry.folder
    with damage_in(folder.address):
        sizes = {name: size for name, size in folder.files().items() if name.endswith(".parquet")}
    for name in sizes:
        # In a store, each look into a file takes as long as reading it, and files are complete or not there.
        if not source.place.is_remote:
            _check_ends(Path(folder.path, name))
    if sum(sizes.values()) < entry.size_bytes:
        raise damaged(folder.address, f"{sum(sizes.values())} bytes instead of {entry.size_bytes}")


def _check_ends(path: Path) -> None:
    with damage_in(path), path.open("rb") as file:
        begins = file.read(len(_MAGIC))
        file.seek(-len(_MAGIC), os.SEEK_END)
        ends = file.read()
    if (begins, ends) != (_MAGIC, _MAGIC):
        raise damaged(path, "not a complete Parquet file")


def closed_moments(source: Source, entry: SegmentEntry) -> tuple[Moments, str]:
    """Return the observations of a closed segment, and the cluster's id ('' if it is not known).

    Raises KviewError if the segment is damaged, FileNotFoundError if it is gone.
    """
    folder = source.place / entry.folder
    path = f"{folder.address}/observations.parquet"
    file = pa.BufferReader(folder.read("observations.parquet")) if folder.is_remote else path
    with damage_in(path):
        names = ["sequence", "ended_ms", "cluster_id"]
        table = pq.ParquetFile(file, page_checksum_verification=True).read(columns=names)
    return _moments(table)


def _moments(table: pa.Table) -> tuple[Moments, str]:
    ids = table["cluster_id"].drop_null().unique().to_pylist()
    return Moments(table["sequence"].to_numpy(), table["ended_ms"].to_numpy()), next(filter(None, ids), "")


@dataclass(frozen=True, slots=True)
class OpenSegment:
    """The complete observations of a segment that is not closed, as Arrow tables by part."""

    parts: dict[str, pa.Table]
    moments: Moments
    cluster: str


def read_open(source: Source) -> OpenSegment | None:
    """Read the open segment, and note how far it goes. None if it has no observation.

    Raises KviewError if it is damaged, FileNotFoundError if it has been closed in the meantime.
    """
    if source.open is None:
        return None
    where = source.place / source.open.folder
    if not where.is_remote:
        return _read_open(source, Path(where.path), where.address)
    with tempfile.TemporaryDirectory(prefix="kview-open-") as copied:
        for name in where.files():
            if name in STREAM_FILES:
                where.fetch(name, Path(copied))
        return _read_open(source, Path(copied), where.address)


def _read_open(source: Source, folder: Path, address: str) -> OpenSegment | None:
    path = folder / STREAM_FILE
    batches: list[pa.RecordBatch] = []
    end = 0
    with damage_in(f"{address}/{STREAM_FILE}"):
        for batch, after in whole_batches(path, 0, STREAM):
            # Snapshots are most of an observation and are not needed.
            batches.append(batch.select(list(DELTA_PARTS)))
            end = after
    if not batches:
        return None
    parts = {name: _part(batches, name, PARTS[name]) for name in DELTA_PARTS}
    moments, cluster = _moments(parts["observations"])
    with damage_in(address):
        for name in FACTS:
            parts[name] = fact_rows(folder, name, int(moments.sequences[-1]))
    last = int(moments.sequences[-1])
    left_over = path.stat().st_size - end
    if time.time() - path.stat().st_mtime < GROWS_WITHIN_S:
        kind = NoteKind.STILL_WRITTEN
    else:
        kind = NoteKind.TORN if left_over else NoteKind.NOT_CLOSED
    source.note(Note(kind, {"recording": source.name, "sequence": last, "bytes": left_over}))
    return OpenSegment(parts, moments, cluster)


def _part(batches: list[pa.RecordBatch], name: str, schema: pa.Schema) -> pa.Table:
    arrays = [pa.RecordBatch.from_struct_array(batch.column(name).flatten()) for batch in batches]
    return pa.Table.from_batches(arrays).cast(schema)


def set_backs_of(moments: Moments) -> list[tuple[int, int]]:
    """Return (first observation after it, that observation's second) of each time the clock was set back."""
    places = set_backs(moments.ended_ms)
    return [(int(moments.sequences[at]), int(moments.ended_ms[at]) // 1000) for at in places]


def ends_ms(source: Source) -> tuple[int, int] | None:
    """Return when the first and the last observation of a recording ended (epoch ms), None if there are none.

    Raises KviewError if the open segment is damaged.
    """
    times = [ms for entry in source.closed for ms in (entry.began_ms, entry.ended_ms)]
    with suppress(FileNotFoundError):  # it has been closed in the meantime
        opened = read_open(replace(source, notes=[]))
        times += opened.moments.ended_ms.tolist() if opened is not None else []
    return (min(times), max(times)) if times else None
