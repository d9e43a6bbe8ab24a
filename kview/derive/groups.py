"""Groups: the sums and the worst values over the groups' rows of `Offsets`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kview.derive.align import group_rows
from kview.derive.lag import TREND_BACK_MS
from kview.derive.rates import sum_by
from kview.derive.series import Series, extended
from kview.derive.verdicts import ORDER, RANK, SEVERITIES, VERDICTS
from kview.derive.view import Floats, GroupFigures, OffsetFigures, Reason, Verdict
from kview.model.events import Severity
from kview.model.snapshot import Longs, Snapshot
from kview.model.units import NO_OFFSET, UNKNOWN

TREND_SPANS_MS = ((5_000, 5_000), (10_000, 20_000))
"""Pairs of length and distance. The worst lag of the newest stretch is compared with the worst lag of an
equally long stretch, that far back. Lag moves up and down within a commit interval, so neither stretch is
shorter than such an interval. The longer pair shows slow growth."""

BehindSeries = tuple[tuple[int, float], ...]
"""A group's lag in time at the moments of the last TREND_BACK_MS, oldest first, NaN if it was not known."""

GroupSeries = Mapping[str, tuple[Series, BehindSeries]]
"""By group: the lag at the moments of the sparklines, and the lag in time."""

TREND_NOISE_MS = 1_000
"""Changes of lag in time below this, or below a tenth of the lag, are not a trend."""


@dataclass(frozen=True, slots=True)
class GroupLags:
    """The lag of each group. The arrays have the rows of `Groups`."""

    index: Longs
    """The row of each offset's group, −1 if there is no such group."""
    lag: Longs
    """The sum of the known lags, UNKNOWN if none is known."""
    behind_ms: Longs
    """The lag in time of the worst partition."""


def group_lags(snapshot: Snapshot, figures: OffsetFigures) -> GroupLags:
    """Return the lag and the lag in time of each group."""
    size = len(snapshot.groups)
    index = group_rows(snapshot.groups.group, snapshot.offsets.group)
    known = _known(snapshot, figures)
    lag = _sum(index, np.where(known, figures.lag, 0), known, size)
    behind = np.full(size, UNKNOWN, np.int64)
    np.maximum.at(behind, index[index >= 0], figures.behind_ms[index >= 0])
    return GroupLags(index, lag, behind)


def group_series(
    before: GroupSeries, names: list[str], lags: GroupLags, points: int, now_ms: int
) -> GroupSeries:
    """Return each group's series with the newest values added."""
    lag_series = extended({n: s for n, (s, _) in before.items()}, names, _floats(lags.lag), points)
    behind_series = [
        (*_young(before[name][1] if name in before else (), now_ms), (now_ms, value))
        for name, value in zip(names, _floats(lags.behind_ms).tolist(), strict=True)
    ]
    return dict(zip(names, zip(lag_series, behind_series, strict=True), strict=True))


def group_figures(
    snapshot: Snapshot, figures: OffsetFigures, lags: GroupLags, series: GroupSeries
) -> GroupFigures:
    """Return the figures of the groups. `series` already includes `lags`."""
    groups, offsets = snapshot.groups, snapshot.offsets
    size, index, behind = len(groups), lags.index, lags.behind_ms
    committed = offsets.committed > NO_OFFSET
    known = _known(snapshot, figures)
    at_worst = (index >= 0) & (figures.behind_ms == behind[index]) if size else np.zeros(len(index), np.bool_)
    ranks, rows = _worst(snapshot, figures, index)
    lost = _lost(figures, index, size)
    verdicts = [ORDER[rank] for rank in ranks.tolist()]
    reasons = [_reason(verdict, many) for verdict, many in zip(verdicts, rows.tolist(), strict=True)]
    age = np.where(groups.received_ms == UNKNOWN, UNKNOWN, snapshot.observation.ended_ms - groups.received_ms)
    return GroupFigures(
        severity=_objects(
            [Severity.RISK if lost[row] else SEVERITIES[verdict] for row, verdict in enumerate(verdicts)]
        ),
        verdict=VERDICTS[ranks],
        reason=_objects(reasons),
        reason_ms=_oldest_stopped(figures, index, ranks),
        reason_count=np.where([reason is Reason.PARTITIONS for reason in reasons], rows, UNKNOWN),
        lost=lost,
        lag=lags.lag,
        lag_is_bound=_any(index, committed & ~known, size),
        behind_ms=behind,
        behind_is_bound=_any(index, at_worst & figures.behind_is_bound, size) & (behind != UNKNOWN),
        behind_trend=np.array([trend(behind) for _, behind in series.values()], np.int64),
        members_active=_active(snapshot),
        read_rate=sum_by(index, figures.read_rate, size),
        write_rate=sum_by(index, figures.write_rate, size),
        lag_series=tuple(lag for lag, _ in series.values()),
        age_ms=age,
    )


