"""Groups: the sums and the worst values over the groups' rows of `Offsets`."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from functools import lru_cache

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from kview.derive.align import group_rows, same, take
from kview.derive.groups import share
from kview.derive.groups.connect import paused_sinks
from kview.derive.groups.past_ends import TREND_BACK_MS
from kview.derive.groups.simple import are_simple
from kview.derive.groups.trends import NEAR_MS
from kview.derive.groups.unheard import never_read
from kview.derive.groups.verdicts import ORDER, RANK, SEVERITIES, VERDICTS
from kview.derive.hidden import lacks_topics
from kview.derive.partitions import order
from kview.derive.partitions.order import HOLD_MS
from kview.derive.partitions.rates import leaves_out, sum_by
from kview.derive.series import Series, extended
from kview.derive.view import Floats, GroupFigures, OffsetFigures, Reason, Verdict
from kview.model.events import SEVERITY_ORDER, Severity
from kview.model.snapshot import Groups, Longs, Snapshot, Strings
from kview.model.states import GroupType
from kview.model.units import NO_OFFSET, UNKNOWN, UNKNOWN_ID

TREND_SPANS_MS = ((5_000, 5_000), (10_000, 20_000))
"""Pairs of length and distance. The worst lag of the newest stretch is compared with the worst lag of an
equally long stretch, that far back. Lag moves up and down within a commit interval, so neither stretch is
shorter than such an interval. The longer pair shows slow growth."""

RECENT_POINTS = 10
"""The number of observations of which the greatest lag counts for the order of groups: the lag of the moment
depends on how long ago the group committed."""

MAX_NAMES = 50_000
"""The most groups whose name is remembered as ignored or not: more than a cluster has."""

LONGEST_KEPT = 256
"""The longest such name. Names of groups that are gone are remembered, too, and may have 32,767 bytes."""

TREND_NOISE_MS = 1_000
"""Changes of lag in time below this, or below a tenth of the lag, are not a trend."""


class GroupLags(Struct, frozen=True):
    """The lag of each group. The arrays have the rows of `Groups`."""

    index: Longs
    """The row of each offset's group, −1 if there is no such group."""
    lag: Longs
    """The sum of the known lags, UNKNOWN if none is known."""
    behind_ms: Longs
    """The lag in time of the worst partition."""
    behind_is_bound: NDArray[np.bool_]
    """Whether some partition of the group may be further behind."""
    uncommitted: Longs
    """The number of partitions that a member owns, that have records, and that nothing is committed on."""
    backlog_is_bound: NDArray[np.bool_]
    """Whether some partition's lag is not known to a share group's coordinator."""
    backlog_rate: Floats
    """The records per second that are written to what a share group reads."""


def group_lags(snapshot: Snapshot, figures: OffsetFigures, index: Longs, in_rate: Floats) -> GroupLags:
    """Return the lag and the lag in time of each group.

    `index` is the row of each offset's group, or −1. `in_rate` are the rates of partitions.
    """
    size = len(snapshot.groups)
    known = _known(snapshot, figures)
    lag = _sum(index, np.where(known, figures.lag, 0), known, size)
    behind = np.full(size, UNKNOWN, np.int64)
    np.maximum.at(behind, index[index >= 0], figures.behind_ms[index >= 0])
    uncommitted = _uncommitted(snapshot, figures)
    unsure = _any(index, figures.behind_is_bound | uncommitted, size) & (behind != UNKNOWN)
    counts = np.bincount(index[uncommitted & (index >= 0)], minlength=size).astype(np.int64)
    waits = share.backlogs(snapshot, in_rate)
    lag = np.where(waits.records != UNKNOWN, waits.records, lag)
    return GroupLags(index, lag, behind, unsure, counts, waits.is_bound, waits.write_rate)


def _uncommitted(snapshot: Snapshot, figures: OffsetFigures) -> NDArray[np.bool_]:
    """Return the rows of which the lag is not known because nothing is committed: they have an owner, and
    their partitions are not known to be empty."""
    offsets, rows = snapshot.offsets, figures.partition_row
    start = take(snapshot.partitions.log_start, rows, UNKNOWN)
    end = figures.log_end_offset
    empty = (end != UNKNOWN) & (end <= np.where(start == UNKNOWN, 0, start))
    owned = np.asarray(offsets.owner != "", np.bool_)
    read = offsets.received_ms != UNKNOWN
    return np.asarray(owned & read & (rows >= 0) & (offsets.committed == NO_OFFSET) & ~empty, np.bool_)


