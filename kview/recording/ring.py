"""The flight recorder, which stores the last hour within a size limit, and recordings kept under a name."""

import fcntl
import os
import re
import shutil
import threading
from contextlib import suppress
from pathlib import Path

from kview.derive.facts import Facts
from kview.errors import BadUse, ErrorKind, KviewError
from kview.model.snapshot import Snapshot
from kview.recording.manifest import SegmentEntry, read_manifest, write_manifest
from kview.recording.names import MANIFEST, flight_folder, kept_folder, kept_names
from kview.recording.segment import STREAM_FILES
from kview.recording.writer import RecordingWriter

RING_BYTES = 512 << 20
"""Size limit for a run's recording of a cluster and earlier ones, small enough for a laptop's disk."""

RING_MS = 3_600_000
"""One hour, so that you still see what happened during your lunch break."""

EARLIER_RUNS = 3
"""Limit of flight recordings of earlier runs, which remain to show what happened before a crash."""

LOCK = "lock"

_changing = threading.RLock()
"""Held while a folder is made and locked, and while others are removed: the clusters of this run share the
folders of earlier ones."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


def find_recording(name: str, state: Path) -> Path:
    """Return the folder of a recording, given by its path or by the name it was kept under. Raises BadUse."""
    kept: tuple[str, ...] = ()
    at = Path(name)
    try:
        for at in (Path(name), kept_folder(state) / name):
            if (at / MANIFEST).is_file():
                return at
        kept = kept_names(state)
    except OSError as error:
        raise BadUse(
            ErrorKind.NO_MANIFEST, folder=str(at), file=MANIFEST, reason=error.strerror or str(error)
        ) from error
    if kept:
        raise BadUse(ErrorKind.NOT_A_KEPT_RECORDING, name=name, kept=kept)
    raise BadUse(ErrorKind.NOT_A_RECORDING, name=name)


class FlightRecorder:
    """Records into a ring in `state`/flight. `run` is a name that no other run has."""

    def __init__(
        self, state: Path, run: str, *, limit_bytes: int = RING_BYTES, limit_ms: int = RING_MS
    ) -> None:
        """Start a ring in a new folder. Raises RecordingStopped if the folder cannot be written."""
        self._state = state
        self._limit_bytes = limit_bytes
        self._limit_ms = limit_ms
        self.folder = flight_folder(state) / run
        with _changing:
            self._writer = RecordingWriter(self.folder)
            # Locked while this process lives. If another process can take the lock, this run has ended.
            self._lock = _locked(self.folder)
            self._make_room(0)

    @property
    def segments(self) -> tuple[SegmentEntry, ...]:
        """The segments in the ring, oldest first."""
        return self._writer.segments

    def append(self, snapshot: Snapshot, facts: Facts | None = None) -> None:
        """Record one observation with its facts, and drop what exceeds the limits. Raises
        RecordingStopped."""
        before = len(self._writer.segments)
        self._writer.append(snapshot, facts)
        if len(self._writer.segments) != before:
            self._make_room(snapshot.observation.ended_ms)

    def close(self) -> None:
        """End the recording.

        The open segment stays a stream, because compressing it would delay the end of the run.
        """
        self._writer.abandon()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def keep(self, name: str) -> Path:
        """Keep the ring's content as a recording of that name, and return its folder.

        Raises BadUse or OSError.
        """
        return keep(self.folder, name, self._state)

    def _make_room(self, now_ms: int) -> None:
        with _changing:
            self._remove_what_exceeds(now_ms)

    def _remove_what_exceeds(self, now_ms: int) -> None:
        earlier = _ended_runs(self.folder)
        runs = list(dict.fromkeys(map(_run_of, earlier)))[:EARLIER_RUNS]
        for folder in earlier:
            if _run_of(folder) not in runs:
                shutil.rmtree(folder, ignore_errors=True)
        earlier = [folder for folder in earlier if _run_of(folder) in runs]
        closed = [entry for entry in self._writer.segments if entry.closed]
        forgotten = [entry for entry in closed if now_ms - entry.ended_ms > self._limit_ms]
        mine = self._writer.stream_bytes + sum(entry.size_bytes for entry in closed if entry not in forgotten)
        sizes = [_size(folder) for folder in earlier]
        while earlier and mine + sum(sizes) > self._limit_bytes:
            shutil.rmtree(earlier.pop(), ignore_errors=True)
            sizes.pop()
        for entry in closed:
            if entry not in forgotten and mine > self._limit_bytes:
                forgotten.append(entry)
                mine -= entry.size_bytes
        self._forget(tuple(forgotten))

    def _forget(self, entries: tuple[SegmentEntry, ...]) -> None:
        if entries:
            self._writer.forget(entries)
            for entry in entries:
                # Renamed first, so that a reader finds a segment either complete or not at all.
                going = self.folder / f".{entry.folder}"
                os.rename(self.folder / entry.folder, going)
                shutil.rmtree(going, ignore_errors=True)


def of_cluster(folder: Path, state: Path) -> list[Path]:
    """Return the other flight recordings of the cluster that is recorded in `folder`, the latest first.

    Raises KviewError or OSError.
    """
    mine = _clusters(folder)
    flights = flight_folder(state)
    others = [each for each in flights.iterdir() if each != folder] if flights.is_dir() else []
    dated = []
    for other in others:
        with suppress(KviewError, OSError):  # another run removes it, or an older version wrote it
            if _clusters(other) == mine:
                dated.append((other.stat().st_mtime, other))
    return [other for _, other in sorted(dated, reverse=True)] if mine else []


def _clusters(folder: Path) -> set[str]:
    return {cluster for entry in read_manifest(folder).segments for cluster in entry.clusters}


def keep(folder: Path, name: str, state: Path) -> Path:
    """Keep the recording in `folder`, which may still be in progress, under a name, and return its folder.

    Closed files are hard links, so they take no extra space until the ring drops them. Raises BadUse,
    KviewError or OSError.
    """
    if not NAME.fullmatch(name):
        raise BadUse(ErrorKind.NOT_A_RECORDING_NAME, name=name)
    target = kept_folder(state) / name
    if target.exists():
        raise BadUse(ErrorKind.RECORDING_NAME_TAKEN, name=name, folder=str(target))
    manifest = read_manifest(folder)
    unfinished = target.with_name(f".{name}.{os.getpid()}")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        for entry in manifest.segments:
            _copy_segment(folder / entry.folder, unfinished / entry.folder, entry.closed)
        write_manifest(unfinished, manifest)
        os.rename(unfinished, target)
    except OSError:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return target


def _copy_segment(source: Path, target: Path, closed: bool) -> None:
    target.mkdir(parents=True)
    for path in source.iterdir():
        if closed and path.suffix == ".parquet":
            try:
                os.link(path, target / path.name)
            except OSError:
                shutil.copyfile(path, target / path.name)
        elif not closed and path.name in STREAM_FILES:
            shutil.copyfile(path, target / path.name)


def _locked(folder: Path) -> int:
    """Lock a run's folder, and return the descriptor that holds the lock. Raises OSError."""
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _run_of(folder: Path) -> str:
    """Return the run of kview that a folder is of, which may be one of several clusters':
    `RUN-PID-CLUSTER`."""
    return "-".join(folder.name.split("-")[:2])


def _ended_runs(mine: Path) -> list[Path]:
    """Return the folders of other runs that have ended, latest first."""
    out = []
    for folder in mine.parent.iterdir():
        if folder == mine:
            continue
        try:
            os.close(_locked(folder))
            out.append((folder.stat().st_mtime, folder))
        except OSError:  # it is locked, or another run has removed it
            continue
    return [folder for _, folder in sorted(out, reverse=True)]


def _size(folder: Path) -> int:
    """Return how many bytes a folder has, as far as nobody removes it meanwhile."""
    size = 0
    for path, _, files in os.walk(folder):
        for file in files:
            with suppress(OSError):
                size += os.stat(os.path.join(path, file)).st_size
    return size


__all__ = ["FlightRecorder", "find_recording", "keep", "kept_folder"]
