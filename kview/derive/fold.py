"""The fold: takes a state and a snapshot, and returns the next state and a view.

Live runs, replays and tests all use it. `step` is pure and has three parts: `advance` calculates what all
later steps depend on, `sample` calculates what the steps of the next minute depend on (series), and the view,
on which nothing depends. A jump to another moment skips what no later step needs (`fold_to`).

A view at t is the same whether the fold began at the beginning or at the last snapshot at or before t −
LOOK_BACK_MS, if what was concluded of earlier moments (lags in time, unclean elections) was recorded with it.
There are five exceptions. If a group's coordinator is silent, the group's cells are not read again and keep
their figures, which depend on what was seen before the last reading. If there are only one or two brokers, a
slow one is compared with its past before it became slow. Incidents that began before the look-back are known
only to those who watched. So is how often a group commits, if that is less often than every few minutes. And
the events of a broker that answers normally again, of an offset that skips records after a long rest, of an
input that falls or is back, and of a transaction that was found, or for which a group waited, before the
look-back, depend on more than SETTLE_MS.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np
from msgspec.structs import replace

from kview.derive.align import Alignment
from kview.derive.brokers import log_dirs
from kview.derive.brokers.figures import broker_figures
from kview.derive.brokers.quorum import can_fence, quorum_findings
from kview.derive.brokers.silence import led_rates, none_answer_since, total_out
from kview.derive.brokers.throttles import throttle_findings
from kview.derive.events import differences, found, kept
from kview.derive.evidence import Proofs, evidence, signs_of_life
from kview.derive.groups import past_ends
from kview.derive.groups.events import group_events, offset_events
from kview.derive.groups.figures import (
    group_figures,
    group_lags,
    group_series,
    is_ignored,
    reads_unknown,
)
from kview.derive.groups.offsets import Kept
from kview.derive.groups.past import Rows
from kview.derive.groups.past_ends import TREND_BACK_MS
from kview.derive.headline import NO_HEADLINE, headline
from kview.derive.incidents import following as incidents_
from kview.derive.incidents.going_on import Step
from kview.derive.partitions import inputs as inputs_
from kview.derive.partitions.elections import Memory, elected
from kview.derive.partitions.figures import partition_figures, worst_first
from kview.derive.partitions.inputs import input_findings
from kview.derive.partitions.logs import log_ends
from kview.derive.partitions.placement import changed_since, in_rates, is_led, replica_lag
from kview.derive.partitions.rates import LOOK_BACK_MS
from kview.derive.partitions.reassignments import Progress, move_figures, reassigning, records_left
from kview.derive.partitions.topics import throughput, topic_figures, topic_rates, total_in
from kview.derive.sampled import Sample
from kview.derive.seen import Seen, see
from kview.derive.series import extended, next_moments
from kview.derive.standing import standing
from kview.derive.state import State, offsets_of, read_of, seen_of
from kview.derive.transactions import holds as holds_
from kview.derive.view import SERIES_POINTS, Floats, OffsetFigures, View
from kview.model.events import Event
from kview.model.snapshot import Snapshot
from kview.model.units import UNKNOWN

__all__ = ["LOOK_BACK_MS", "State", "advance", "fold_on", "fold_to", "sample", "step"]


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


def fold_to(
    last: Snapshot, look_back: LookBack, cancelled: Callable[[], bool], ignore: tuple[str, ...] = ()
) -> tuple[State, View] | None:
    """Return the state and the view at `last`, folded from nothing over `look_back`, which ends with `last`.

    `ignore` has patterns of the names of groups that count nowhere. The result is the same as that of
    consecutive calls of `step`. Before each snapshot, `cancelled` is called; the result is None if that
    returns True.
    """
    state, sampled = State(ignore), None
    first_sampled = len(look_back) - SERIES_POINTS
    for number, snapshot in enumerate(look_back):
        if cancelled():
            return None
        state = advance(state, snapshot)
        recent = snapshot.observation.ended_ms > last.observation.ended_ms - TREND_BACK_MS
        if recent or number >= first_sampled:
            state, sampled = sample(state)
    return (state, view_of(state, sampled, snapshot)) if sampled is not None else step(state, last)


def fold_on(state: State, snapshots: Sequence[Snapshot]) -> tuple[State, View]:
    """Take one or more snapshots in order, and return the new state with the view of the last snapshot.

    The result is that of `step` for each of them, but the views in between, which nobody sees, are not made.
    """
    state, sampled = sample(advance(state, snapshots[0]))
    for snapshot in snapshots[1:]:
        state, sampled = sample(advance(state, snapshot))
    return state, view_of(state, sampled, snapshots[-1])


def advance(state: State, snapshot: Snapshot) -> State:
    """Return the state after a snapshot, except for series and `kept`, which `sample` updates."""
    state = _begun(state, snapshot)
    before, now_ms = state.seen, snapshot.observation.ended_ms
    then = before.snapshot if before else Snapshot(snapshot.observation)
    table = snapshot.partitions
    rows = state.groups.rows(then, snapshot)
    logs = state.logs.follow(before.snapshot if before else None, snapshot, rows.partitions)
    standing_now = standing(snapshot, before)
    proofs: Proofs = {}
    if before is not None:
        read_back = then.offsets, rows.offsets, rows.at
        proofs = signs_of_life(state.proofs, before, standing_now, rows.partitions, read_back)
    brokers = state.brokers.follow(then, snapshot)
    seen = see(standing_now, evidence(standing_now, proofs), brokers.slowness, logs.watermarks)
    groups = state.groups.follow(then, snapshot, rows, logs, seen.frozen_since_ms)
    led = is_led(table, seen.placed)
    inputs, input_events = inputs_.follow(state.inputs, rows.partitions, table, logs.ends, led, now_ms)
    per_second = logs.ends.per_second
    after = replace(
        state,
        seen=seen,
        brokers=brokers,
        logs=logs,
        groups=replace(groups, kept=_kept(state, snapshot, rows)),
        changed_ms=changed_since(then.partitions, state.changed_ms, rows.partitions, table, now_ms),
        proofs=proofs,
        moments=next_moments(state.moments, now_ms),
        progress=_progress(state.progress, seen, rows.partitions, per_second),
        inputs=inputs,
    )
    return _with_holds(_with_events(state, after, rows, input_events), rows.partitions)


def _begun(state: State, snapshot: Snapshot) -> State:
    """Return the state to go on from: nothing if the clock jumped back, or if this is another observer."""
    if state.seen is None:
        return state
    last = state.seen.snapshot.observation
    if snapshot.observation.ended_ms < last.ended_ms or not snapshot.observation.follows(last):
        return State(state.ignore)
    return state


def _with_events(state: State, after: State, rows: Rows, input_events: Sequence[Event]) -> State:
    """Return `after`, the state that follows `state`, with its incidents, elections and events."""
    before, seen = state.seen, seen_of(after)
    snapshot, now_ms = seen.snapshot, seen.snapshot.observation.ended_ms
    if before is None:
        incidents = incidents_.first(seen, after.brokers.term)
        new_events = (*found(snapshot), *incidents_.controller_events(None, incidents, snapshot))
        elections = Memory(snapshot.unclean)
    else:
        lost = elected(before, seen, rows.partitions)
        elections = state.elections.next(snapshot, rows.partitions, lost)
        incident_step = Step(
            before, seen, rows.partitions, state.changed_ms, after.brokers.term, rows.at, read_of(after)
        )
        incidents = incidents_.follow(state.incidents, incident_step)
        of_groups = (
            *group_events(before.snapshot, snapshot),
            *offset_events(snapshot, rows.commits, after.groups.commits, after.groups.losses),
        )
        new_events = (
            *differences(before, seen, rows.partitions, lost),
            *incidents_.incident_events(state.incidents, incidents, now_ms),
            *incidents_.controller_events(state.incidents, incidents, snapshot),
            *input_events,
            *(event for event in of_groups if not is_ignored(event.group, state.ignore)),
        )
        new_events = tuple(e if e.at_ms == now_ms else replace(e, seen_ms=now_ms) for e in new_events)
    return replace(
        after,
        incidents=incidents,
        elections=elections,
        events=kept(state.events, new_events, now_ms),
        new_events=new_events,
    )


def _with_holds(state: State, rows: Alignment) -> State:
    """Return a state with the transactions that hold back last stable offsets now, and with their events."""
    seen = seen_of(state)
    snapshot, now_ms = seen.snapshot, seen.snapshot.observation.ended_ms

    def offsets() -> OffsetFigures:
        return offsets_of(state, in_rates(snapshot.partitions, seen.placed, state.logs.ends.per_second))

    holds, events = holds_.follow(state.holds, rows, snapshot, offsets)
    if not events:
        return replace(state, holds=holds) if holds or state.holds else state
    new_events = (*state.new_events, *events)
    return replace(state, holds=holds, new_events=new_events, events=kept(state.events, events, now_ms))


def _progress(before: Progress, seen: Seen, rows: Alignment, per_second: Floats) -> Progress:
    """Return the progress of reassignments as of this step."""
    snapshot, now_ms = seen.snapshot, seen.snapshot.observation.ended_ms
    if not len(snapshot.reassignments):
        return Progress()
    progress = before.carried(rows, now_ms)
    if not progress.is_due(now_ms):
        return progress
    table, placed, read = snapshot.partitions, seen.placed, seen.readings
    lags = replica_lag(table, placed, read.ends, read.times_ms, per_second)
    left, is_bound = records_left(table, placed.being_added & ~placed.in_isr, lags)
    return progress.with_point(now_ms, left, is_bound, reassigning(snapshot))


def _kept(state: State, snapshot: Snapshot, rows: Rows) -> Kept:
    """Return the figures of the cells that were not read again in `snapshot`. `state` is the one before.

    If the earlier moment was not sampled, its figures are calculated now.
    """
    carried = state.groups.kept.carried(rows.offsets)
    received_ms = snapshot.offsets.received_ms
    stale = (rows.commits.received_ms == received_ms) & (received_ms != UNKNOWN)
    if not np.any(stale & (carried.of_ms != received_ms)):
        return carried
    seen = seen_of(state)
    in_rate = in_rates(seen.snapshot.partitions, seen.placed, state.logs.ends.per_second)
    return Kept.of(seen.snapshot.offsets, offsets_of(state, in_rate)).carried(rows.offsets)


def sample(state: State) -> tuple[State, Sample]:
    """Add the figures of this moment to the series."""
    seen = seen_of(state)
    snapshot, points = seen.snapshot, len(state.moments)
    in_rate = in_rates(snapshot.partitions, seen.placed, state.logs.ends.per_second)
    topics, by_topic = topic_rates(seen, in_rate)
    by_broker = led_rates(snapshot, in_rate, seen.quiet)
    offsets = offsets_of(state, in_rate)
    groups = group_lags(snapshot, offsets, read_of(state).group, in_rate)
    names, brokers = topics.tolist(), snapshot.brokers.id.tolist()
    (in_series,) = extended(
        {"": state.in_series}, [""], np.array([total_in(snapshot.partitions, in_rate)]), points
    )
    topic_series = extended(state.topic_series, names, by_topic, points)
    broker_series = extended(state.broker_series, brokers, by_broker, points)
    now = replace(
        state,
        groups=replace(state.groups, kept=Kept.of(snapshot.offsets, offsets)),
        in_series=in_series,
        topic_series=dict(zip(names, topic_series, strict=True)),
        broker_series=dict(zip(brokers, broker_series, strict=True)),
        group_series=group_series(
            state.group_series,
            snapshot.groups.group,
            groups,
            points,
            snapshot.observation.ended_ms,
        ),
    )
    return now, Sample(in_rate, by_broker, by_topic, offsets, groups)


def view_of(state: State, sampled: Sample, snapshot: Snapshot) -> View:
    """Return the view of `snapshot`, the last one that the state has taken. The state was sampled."""
    seen, offsets = seen_of(state), sampled.offsets
    seeded = sampled.in_rate
    if not np.isfinite(seeded).all():
        seeded = past_ends.seed_rate(state.logs.points, *log_ends(snapshot))
    figures = partition_figures(seen, sampled.in_rate, seeded, state.changed_ms)
    groups = group_figures(snapshot, offsets, sampled.groups, state.group_series, state.ignore)
    dirs_full_ms = log_dirs.full_ms(state.brokers.rooms, snapshot.log_dirs, snapshot.observation.ended_ms)
    controllers = tuple(
        quorum_findings(snapshot, state.brokers.term, seen.interval_ms, state.incidents.controllers_lost)
    )
    brokers = broker_figures(
        seen,
        sampled,
        tuple(state.broker_series.values()),
        can_fence(controllers, none_answer_since(snapshot.brokers) != UNKNOWN),
        state.brokers.term.since_ms,
        dirs_full_ms,
    )
    topics = topic_figures(seen, figures, sampled.topic_rates, tuple(state.topic_series.values()))
    view = View(
        snapshot=snapshot,
        headline=NO_HEADLINE,
        brokers=brokers,
        partitions=figures,
        moves=move_figures(snapshot, figures, seen.readings.sizes, state.progress),
        topics=topics,
        groups=groups,
        offsets=offsets,
        throughput=throughput(
            topics,
            state.moments,
            state.in_series,
            total_out(snapshot, offsets.partition_row, offsets.read_rate, seen.quiet),
            reads_unknown(snapshot.groups, groups.read_rate),
        ),
        events=state.events,
        new_events=state.new_events,
        worst_partitions=worst_first(snapshot.partitions, figures),
        dirs_full_ms=dirs_full_ms,
        unclean=state.elections.unclean,
        oldest_unread=state.groups.unread.kept(snapshot),
        incidents=state.incidents.all,
    )
    advice = (*input_findings(state.inputs.low), *throttle_findings(snapshot, state.brokers.quiet))
    return replace(view, headline=headline(view, seen, controllers, advice))
