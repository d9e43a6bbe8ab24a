"""Topics: counts, rates and sizes over a topic's partitions, which are consecutive rows."""

import math

import numpy as np
from numpy.typing import NDArray

from kview.derive.partitions.placement import under_min, under_replicated
from kview.derive.partitions.racks import topic_safety
from kview.derive.seen import Seen
from kview.derive.series import Series
from kview.derive.standing import Standing
from kview.derive.statuses import SEVERITIES, STATUSES
from kview.derive.view import Floats, PartitionFigures, PartitionStatus, Throughput, TopicFigures
from kview.model.events import SEVERITY_ORDER, Severity
from kview.model.snapshot import Flags, Longs, Partitions, Strings
from kview.model.units import UNKNOWN

_SEVERITIES = np.array([*SEVERITY_ORDER, None], object)[:-1]
_SEVERITY_OF = np.array([SEVERITY_ORDER.index(SEVERITIES.get(s, Severity.CALM)) for s in STATUSES], np.int8)
"""The place in SEVERITY_ORDER of each status."""


def _sums(values: Floats, first: Longs, none: float) -> Floats:
    """Return the sums of the known values by topic, `none` if a topic has no known value."""
    known = np.isfinite(values)
    if not len(first):
        return np.empty(0)
    sums = np.add.reduceat(np.where(known, values, 0.0), first)
    return np.where(np.add.reduceat(known.astype(np.int64), first) > 0, sums, none)


def topic_rates(seen: Standing, in_rate: Floats) -> tuple[Strings, Floats]:
    """Return the topics, and the records per second appended to each topic.

    `in_rate` has the rates of partitions.
    """
    first = seen.topic_rows
    return seen.snapshot.partitions.topic[first], _sums(in_rate, first, np.nan)


def severities(ranks: NDArray[np.int8], first: Longs) -> Strings:
    """Return the worst severity of each topic's partitions, which have the statuses `ranks`. `first` are the
    rows at which topics begin."""
    if not len(first):
        return np.empty(0, object)
    worst: Strings = _SEVERITIES[np.minimum.reduceat(_SEVERITY_OF[ranks], first)]
    return worst


def topic_figures(
    seen: Seen, figures: PartitionFigures, in_rate: Floats, in_series: tuple[Series, ...]
) -> TopicFigures:
    """Return the figures of the topics.

    `in_rate` is the result of `topic_rates`, and `in_series` already ends with these rates.
    """
    table, placed, sizes, first = seen.snapshot.partitions, seen.placed, seen.readings.sizes, seen.topic_rows
    S = PartitionStatus

    def counted(mask: NDArray[np.bool_]) -> Longs:
        if not len(first):
            return np.empty(0, np.int64)
        return np.add.reduceat(mask.astype(np.int64), first).astype(np.int64)

    def having(status: PartitionStatus) -> Longs:
        return counted(figures.having(status))

    rack_safe, not_rack_safe = topic_safety(seen.rack_codes, first)
    replication = placed.target
    names = table.topic[first]
    per_partition = np.where(sizes == UNKNOWN, 0, sizes).sum(1).astype(np.float64)
    per_partition[(sizes == UNKNOWN).all(1)] = np.nan
    bytes_ = _sums(per_partition, first, np.nan)
    return TopicFigures(
        topic=names,
        internal=table.internal[first],
        first_row=first,
        partitions=np.diff(np.append(first, len(table))).astype(np.int64),
        replication=np.maximum.reduceat(replication, first) if len(first) else first,
        min_isr=table.min_isr[first].astype(np.int64),
        severity=severities(figures.rank, first),
        no_leader=having(S.NO_LEADER),
        silent_leader=having(S.SILENT_LEADER),
        frozen=having(S.FROZEN),
        under_min_isr=counted(under_min(table, placed)),
        under_replicated=counted(under_replicated(placed)),
        not_preferred=counted(~figures.preferred & (table.leader >= 0)),
        unknown=having(S.UNKNOWN),
        rack_safe=rack_safe,
        not_rack_safe=not_rack_safe,
        in_rate=in_rate,
        in_is_bound=np.isfinite(in_rate) & (counted(~np.isfinite(figures.in_rate)) > 0),
        size_bytes=np.where(np.isnan(bytes_), UNKNOWN, np.nan_to_num(bytes_)).astype(np.int64),
        in_series=in_series,
    )


def total_in(table: Partitions, in_rate: Floats) -> float:
    """Return the records per second appended to all of the user's topics, NaN if no rate is known.

    `in_rate` has the rates of partitions.
    """
    known = in_rate[np.isfinite(in_rate) & ~table.internal]
    return float(known.sum()) if len(known) else np.nan


def throughput(
    topics: TopicFigures,
    moments: tuple[int, ...],
    in_series: Series,
    total_out: tuple[float, bool],
    reads_unknown: Flags,
) -> Throughput:
    """Return the rates of the user's topics, and what they were together at the last of `moments`.

    `total_out` is the rate at which groups read, and whether it leaves out partitions. `reads_unknown` marks
    the groups that it leaves out.
    """
    mine = ~topics.internal
    out_rate, leaves_out = total_out
    return Throughput(
        at_ms=moments,
        in_series=in_series,
        topics=tuple(topics.topic[mine]),
        in_rates=tuple(topics.in_rate[mine].tolist()),
        total_in=in_series[-1],
        in_is_bound=bool(topics.in_is_bound[mine].any()),
        total_out=out_rate,
        out_is_bound=math.isfinite(out_rate) and (leaves_out or bool(reads_unknown.any())),
    )
