"""Columns of kept roll-ups and facts, those rows of them that count."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kview.pipeline.kernel.words import Bools, Longs

FigureRows = list[dict[str, Any]]
"""Rows of a figure, by the names of their columns."""

MOST_OPEN = 100
"""The most files that stay open while columns are read. Often a process may open only 256 of them."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What counts of a batch: its folder, the cluster, the number of the recording, the epoch seconds from
    `from_s` to before `until_s`, and those before `out_until_s`, whose records out are settled."""

    folder: str
    cluster: str
    recording: int
    from_s: int
    until_s: int
    out_until_s: int


@dataclass(frozen=True, slots=True)
class Names:
    """A range of names, from `first` to before `end` (None: no end), because all of them would not fit into a
    task's memory."""

    first: str = ""
    end: str | None = None

    @property
    def are_all(self) -> bool:
        """Whether every name is in the range."""
        return not self.first and self.end is None

    def may_be_in(self, group: pq.RowGroupMetaData, column: str) -> bool:
        """Return whether a row group may have such names in a column."""
        at = next(n for n in range(group.num_columns) if group.column(n).path_in_schema == column)
        statistics = group.column(at).statistics
        if self.are_all or statistics is None or not statistics.has_min_max:
            return True
        return bool(statistics.max >= self.first and (self.end is None or statistics.min < self.end))


ALL = Names()


def files_of(batch: Counted, table: str) -> list[Path]:
    """Return the files of a batch's table."""
    return sorted(Path(batch.folder, table).glob("*.parquet"))


