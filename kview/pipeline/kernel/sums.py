"""Sums of what rows have in seconds and minutes.

The partitions of a topic add up to the topic, because their minutes are sums of the same shares of the same
seconds.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from kview.pipeline.kernel.pieces import Rows
from kview.pipeline.kernel.splitting import Shares, Split
from kview.pipeline.kernel.tables import AT_END, HOTTEST_SHIFT, PEAK_SHIFT, PRODUCTS, SPREAD, STATES
from kview.pipeline.kernel.words import Index, Longs, near


class _Cells:
    """The combinations of a time and a group of rows that shares are about. `groups` are numbered from 0."""

    def __init__(self, shares: Sequence[Shares], groups: Index) -> None:
        count = sum(len(share.second) for share in shares)
        base = min((int(share.second.min()) for share in shares if len(share.second)), default=0)
        last = max((int(share.second.max()) for share in shares if len(share.second)), default=-1)
        self._size = (last - base + 1) * groups.count
        self._at = [(share.second - base) * groups.count + groups.at[share.at] for share in shares]
        if self._size <= 4 * count + 1_000:
            there = np.zeros(self._size, np.bool_)
            for at in self._at:
                there[at] = True
            self._there = keys = np.flatnonzero(there)
        else:
            keys, inverse = np.unique(np.concatenate(self._at), return_inverse=True)
            ends = np.cumsum([0, *map(len, self._at)]).tolist()
            self._at = [inverse[begin:end] for begin, end in pairwise(ends)]
            self._size, self._there = len(keys), np.arange(len(keys))
        self.second: Longs = keys // groups.count + base
        self.example: Longs = groups.example[keys % groups.count]
        """A row of each."""

    def sums(self, columns: Sequence[Longs | None]) -> Longs:
        """Return the sums of a column of each of the shares, in their order; None stands for zeros."""
        sums = np.zeros(self._size, np.int64)
        for at, values in zip(self._at, columns, strict=True):
            if values is not None:
                np.add.at(sums, at, values)
        return sums[self._there]

    def most(self, columns: Sequence[Longs | None]) -> Longs:
        """Return the greatest value of a column of each of the shares, at least −1."""
        most = np.full(self._size, -1, np.int64)
        for at, values in zip(self._at, columns, strict=True):
            if values is not None:
                np.maximum.at(most, at, values)
        return most[self._there]


def by_topic(rows: Rows, split: Split) -> tuple[Rows, dict[str, Longs]]:
    """Return sums by second, topic, leader, rack, group and whether it is internal: a row that has these
    names for each, and the columns."""
    shares = (split.first, split.last, split.rest)
    keys = (rows.topic + 1, near(rows.leader), rows.rack + 1, rows.group + 1, rows.internal)
    cells = _Cells(shares, Index(*keys))
    names = (*SPREAD, "active_ms", *AT_END)
    columns = {name: _sums(cells, shares, name) for name in (*names, *(f"{state}_ms" for state in STATES))}
    columns["centibytes"] = _products(cells, shares, "records", rows)
    columns["hottest"] = cells.most([_joined(share, HOTTEST_SHIFT, rows.partition) for share in shares])
    columns["topic_partitions"] = cells.most([rows.topic_partitions[share.at] for share in shares])
    columns["second"] = cells.second
    return rows.take(cells.example), columns


def by_partition(
    rows: Rows, split: Split, head_s: int, tail_s: int
) -> tuple[Longs, Longs, Mapping[str, Longs]]:
    """Return sums by minute, topic and partition: topics, partitions, and the columns of MINUTES that are
    not 0 everywhere.

    The rows must be those of partitions.
    """
    shares = split.by_slot(tail_s, head_s)
    cells = _Cells(shares, Index(rows.topic, rows.partition))
    names = {
        **{"records_in": "records", "truncated": "fell", "records_in_gap": "in_gap"},
        **{name: name for name in ("replicated", "cross_rack", "active_ms")},
        **{f"{name}_ms": f"{name}_ms" for name in STATES},
    }
    columns = {name: _sums(cells, shares, of) for name, of in names.items()}
    columns |= {name: _products(cells, shares, of, rows) for name, of in PRODUCTS.items()}
    columns = {name: values for name, values in columns.items() if values.any()}
    began_s = rows.began_ms // 1000
    columns["peak"] = cells.most([_joined(share, 1 << PEAK_SHIFT, began_s) for share in shares])
    columns["slot"], columns["internal"] = cells.second, rows.internal[cells.example]
    return rows.topic[cells.example], rows.partition[cells.example], columns


def _sums(cells: _Cells, shares: Sequence[Shares], name: str) -> Longs:
    return cells.sums([share.sums.get(name) for share in shares])


def _products(cells: _Cells, shares: Sequence[Shares], name: str, rows: Rows) -> Longs:
    """Return the sums of a column in hundredths of bytes."""
    centibytes = rows.number("record_centibytes")
    return cells.sums(
        [share.sums[name] * centibytes[share.at] if name in share.sums else None for share in shares]
    )


def _joined(shares: Shares, scale: int, lower: Longs) -> Longs | None:
    """Return the rates with what counts if they are equal, in one number; −1 where there is no rate."""
    if shares.rates is None:
        return None
    joined: Longs = shares.rates * scale + lower[shares.at]
    joined[shares.rates < 0] = -1
    return joined
