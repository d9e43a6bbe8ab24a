"""Alignment: which row of an earlier table corresponds to which row of a later one.

Everything that is carried from step to step is aligned here.
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kview.model.snapshot import Longs, Offsets, OldestUnread, Partitions, ShareOffsets

Scalar = TypeVar("Scalar", bound=np.generic)

MOST_LISTED = 10_000
"""Ids within a range of this size are looked up in an index with a place for each of them, which is several
times quicker than a binary search."""


class Alignment(Struct, frozen=True):
    """The earlier row of each row.

    `rows[i]` is the earlier row of row i, or −1 if the row is new. `rows` is None if every row stayed where
    it was.
    """

    rows: Longs | None
    size: int

    def carry(self, column: NDArray[Scalar], fill: Any) -> NDArray[Scalar]:
        """Return an earlier column in this step's rows, with `fill` in new rows. Never writes to `column`."""
        if self.rows is None:
            return column
        out = np.full((self.size, *column.shape[1:]), fill, column.dtype)
        known = self.rows >= 0
        out[known] = column[self.rows[known]]
        return out

    def known(self) -> NDArray[np.bool_]:
        """Return a mask of the rows that existed before."""
        return np.ones(self.size, np.bool_) if self.rows is None else self.rows >= 0


def same(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Return whether two columns are equal. Cheap if they are the same object."""
    return a is b or (a.shape == b.shape and bool(np.array_equal(a, b)))


def _map(before: Iterable[tuple[Any, ...]], now: Iterable[tuple[Any, ...]], size: int) -> Longs:
    """Return the row in `before` of each of the `size` keys in `now`, −1 if it is not there."""
    at = {key: row for row, key in enumerate(before)}
    if not at:
        return np.full(size, -1, np.int64)
    return np.fromiter((at.get(key, -1) for key in now), np.int64, size)


def align_partitions(before: Partitions, now: Partitions) -> Alignment:
    """Align partitions by topic and partition. If the topic id changed, the partition is a new one, because
    the topic was created again."""
    if same(before.topic, now.topic) and same(before.partition, now.partition):
        if same(before.topic_id, now.topic_id):
            return Alignment(None, len(now))
        rows = np.arange(len(now), dtype=np.int64)
    else:
        rows = _map(
            zip(before.topic, before.partition.tolist(), strict=True),
            zip(now.topic, now.partition.tolist(), strict=True),
            len(now),
        )
    ids_before = before.topic_id[rows] if len(before) else np.empty(len(now), object)
    other_id = (ids_before != now.topic_id) & (ids_before != "") & (now.topic_id != "")
    return Alignment(np.where(other_id, -1, rows), len(now))


def align_offsets(before: Offsets | OldestUnread, now: Offsets) -> Alignment:
    """Align offsets by group, topic and partition."""
    if (
        same(before.topic, now.topic)
        and same(before.partition, now.partition)
        and same(before.group, now.group)
    ):
        return Alignment(None, len(now))
    rows = _map(
        zip(before.group, before.topic, before.partition.tolist(), strict=True),
        zip(now.group, now.topic, now.partition.tolist(), strict=True),
        len(now),
    )
    return Alignment(rows, len(now))


def partition_rows(offsets: Offsets | ShareOffsets, partitions: Partitions) -> Longs:
    """Return the row of each offset's partition, −1 if there is no such partition."""
    return rows_at(partitions, offsets.topic, offsets.partition)


def rows_at(table: Partitions, topics: NDArray[Any], partitions: NDArray[Any]) -> Longs:
    """Return the row of each (topic, partition), −1 if there is none. Quick if equal topics stand together.

    As with `positions`, partitions that are not in ascending order may not be found.
    """
    if not len(topics):
        return np.empty(0, np.int64)
    first, last = runs(table.topic)
    numbers = {topic: number for number, topic in enumerate(table.topic[first].tolist())}
    begins, ends = runs(topics)
    asked = np.array([numbers.get(topic, -1) for topic in topics[begins].tolist()], np.int64)
    held = np.repeat(np.arange(len(first)), last - first) * 2**32 + table.partition
    return _searched(held, np.repeat(asked, ends - begins) * 2**32 + partitions)


def first_rows(column: NDArray[Any]) -> Longs:
    """Return the row at which each run of equal values begins."""
    if not len(column):
        return np.empty(0, np.int64)
    begins = np.ones(len(column), np.bool_)
    begins[1:] = column[1:] != column[:-1]
    return np.flatnonzero(begins)


def runs(column: NDArray[Any]) -> tuple[Longs, Longs]:
    """Return the first row of each run of equal values, and the row after its last one."""
    begins = first_rows(column)
    return begins, np.append(begins[1:], len(column))[: len(begins)]


def positions(ids: NDArray[Any], wanted: NDArray[Any]) -> Longs:
    """Return the index in `ids` of each of `wanted` (of any shape), −1 if it is not there.

    Ids that are not in ascending order, as only a damaged recording has them, may not be found.
    """
    if not len(ids):
        return np.full(wanted.shape, -1, np.int64)
    low, high = int(ids.min()), int(ids.max())
    if high - low < MOST_LISTED:
        index = np.full(high - low + 3, -1, np.int64)  # one more place at each end, for all other ids
        index[ids.astype(np.int64) - (low - 1)] = np.arange(len(ids))
        at: Longs = index[np.clip(wanted.astype(np.int64), low - 1, high + 1) - (low - 1)]
        return at
    return _searched(ids, wanted)


def _searched(ids: NDArray[Any], wanted: NDArray[Any]) -> Longs:
    if not len(ids):
        return np.full(wanted.shape, -1, np.int64)
    at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where(ids[at] == wanted, at, -1).astype(np.int64)


def first_that_holds(masks: Sequence[NDArray[np.bool_]], values: Sequence[int], otherwise: int) -> Longs:
    """Return for each row the value of the first mask that holds: `numpy.select`, without what its checks
    take."""
    chosen = np.full(masks[0].shape, otherwise, np.int64)
    for mask, value in zip(reversed(masks), reversed(values), strict=True):
        chosen[mask] = value
    return chosen


def among(column: NDArray[Any], wanted: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which values are among `wanted`, which often is empty."""
    return np.isin(column, wanted) if len(wanted) else np.zeros(column.shape, np.bool_)


def group_rows(names: NDArray[Any], of: NDArray[Any]) -> Longs:
    """Return the index in `names` of each group in `of` (sorted by group), −1 if it is not there."""
    if not len(of):
        return np.empty(0, np.int64)
    begins, ends = runs(of)
    if len(begins) == len(names) and bool((of[begins] == names).all()):  # each once, as mostly
        rows = np.arange(len(names))
    else:
        index = {name: row for row, name in enumerate(names)}
        rows = np.array([index.get(name, -1) for name in of[begins]], np.int64)
    return np.repeat(rows, ends - begins)


def take(column: NDArray[Scalar], rows: Longs, fill: Any) -> NDArray[Scalar]:
    """Return `column[rows]`, with `fill` for rows that are −1."""
    if not len(column):
        return np.full(rows.shape, fill, column.dtype)
    return np.where(rows >= 0, column[rows], np.asarray(fill, column.dtype))
