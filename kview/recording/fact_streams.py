"""The streams of an open segment that hold facts, one file per part. A part gets its file with its first
row."""

import os
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from kview.recording.manifest import write_all
from kview.recording.segment import fact_stream

FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
"""How streams are opened. What an earlier attempt left is removed before."""


class FactStreams:
    """Appends rows to the streams of the segment in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptors: dict[str, int] = {}

    def append(self, rows: Iterable[tuple[str, pa.RecordBatch]]) -> int:
        """Append batches of rows by the names of their parts, and return how many bytes. Raises OSError."""
        size = 0
        for part, batch in rows:
            descriptor = self._descriptors.get(part)
            if descriptor is None:
                descriptor = os.open(fact_stream(self._folder, part), FLAGS, 0o600)
                self._descriptors[part] = descriptor
                head = batch.schema.serialize()
                write_all(descriptor, memoryview(head))
                size += head.size
            message = batch.serialize()
            write_all(descriptor, memoryview(message))
            size += message.size
        return size

    def close(self) -> None:
        """Close the files, which stay as they are."""
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors = {}
