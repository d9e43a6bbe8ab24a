"""A recording as a Spark stream, read while it is being written: rows of `kview.pipeline.packed.PACKED`.

An offset is the number of the last observation that was read, which is valid for streams and Parquet alike.

Spark starts a process for each step of a source, so imports that only the reading step needs are made there.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.types import StructType

from kview.pipeline.packed import PACKED

if TYPE_CHECKING:
    import pyarrow as pa

    from kview.recording.reader import Recording


class RecordingSource(DataSource):
    """The data source `spark.readStream.format("kview")`.

    Options are `path` and `after`, the number of the last observation to skip (−1: none).
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "kview"

    def schema(self) -> StructType:
        """Return the schema, which is always the same."""
        return PACKED

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:
        """Return the reader. "Simple" is Spark's term for a stream read by a single process."""
        return _Coming(self.options["path"], int(self.options["after"]))


class _Coming(SimpleDataSourceStreamReader):
    def __init__(self, path: str, after: int) -> None:
        self._path, self._after = path, after
        self._recording: Recording | None = None

    def initialOffset(self) -> dict[str, int]:
        return {"sequence": self._after}

    def read(self, start: dict[str, int]) -> "tuple[Iterator[pa.RecordBatch], dict[str, int]]":
        from kview.pipeline.reading import next_rows, pack
        from kview.recording.reader import Recording

        if self._recording is None:
            self._recording = Recording.open(self._path)
        else:
            self._recording.refresh()
        batches, last = next_rows(self._recording, start["sequence"])
        return map(pack, batches), {"sequence": last}

    def readBetweenOffsets(self, start: dict[str, int], end: dict[str, int]) -> "Iterator[pa.RecordBatch]":
        from kview.pipeline.reading import pack, rows, up_to
        from kview.recording.reader import Recording

        for batches in Recording.open(self._path).delta_batches(start["sequence"]):
            yield from map(pack, rows(up_to(batches, end["sequence"])))
