"""The groups that read each topic: how many there are, and which of them has the largest lag."""

from collections.abc import Sequence
from typing import NamedTuple, overload

import numpy as np
from msgspec import Struct

from kview.derive.align import first_rows, group_rows, partition_rows
from kview.derive.groups.verdicts import RANK, VERDICTS
from kview.derive.lookup import topic_row
from kview.derive.view import Floats, Verdict, View
from kview.model.snapshot import Flags, Longs, Strings
from kview.model.units import NO_OFFSET, UNKNOWN


class TopicReaders(Struct, frozen=True):
    """The readers of topics. The arrays have the rows of `View.topics`.

    Groups that are ignored or abandoned do not count, because nobody waits for them.
    """

    groups: Longs
    """The number of groups that committed offsets of the topic, own its partitions, or share its records."""
    worst: Longs
    """The row in `snapshot.groups` of the group with the largest known lag on the topic, −1 if none is
    known."""
    lag: Longs
    """That group's lag on the topic, in records."""
    lag_is_bound: Flags
    out_rate: Floats
    """Records per second that groups committed on the topic; NaN if not known or nobody reads it."""
    out_is_bound: Flags
    """Whether that leaves out groups: those whose rate is not known, and share groups, which commit
    nothing."""


class _Pairs(NamedTuple):
    """Pairs of a topic and a group that reads it, as rows of `View.topics` and of `snapshot.groups`."""

    topic: Longs
    group: Longs
    lag: Longs
    is_bound: Flags


def topic_readers(view: View) -> TopicReaders:
    """Return who reads each topic of a view."""
    topics = len(view.topics.topic)
    quiet = view.groups.ignored | np.asarray(view.groups.verdict == Verdict.ABANDONED, np.bool_)
    committing, sharing = _committing(view, quiet), _sharing(view, quiet)
    pairs = _Pairs(
        np.append(committing.topic, sharing.topic),
        np.append(committing.group, sharing.group),
        np.append(committing.lag, sharing.lag),
        np.append(committing.is_bound, sharing.is_bound),
    )
    groups = np.bincount(pairs.topic, minlength=topics).astype(np.int64)
    worst, lag = np.full(topics, -1, np.int64), np.full(topics, UNKNOWN, np.int64)
    is_bound = np.zeros(topics, np.bool_)
    known = np.flatnonzero(pairs.lag != UNKNOWN)
    order = known[np.lexsort((view.groups.place[pairs.group[known]], -pairs.lag[known], pairs.topic[known]))]
    first = order[first_rows(pairs.topic[order])]
    worst[pairs.topic[first]] = pairs.group[first]
    lag[pairs.topic[first]] = pairs.lag[first]
    is_bound[pairs.topic[first]] = pairs.is_bound[first]
    return TopicReaders(groups, worst, lag, is_bound, *topic_out_rates(view))


def _topic_of(view: View, partition_rows: Longs) -> Longs:
    """Return the rows in `View.topics` of these rows of `snapshot.partitions`."""
    return np.searchsorted(view.topics.first_row, partition_rows, side="right").astype(np.int64) - 1


def _committing(view: View, quiet: Flags) -> _Pairs:
    """Return the lag on each topic of each group that commits."""
    table, figures = view.snapshot.offsets, view.offsets
    group = group_rows(view.snapshot.groups.group, table.group)
    missing = (figures.lag == UNKNOWN) & (table.committed != NO_OFFSET)
    is_bound = missing | figures.lag_is_bound
    return _summed(view, quiet, group, figures.partition_row, figures.lag, is_bound)


def _sharing(view: View, quiet: Flags) -> _Pairs:
    """Return the backlog on each topic of each share group."""
    table = view.snapshot.share_offsets
    group = group_rows(view.snapshot.groups.group, table.group)
    partition = partition_rows(table, view.snapshot.partitions)
    return _summed(view, quiet, group, partition, table.lag, table.lag == UNKNOWN)


def _summed(view: View, quiet: Flags, group: Longs, partition: Longs, lag: Longs, is_bound: Flags) -> _Pairs:
    """Return each group's lag on each topic, of groups that are not `quiet`. The rows, which have their group
    and partition, are in order of group and topic."""
    counts = np.append(~quiet, False)  # the last one is for the index −1
    rows = np.flatnonzero((partition >= 0) & counts[group])
    topic, group, lag = _topic_of(view, partition[rows]), group[rows], lag[rows]
    if not len(rows):
        none = np.empty(0, np.int64)
        return _Pairs(none, none, none, np.empty(0, np.bool_))
    first = np.flatnonzero(np.r_[True, (topic[1:] != topic[:-1]) | (group[1:] != group[:-1])])
    known = lag != UNKNOWN
    sums = np.where(
        np.logical_or.reduceat(known, first), np.add.reduceat(np.where(known, lag, 0), first), UNKNOWN
    )
    return _Pairs(topic[first], group[first], sums, np.logical_or.reduceat(is_bound[rows], first))


def topic_out_rates(view: View) -> tuple[Floats, Flags]:
    """Return the records per second that all groups committed, and whether that leaves out groups, in the
    rows of `View.topics`."""
    topics = len(view.topics.topic)
    rows = np.flatnonzero(view.offsets.partition_row >= 0)
    topic, rate = _topic_of(view, view.offsets.partition_row[rows]), view.offsets.read_rate[rows]
    known = np.isfinite(rate)
    sums = np.bincount(topic, np.where(known, rate, 0.0), topics)
    has, lacks = (np.bincount(topic, flags, topics) > 0 for flags in (known, ~known))
    shared = partition_rows(view.snapshot.share_offsets, view.snapshot.partitions)
    lacks[_topic_of(view, shared[shared >= 0])] = True
    return np.where(has, sums, np.nan), has & lacks