class BehindSeries(Struct, frozen=True):
    """The groups' lag in time at the moments of the last TREND_BACK_MS, oldest first."""

    names: Strings = field(default_factory=lambda: np.empty(0, object))
    at_ms: Longs = field(default_factory=lambda: np.empty(0, np.int64))
    values: Floats = field(default_factory=lambda: np.empty((0, 0)))
    """(moments, groups), NaN if the lag in time was not known."""

    def extended(self, names: Strings, behind_ms: Longs, now_ms: int) -> "BehindSeries":
        """Return the series with the newest values added, for the groups of these names."""
        young = now_ms - self.at_ms < TREND_BACK_MS
        then = self.values[young]
        if not same(self.names, names):
            rows = group_rows(self.names, names)
            known = rows >= 0
            moved = np.full((len(then), len(names)), np.nan)
            moved[:, known] = then[:, rows[known]]
            then = moved
        return BehindSeries(
            names, np.append(self.at_ms[young], now_ms), np.concatenate((then, _floats(behind_ms)[None]))
        )


class GroupSeries(Struct, frozen=True):
    """The past of the groups."""

    lag: Mapping[str, Series] = field(default_factory=dict)
    """By group: the lag at the moments of the sparklines."""
    behind: BehindSeries = field(default_factory=BehindSeries)
    steps: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """By group: the lag in time, and the lag, in steps that hold for a while, −1 if it is not known."""
    steps_ms: int = UNKNOWN
    """When these steps were last calculated for all groups."""


def group_series(
    before: GroupSeries, names: Strings, lags: GroupLags, points: int, now_ms: int
) -> GroupSeries:
    """Return the groups' series with the newest values added."""
    keys = names.tolist()
    exact_ms = np.where(lags.behind_is_bound, UNKNOWN, lags.behind_ms)  # bounds move without the group
    lag_series = extended(before.lag, keys, _floats(lags.lag), points)
    behind = before.behind.extended(names, exact_ms, now_ms)
    steps, steps_ms = before.steps, before.steps_ms
    if steps_ms // HOLD_MS != now_ms // HOLD_MS or steps.keys() != set(keys):
        lately = np.fmax.reduce(behind.values[now_ms - behind.at_ms < HOLD_MS], axis=0)
        of_time = _steps(np.fmax(lately, _floats(lags.behind_ms)), NEAR_MS)
        of_records = _steps(
            np.array([np.fmax.reduce(np.array(each[-RECENT_POINTS:])) for each in lag_series]), 0
        )
        steps, steps_ms = dict(zip(keys, zip(of_time, of_records, strict=True), strict=True)), now_ms
    return GroupSeries(dict(zip(keys, lag_series, strict=True)), behind, steps, steps_ms)


def _steps(values: Floats, least: int) -> list[int]:
    """Return the step of each value, 0 below `least`, −1 if it is not known."""
    taken: list[int] = np.where(
        np.isnan(values), -1, order.steps(np.where(values < least, 0.0, values))
    ).tolist()
    return taken