def _known(snapshot: Snapshot, figures: OffsetFigures) -> NDArray[np.bool_]:
    return np.asarray((figures.lag != UNKNOWN) & (snapshot.offsets.committed > NO_OFFSET), np.bool_)


def trend(series: BehindSeries) -> int:
    """Return +1 if lag in time grows, −1 if it shrinks, 0 if it does neither or is not known.

    The shortest of TREND_SPANS_MS that shows a change decides.
    """
    now_ms = series[-1][0]
    known = [(now_ms - at, value) for at, value in series if value == value]
    for length, distance in TREND_SPANS_MS:
        new = [value for age, value in known if age < length]
        old = [value for age, value in known if distance <= age < distance + length]
        if new and old:
            change = max(new) - max(old)
            if abs(change) > max(TREND_NOISE_MS, 0.1 * max(old)):
                return 1 if change > 0 else -1
    return 0


def _young(series: BehindSeries, now_ms: int) -> BehindSeries:
    return tuple(point for point in series if now_ms - point[0] < TREND_BACK_MS)


def _floats(values: Longs) -> Floats:
    return np.where(values == UNKNOWN, np.nan, values.astype(np.float64))


def _any(index: Longs, mask: NDArray[np.bool_], size: int) -> NDArray[np.bool_]:
    return np.bincount(index[mask & (index >= 0)], minlength=size) > 0


def _sum(index: Longs, values: Longs, known: NDArray[np.bool_], size: int) -> Longs:
    sums = np.zeros(size, np.int64)
    mine = known & (index >= 0)
    np.add.at(sums, index[mine], values[mine])
    return np.where(_any(index, known, size), sums, UNKNOWN)


def _active(snapshot: Snapshot) -> Longs:
    members = snapshot.members
    index = group_rows(snapshot.groups.group, members.group)
    working = (index >= 0) & (members.assigned > 0)
    return np.bincount(index[working], minlength=len(snapshot.groups)).astype(np.int64)


def _worst(snapshot: Snapshot, figures: OffsetFigures, index: Longs) -> tuple[Longs, Longs]:
    """Return the rank of each group's worst verdict, and the number of the group's rows with this verdict."""
    size = len(snapshot.groups)
    ranks = np.array([RANK[verdict] for verdict in figures.verdict], np.int64)
    ranks = np.where((snapshot.offsets.committed <= NO_OFFSET) & (ranks == RANK[Verdict.UNKNOWN]), -1, ranks)
    worst = np.full(size, -1, np.int64)
    mine = index >= 0
    np.maximum.at(worst, index[mine], ranks[mine])
    worst = np.where(worst < 0, RANK[Verdict.UNKNOWN], worst)
    having = mine.copy()
    having[mine] = ranks[mine] == worst[index[mine]]
    return worst, np.bincount(index[having], minlength=size).astype(np.int64)


def _lost(figures: OffsetFigures, index: Longs, size: int) -> Longs:
    lost = np.zeros(size, np.int64)
    mine = index >= 0
    np.add.at(lost, index[mine], figures.lost[mine])
    return lost


def _oldest_stopped(figures: OffsetFigures, index: Longs, ranks: Longs) -> Longs:
    """Return the worst lag in time among the stopped partitions of each stopped group, UNKNOWN for others."""
    oldest = np.full(len(ranks), UNKNOWN, np.int64)
    mine = (index >= 0) & np.asarray(figures.verdict == Verdict.STOPPED, np.bool_)
    np.maximum.at(oldest, index[mine], figures.behind_ms[mine])
    return np.where(ranks == RANK[Verdict.STOPPED], oldest, UNKNOWN)


def _reason(verdict: Verdict, rows: int) -> Reason:
    """Return why a group has its verdict. `rows` is the number of its partitions that have the same
    verdict."""
    if verdict is Verdict.OK:
        return Reason.NONE
    if verdict is Verdict.STOPPED:
        return Reason.NO_MEMBERS
    if verdict is Verdict.UNKNOWN:
        return Reason.LAG_UNKNOWN if rows else Reason.NO_COMMIT
    return Reason.PARTITIONS


def _objects(values: Sequence[object]) -> NDArray[np.object_]:
    return np.array([*values, None], object)[:-1]
