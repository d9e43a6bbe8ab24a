"""The files of a segment: streams while the segment is open, Parquet once it is closed.

A stream is an Arrow IPC stream. Each record batch of the first one is one complete observation
(`schema.STREAM`). Each part of facts has a stream of its own, with a batch of rows for each observation that
adds any, written after the observation itself. Every batch is appended with a single write. A kill or a full
disk can only leave an incomplete last batch, which readers ignore.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from kview.errors import BadUse, ErrorKind
from kview.recording.columns import NAMES, Cells, interned
from kview.recording.damage import check_regular, damage_in
from kview.recording.fact_schema import FACTS
from kview.recording.manifest import sync_folder
from kview.recording.schema import CLOSED_NUMBERS, PARTS, STREAM, STREAMED

STREAM_FILE = "observations.arrows"
STREAM_FILES = (STREAM_FILE, *(f"{part}.arrows" for part in FACTS))
"""The names of all streams of an open segment."""

CELLS = ("numbers", "words")
"""The parts that hold cells."""

ROW_GROUP_ROWS = 4_000_000
"""The most rows per row group: a limit on what is decoded at once from the largest segments."""

SORTED_ROWS = 250_000
"""Cells are sorted, compressed and written whenever there are this many, with all the cells of their columns:
one row group for most segments. All at once take 250 MB with 39,000 partitions."""

ZSTD_LEVEL, SMALL_ZSTD_LEVEL, SMALL_ROWS = 9, 19, 200_000
"""The highest compression level takes ten times as long and saves a tenth of the size. So it is used only up
to this many rows, where it takes a second at most."""


def whole_batches(
    path: Path, begin: int = 0, schema: pa.Schema = STREAM
) -> Iterator[tuple[pa.RecordBatch, int]]:
    """Yield the complete batches of a stream, each with the position after it.

    `begin` is a position between two batches (0: all). Stops at the first incomplete batch. Raises
    FileNotFoundError, KviewError if the file is not a regular one, and pa.ArrowInvalid for a batch that is
    damaged: without the check, Arrow reads beyond the end of the memory where an offset was changed.
    """
    check_regular(path)
    if path.stat().st_size <= begin:
        return
    with pa.memory_map(str(path)) as file:
        file.seek(begin)
        while True:
            try:
                message = pa.ipc.read_message(file)
            except (EOFError, pa.ArrowInvalid, OSError):
                return
            if message.type != "schema":
                batch = pa.ipc.read_record_batch(message, schema)
                batch.validate(full=True)
                yield batch, file.tell()


def stream_ends(path: Path, schema: pa.Schema) -> tuple[int, list[pa.RecordBatch]]:
    """Return the number of complete batches of a stream, and the first and the last of them.

    The others are not read, so this is quick for a stream of any size. The batches are not checked. Raises
    FileNotFoundError and KviewError as `whole_batches` does.
    """
    check_regular(path)
    count, first, last = 0, None, None
    if not path.stat().st_size:
        return 0, []
    with pa.memory_map(str(path)) as file:
        while True:
            try:
                message = pa.ipc.read_message(file)
            except (EOFError, pa.ArrowInvalid, OSError):
                break
            if message.type != "schema":
                count, last = count + 1, message
                first = first or message
        return count, [pa.ipc.read_record_batch(message, schema) for message in (first, last) if message]


def stream_batches(path: Path) -> list[pa.RecordBatch]:
    """Return all complete batches of a stream. Raises FileNotFoundError."""
    return [batch for batch, _ in whole_batches(path)]


def part_of(batches: list[pa.RecordBatch], part: str, parts: Mapping[str, pa.Schema] = PARTS) -> pa.Table:
    """Return the rows of one part in these batches, in their order."""
    arrays = [pa.RecordBatch.from_struct_array(batch.column(part).flatten()) for batch in batches]
    return pa.Table.from_batches(arrays, parts[part]) if arrays else parts[part].empty_table()


def fact_stream(folder: Path, part: str) -> Path:
    """Return the path of the stream of a part of facts. A part without rows has none."""
    return folder / f"{part}.arrows"


def fact_rows(folder: Path, part: str, last_sequence: int) -> pa.Table:
    """Return the rows of one part of facts in an open segment, as they were written.

    Rows after `last_sequence` are left out: their observation has been lost. Raises FileNotFoundError if the
    segment is gone or has been closed, KviewError if the file is not a regular one, and pa.ArrowInvalid if it
    is damaged.
    """
    schema = FACTS[part]
    try:
        batches = [batch for batch, _ in whole_batches(fact_stream(folder, part), 0, schema)]
    except FileNotFoundError:
        if not (folder / STREAM_FILE).exists():
            raise
        batches = []
    table = pa.Table.from_batches(batches, schema)
    return table.filter(pc.less_equal(table["sequence"], last_sequence))


def parquet_file(folder: Path, part: str) -> Path:
    """Return the path of a part's file in a closed segment. A part without rows has no file."""
    return folder / f"{part}.parquet"