class Columns:
    """A table's rows that count: the columns of all batches one after the other.

    `kept` has the indices of each batch's rows that count. `words` are read as codes of one sorted list.
    """

    def __init__(
        self, batches: Sequence[Counted], table: str, time: str, named: str, names: Names, minute_s: int = 1
    ) -> None:
        """Choose the rows whose word in the column `named` is one of `names`, and whose `time` (epoch s) is
        within the seconds that count of their batch, or within those of its first minute."""
        self._files = [_Files(files_of(batch, table), named, names) for batch in batches]
        number = 0
        for files in self._files:
            number += len(files)
            files.stay_open = number <= MOST_OPEN
        self._kept: list[Longs] = []
        times, owners = [], []
        for at, batch in enumerate(batches):
            seconds = self._files[at].column(time).to_numpy()
            counts = (seconds >= batch.from_s // minute_s * minute_s) & (seconds < batch.until_s)
            if not names.are_all:
                counts &= _in_range(self._files[at].column(named), names)
            kept = np.flatnonzero(counts)
            self._kept.append(kept)
            times.append(seconds[kept])
            owners.append(np.full(len(kept), at, np.int32))
        self.times: Longs = np.concatenate(times)
        self.owners = np.concatenate(owners)
        """The place of each row's batch."""

    def keep(self, mask: Bools) -> None:
        """Leave out the rows that are not in a mask. It has the rows of all batches, in their order."""
        ends = np.cumsum([len(kept) for kept in self._kept])[:-1]
        masks = np.split(mask, ends)
        self._kept = [kept[part_mask] for kept, part_mask in zip(self._kept, masks, strict=True)]
        self.times, self.owners = self.times[mask], self.owners[mask]

    def numbers(self, name: str, null: int = 0) -> Longs:
        """Read a column of integers or flags, with `null` where a row has no value."""
        return np.concatenate(
            [
                pc.fill_null(column.cast(pa.int64()), null).to_numpy()[kept]
                for kept, column in self._each(name)
            ]
        )

    def words(self, name: str) -> tuple[Longs, list[str]]:
        """Return a column of strings as indices into a list of all of them in order, −1 for null."""
        return _coded([(kept, column) for kept, column in self._each(name)])

    def hottest(self) -> tuple[Longs, Longs, list[str], Longs]:
        """Return the rates of `hottest` (−1 for none), the topics with their names, and the partitions."""
        rates, topics, partitions = [], [], []
        for kept, column in self._each("hottest"):
            rate, topic, partition = (pc.struct_field(column, at) for at in range(3))
            rates.append(pc.fill_null(rate, -1).to_numpy()[kept])
            topics.append((kept, topic))
            partitions.append(pc.fill_null(partition.cast(pa.int64()), -1).to_numpy()[kept])
        codes, names = _coded(topics)
        return np.concatenate(rates), codes, names, np.concatenate(partitions)

    def _each(self, name: str) -> Iterator[tuple[Longs, pa.ChunkedArray]]:
        for kept, files in zip(self._kept, self._files, strict=True):
            yield kept, files.column(name)


class FactRows:
    """The rows of a table of facts in all batches, with some of its columns."""

    def __init__(
        self, batches: Sequence[Counted], table: str, columns: Sequence[str], named: str, names: Names
    ) -> None:
        """Read `columns` of the rows whose word in the column `named` is one of `names`."""
        owners, parts = [], []
        for at, batch in enumerate(batches):
            for path in files_of(batch, table):
                # Each file is opened once: many recordings have many small files.
                file = pq.ParquetFile(path, page_checksum_verification=True)
                rows = file.read(columns=list(columns), use_threads=False)
                if not names.are_all:
                    rows = rows.filter(pa.array(_in_range(rows[named], names)))
                parts.append(rows)
                owners.append(np.full(len(rows), at, np.int64))
        self.table = pa.concat_tables(parts)
        self.owners: Longs = np.concatenate(owners)
        """The place of each row's batch."""

    def __len__(self) -> int:
        return len(self.owners)

    def keep(self, mask: Bools) -> None:
        """Leave out the rows of `table` and `owners` that are not in a mask."""
        if not mask.all():
            self.table, self.owners = self.table.filter(pa.array(mask)), self.owners[mask]

    def numbers(self, name: str, null: int = 0) -> Longs:
        """Return a column of `table`, of integers or flags, with `null` where a row has no value."""
        column = self.table[name].cast(pa.int64())
        numbers: Longs = pc.fill_null(column, null).to_numpy()
        return numbers

    def known(self, name: str) -> Bools:
        """Return which rows have a value."""
        is_valid: Bools = self.table[name].is_valid().to_numpy()
        return is_valid

    def words(self, name: str) -> tuple[Longs, list[str]]:
        """Return a column of strings as `Columns.words` does."""
        return _coded([(np.arange(len(self)), self.table[name])])


def matching(names: Sequence[str], pattern: str) -> Bools:
    """Return which names match, all if there is no pattern."""
    compiled = re.compile(pattern)
    return np.array([compiled.search(name) is not None for name in names], np.bool_)


def _in_range(column: pa.ChunkedArray, names: Names) -> Bools:
    """Return which of a column's words are in a range."""
    mask = pc.fill_null(pc.greater_equal(column, names.first), False)
    if names.end is not None:
        mask = pc.and_(mask, pc.fill_null(pc.less(column, names.end), False))
    is_in: Bools = mask.to_numpy()
    return is_in


class _Files:
    """The files of a batch's table, of which columns are read one after the other: those row groups that may
    have some names.

    Those that `stay_open` are opened once. The ends of the others, which say where the columns are, are read
    once.
    """

    def __init__(self, paths: Sequence[Path], named: str, names: Names) -> None:
        self._paths = paths
        self._named, self._names = named, names
        self._open: list[pq.ParquetFile] = []
        self._ends: list[pq.FileMetaData | None] = [None] * len(paths)
        self.stay_open = False

    def __len__(self) -> int:
        return len(self._paths)

    def column(self, name: str) -> pa.ChunkedArray:
        """Read a column of the row groups that may have the names. Raises OSError."""
        parts = [
            file.read_row_groups(self._groups(file.metadata), columns=[name], use_threads=False)[name]
            for file in self._opened()
        ]
        return pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)

    def _groups(self, end: pq.FileMetaData) -> list[int]:
        every = range(end.num_row_groups)
        if self._names.are_all:
            return list(every)
        return [at for at in every if self._names.may_be_in(end.row_group(at), self._named)]

    def _opened(self) -> Iterator[pq.ParquetFile]:
        if self._open:
            yield from self._open
            return
        for at, path in enumerate(self._paths):
            file = pq.ParquetFile(path, metadata=self._ends[at], page_checksum_verification=True)
            self._ends[at] = file.metadata
            if self.stay_open:
                self._open.append(file)
            yield file


def _coded(columns: Sequence[tuple[Longs, pa.ChunkedArray]]) -> tuple[Longs, list[str]]:
    coded = [(kept, column.dictionary_encode().unify_dictionaries()) for kept, column in columns]
    lists = [column.chunk(0).dictionary.to_pylist() if column.num_chunks else [] for _, column in coded]
    names = sorted({name for words in lists for name in words if name is not None})
    places = {name: at for at, name in enumerate(names)}
    codes = []
    for (kept, column), words in zip(coded, lists, strict=True):
        chunks = [pc.fill_null(chunk.indices.cast(pa.int64()), -1).to_numpy() for chunk in column.chunks]
        whole = np.concatenate(chunks) if chunks else np.empty(0, np.int64)
        to = np.array([*(places[name] for name in words), -1], np.int64)
        codes.append(to[whole][kept])
    return np.concatenate(codes), names
