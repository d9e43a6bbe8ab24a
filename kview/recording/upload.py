"""The upload of closed segments to another file system: `s3://…`, `hdfs://…`, `gs://…`, `file:///…`."""

import logging
import os
import re
import threading
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec
import pyarrow as pa
from pyarrow import fs

from kview.errors import BadUse, ErrorKind, KviewError
from kview.model.backoff import Backoff
from kview.model.notices import Notice, NoticeKind
from kview.recording.manifest import Manifest, SegmentEntry, read_manifest
from kview.recording.names import MANIFEST

FIRST_BACK_OFF_S, MAX_BACK_OFF_S = 1.0, 60.0
"""Limits of the pause after a failure, so that a store that is down for an hour is not tried a thousand
times."""

CHUNK_BYTES = 1 << 20

_SECRETS = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*://)?(?:[^/?#@:]*:[^?#]*@|[^/?#]*@)?([^?#]*).*", re.DOTALL)
"""The parts of a URL to keep: its scheme, and what is between user and options. A password may contain a
slash, so everything after `user:` up to the last `@` counts as the password."""

_STORE_ERROR = re.compile(r"AWS Error ([A-Z_]+)")
"""The name of the error that an S3 store answered, in Arrow's message."""

SECRETS_IN_ENVIRONMENT = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")

HARMLESS_OPTIONS = ("region", "scheme", "allow_bucket_creation", "allow_bucket_deletion")
ENDPOINT = "endpoint_override"
"""The option of a URL that is an address, which may have a user and a password, too."""

HIDDEN = "***"

_log = logging.getLogger(__name__)


def open_target(url: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a URL, and the folder on that file system. Raises BadUse."""
    try:
        system, path = fs.FileSystem.from_uri(url)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise BadUse(
            ErrorKind.NOT_AN_UPLOAD_TARGET, url=without_secrets(url), reason=reason_of(error)
        ) from None
    except OSError as error:
        raise BadUse(
            ErrorKind.UPLOAD_TARGET_UNREACHABLE, url=without_secrets(url), reason=reason_of(error)
        ) from None
    return system, path.rstrip("/")


def without_secrets(url: str) -> str:
    """Return the URL without user, password and options, for messages."""
    return _SECRETS.sub(r"\1\2", url)


def hidden_secrets(text: str, url: str) -> str:
    """Return a text without the secrets of a URL and of the environment, for the log.

    A store may repeat in its error what it was sent.
    """
    secrets = {os.environ.get(name, "") for name in SECRETS_IN_ENVIRONMENT} | _secrets_of(url)
    secrets |= {unquote(secret) for secret in secrets}
    for secret in sorted(secrets - {""}, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def _secrets_of(url: str) -> set[str]:
    """Return a URL's user and password, and the values of its options except for harmless ones."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return set()
    secrets = set(parts.netloc.rpartition("@")[0].split(":", 1))
    for name, value in parse_qsl(parts.query):
        if name == ENDPOINT:
            secrets |= set(value.rpartition("@")[0].rpartition("/")[2].split(":", 1))
        elif name not in HARMLESS_OPTIONS:
            secrets.add(value)
    return secrets


def reason_of(error: Exception) -> str:
    """Return why a store failed. The rest of Arrow's message is cut off, because it repeats the URL with
    its secrets."""
    if isinstance(error, KviewError):
        return error.kind
    if store := _STORE_ERROR.search(str(error)):
        return store[1].lower().replace("_", " ")
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return re.split("[:'\"\n]", said, maxsplit=1)[0].strip() or type(error).__name__


def upload_missing(folder: Path, system: fs.FileSystem, target: str, done: set[int]) -> int:
    """Upload the closed segments in `folder` whose numbers are not in `done`, and add those numbers to
    `done`.

    The manifest is uploaded after each segment, so that the target is a valid recording at any time. Returns
    the number of segments uploaded. Raises OSError or KviewError.
    """
    manifest = read_manifest(folder)
    missing = [entry for entry in manifest.segments if entry.closed and entry.number not in done]
    for entry in missing:
        _upload_segment(folder, entry, system, target)
        done.add(entry.number)
        there = Manifest(
            version=manifest.version,
            columns=manifest.columns,
            segments=tuple(e for e in manifest.segments if e.number in done),
        )
        with system.open_output_stream(f"{target}/{MANIFEST}") as out:
            out.write(msgspec.json.encode(there))
    return len(missing)


def _upload_segment(folder: Path, entry: SegmentEntry, system: fs.FileSystem, target: str) -> None:
    system.create_dir(f"{target}/{entry.folder}", recursive=True)
    for path in sorted((folder / entry.folder).glob("*.parquet")):
        with (
            path.open("rb") as source,
            system.open_output_stream(f"{target}/{entry.folder}/{path.name}") as out,
        ):
            while chunk := source.read(CHUNK_BYTES):
                out.write(chunk)


class Uploading:
    """Uploads the segments of a recording on its own daemon thread, and retries until all are uploaded."""

    def __init__(self, folder: Path, url: str, on_notice: Callable[[Notice], None]) -> None:
        """Prepare the upload to `url`. Raises BadUse if the URL is not valid."""
        self._folder = folder
        self._system, self._target = open_target(url)
        self._place = without_secrets(url)
        self._url = url
        self._on_notice = on_notice
        self._done: set[int] = set()
        self._failed = False
        self._more = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="upload", daemon=True)

    def start(self) -> None:
        """Start the thread that uploads segments, and return at once."""
        self._thread.start()

    def closed(self, folder: Path, entry: SegmentEntry) -> None:
        """Note that a segment was closed. Pass this method as `on_closed` of RecordingWriter."""
        del folder, entry
        self._more.set()

    def stop(self, within_s: float) -> bool:
        """Finish uploading closed segments within `within_s` seconds, and return whether everything was
        uploaded."""
        self._ending.set()
        self._more.set()
        self._thread.join(within_s)
        return not self._thread.is_alive() and not self._failed

    def _run(self) -> None:
        back_off = Backoff(FIRST_BACK_OFF_S, MAX_BACK_OFF_S)
        while True:
            self._more.wait(back_off.pause_s if self._failed else None)
            ending = self._ending.is_set()
            self._more.clear()
            try:
                upload_missing(self._folder, self._system, self._target, self._done)
            except (OSError, KviewError) as error:
                if self._failed:
                    back_off.failed()
                else:
                    back_off.reset()
                _log.warning("upload to %s failed: %s", self._place, hidden_secrets(str(error), self._url))
                if not self._failed:
                    why = {"place": self._place, "reason": reason_of(error)}
                    self._on_notice(Notice(NoticeKind.UPLOAD_FAILED, why))
                self._failed = True
            else:
                if self._failed:
                    self._on_notice(Notice(NoticeKind.UPLOADING_AGAIN, {"place": self._place}))
                self._failed = False
            if ending:
                return
