"""Rolls up segments: what a task of Spark's does with some of them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from kview.pipeline.kernel.summing import Scope, Summing, write_part

ROWS_AT_ONCE = 250_000
"""The rows that are worked on at once, with what is calculated of them about 150 MB."""

LOCAL = "local"
"""`fs.FileSystem.type_name` of this machine's files."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A closed segment: its number, the folder by which people know it, its file system, and the paths of its
    files by part."""

    number: int
    address: str
    system: fs.FileSystem
    paths: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RollUp:
    """Segments that become a part of a batch.

    `deltas` are the columns that are read of each part of a segment that is rolled up, `facts` those of each
    part that is kept as it is.
    """

    batch: int
    """The batch, by a number that is the driver's."""
    part: int
    folder: Path
    scope: Scope
    deltas: Mapping[str, pa.Schema]
    facts: Mapping[str, pa.Schema]
    segments: Sequence[Segment]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A segment that turned out to be damaged or gone. `reason` is None if it is gone; `is_store` says that
    its store did not answer."""

    batch: int
    number: int
    file: str
    reason: str | None
    is_store: bool = False


class _Unreadable(Exception):
    def __init__(self, file: str, reason: str | None, is_store: bool = False) -> None:
        super().__init__(file, reason)
        self.file, self.reason, self.is_store = file, reason, is_store


def roll_up(task: Sequence[RollUp]) -> Iterator[Unreadable]:
    """Roll up segments into parts of the tables of batches.

    Segments that cannot be read are yielded, all of a part's, of which nothing is written then. Raises
    OSError if the tables cannot be written.
    """
    for work in task:
        yield from _roll_up(work)


def _roll_up(work: RollUp) -> Iterator[Unreadable]:
    summing = Summing(work.scope)
    facts: dict[str, list[pa.Table]] = {name: [] for name in work.facts}
    is_whole = True
    for segment in work.segments:
        try:
            for batch in _deltas(segment, work.deltas):
                summing.add(batch)
            for name, schema in work.facts.items():
                if (file := _opened(segment, name)) is not None:
                    rows = list(_read(segment, name, file, schema.names))
                    facts[name].append(pa.Table.from_batches(rows, file.schema_arrow).cast(schema))
        except _Unreadable as error:
            is_whole = False
            yield Unreadable(work.batch, segment.number, error.file, error.reason, error.is_store)
    if is_whole:
        summing.write(work.folder, work.part)
        for name, tables in facts.items():
            if some := [table for table in tables if len(table)]:
                write_part(pa.concat_tables(some), work.folder / name, work.part)


def _deltas(segment: Segment, deltas: Mapping[str, pa.Schema]) -> Iterator[pa.RecordBatch]:
    for part, wanted in deltas.items():
        words = [field.name for field in wanted if pa.types.is_string(field.type)]
        if (file := _opened(segment, part, words)) is not None:
            yield from _read(segment, part, file, wanted.names)


def _opened(segment: Segment, part: str, words: Sequence[str] = ()) -> pq.ParquetFile | None:
    """Open a part of a segment, if it has one. Raises _Unreadable."""
    if part not in segment.paths:
        return None
    path = segment.paths[part]
    content: pa.Buffer | None = None
    if segment.system.type_name != LOCAL:
        # What goes wrong while bytes come from a store says nothing about the bytes.
        try:
            with segment.system.open_input_stream(path) as stream:
                content = pa.py_buffer(stream.read())
        except FileNotFoundError:
            raise _Unreadable(_address(segment, part), None) from None
        except OSError as error:
            raise _Unreadable(segment.address, str(error), is_store=True) from None
    with _damage_in(segment, part):
        end = pq.read_metadata(path if content is None else pa.BufferReader(content))
        # A column that is not there, in a recording of an older version, cannot be a dictionary.
        there = end.schema.to_arrow_schema().names
        return pq.ParquetFile(
            path if content is None else pa.BufferReader(content),
            metadata=end,
            read_dictionary=[name for name in words if name in there],
            page_checksum_verification=True,
        )


def _read(
    segment: Segment, part: str, file: pq.ParquetFile, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    with _damage_in(segment, part):
        columns = [name for name in file.schema_arrow.names if name in names]
        batches = file.iter_batches(ROWS_AT_ONCE, columns=columns, use_threads=False)
    while True:
        with _damage_in(segment, part):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


@contextmanager
def _damage_in(segment: Segment, part: str) -> Iterator[None]:
    """Turn any exception into _Unreadable: damaged bytes can cause any."""
    try:
        yield
    except FileNotFoundError:
        raise _Unreadable(_address(segment, part), None) from None
    except Exception as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _Unreadable(_address(segment, part), said.partition("\n")[0] or type(error).__name__) from error


def _address(segment: Segment, part: str) -> str:
    return f"{segment.address}/{part}.parquet"
