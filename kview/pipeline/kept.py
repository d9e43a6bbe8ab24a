"""Roll-ups that are kept on disk, so that a recording is walked only once.

A batch is a folder with the roll-ups of some consecutive segments of one recording: a folder of Parquet files
per table, and `batch.json`, which says what they are of. A batch is written under another name and renamed
when it is complete, so a batch is there completely or not at all. Batches add up.
"""

import os
import platform
import re
import secrets
import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from kview.errors import BadUse, ErrorKind
from kview.pipeline.sources import Moments, Source, set_backs_of
from kview.recording.manifest import SegmentEntry

ROLLUP_VERSION = 1
"""Increased whenever roll-ups are calculated differently."""

FOLDER = "rollups"
"""The folder of roll-ups in a recording."""

ABOUT = "batch.json"
MOMENTS = "moments.parquet"
STALE_S = 3_600.0
"""A batch that is not used for this long after it was written can go."""

ABANDONED_S = 86_400.0
"""A batch that another machine began to write so long ago can go."""

_HOST = re.sub(r"[^A-Za-z0-9.]+", "_", platform.node())
"""This machine's name, as a part of a file's name."""

UNFINISHED = ".new-"
"""How the names of batches begin that are not complete."""


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What a batch is of."""

    version: int = ROLLUP_VERSION
    cluster: str
    segments: tuple[tuple[int, int], ...]
    """(number, size in bytes) of each segment."""
    set_backs: tuple[tuple[int, int], ...]
    """The (sequence, second) of the times the clock was set back that were taken into account."""
    files: dict[str, int]
    """The size of each file in bytes, by its path within the batch."""
    head_s: int
    """Roll-ups of partitions leave out what is before this second."""
    tail_s: int
    """From this second on, roll-ups of partitions are by second."""


class Kept(msgspec.Struct, frozen=True):
    """A batch that can be read."""

    folder: Path
    about: About
    moments: Moments


def place_of(source: Source, cache: Path | None) -> Path:
    """Return the folder for a recording's batches: within the recording, or within `cache`.

    Raises BadUse if the recording is in a store and there is no `cache`.
    """
    if cache is not None:
        return cache.absolute() / f"{source.place.identity}-{source.place.name[:40]}"
    if source.place.is_remote:
        raise BadUse(ErrorKind.REPORT_NEEDS_CACHE, recording=source.address)
    return Path(source.place.path, FOLDER)


def read_kept(place: Path, source: Source) -> list[Kept]:
    """Return the batches in `place` that are complete and about segments as they are.

    Batches of segments that are no longer in the recording count, too. Several may be about one segment.
    """
    now = {entry.number: entry.size_bytes for entry in source.closed}
    batches = [_read(folder) for folder in sorted(place.glob("batch-*"))] if place.is_dir() else []
    return [
        kept
        for kept in batches
        if kept is not None and all(now.get(n, size) == size for n, size in kept.about.segments)
    ]


def chosen(batches: Sequence[Kept]) -> list[Kept]:
    """Return batches without a common segment, those of more segments first, in the order of segments."""
    taken: set[int] = set()
    disjoint = []
    for kept in sorted(batches, key=lambda kept: -len(kept.about.segments)):
        numbers = {number for number, _ in kept.about.segments}
        if not numbers & taken:
            taken |= numbers
            disjoint.append(kept)
    return sorted(disjoint, key=lambda kept: kept.about.segments[0])


def _read(folder: Path) -> Kept | None:
    try:
        about = msgspec.json.decode((folder / ABOUT).read_bytes(), type=About)
        if about.version != ROLLUP_VERSION or not about.segments:
            return None
        if any((folder / name).stat().st_size != size for name, size in about.files.items()):
            return None
        table = pq.read_table(folder / MOMENTS)
        return Kept(folder, about, Moments(table["sequence"].to_numpy(), table["ended_ms"].to_numpy()))
    except (OSError, msgspec.MsgspecError, pa.ArrowException, KeyError):
        return None


def affecting(moments: Moments, of_recording: Moments) -> tuple[tuple[int, int], ...]:
    """Return those times the clock was set back in a recording that change what counts of these moments."""
    if not len(moments):
        return ()
    first, latest_s = int(moments.sequences[0]), int(moments.ended_ms.max()) // 1000
    return tuple(
        (sequence, second)
        for sequence, second in set_backs_of(of_recording)
        if sequence > first and second <= latest_s
    )


def runs(entries: Sequence[SegmentEntry], kept: Sequence[Kept], most_bytes: int) -> list[list[SegmentEntry]]:
    """Return the segments that are in no batch, in runs for one batch each.

    Other batches do not lie between the segments of a run, and a run has about `most_bytes` at most.
    """
    known = {number for batch in kept for number, _ in batch.about.segments}
    all_runs: list[list[SegmentEntry]] = [[]]
    size = 0
    for entry in entries:
        if entry.number in known:
            all_runs.append([])
            size = 0
            continue
        if all_runs[-1] and size + entry.size_bytes > most_bytes:
            all_runs.append([])
            size = 0
        all_runs[-1].append(entry)
        size += entry.size_bytes
    return [run for run in all_runs if run]


def begin(place: Path, name: str) -> Path:
    """Create an empty folder for a batch that is being written. Raises OSError.

    A recording that was deleted in the meantime is not created again.
    """
    place.mkdir(parents=place.name != FOLDER, exist_ok=True)
    folder = place / f"{UNFINISHED}{os.getpid()}@{_HOST}-{name}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def finish(folder: Path, about: About, moments: Moments) -> Kept:
    """Say what a batch is of, give it its name, and return it. Raises OSError."""
    table = pa.table({"sequence": moments.sequences, "ended_ms": moments.ended_ms})
    pq.write_table(table, folder / MOMENTS, compression="zstd")
    for leftover in [*folder.rglob("_*"), *folder.rglob(".*.crc")]:
        leftover.unlink()
    files = {
        str(path.relative_to(folder)): path.stat().st_size for path in folder.rglob("*") if path.is_file()
    }
    about = msgspec.structs.replace(about, files=files)
    (folder / ABOUT).write_bytes(msgspec.json.encode(about))
    first, last = about.segments[0][0], about.segments[-1][0]
    # No batch has the name already, not even one that another process writes.
    named = folder.parent / f"batch-{first:06}-{last:06}-{secrets.token_hex(4)}"
    os.rename(folder, named)
    return Kept(named, about, moments)


def remove_damaged(batches: Sequence[Kept]) -> int:
    """Remove those batches of which a page is damaged, and return their number.

    This reads all of their files.
    """
    count = 0
    for kept in batches:
        for name in kept.about.files:
            try:
                file = pq.ParquetFile(kept.folder / name, page_checksum_verification=True)
                for group in range(file.num_row_groups):
                    file.read_row_group(group)
            except (OSError, pa.ArrowException):
                shutil.rmtree(kept.folder, ignore_errors=True)
                count += 1
                break
    return count


def clean(place: Path, used: Sequence[Kept]) -> None:
    """Remove batches that nobody can use, and those that a process which has ended left unfinished.

    Another process may be using a batch that this one does not, so such a batch stays for an hour.
    """
    names = {kept.folder.name for kept in used}
    if not place.is_dir():
        return
    for folder in place.iterdir():
        if folder.name.startswith("batch-") and folder.name not in names:
            if _read(folder) is None or time.time() - folder.stat().st_mtime > STALE_S:
                shutil.rmtree(folder, ignore_errors=True)
        elif folder.name.startswith(UNFINISHED) and _is_abandoned(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: Path) -> bool:
    """Return whether the process that was writing a batch has ended.

    The folder may be shared with other machines, of whose processes nothing is known here.
    """
    owner = folder.name.removeprefix(UNFINISHED).partition("-")[0]
    pid, _, host = owner.partition("@")
    if not pid.isdigit():
        return False
    if host not in ("", _HOST):
        return time.time() - folder.stat().st_mtime > ABANDONED_S
    return not _runs(int(pid))


def _runs(pid: int) -> bool:
    with suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
    return True


def known_tail_s(moments: Moments) -> int:
    """Return the epoch second from which seconds are not complete at the end of these moments."""
    return int(moments.ended_ms[-1]) // 1000 - 1 if len(moments) else 0


def known_head_s(moments: Moments) -> int:
    """Return the first complete epoch second of these moments."""
    return -(-int(moments.ended_ms[0]) // 1000) if len(moments) else 0
