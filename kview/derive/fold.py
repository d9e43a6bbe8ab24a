"""The fold: takes a state and a snapshot, and returns the next state and a view.

Live runs, replays and tests all use it. `step` is pure and has three parts: `advance` calculates what all
later steps depend on, `sample` calculates what the steps of the next minute depend on (series), and the view,
on which nothing depends. A jump to another moment skips what no later step needs (`fold_to`).

A view at t is the same whether the fold began at the beginning or at the last snapshot at or before t −
LOOK_BACK_MS. There is one exception: if a group's coordinator is silent, the group's cells are not read again
and keep their figures, which depend on what was seen before the last reading.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np

from kview.derive import commits as past
from kview.derive import lag, rates
from kview.derive.align import Alignment, align_offsets, align_partitions, partition_rows
from kview.derive.brokers import broker_figures, led_rates, total_out
from kview.derive.commits import Commits
from kview.derive.events import Seen, differences, kept
from kview.derive.group_events import group_events
from kview.derive.groups import GroupLags, GroupSeries, group_figures, group_lags, group_series
from kview.derive.headline import headline
from kview.derive.lag import TREND_BACK_MS, Points
from kview.derive.offsets import Kept, Led, offset_figures, record_lag
from kview.derive.partitions import (
    changed_since,
    in_rates,
    partition_figures,
    worst_first,
)
from kview.derive.rates import LOOK_BACK_MS, Ends
from kview.derive.series import Series, extended, next_moments
from kview.derive.standing import standing
from kview.derive.topics import throughput, topic_figures, topic_rates
from kview.derive.view import SERIES_POINTS, Floats, OffsetFigures, View
from kview.derive.watermarks import Watermarks, follow, frozen_since
from kview.model.events import Event
from kview.model.snapshot import Longs, Snapshot
from kview.model.units import UNKNOWN

__all__ = ["LOOK_BACK_MS", "State", "advance", "fold_on", "fold_to", "sample", "step"]

_NONE = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class State:
    """What is carried from step to step: the previous snapshot, what was seen in it, and bounded series.

    States are frozen, and columns are never written to.
    """

    seen: Seen | None = None
    ends: Ends = field(default_factory=lambda: Ends.none(0))
    watermarks: Watermarks = field(default_factory=lambda: Watermarks.none(0))
    points: Points = field(default_factory=lambda: Points.none(0))
    changed_ms: Longs = field(default_factory=lambda: _NONE)
    """When the leader, epoch or ISR of each partition last changed."""
    partition_rows: Longs = field(default_factory=lambda: _NONE)
    """The row of each offset's partition."""
    commits: Commits = field(default_factory=lambda: Commits.none(0))
    kept: Kept = field(default_factory=lambda: Kept.none(0))
    topic_series: Mapping[str, Series] = field(default_factory=dict)
    broker_series: Mapping[int, Series] = field(default_factory=dict)
    group_series: GroupSeries = field(default_factory=dict)
    moments: tuple[int, ...] = ()
    before_ms: int = UNKNOWN
    """The time of the previous step, UNKNOWN in the first step."""
    events: tuple[Event, ...] = ()
    new_events: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class Sample:
    """The figures of one moment that are added to series."""

    in_rate: Floats
    """The rates of partitions, with the rows of `Partitions`."""
    broker_rates: Floats
    topic_rates: Floats
    offsets: OffsetFigures
    groups: GroupLags


