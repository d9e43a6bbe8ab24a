"""Keeps the user's choices for each cluster in a file of the state folder."""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from kview.errors import ErrorKind, KviewError
from kview.model.choices import KeptChoices

MOST_BYTES = 64 * 1024
"""Limit of the bytes read. Choices take less than 1 kB, so a larger file is damaged."""


class ChoiceFiles:
    """Implements `Memory` with one file for each cluster in `folder`. With `fresh`, nothing is recalled."""

    def __init__(self, folder: Path, fresh: bool) -> None:
        self._folder = folder
        self._fresh = fresh

    def recall(self, cluster_id: str) -> KeptChoices | None:
        """Return what was kept for a cluster, None if nothing was. Raises KviewError if it is damaged."""
        path = self._path(cluster_id)
        if self._fresh:
            return None
        try:
            with path.open("rb") as file:
                data = file.read(MOST_BYTES)
            return msgspec.json.decode(data, type=KeptChoices)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            raise KviewError(ErrorKind.CHOICES_DAMAGED, file=str(path)) from None

    def keep(self, cluster_id: str, choices: KeptChoices) -> None:
        """Keep choices for a cluster. The file is replaced as a whole. Raises KviewError."""
        path = self._path(cluster_id)
        draft = path.with_suffix(f".{os.getpid()}.new")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            draft.write_bytes(msgspec.json.encode(choices))
            draft.replace(path)
        except OSError as error:
            with suppress(OSError):
                draft.unlink()
            reason = error.strerror or str(error)
            raise KviewError(ErrorKind.CHOICES_NOT_KEPT, file=str(path), reason=reason) from None

    def _path(self, cluster_id: str) -> Path:
        """Return the file of a cluster, whose id may be anything."""
        return self._folder / f"{hashlib.sha256(cluster_id.encode()).hexdigest()[:24]}.json"