def group_figures(
    snapshot: Snapshot,
    figures: OffsetFigures,
    lags: GroupLags,
    series: GroupSeries,
    ignore: tuple[str, ...] = (),
) -> GroupFigures:
    """Return the figures of the groups.

    `series` already includes `lags`. `busy` says how busy each partition is. `ignore` has patterns of the
    names of groups that count nowhere.
    """
    groups, offsets = snapshot.groups, snapshot.offsets
    size, index, behind = len(groups), lags.index, lags.behind_ms
    committed = offsets.committed > NO_OFFSET
    known = _known(snapshot, figures)
    ahead = np.asarray(figures.rank == RANK[Verdict.AHEAD_OF_LOG], np.bool_)
    at_worst = (index >= 0) & (figures.behind_ms == behind[index]) if size else np.zeros(len(index), np.bool_)
    ranks, rows = _worst(snapshot, figures, index)
    unread = (lags.uncommitted > 0) & (ranks <= RANK[Verdict.UNDECIDED])
    ranks = np.where(unread, RANK[Verdict.UNDECIDED], ranks)
    untold, uncommitting = never_read(snapshot) | groups.unread, _commit_nothing(groups)
    lost = np.where(untold | uncommitting, UNKNOWN, _lost(figures, index, size))
    read_ms = _read_ms(snapshot, index)
    old = _verdict_age(snapshot, read_ms)
    quiet = np.array([bool(ignore) and is_ignored(str(name), ignore) for name in groups.group], np.bool_)
    reasons = np.where(rows > 0, _REASONS[ranks], _REASONS_WITHOUT_ROWS[ranks])
    reasons[unread] = Reason.NO_COMMIT
    reasons[untold] = Reason.LAG_UNKNOWN
    for row in np.flatnonzero(uncommitting).tolist():
        verdict, reason = Verdict.NONE, Reason.WORKERS
        if groups.type[row] == GroupType.SHARE:
            lag, rate = np.array(series.lag[groups.group[row]]), float(lags.backlog_rate[row])
            verdict, reason = share.verdict(int(groups.members[row]), lag, rate)
        ranks[row], reasons[row] = RANK[verdict], reason
    overdue = (ranks == RANK[Verdict.STOPPED]) & are_simple(groups)
    reasons[overdue] = Reason.COMMIT_OVERDUE
    reasons[(ranks == RANK[Verdict.STOPPED]) & paused_sinks(snapshot)] = Reason.CONNECTOR_PAUSED
    held = np.asarray(ranks == RANK[Verdict.HELD], np.bool_)
    uncounted = untold | uncommitting | ((groups.members != 0) & ~_any(index, index >= 0, size))
    counted = np.asarray(reasons == Reason.PARTITIONS, np.bool_)
    age = np.where(read_ms == UNKNOWN, UNKNOWN, snapshot.observation.ended_ms - read_ms)
    hides_topics = lacks_topics(snapshot.observation)  # commits to them are left out, too
    severity = _severities(ranks, lost > 0, old != UNKNOWN, quiet)
    return GroupFigures(
        severity=severity,
        verdict=VERDICTS[ranks],
        reason=reasons,
        reason_ms=np.where(
            overdue | held,
            _longest(figures.reason_ms, figures, index, ranks),
            np.where(
                ranks == RANK[Verdict.STOPPED], _longest(figures.behind_ms, figures, index, ranks), UNKNOWN
            ),
        ),
        reason_count=np.where(unread, lags.uncommitted, np.where(counted, rows, UNKNOWN)),
        lost=lost,
        lost_is_bound=_any(index, figures.lost_is_bound, size),
        place=_places(groups.group, severity, ranks, series),
        lag=lags.lag,
        lag_is_bound=lags.backlog_is_bound
        | _any(index, (committed & ~known & ~ahead) | (known & figures.lag_is_bound), size)
        | (((lags.uncommitted > 0) | hides_topics) & (lags.lag != UNKNOWN)),
        behind_ms=behind,
        behind_is_bound=lags.behind_is_bound | (hides_topics & (behind != UNKNOWN)),
        behind_is_estimate=_any(index, at_worst & figures.behind_is_estimate, size) & ~lags.behind_is_bound,
        behind_trend=trend(series.behind),
        members_active=_active(snapshot),
        read_rate=np.where(uncounted, np.nan, sum_by(index, figures.read_rate, size)),
        write_rate=np.where(uncounted, np.nan, sum_by(index, figures.write_rate, size)),
        read_is_bound=leaves_out(index, figures.read_rate, size),
        write_is_bound=leaves_out(index, figures.write_rate, size),
        lag_series=tuple(series.lag.values()),
        age_ms=age,
        ignored=quiet,
        verdict_age_ms=old,
    )


def _commit_nothing(groups: Groups) -> NDArray[np.bool_]:
    """Return the groups that commit no offsets by nature: share groups, and Kafka Connect's workers."""
    return np.asarray((groups.type == GroupType.SHARE) | (groups.type == GroupType.CONNECT), np.bool_)


def reads_unknown(groups: Groups, read_rate: Floats) -> NDArray[np.bool_]:
    """Return the groups of which nobody knows how much they read. `read_rate` has the rates of groups.

    Kafka Connect's workers are not among them: their sinks read as groups of their own.
    """
    return np.isnan(read_rate) & np.asarray(groups.type != GroupType.CONNECT, np.bool_)


def _places(names: Strings, severity: Strings, ranks: Longs, series: GroupSeries) -> Longs:
    """Return the place of each group in a list: those in trouble first, of them those that are furthest
    behind, and the others by name."""

    troubled = np.asarray(severity != Severity.CALM, np.bool_)
    steps = np.zeros((2, len(names)), np.int64)
    if troubled.any():
        steps[:, troubled] = np.array([series.steps[name] for name in names[troubled]]).T
    level = np.select([severity == each for each in SEVERITY_ORDER], range(len(SEVERITY_ORDER)))
    behind, lag = -steps
    by_name = np.arange(len(names))  # the order of the table
    places = np.empty(len(names), np.int64)
    places[np.lexsort((by_name, lag, behind, ranks == RANK[Verdict.ABANDONED], level))] = by_name
    return places


def is_ignored(name: str, patterns: tuple[str, ...]) -> bool:
    """Return whether a group's name matches one of the shell patterns."""
    return _kept_matches(name, patterns) if len(name) <= LONGEST_KEPT else _matches(name, patterns)


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


_kept_matches = lru_cache(maxsize=MAX_NAMES)(_matches)


_LEVELS = np.array([Severity.CALM, Severity.WARN, Severity.RISK, None], object)[:-1]
_CALM, _WARN, _RISK = range(3)
_LEVEL_OF = np.array([_LEVELS.tolist().index(SEVERITIES[verdict]) for verdict in ORDER])
"""The severity of each verdict by rank, as an index of _LEVELS."""


