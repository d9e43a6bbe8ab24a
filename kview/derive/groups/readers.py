"""The groups that read each topic: how many there are, and which of them has the largest lag."""

from typing import NamedTuple

import numpy as np
from msgspec import Struct

from kview.derive.align import first_rows, group_rows, partition_rows
from kview.derive.groups.verdicts import RANK, VERDICTS
from kview.derive.lookup import topic_row
from kview.derive.view import Floats, Verdict, View
from kview.model.snapshot import Flags, Longs
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


def readers_of(view: View, topic: str) -> tuple[Reader, ...]:
    """Return the groups that read a topic, the worst first. Empty if there are none, or no such topic."""
    at = topic_row(view.topics, topic)
    if at is None:
        return ()
    first = int(view.topics.first_row[at])
    last = first + int(view.topics.partitions[at])
    figures = view.offsets
    rows = np.flatnonzero((figures.partition_row >= first) & (figures.partition_row < last))
    group = group_rows(view.snapshot.groups.group, view.snapshot.offsets.group[rows])
    topic_readers = [_reader(view, int(row), rows[group == row]) for row in np.unique(group[group >= 0])]
    shared = view.snapshot.share_offsets
    mine = np.flatnonzero(shared.topic == topic)
    sharing = group_rows(view.snapshot.groups.group, shared.group[mine])
    topic_readers += [
        _share_reader(view, int(row), mine[sharing == row]) for row in np.unique(sharing[sharing >= 0])
    ]
    place = view.groups.place
    return tuple(sorted(topic_readers, key=lambda reader: (-RANK[reader.verdict], int(place[reader.group]))))


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
