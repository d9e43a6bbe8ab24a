"""Finds recordings in folders and by patterns, and says what they are of, without reading what they hold."""

import glob
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from kview.errors import BadUse, ErrorFacts, ErrorKind, KviewError
from kview.model.units import UNKNOWN
from kview.recording.damage import damage_in
from kview.recording.manifest import Manifest, SegmentEntry, read_manifest
from kview.recording.names import MANIFEST
from kview.recording.ring import find_recording
from kview.recording.schema import STREAM
from kview.recording.segment import STREAM_FILE, stream_ends


@dataclass(frozen=True, slots=True)
class Listed:
    """A recording as its manifest tells of it."""

    folder: Path
    version: int = 0
    clusters: tuple[str, ...] = ()
    """The ids of the clusters that were observed, in order, as far as they are known."""
    began_ms: int = UNKNOWN
    """The ends of the first and of the last observation, in epoch ms; UNKNOWN if there is none."""
    ended_ms: int = UNKNOWN
    observations: int = 0
    segments: int = 0
    size_bytes: int = 0
    is_open: bool = False
    """Whether the last segment is open: the recording goes on, or its writer was killed."""
    """Whether it has the parts of `kview.recording.fact_schema`."""
    error: ErrorFacts | None = None
    """Why it cannot be read; None if it can, as far as this was looked at."""


def list_recordings(paths: Iterable[str]) -> list[Listed]:
    """Return the recordings that `find_recordings` finds, in the order in which they began.

    Recordings that cannot be read are listed with the reason. Raises BadUse if one of the paths stands for no
    recording.
    """
    return sorted(map(_listed, find_recordings(paths)), key=lambda listed: (listed.began_ms, listed.folder))


def find_recordings(paths: Iterable[str], state: Path | None = None) -> list[Path]:
    """Return the folders of the recordings that paths stand for, each of them once.

    A path is a recording's folder, a folder with recordings somewhere in it, or a pattern (`**` stands for
    any number of folders). If the user's folder `state` is given, it may also be the name under which a
    recording was kept. Raises BadUse if one of the paths stands for no recording.
    """
    by_resolved: dict[Path, Path] = {}
    for path in paths:
        folders = list(_folders(path))
        if not folders:
            if state is None:
                raise BadUse(ErrorKind.NOT_A_RECORDING, name=path)
            folders = [find_recording(path, state)]
        for folder in folders:
            by_resolved.setdefault(folder.resolve(), folder)
    return list(by_resolved.values())


def _folders(path: str) -> Iterator[Path]:
    """Yield the folders with a manifest under a path, whose name may contain what looks like a pattern."""
    starts = [path] if os.path.exists(path) else glob.iglob(path, recursive=True)
    for start in starts:
        for folder, below, files in os.walk(start):
            if MANIFEST in files:
                yield Path(folder)
                below.clear()
            # Names with a dot are of copies that are not complete yet.
            below[:] = sorted(name for name in below if not name.startswith("."))


def _listed(folder: Path) -> Listed:
    try:
        return _told(folder, read_manifest(folder))
    except KviewError as error:
        return Listed(folder, error=error.facts)
    except FileNotFoundError:  # the ring dropped what the manifest told of
        return Listed(folder, error=KviewError(ErrorKind.NOTHING_RECORDED, folder=str(folder)).facts)


def _told(folder: Path, manifest: Manifest) -> Listed:
    began, ended, clusters, count, size = [], [], list[str](), 0, 0
    for entry in manifest.segments:
        if entry.closed:
            first_ms, last_ms, number = entry.began_ms, entry.ended_ms, _number(entry)
            of, bytes_ = entry.clusters, entry.size_bytes
        else:
            first_ms, last_ms, number, of = _open(folder / entry.folder)
            stream = folder / entry.folder / STREAM_FILE
            bytes_ = stream.stat().st_size if stream.exists() else 0
        if number:
            began.append(first_ms)
            ended.append(last_ms)
        clusters += [cluster for cluster in of if cluster not in clusters]
        count, size = count + number, size + bytes_
    return Listed(
        folder,
        version=manifest.version,
        clusters=tuple(clusters),
        began_ms=min(began, default=UNKNOWN),
        ended_ms=max(ended, default=UNKNOWN),
        observations=count,
        segments=len(manifest.segments),
        size_bytes=size,
        is_open=bool(manifest.segments) and not manifest.segments[-1].closed,
    )


def _number(entry: SegmentEntry) -> int:
    return entry.last_sequence + 1 - entry.first_sequence


def _open(folder: Path) -> tuple[int, int, int, tuple[str, ...]]:
    """Return the ends of the first and the last observation of an open segment, their number, and the
    clusters of these two."""
    try:
        with damage_in(folder):
            count, batches = stream_ends(folder / STREAM_FILE, STREAM)
            seen = [batch.column("observations") for batch in batches]
            for rows in seen:
                rows.validate(full=True)
            observations = [rows.flatten() for rows in seen]
            times = [int(rows.field("ended_ms")[0].as_py()) for rows in observations]
            clusters = dict.fromkeys(str(rows.field("cluster_id")[0].as_py()) for rows in observations)
    except FileNotFoundError:  # it has been closed or dropped since the manifest was read
        return UNKNOWN, UNKNOWN, 0, ()
    if not times:
        return UNKNOWN, UNKNOWN, 0, ()
    return times[0], times[-1], count, tuple(cluster for cluster in clusters if cluster)