def _severities(
    ranks: Longs, lost: NDArray[np.bool_], old: NDArray[np.bool_], quiet: NDArray[np.bool_]
) -> Strings:
    """Return the groups' severities.

    `lost` says whether they lost records, `old` whether their figures are late, and `quiet` whether nobody
    wants to hear of them.
    """
    level = np.where(old, np.maximum(_LEVEL_OF[ranks], _WARN), _LEVEL_OF[ranks])
    level = np.where(lost, _RISK, level)
    return _LEVELS[np.where(quiet | (ranks == RANK[Verdict.ABANDONED]), _CALM, level)]


def _read_ms(snapshot: Snapshot, index: Longs) -> Longs:
    """Return when each group's commits were read, or if it has none, when anything was heard of it."""
    newest = np.full(len(snapshot.groups), UNKNOWN)
    mine = index >= 0
    np.maximum.at(newest, index[mine], snapshot.offsets.received_ms[mine])
    return np.where(newest == UNKNOWN, snapshot.groups.received_ms, newest)


def _verdict_age(snapshot: Snapshot, read_ms: Longs) -> Longs:
    """Return how old the readings of each group are if they are late, else UNKNOWN.

    The observer knows when they are due, and says why they are late.
    """
    groups, seen = snapshot.groups, snapshot.observation
    known = (read_ms != UNKNOWN) & (read_ms < seen.began_ms)
    return np.where(known & np.asarray(groups.error != "", np.bool_), seen.ended_ms - read_ms, UNKNOWN)


def _known(snapshot: Snapshot, figures: OffsetFigures) -> NDArray[np.bool_]:
    return np.asarray((figures.lag != UNKNOWN) & (snapshot.offsets.committed > NO_OFFSET), np.bool_)


def trend(series: BehindSeries) -> Longs:
    """Return for each group +1 if lag in time grows, −1 if it shrinks, 0 if it does neither or is not known.

    The shortest of TREND_SPANS_MS that shows a change decides.
    """
    direction = np.zeros(series.values.shape[1], np.int64)
    age = series.at_ms[-1] - series.at_ms
    for length, distance in TREND_SPANS_MS:
        new = np.fmax.reduce(series.values[age < length], axis=0, initial=np.nan)
        old = np.fmax.reduce(
            series.values[(age >= distance) & (age < distance + length)], axis=0, initial=np.nan
        )
        change = new - old
        shows = np.abs(change) > np.fmax(TREND_NOISE_MS, 0.1 * old)  # False where one is not known
        direction = np.where((direction == 0) & shows, np.where(change > 0, 1, -1), direction)
    return np.where(np.isnan(series.values[-1]), 0, direction)


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
    counted = np.bincount(index[working], minlength=len(snapshot.groups)).astype(np.int64)
    unread = _any(index, members.assigned == UNKNOWN_ID, len(snapshot.groups))
    return np.where(unread | (snapshot.groups.members == UNKNOWN_ID), UNKNOWN, counted)


def _worst(snapshot: Snapshot, figures: OffsetFigures, index: Longs) -> tuple[Longs, Longs]:
    """Return the rank of each group's worst verdict, and the number of the group's rows with this verdict."""
    size = len(snapshot.groups)
    unknown = (snapshot.offsets.committed <= NO_OFFSET) & (figures.rank == RANK[Verdict.UNKNOWN])
    ranks = np.where(unknown, -1, figures.rank)
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


def _longest(times_ms: Longs, figures: OffsetFigures, index: Longs, ranks: Longs) -> Longs:
    """Return the longest of these times among the partitions of each group that have the group's verdict."""
    longest = np.full(len(ranks), UNKNOWN, np.int64)
    mine = index >= 0
    mine[mine] = figures.rank[mine] == ranks[index[mine]]
    np.maximum.at(longest, index[mine], times_ms[mine])
    return longest


def _reason(verdict: Verdict, rows: bool) -> Reason:
    """Return why a group has its verdict. `rows` says whether any of its partitions has the same verdict."""
    if verdict in (Verdict.OK, Verdict.UNDECIDED):
        return Reason.NONE
    if verdict is Verdict.ABANDONED:
        return Reason.BELOW_START
    if verdict is Verdict.STOPPED:
        return Reason.NO_MEMBERS
    if verdict is Verdict.HELD:
        return Reason.TRANSACTION
    if verdict is Verdict.UNKNOWN:
        return Reason.LAG_UNKNOWN if rows else Reason.NO_COMMIT
    return Reason.PARTITIONS


_REASONS, _REASONS_WITHOUT_ROWS = (
    np.array([*(_reason(verdict, rows) for verdict in ORDER), None], object)[:-1] for rows in (True, False)
)
"""The reason of each verdict by rank."""