def parquet_part(
    folder: Path,
    part: str,
    size_bytes: int,
    parts: Mapping[str, pa.Schema] = PARTS,
    columns: tuple[str, ...] = (),
) -> pa.Table:
    """Return all rows of one part of a closed segment, in the order of the file.

    With `columns`, only those are read, and words come dictionary-encoded.

    `size_bytes` is the size of all parts together, which shows whether a missing file means a part without
    rows or damage. Numbers come as CLOSED_NUMBERS, words dictionary-encoded. Raises KviewError if the file is
    damaged, FileNotFoundError if the segment is gone.
    """
    path = parquet_file(folder, part)
    schema = CLOSED_NUMBERS if part == "numbers" else parts[part]
    try:
        check_regular(path)
        with damage_in(path):
            coded = ["value"] if part == "words" else [name for name in columns if _is_text(schema, name)]
            file = pq.ParquetFile(
                path, memory_map=True, read_dictionary=coded, page_checksum_verification=True
            )
            if columns:
                return file.read(columns=list(columns))
            return file.read() if part == "words" else file.read().cast(schema)
    except FileNotFoundError:
        there = sum(file.stat().st_size for name in parts if (file := parquet_file(folder, name)).exists())
        if not folder.is_dir():
            raise
        if there < size_bytes:
            raise BadUse(ErrorKind.FILE_MISSING, file=str(path)) from None
        empty = schema.empty_table()
        return empty.select(list(columns)) if columns else empty


def _is_text(schema: pa.Schema, name: str) -> bool:
    return bool(pa.types.is_string(schema.field(name).type))


def cells(table: pa.Table) -> Cells:
    """Convert rows of NUMBERS or WORDS to cells. For CLOSED_NUMBERS, `change` becomes the value."""
    arrays: dict[str, Any] = {name: table[name].to_numpy() for name in ("column", "row", "sequence")}
    values = table[table.num_columns - 1]
    if pa.types.is_string(values.type):
        values = values.dictionary_encode()
    if pa.types.is_dictionary(values.type):
        coded = values.combine_chunks()
        coded = coded.unify_dictionaries().chunk(0) if isinstance(coded, pa.ChunkedArray) else coded
        spelt = np.array([*interned(coded.dictionary.to_pylist()), None], object)
        arrays["value"] = spelt[coded.indices.to_numpy()]
    else:
        arrays["value"] = values.to_numpy()
    return Cells(**arrays)


def write_closed(folder: Path, sorted_rows: int = SORTED_ROWS) -> int:
    """Write the streams of `folder` as Parquet files, flush them to disk, and return their size in bytes.

    `sorted_rows` is the number of cells that are sorted together. Raises OSError.
    """
    batches = stream_batches(folder / STREAM_FILE)
    last = batches[-1].column("observations").flatten().field("sequence")[-1].as_py() if batches else -1
    size = 0
    for part in PARTS:
        table = part_of(batches, part) if part in STREAMED else fact_rows(folder, part, last)
        if len(table):
            path = parquet_file(folder, part)
            _write_parquet(part, _row_groups(part, table, sorted_rows), path, len(table))
            size += path.stat().st_size
    sync_folder(folder)
    return size


