"""The fold: a state and a snapshot in, the next state and a view out. Live, replay and tests use it alike.

`step` is pure. A view at t is the same whether the fold began at the beginning or at the last snapshot at or
before t − LOOK_BACK_MS, with one exception: the figures of a group's partition whose cell has not been read
again since before that (its coordinator is silent) are kept as they were.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from kview.derive import lag
from kview.derive.align import Alignment, align_offsets, align_partitions, partition_rows
from kview.derive.brokers import broker_figures, silence
from kview.derive.commits import Commits
from kview.derive.events import Seen, differences, kept
from kview.derive.group_events import group_events
from kview.derive.groups import BehindSeries, group_figures
from kview.derive.headline import headline
from kview.derive.lag import Points
from kview.derive.offsets import offset_figures
from kview.derive.partitions import (
    changed_since,
    partition_figures,
    placement,
    replica_readings,
    worst_first,
)
from kview.derive.rates import LOOK_BACK_MS, Ends, advance, total
from kview.derive.series import Series, next_moments
from kview.derive.topics import throughput, topic_figures
from kview.derive.view import View
from kview.derive.watermarks import Watermarks, follow, frozen_since
from kview.model.events import Event, Severity
from kview.model.snapshot import Longs, Snapshot
from kview.model.units import UNKNOWN

__all__ = ["LOOK_BACK_MS", "State", "fold_to", "step"]


@dataclass(frozen=True, slots=True)
class State:
    """What is carried from step to step: the view before, and bounded series. Frozen; columns are never
    written to."""

    view: View | None = None
    ends: Ends = field(default_factory=lambda: Ends.none(0))
    watermarks: Watermarks = field(default_factory=lambda: Watermarks.none(0))
    points: Points = field(default_factory=lambda: Points.none(0))
    commits: Commits = field(default_factory=lambda: Commits.none(0))
    group_series: Mapping[str, tuple[Series, BehindSeries]] = field(default_factory=dict)
    moments: tuple[int, ...] = ()
    events: tuple[Event, ...] = ()


def step(state: State, snapshot: Snapshot) -> tuple[State, View]:
    """The next state and view. A snapshot from before the last one (a clock that jumped back) begins anew."""
    now_ms = snapshot.observation.ended_ms
    before = state.view
    if before is not None and now_ms < before.snapshot.observation.ended_ms:
        state, before = State(), None
    then = before.snapshot if before else Snapshot(snapshot.observation)
    table = snapshot.partitions
    rows = align_partitions(then.partitions, table)
    quiet = silence(snapshot.brokers)
    placed = placement(table, quiet)

    has_ends = "debugging_replica" in snapshot.observation.capabilities
    read, read_ms = (
        (table.log_end, table.log_end_ms) if has_ends else (table.high_watermark, table.high_watermark_ms)
    )
    ends, fell = advance(state.ends.carried(rows), read, read_ms, now_ms)
    marks = follow(state.watermarks, then.partitions.high_watermark_ms, rows, table, now_ms)
    frozen = frozen_since(marks, table, placed.silent_in_isr_since_ms, placed.leader_silent_since_ms)
    frozen = np.where(table.leader == -1, UNKNOWN, frozen)
    points = lag.capped(lag.carried(state.points, rows), fell, read)
    if (
        before is None
        or rows.rows is not None
        or not lag.same_answers(then.time_points, snapshot.time_points)
    ):
        points = lag.with_seeds(points, table, snapshot.time_points, read)
    seeded = lag.seed_rate(points, read, read_ms)
    points = lag.with_reading(points, read_ms, read, now_ms)

    changed = changed_since(
        then.partitions,
        before.partitions.changed_ms if before else np.empty(0, np.int64),
        rows,
        table,
        now_ms,
    )
    readings = replica_readings(table, snapshot.replicas)
    figures = partition_figures(snapshot, placed, frozen, ends.per_second, seeded, changed, readings)
    offset_alignment = align_offsets(then.offsets, snapshot.offsets)
    offsets, commits = offset_figures(
        snapshot,
        _partition_rows(before, rows, offset_alignment, snapshot),
        figures,
        points,
        state.commits,
        before.offsets if before else None,
        offset_alignment,
    )
    moments = next_moments(state.moments, now_ms)
    groups, group_series = group_figures(snapshot, offsets, state.group_series, len(moments))
    brokers = broker_figures(
        snapshot,
        figures,
        offsets.partition_row,
        offsets.read_rate,
        quiet,
        (then.brokers.id, before.brokers) if before else None,
        len(moments),
    )
    topic_series = dict(zip(before.topics.topic, before.topics.in_series, strict=True)) if before else {}
    topics = topic_figures(snapshot, figures, placed, readings.sizes, topic_series, len(moments))
    new_events: tuple[Event, ...] = ()
    if before is not None:
        new_events = (
            *differences(Seen(then, before.partitions), Seen(snapshot, figures), rows),
            *group_events(then, snapshot),
        )
    events = kept(state.events, new_events, now_ms)
    view = View(
        snapshot=snapshot,
        headline=headline(
            snapshot, brokers, figures, topics, groups, placed, quiet, _requests_rate(before, snapshot)
        ),
        brokers=brokers,
        partitions=figures,
        topics=topics,
        groups=groups,
        offsets=offsets,
        throughput=throughput(topics, moments, total(brokers.out_rate)),
        events=events,
        new_events=new_events,
        worst_partitions=worst_first(table, figures),
        internal_troubled=int(
            (table.internal & np.asarray(figures.severity == Severity.RISK, np.bool_)).sum()
        ),
    )
    return State(view, ends, marks, points, commits, group_series, moments, events), view


def fold_to(
    last: Snapshot, look_back: Iterable[Snapshot], cancelled: Callable[[], bool]
) -> tuple[State, View] | None:
    """The state and the view at `last` after folding `look_back`, which ends with it, from nothing: those of
    one `step` after the other. None where `cancelled`, which is asked before every snapshot."""
    state, view = State(), None
    for snapshot in look_back:
        if cancelled():
            return None
        state, view = step(state, snapshot)
    return (state, view) if view is not None else step(state, last)


def _partition_rows(before: View | None, rows: Alignment, offsets: Alignment, snapshot: Snapshot) -> Longs:
    """The partitions' rows of `snapshot.offsets`; those of the step before where no row has moved."""
    if before is not None and rows.rows is None and offsets.rows is None:
        return before.offsets.partition_row
    return partition_rows(snapshot.offsets, snapshot.partitions)


def _requests_rate(before: View | None, snapshot: Snapshot) -> float:
    """Kview's own requests per second: this observation's over the time since the one before."""
    if before is None:
        return float("nan")
    elapsed_ms = snapshot.observation.ended_ms - before.snapshot.observation.ended_ms
    return snapshot.observation.requests * 1000.0 / elapsed_ms if elapsed_ms > 0 else float("nan")
