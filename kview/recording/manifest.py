"""manifest.json: which segments a recording has, and which of them are closed. Written whole or not at
all."""

import os
from pathlib import Path

import msgspec

from kview.errors import ErrorKind, KviewError
from kview.recording.columns import NAMES
from kview.recording.names import MANIFEST
from kview.recording.schema import SCHEMA_VERSION


class SegmentEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=False):
    """A segment: its number, and, once it is closed, its observations (first and last, inclusive) and
    size."""

    number: int
    closed: bool = False
    first_sequence: int = 0
    last_sequence: int = -1
    began_ms: int = 0
    ended_ms: int = 0
    size_bytes: int = 0

    @property
    def folder(self) -> str:
        """The folder's name."""
        return f"seg-{self.number:06}"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """A recording's contents. `columns` says what its column numbers mean."""

    version: int = SCHEMA_VERSION
    columns: tuple[str, ...] = NAMES
    segments: tuple[SegmentEntry, ...] = ()


class _Version(msgspec.Struct):
    version: int


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a recording. Raises KviewError where there is none that this version understands."""
    try:
        text = (folder / MANIFEST).read_bytes()
    except OSError as error:
        raise KviewError(
            ErrorKind.NO_MANIFEST, folder=str(folder), file=MANIFEST, reason=error.strerror or str(error)
        ) from error
    try:
        version = msgspec.json.decode(text, type=_Version).version
        if version <= SCHEMA_VERSION:
            return msgspec.json.decode(text, type=Manifest)
    except msgspec.DecodeError as error:
        raise KviewError(ErrorKind.FILE_DAMAGED, file=str(folder / MANIFEST), reason=str(error)) from error
    raise KviewError(ErrorKind.RECORDING_TOO_NEW, folder=str(folder), version=version, newest=SCHEMA_VERSION)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Put the manifest in the place of the one before: a reader sees one of the two. Raises OSError."""
    write_whole(folder / MANIFEST, msgspec.json.encode(manifest))


def write_whole(path: Path, content: bytes) -> None:
    """Write a file so that at any moment there is the old content or the new one, also after a power cut.
    Raises OSError."""
    beside = path.with_suffix(path.suffix + ".new")
    descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        write_all(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.replace(beside, path)
    sync_folder(path.parent)


def write_all(descriptor: int, content: bytes | memoryview) -> None:
    """All of it, although a write may take a part only. Raises OSError."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync_folder(folder: Path) -> None:
    """Make the folder's names last. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