def _row_groups(part: str, table: pa.Table, sorted_rows: int) -> Iterator[pa.Table]:
    """Yield the rows to write together.

    Cells are sorted by position, so that the values of one position are adjacent. Other parts stay unchanged.
    """
    if part not in CELLS:
        yield table.combine_chunks()
        return
    pieces = [batch for batch in table.to_batches() if len(batch)]
    numbers = [piece.column("column").to_numpy() for piece in pieces]
    counts = np.sum([np.bincount(each, minlength=len(NAMES)) for each in numbers], axis=0)
    first = 0
    for end in range(1, len(NAMES) + 1):
        if counts[first:end].sum() < (sorted_rows if end < len(NAMES) else 1):
            continue
        bounds = [np.searchsorted(each, (first, end)) for each in numbers]
        slices = [piece.slice(a, b - a) for piece, (a, b) in zip(pieces, bounds, strict=True)]
        yield _in_order(part, pa.Table.from_batches(slices, table.schema))
        first = end


def _in_order(part: str, table: pa.Table) -> pa.Table:
    # The sort is stable, so that the values of one position stay in the order of moments.
    order = np.argsort(_places(table), kind="stable")
    table = table.take(pa.array(order)).combine_chunks()
    return _with_changes(table) if part == "numbers" else table


def _places(table: pa.Table) -> NDArray[np.int64]:
    places: NDArray[np.int64] = (table["column"].to_numpy().astype(np.int64) << 32) + table["row"].to_numpy()
    return places


def _first_of_place(table: pa.Table) -> NDArray[np.bool_]:
    first = np.ones(len(table), np.bool_)
    places = _places(table)
    first[1:] = places[1:] != places[:-1]
    return first


def _with_changes(table: pa.Table) -> pa.Table:
    values = table["value"].to_numpy()
    change = values - np.where(_first_of_place(table), 0, np.r_[0, values[:-1]])
    arrays = [*table.columns[:-1], pa.array((change << 1) ^ (change >> 63))]
    return pa.Table.from_arrays(arrays, schema=CLOSED_NUMBERS)


def differences(change: NDArray[np.int64]) -> NDArray[np.int64]:
    """Decode the values of CLOSED_NUMBERS to differences."""
    sign = change & 1
    np.negative(sign, out=sign)
    sign ^= (change.view(np.uint64) >> np.uint64(1)).view(np.int64)
    return sign


def _encoding(part: str, field: pa.Field) -> str:
    """Return the Parquet encoding of a column.

    Columns that other programs read are plain, because those programs may not support anything else.
    """
    if field.name in ("column", "row", "sequence", "observed_ms") or part == "observations":
        return "DELTA_BINARY_PACKED"
    return "BYTE_STREAM_SPLIT" if field.name == "change" else "PLAIN"


def _write_parquet(part: str, row_groups: Iterator[pa.Table], path: Path, rows: int) -> None:
    """Write and flush the file of a part, which has so many rows. Raises OSError."""
    schema = CLOSED_NUMBERS if part == "numbers" else PARTS[part]
    try:
        with pq.ParquetWriter(
            path,
            schema,
            compression="zstd",
            compression_level=SMALL_ZSTD_LEVEL if rows < SMALL_ROWS else ZSTD_LEVEL,
            use_dictionary=[f.name for f in schema if pa.types.is_string(f.type)],
            column_encoding={f.name: _encoding(part, f) for f in schema if pa.types.is_integer(f.type)},
            write_statistics=["sequence"] if "sequence" in schema.names else False,
            store_schema=False,
            write_page_checksum=True,
        ) as writer:
            for row_group in row_groups:
                writer.write_table(row_group, ROW_GROUP_ROWS)
    except BaseException:
        with suppress(OSError):
            path.unlink()  # it has a footer, as if it were complete
        raise
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def news(table: pa.Table, after_sequence: int) -> pa.RecordBatch:
    """Return the rows of moments after `after_sequence`, as one batch in the order of moments."""
    kept = table.filter(pc.greater(table["sequence"], after_sequence)).combine_chunks()
    batches = kept.to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)
