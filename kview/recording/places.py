"""Folders of recordings: on this machine, or in a store that pyarrow can read (`s3://`, `gs://`, `hdfs://`)."""

import hashlib
import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from kview.errors import BadUse, ClusterUnreachable, ErrorKind, KviewError
from kview.recording.manifest import Manifest, manifest_of, read_manifest
from kview.recording.names import MANIFEST
from kview.recording.upload import CHUNK_BYTES, ENDPOINT, hidden_secrets, reason_of, without_secrets

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")

_READ_AS = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}
"""Scheme → what pyarrow calls it."""

_NEED_HADOOP = ("hdfs", "viewfs")
"""Schemes that pyarrow reads through Hadoop's own library."""

MOST_FOLDERS = 1_000_000
"""The most folders of a store that are searched for recordings, each of which takes two requests."""

_log = logging.getLogger(__name__)

_LOCAL = fs.LocalFileSystem()


@dataclass(frozen=True, slots=True)
class Place:
    """A folder that is, or may be, a recording."""

    address: str
    """What people see: a path, or a URL without user, password and options."""
    system: fs.FileSystem
    path: str
    """The folder in that file system."""
    url: str = ""
    """The URL as it was given, with its secrets; '' on this machine."""

    @classmethod
    def of(cls, folder: Path) -> "Place":
        """Return the place of a folder on this machine."""
        return cls(str(folder.absolute()), _LOCAL, str(folder.absolute()))

    @property
    def is_remote(self) -> bool:
        """Whether the folder is in a store."""
        return bool(self.url)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.rstrip("/").rpartition("/")[2] or self.address

    @property
    def identity(self) -> str:
        """A name of 16 letters and digits that no other folder has."""
        if self.url:
            store = dict(parse_qsl(urlsplit(self.url).query)).get(ENDPOINT, "")
            whole = f"{_READ_AS.get(scheme_of(self.url), scheme_of(self.url))}://{store}/{self.path}".encode()
        else:
            whole = os.fsencode(Path(self.path).resolve())
        return hashlib.sha256(whole).hexdigest()[:16]

    def __truediv__(self, name: str) -> "Place":
        """Return the folder or file of that name in this folder."""
        url = self.url and f"{self.url.partition('?')[0].rstrip('/')}/{name}{_options(self.url)}"
        return Place(f"{self.address.rstrip('/')}/{name}", self.system, f"{self.path}/{name}", url)

    def files(self) -> dict[str, int]:
        """Return the sizes in bytes of the files in this folder by their names.

        Raises KviewError, and FileNotFoundError if there is no such folder.
        """
        return {info.base_name: info.size for info in self._listed() if info.is_file}

    def folders(self) -> list[str]:
        """Return the names of the folders in this one, sorted. Raises like `files`."""
        return sorted(info.base_name for info in self._listed() if info.type is fs.FileType.Directory)

    def has(self, name: str) -> bool:
        """Return whether there is such a file in this folder. Raises KviewError."""
        with troubles_of(self):
            return bool(self.system.get_file_info(f"{self.path}/{name}").is_file)

    def _listed(self) -> list[fs.FileInfo]:
        with troubles_of(self):
            return list(self.system.get_file_info(fs.FileSelector(self.path)))

    def manifest(self) -> Manifest:
        """Read the manifest. Raises KviewError if there is none that this version understands."""
        if not self.is_remote:
            return read_manifest(Path(self.path))
        try:
            text = self.read(MANIFEST)
        except FileNotFoundError as error:
            raise BadUse(ErrorKind.NOT_A_RECORDING, name=self.address) from error
        return manifest_of(text, self.address, f"{self.address}/{MANIFEST}")

    def read(self, name: str) -> bytes:
        """Return the content of a file of this folder. Raises KviewError and FileNotFoundError."""
        with troubles_of(self), self.system.open_input_stream(f"{self.path}/{name}") as stream:
            return bytes(stream.read())

    def fetch(self, name: str, folder: Path) -> Path:
        """Copy a file of this folder to one on this machine. Raises KviewError, OSError if it cannot be
        written, and FileNotFoundError if it is gone."""
        with troubles_of(self / name):
            source = self.system.open_input_stream(f"{self.path}/{name}")
        with source, (folder / name).open("wb") as target:
            while True:
                with troubles_of(self / name):
                    chunk = source.read(CHUNK_BYTES)
                if not chunk:
                    return folder / name
                target.write(chunk)


