"""manifest.json, which lists the segments of a recording and which of them are closed.

The file is always replaced completely.
"""

import os
from pathlib import Path

import msgspec

from kview.errors import ErrorKind, KviewError
from kview.recording.columns import NAMES
from kview.recording.damage import check_regular, damage_in
from kview.recording.names import MANIFEST
from kview.recording.schema import SCHEMA_VERSION


class SegmentEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """A segment: its number and, once closed, its first and last observation (inclusive) and its size.

    `clusters` has the ids of the clusters that were observed, as far as they are known; for an open segment
    the first one. Versions before 4 do not have it.
    """

    number: int
    closed: bool = False
    first_sequence: int = 0
    last_sequence: int = -1
    began_ms: int = 0
    ended_ms: int = 0
    size_bytes: int = 0
    clusters: tuple[str, ...] = ()

    @property
    def folder(self) -> str:
        """The name of the segment's folder."""
        return f"seg-{self.number:06}"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a recording. `columns` are the names that its column numbers stand for."""

    version: int = SCHEMA_VERSION
    columns: tuple[str, ...] = NAMES
    segments: tuple[SegmentEntry, ...] = ()

    def __post_init__(self) -> None:
        if sorted(self.columns) != sorted(NAMES):
            raise ValueError(f"its columns are not those of format {self.version}")
        if len({entry.number for entry in self.segments}) < len(self.segments):
            raise ValueError("a segment is listed twice")


class _Version(msgspec.Struct):
    version: int


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a recording.

    Raises KviewError if there is no manifest that this version understands.
    """
    try:
        check_regular(folder / MANIFEST)
        text = (folder / MANIFEST).read_bytes()
    except OSError as error:
        raise KviewError(
            ErrorKind.NO_MANIFEST, folder=str(folder), file=MANIFEST, reason=error.strerror or str(error)
        ) from error
    return manifest_of(text, str(folder), str(folder / MANIFEST))


def manifest_of(text: bytes, folder: str, file: str) -> Manifest:
    """Return the manifest that a file says. `folder` and `file` are for messages.

    Raises KviewError if this version does not understand it.
    """
    with damage_in(file):
        version = msgspec.json.decode(text, type=_Version).version
        if version == SCHEMA_VERSION:
            return msgspec.json.decode(text, type=Manifest)
    raise KviewError(ErrorKind.RECORDING_FORMAT, folder=folder, version=version, mine=SCHEMA_VERSION)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest.

    A reader sees either the old or the new manifest. Raises OSError.
    """
    write_whole(folder / MANIFEST, msgspec.json.encode(manifest))


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that at any time it has either its old or its new content, even after a power cut.

    Raises OSError.
    """
    new_path = path.with_suffix(path.suffix + ".new")
    descriptor = os.open(new_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)
    os.replace(new_path, path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Flush a folder's list of names to disk, so that new and renamed files survive a power cut. Raises
    OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
