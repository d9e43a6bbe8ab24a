"""The rows of the tables of partitions and replicas: the content of Metadata as columns."""

import sys
from collections.abc import Sequence
from functools import cached_property
from itertools import chain, pairwise
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace
from numpy.typing import NDArray

from kview.model.snapshot import Flags, IdMatrix, Ids, Longs, Strings
from kview.model.units import NO_BROKER
from kview.wire.metadata import Topics

Rows = NDArray[np.intp]


class Layout(Struct, frozen=True, dict=True):
    """Rows of partitions by topic and partition, and rows of replicas in the order of the replica lists.

    `topic_number` numbers the topics in order, and `place` is that number and the partition in one. `first`
    maps each topic to its first row and the row after its last row.
    """

    topic: Strings
    partition: Ids
    topic_id: Strings
    internal: Flags
    leader: Ids
    leader_epoch: Ids
    replicas: IdMatrix
    isr: IdMatrix
    offline: IdMatrix
    error_code: Ids
    topic_number: Ids
    place: Longs
    replica_row: Ids
    replica_topic: Strings
    replica_partition: Ids
    replica_broker: Ids
    first: dict[str, tuple[int, int]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.topic)

    def led_by(self, broker: int) -> frozenset[tuple[str, int, int]]:
        """Return the (topic, partition, leader epoch) of the partitions that a broker leads."""
        if broker not in self._led:
            rows = np.flatnonzero(self.leader == broker)
            columns = (self.topic[rows], self.partition[rows].tolist(), self.leader_epoch[rows].tolist())
            self._led[broker] = frozenset(zip(*columns, strict=True))
        return self._led[broker]

    @cached_property
    def _led(self) -> dict[int, frozenset[tuple[str, int, int]]]:
        """What brokers lead, as far as somebody has asked: each observation asks it of every silent one."""
        return {}

    def rows_of(self, topics: Sequence[str], counts: Sequence[int], partitions: Ids) -> Rows:
        """Return the row of each partition, −1 if there is none. The first `counts[0]` of `partitions` are of
        the first topic, and so on."""
        if not len(self):
            return np.full(len(partitions), -1, np.intp)
        starts = np.fromiter((self.first.get(topic, (-1, -1))[0] for topic in topics), np.intp, len(topics))
        numbers = np.where(starts >= 0, self.topic_number[starts], -1)
        wanted = places(np.repeat(numbers, counts), partitions)
        rows = np.minimum(np.searchsorted(self.place, wanted), len(self) - 1)
        return np.where(self.place[rows] == wanted, rows, -1).astype(np.intp)

    def rows_at(self, topics: Strings, partitions: Ids) -> Rows:
        """Return the row of each (topic, partition), −1 if there is none. Quick if equal topics stand
        together."""
        begins = np.flatnonzero(np.r_[True, topics[1:] != topics[:-1]][: len(topics)])
        counts = np.diff(begins, append=len(topics))
        return self.rows_of(topics[begins].tolist(), counts.tolist(), partitions)

    def replica_rows_of(self, broker: int, rows: Rows) -> Rows:
        """Return the rows of `broker`'s replicas of these partition rows, with −1 where it has none."""
        held = np.flatnonzero(self.replica_broker == broker)
        if not len(held):
            return np.full(len(rows), -1, np.intp)
        of = self.replica_row[held]
        candidates = np.minimum(np.searchsorted(of, rows), len(held) - 1)
        return np.where(of[candidates] == rows, held[candidates], -1).astype(np.intp)

    def by_topic(self, rows: Rows) -> list[tuple[str, Ids]]:
        """Convert ascending partition rows to (topic, partitions)."""
        if not len(rows):
            return []
        begins = np.flatnonzero(np.diff(self.topic_number[rows], prepend=-1))
        names, partitions = self.topic[rows[begins]].tolist(), self.partition[rows]
        bounds = pairwise((*begins.tolist(), len(rows)))
        return [(name, partitions[begin:end]) for name, (begin, end) in zip(names, bounds, strict=True)]


def places(topic_numbers: Ids, partitions: Ids) -> Longs:
    """Return the number of a topic and the number of a partition in one, which is in their order."""
    return topic_numbers.astype(np.int64) * 2**32 + partitions