class Reader(NamedTuple):
    """One group that reads a topic, with its figures on that topic only."""

    group: int
    """The row in `snapshot.groups`."""
    verdict: Verdict
    """The worst verdict of the group on the topic's partitions."""
    worst: int
    """The row in `snapshot.offsets` with that verdict, or with the largest lag of those; −1 of a share group,
    which commits nothing."""
    partitions: int
    lag: int
    lag_is_bound: bool
    behind: int
    """The row in `snapshot.offsets` that is furthest behind in time; −1 of a share group."""
    read_rate: float
    read_is_bound: bool
    """Whether the rate is a lower bound, because that of some partition is not known."""


class Readers(Sequence[Reader]):
    """The groups that read a topic, the worst first. A reader's figures are added up when it is looked at,
    because thousands of groups can read one topic."""

    def __init__(self, view: View, topic: str, listed: Flags | None = None) -> None:
        """`listed` are the groups, in the rows of `snapshot.groups`, that are not left out; None: all."""
        self._view = view
        table, shared, at = view.snapshot.offsets, view.snapshot.share_offsets, topic_row(view.topics, topic)
        first = 0 if at is None else int(view.topics.first_row[at])
        last = first if at is None else first + int(view.topics.partitions[at])
        partition = view.offsets.partition_row
        committing = _by_group(view, table.group, np.flatnonzero((partition >= first) & (partition < last)))
        sharing = _by_group(view, shared.group, np.flatnonzero((shared.topic == topic) & (at is not None)))
        rank = np.empty(0, np.int64)
        if len(committing):
            rank = np.maximum.reduceat(view.offsets.rank[committing.rows], committing.begins)
        verdicts = view.groups.verdict[sharing.group].tolist()
        self._parts = (committing, sharing)
        self.group = np.append(committing.group, sharing.group)
        """The row in `snapshot.groups` of each reader."""
        self._rank = np.append(rank, np.array([RANK[Verdict(each)] for each in verdicts], np.int64))
        self._at = np.lexsort((view.groups.place[self.group], -self._rank))
        if listed is not None:
            self._at = self._at[listed[self.group[self._at]]]
        self.group = self.group[self._at]

    def __len__(self) -> int:
        return len(self.group)

    @overload
    def __getitem__(self, index: int) -> Reader: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Reader]: ...
    def __getitem__(self, index: int | slice) -> Reader | Sequence[Reader]:
        if isinstance(index, slice):
            return [self[at] for at in range(*index.indices(len(self)))]
        committing, sharing = self._parts
        at, group = int(self._at[index]), int(self.group[index])
        if at < len(committing):
            return _reader(self._view, group, committing.of(at))
        return _share_reader(self._view, group, sharing.of(at - len(committing)))

    def most_lag(self) -> int:
        """Return a sum that no reader's lag exceeds, UNKNOWN if no lag is known."""
        committing, sharing = self._parts
        lags = (self._view.offsets.lag[committing.rows], self._view.snapshot.share_offsets.lag[sharing.rows])
        sums = [
            np.add.reduceat(np.maximum(lag, 0), part.begins).max()
            for part, lag in zip(self._parts, lags, strict=True)
            if len(part) and (lag != UNKNOWN).any()
        ]
        return int(max(sums, default=UNKNOWN))


class _ByGroup(Struct, frozen=True):
    """Rows of a table in runs of one group each. Its length is the number of groups."""

    group: Longs
    rows: Longs
    begins: Longs
    """The index in `rows` where the run of each group begins."""

    def __len__(self) -> int:
        return len(self.group)

    def of(self, at: int) -> Longs:
        """Return the rows of one group."""
        end = self.begins[at + 1] if at + 1 < len(self.begins) else len(self.rows)
        return self.rows[self.begins[at] : end]


def _by_group(view: View, names: Strings, rows: Longs) -> _ByGroup:
    """Return rows of a table by group. `names` are the groups of all rows, in order."""
    group = group_rows(view.snapshot.groups.group, names[rows])
    rows, group = rows[group >= 0], group[group >= 0]
    begins = first_rows(group)
    return _ByGroup(group[begins], rows, begins)


def _reader(view: View, group: int, rows: Longs) -> Reader:
    figures = view.offsets
    ranks = figures.rank[rows]
    lag = figures.lag[rows]
    known = lag != UNKNOWN
    missing = ~known & (view.snapshot.offsets.committed[rows] != NO_OFFSET)
    rate = figures.read_rate[rows]
    finite = np.isfinite(rate)
    return Reader(
        group=group,
        verdict=Verdict(VERDICTS[ranks.max()]),
        worst=int(rows[np.lexsort((-lag, -ranks))[0]]),
        partitions=len(rows),
        lag=int(lag[known].sum()) if known.any() else UNKNOWN,
        lag_is_bound=bool((missing | figures.lag_is_bound[rows]).any()),
        behind=int(rows[figures.behind_ms[rows].argmax()]),
        read_rate=float(rate[finite].sum()) if finite.any() else float("nan"),
        read_is_bound=bool(finite.any() and not finite.all()),
    )


def _share_reader(view: View, group: int, rows: Longs) -> Reader:
    """Return a share group as a reader of a topic. Its verdict is that of all that it reads."""
    lag = view.snapshot.share_offsets.lag[rows]
    known = lag != UNKNOWN
    return Reader(
        group=group,
        verdict=Verdict(str(view.groups.verdict[group])),
        worst=-1,
        partitions=len(rows),
        lag=int(lag[known].sum()) if known.any() else UNKNOWN,
        lag_is_bound=bool(known.any() and not known.all()),
        behind=-1,
        read_rate=float("nan"),
        read_is_bound=False,
    )