def _options(url: str) -> str:
    _, mark, options = url.partition("?")
    return mark + options


def scheme_of(path: str) -> str:
    """Return the scheme of a URL, '' for a path."""
    scheme = _URL.match(path)
    return scheme[1].lower() if scheme else ""


def local_path(url: str) -> str:
    """Return the path of a `file://` URL."""
    return unquote(urlsplit(url).path)


def open_place(url: str) -> Place:
    """Return a folder in a store.

    Raises BadUse if the URL is wrong or needs what is not installed, ClusterUnreachable if the store does not
    answer.
    """
    scheme = scheme_of(url)
    rest = url.partition("://")[2]
    read_as = _READ_AS.get(scheme, scheme)
    address = without_secrets(f"{scheme}://{rest}").rstrip("/")
    try:
        system, path = fs.FileSystem.from_uri(f"{read_as}://{rest}")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise BadUse(ErrorKind.NOT_A_STORE, url=address, reason=reason_of(error)) from None
    except OSError as error:
        if read_as in _NEED_HADOOP:
            raise BadUse(ErrorKind.STORE_NEEDS_HADOOP, url=address) from None
        raise ClusterUnreachable(ErrorKind.STORE_UNREACHABLE, url=address, reason=reason_of(error)) from None
    return Place(address, system, path.rstrip("/"), url)


def find_places(url: str) -> list[Place]:
    """Return the recordings that a URL stands for: a recording, a folder with recordings somewhere in it, or
    a pattern in which `*` stands for any part of a name and `**` for any number of folders.

    Raises BadUse if there is none.
    """
    address, options = url.partition("?")[0], _options(url)
    start, star, pattern = address.partition("*")
    if star:
        start, _, begun = start.rpartition("/")
        pattern = f"{begun}*{pattern}"
    matching = _matching(pattern.rstrip("/"))
    places = [
        place
        for below, place in _recordings_below(open_place(start + options))
        if not pattern or matching.match(below)
    ]
    if not places:
        raise BadUse(ErrorKind.NOT_A_RECORDING, name=without_secrets(url))
    return places


def _recordings_below(start: Place) -> Iterator[tuple[str, Place]]:
    """Yield the recordings in and below a folder, each with its path from there, which ends with a slash."""
    waiting = [("", start)]
    for _ in range(MOST_FOLDERS):
        if not waiting:
            return
        below, place = waiting.pop()
        if place.has(MANIFEST):
            yield below, place
            continue
        with suppress(FileNotFoundError):
            waiting += [(f"{below}{name}/", place / name) for name in reversed(place.folders())]


def _matching(pattern: str) -> re.Pattern[str]:
    """Return what matches the folders that a pattern names, and those below them."""
    parts = [
        "(?:[^/]+/)*" if part == "**" else re.escape(part).replace(r"\*", "[^/]*") + "/"
        for part in pattern.split("/")
    ]
    return re.compile("".join(parts))


@contextmanager
def troubles_of(place: Place) -> Iterator[None]:
    """Turn what a store answers into KviewError: it cannot be reached, or refuses access.

    FileNotFoundError is not changed. Files on this machine raise OSError as ever.
    """
    try:
        yield
    except (KviewError, FileNotFoundError):
        raise
    except OSError as error:
        if not place.is_remote:
            raise
        _log.warning("%s cannot be read: %s", place.address, hidden_secrets(str(error), place.url))
        raise ClusterUnreachable(
            ErrorKind.STORE_UNREACHABLE, url=place.address, reason=reason_of(error)
        ) from None