def matrix(lists: Sequence[Sequence[int]]) -> IdMatrix:
    """Convert lists of ids to a matrix, padded with NO_BROKER on the right."""
    lengths = np.fromiter(map(len, lists), np.intp, len(lists))
    width = int(lengths.max(initial=0))
    out = np.full((len(lists), width), NO_BROKER, np.int32)
    out[np.arange(width) < lengths[:, None]] = np.fromiter(
        chain.from_iterable(lists), np.int32, int(lengths.sum())
    )
    return out


def strings(values: Sequence[str]) -> Strings:
    """Return interned strings as an object array."""
    out = np.empty(len(values), object)
    out[:] = [sys.intern(value) for value in values]
    return out


def layout(seen: Topics, previous: Layout | None) -> Layout:
    """Return the rows of an answer.

    A column that equals the same column of `previous` is the same array.
    """
    topics = sorted((t for t in seen.topics if t.count > 0), key=lambda t: t.name)
    partitions = [
        p
        for t in topics
        for p in sorted(seen.partitions[t.first : t.first + t.count], key=lambda p: p.partition)
    ]
    counts = np.array([t.count for t in topics], np.intp)
    ends = np.cumsum(counts)
    rows = len(partitions)
    replicas = matrix([p.replicas for p in partitions])
    replica_row, replica_place = np.nonzero(replicas != NO_BROKER)
    topic = np.repeat(strings([t.name for t in topics]), counts)
    partition = np.fromiter((p.partition for p in partitions), np.int32, rows)
    topic_number = np.repeat(np.arange(len(topics), dtype=np.int32), counts)
    new = Layout(
        topic=topic,
        partition=partition,
        topic_id=np.repeat(strings([t.topic_id for t in topics]), counts),
        internal=np.repeat(np.array([t.internal for t in topics], np.bool_), counts),
        leader=np.fromiter((p.leader for p in partitions), np.int32, rows),
        leader_epoch=np.fromiter((p.leader_epoch for p in partitions), np.int32, rows),
        replicas=replicas,
        isr=matrix([p.isr for p in partitions]),
        offline=matrix([p.offline for p in partitions]),
        error_code=np.fromiter((p.error for p in partitions), np.int32, rows),
        topic_number=topic_number,
        place=places(topic_number, partition),
        replica_row=replica_row.astype(np.int32),
        replica_topic=topic[replica_row],
        replica_partition=partition[replica_row],
        replica_broker=replicas[replica_row, replica_place],
        first={
            t.name: (int(end - count), int(end)) for t, count, end in zip(topics, counts, ends, strict=True)
        },
    )
    return new if previous is None else _shared(new, previous)


def _shared(new: Layout, previous: Layout) -> Layout:
    same: dict[str, Any] = {
        name: getattr(previous, name)
        for name in new.__struct_fields__
        if name != "first" and np.array_equal(getattr(new, name), getattr(previous, name))
    }
    return replace(new, **same)


def same_partitions(a: Layout, b: Layout) -> bool:
    """Return whether both layouts have the same partitions in the same rows.

    The topic incarnations must be the same, too.
    """
    return a.topic is b.topic and a.partition is b.partition and a.topic_id is b.topic_id


def same_replicas(a: Layout, b: Layout) -> bool:
    """Return whether both layouts have the same replicas in the same rows."""
    return same_partitions(a, b) and a.replicas is b.replicas


def old_rows(new: Layout, old: Layout) -> Rows:
    """Return each partition row's row in `old`, or −1 if the partition or topic incarnation is new."""
    rows = old.rows_at(new.topic, new.partition)
    there = np.flatnonzero(rows >= 0)
    rows[there[old.topic_id[rows[there]] != new.topic_id[there]]] = -1
    return rows


def old_replica_rows(new: Layout, old: Layout) -> Rows:
    """Return the row in `old` for each replica row of `new`, or −1 if there was none."""
    width = 1 + int(max(new.replica_broker.max(initial=0), old.replica_broker.max(initial=0)))
    partition_rows = old_rows(new, old)[new.replica_row]
    wanted = partition_rows.astype(np.int64) * width + new.replica_broker
    held = old.replica_row.astype(np.int64) * width + old.replica_broker
    if not len(held):
        return np.full(len(wanted), -1, np.intp)
    order = np.argsort(held, kind="stable")
    candidates = order[np.minimum(np.searchsorted(held[order], wanted), len(held) - 1)]
    return np.where((held[candidates] == wanted) & (partition_rows >= 0), candidates, -1).astype(np.intp)
