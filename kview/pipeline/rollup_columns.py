"""Columns of kept roll-ups, read on this machine where they are few enough for its memory."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kview.model.snapshot import Longs
from kview.pipeline.kept import Kept
from kview.pipeline.periods import Share

MOST_ROWS = 6_000_000
"""The most rows of roll-ups that are read here. A column of them takes 48 MB."""

MOST_OPEN = 100
"""The most files that stay open while columns are read. Often a process may open only 256 of them."""


def batches_of(counted: Sequence[Share]) -> list[tuple[Share, Kept]]:
    """Return the batches of all shares."""
    return [(share, batch) for share in counted for batch in share.rolled.batches]


def files_of(batch: Kept, table: str) -> list[Path]:
    """Return the files of a batch's table."""
    return sorted((batch.folder / table).glob("*.parquet"))


def rows_of(counted: Sequence[Share], tables: Sequence[str]) -> int:
    """Return the number of rows of these tables, from the ends of their files. Raises OSError."""
    return sum(
        pq.read_metadata(path).num_rows
        for _, batch in batches_of(counted)
        for table in tables
        for path in files_of(batch, table)
    )


class Columns:
    """A table's rows that count: the columns of all batches one after the other.

    `kept` has the indices of each batch's rows that count. `words` are read as codes of one sorted list.
    """

    def __init__(self, counted: Sequence[Share], table: str, time: str, minute_s: int = 1) -> None:
        """Choose the rows whose `time` (epoch s) is within the seconds of their share, or within those of its
        first minute."""
        self._batches = batches_of(counted)
        self._files = [_Files(files_of(batch, table)) for _, batch in self._batches]
        number = 0
        for files in self._files:
            number += len(files)
            files.stay_open = number <= MOST_OPEN
        self._kept: list[Longs] = []
        times, owners = [], []
        for at, (share, _) in enumerate(self._batches):
            its = self._files[at].column(time).to_numpy()
            first_s = share.seconds.from_s // minute_s * minute_s
            kept = np.flatnonzero((its >= first_s) & (its < share.seconds.until_s))
            self._kept.append(kept)
            times.append(its[kept])
            owners.append(np.full(len(kept), at, np.int32))
        self.times: Longs = np.concatenate(times)
        self.owners = np.concatenate(owners)
        """The place of each row's batch in `batches_of`."""

    def keep(self, mask: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> None:
        """Leave out the rows that are not in a mask."""
        ends = np.cumsum([len(kept) for kept in self._kept])[:-1]
        masks = np.split(mask, ends)
        self._kept = [kept[its] for kept, its in zip(self._kept, masks, strict=True)]
        self.times, self.owners = self.times[mask], self.owners[mask]

    def numbers(self, name: str, null: int = 0) -> Longs:
        """Return a column of integers or flags."""
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

    def __init__(self, counted: Sequence[Share], table: str, names: Sequence[str]) -> None:
        """Read the columns `names`. There has to be a row."""
        owners, parts = [], []
        for at, (_, batch) in enumerate(batches_of(counted)):
            for path in files_of(batch, table):
                # Each file is opened once: many recordings have many small files.
                file = pq.ParquetFile(path, page_checksum_verification=True)
                parts.append(file.read(columns=list(names)))
                owners.append(np.full(len(parts[-1]), at, np.int64))
        self.table = pa.concat_tables(parts)
        self.owners: Longs = np.concatenate(owners)
        """The place of each row's batch in `batches_of`."""

    def __len__(self) -> int:
        return len(self.owners)

    def keep(self, mask: "np.ndarray[tuple[int], np.dtype[np.bool_]]") -> None:
        """Leave out the rows that are not in a mask."""
        if not mask.all():
            self.table, self.owners = self.table.filter(pa.array(mask)), self.owners[mask]

    def numbers(self, name: str, null: int = 0) -> Longs:
        """Return a column of integers or flags."""
        column = self.table[name].cast(pa.int64())
        found: Longs = pc.fill_null(column, null).to_numpy()
        return found

    def known(self, name: str) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
        """Return which rows have a value."""
        found: np.ndarray[tuple[int], np.dtype[np.bool_]] = self.table[name].is_valid().to_numpy()
        return found

    def words(self, name: str) -> tuple[Longs, list[str]]:
        """Return a column of strings as `Columns.words` does."""
        return _coded([(np.arange(len(self)), self.table[name])])


def matching(names: Sequence[str], pattern: str) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Return which names match, all if there is no pattern."""
    found = re.compile(pattern)
    return np.array([found.search(name) is not None for name in names], np.bool_)


class _Files:
    """The files of a batch's table, of which columns are read one after the other.

    Those that `stay_open` are opened once. The ends of the others, which say where the columns are, are read
    once.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._open: list[pq.ParquetFile] = []
        self._ends: list[pq.FileMetaData | None] = [None] * len(paths)
        self.stay_open = False

    def __len__(self) -> int:
        return len(self._paths)

    def column(self, name: str) -> pa.ChunkedArray:
        """Return a column. Raises OSError."""
        parts = [file.read(columns=[name], use_threads=False)[name] for file in self._opened()]
        return pa.chunked_array([chunk for part in parts for chunk in part.chunks], parts[0].type)

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
    names = sorted({name for one in lists for name in one if name is not None})
    places = {name: at for at, name in enumerate(names)}
    found = []
    for (kept, column), one in zip(coded, lists, strict=True):
        codes = [pc.fill_null(chunk.indices.cast(pa.int64()), -1).to_numpy() for chunk in column.chunks]
        whole = np.concatenate(codes) if codes else np.empty(0, np.int64)
        to = np.array([*(places[name] for name in one), -1], np.int64)
        found.append(to[whole][kept])
    return np.concatenate(found), names