class LookBack(Protocol):
    """Snapshots in order, with a known length."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[Snapshot]: ...


def step(state: State, snapshot: Snapshot) -> tuple[State, View]:
    """Return the next state and view.

    The fold starts again from nothing if the snapshot is earlier than the last one (the clock jumped back),
    or if it is from another observer.
    """
    return fold_on(state, (snapshot,))


def fold_to(last: Snapshot, look_back: LookBack, cancelled: Callable[[], bool]) -> tuple[State, View] | None:
    """Return the state and the view at `last`, folded from nothing over `look_back`, which ends with `last`.

    The result is the same as that of consecutive calls of `step`. Before each snapshot, `cancelled` is
    called; the result is None if that returns True.
    """
    state, sampled = State(), None
    first_sampled = len(look_back) - SERIES_POINTS
    for number, snapshot in enumerate(look_back):
        if cancelled():
            return None
        state = advance(state, snapshot)
        recent = snapshot.observation.ended_ms > last.observation.ended_ms - TREND_BACK_MS
        if recent or number >= first_sampled:
            state, sampled = sample(state)
    return (state, _view(state, sampled)) if sampled is not None else step(state, last)


def fold_on(state: State, snapshots: Sequence[Snapshot]) -> tuple[State, View]:
    """Return the state and the view after one or more snapshots, when only the last one will be shown."""
    state, sampled = sample(advance(state, snapshots[0]))
    for snapshot in snapshots[1:]:
        state, sampled = sample(advance(state, snapshot))
    return state, _view(state, sampled)


def advance(state: State, snapshot: Snapshot) -> State:
    """Return the state after a snapshot, except for series and `kept`, which `sample` updates."""
    now_ms = snapshot.observation.ended_ms
    if state.seen is not None:
        last = state.seen.snapshot.observation
        if now_ms < last.ended_ms or not snapshot.observation.follows(last):
            state = State()
    before = state.seen
    then = before.snapshot if before else Snapshot(snapshot.observation)
    table = snapshot.partitions
    rows = align_partitions(then.partitions, table)

    read, read_ms = _log_ends(snapshot)
    ends, fell = rates.advance(state.ends.carried(rows), read, read_ms, now_ms)
    marks = follow(state.watermarks, then.partitions.high_watermark_ms, rows, table, now_ms)
    points = lag.capped(lag.carried(state.points, rows), fell, read)
    if (
        before is None
        or rows.rows is not None
        or not lag.same_answers(then.time_points, snapshot.time_points)
    ):
        points = lag.with_seeds(points, table, snapshot.time_points, read)
    points = lag.with_reading(points, read_ms, read, now_ms)
    seen = _seen(before, snapshot, marks)

    offset_rows = align_offsets(then.offsets, snapshot.offsets)
    if before is not None and rows.rows is None and offset_rows.rows is None:
        at = state.partition_rows
    else:
        at = partition_rows(snapshot.offsets, table)
    _, lag_now = record_lag(table, at, snapshot.offsets)
    commits = past.carried(state.commits, offset_rows)
    new_events: tuple[Event, ...] = ()
    if before is not None:
        new_events = (*differences(before, seen, rows), *group_events(then, snapshot))
    return State(
        seen,
        ends,
        marks,
        points,
        changed_since(then.partitions, state.changed_ms, rows, table, now_ms),
        at,
        past.follow(commits, snapshot.offsets.committed, snapshot.offsets.received_ms, lag_now, now_ms),
        _kept(state, snapshot, commits, offset_rows),
        state.topic_series,
        state.broker_series,
        state.group_series,
        next_moments(state.moments, now_ms),
        then.observation.ended_ms if before else UNKNOWN,
        kept(state.events, new_events, now_ms),
        new_events,
    )


def sample(state: State) -> tuple[State, Sample]:
    """Add the figures of this moment to the series."""
    seen = _seen_of(state)
    snapshot, points = seen.snapshot, len(state.moments)
    in_rate = in_rates(snapshot.partitions, seen.placed, state.ends.per_second)
    topics, by_topic = topic_rates(snapshot.partitions.topic, in_rate)
    by_broker = led_rates(snapshot, in_rate, seen.quiet)
    offsets = _offsets(state, in_rate)
    groups = group_lags(snapshot, offsets)
    names, brokers = topics.tolist(), snapshot.brokers.id.tolist()
    topic_series = extended(state.topic_series, names, by_topic, points)
    broker_series = extended(state.broker_series, brokers, by_broker, points)
    now = replace(
        state,
        kept=Kept.of(snapshot.offsets, offsets),
        topic_series=dict(zip(names, topic_series, strict=True)),
        broker_series=dict(zip(brokers, broker_series, strict=True)),
        group_series=group_series(
            state.group_series,
            snapshot.groups.group.tolist(),
            groups,
            points,
            snapshot.observation.ended_ms,
        ),
    )
    return now, Sample(in_rate, by_broker, by_topic, offsets, groups)


def _view(state: State, sampled: Sample) -> View:
    """Return the view of a state that was sampled."""
    seen = _seen_of(state)
    snapshot, quiet, placed = seen.snapshot, seen.quiet, seen.placed
    table, offsets = snapshot.partitions, sampled.offsets
    seeded = lag.seed_rate(state.points, *_log_ends(snapshot))
    figures = partition_figures(
        snapshot, placed, seen.frozen_since_ms, sampled.in_rate, seeded, state.changed_ms, seen.readings
    )
    groups = group_figures(snapshot, offsets, sampled.groups, state.group_series)
    brokers = broker_figures(
        snapshot,
        offsets.partition_row,
        offsets.read_rate,
        quiet,
        sampled.broker_rates,
        tuple(state.broker_series.values()),
    )
    topics = topic_figures(
        snapshot,
        figures,
        placed,
        seen.readings.sizes,
        sampled.topic_rates,
        tuple(state.topic_series.values()),
    )
    return View(
        snapshot=snapshot,
        headline=headline(
            snapshot, brokers, figures, topics, groups, placed, quiet, _requests_rate(state, snapshot)
        ),
        brokers=brokers,
        partitions=figures,
        topics=topics,
        groups=groups,
        offsets=offsets,
        throughput=throughput(
            topics, state.moments, total_out(snapshot, offsets.partition_row, offsets.read_rate, quiet)
        ),
        events=state.events,
        new_events=state.new_events,
        worst_partitions=worst_first(table, figures),
    )


def _seen_of(state: State) -> Seen:
    assert state.seen is not None
    return state.seen


def _log_ends(snapshot: Snapshot) -> tuple[Longs, Longs]:
    """Return where logs end, and when these log ends were read.

    If the cluster does not report log ends, high watermarks take their place.
    """
    table = snapshot.partitions
    if "debugging_replica" in snapshot.observation.capabilities:
        return table.log_end, table.log_end_ms
    return table.high_watermark, table.high_watermark_ms


def _seen(before: Seen | None, snapshot: Snapshot, marks: Watermarks) -> Seen:
    now = standing(snapshot, before)
    table, placed = snapshot.partitions, now.placed
    frozen = frozen_since(marks, table, placed.silent_in_isr_since_ms, placed.leader_silent_since_ms)
    frozen = np.where(table.leader == -1, UNKNOWN, frozen)
    return Seen(snapshot, now.quiet, placed, now.readings, frozen)


def _offsets(state: State, in_rate: Floats) -> OffsetFigures:
    seen = _seen_of(state)
    led = Led(in_rate, seen.placed.leader_silent_since_ms, seen.frozen_since_ms)
    return offset_figures(seen.snapshot, state.partition_rows, led, state.points, state.commits, state.kept)


def _kept(state: State, snapshot: Snapshot, commits: Commits, offset_rows: Alignment) -> Kept:
    """Return the figures of the cells that were not read again in `snapshot`.

    `commits` are the earlier commits, with the rows of this snapshot. If the earlier moment was not sampled,
    its figures are calculated now.
    """
    carried = state.kept.carried(offset_rows)
    received_ms = snapshot.offsets.received_ms
    stale = (commits.received_ms == received_ms) & (received_ms != UNKNOWN)
    if not np.any(stale & (carried.of_ms != received_ms)):
        return carried
    seen = _seen_of(state)
    in_rate = in_rates(seen.snapshot.partitions, seen.placed, state.ends.per_second)
    return Kept.of(seen.snapshot.offsets, _offsets(state, in_rate)).carried(offset_rows)


def _requests_rate(state: State, snapshot: Snapshot) -> float:
    """Return kview's own requests per second since the previous observation."""
    if state.before_ms == UNKNOWN:
        return float("nan")
    elapsed_ms = snapshot.observation.ended_ms - state.before_ms
    return snapshot.observation.requests * 1000.0 / elapsed_ms if elapsed_ms > 0 else float("nan")
