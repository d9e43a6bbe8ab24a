"""The figures of a moment: those that are added to series, and the view, on which nothing depends."""

import numpy as np
from msgspec.structs import replace

from kview.derive.brokers import log_dirs
from kview.derive.brokers.figures import broker_figures
from kview.derive.brokers.quorum import can_fence, quorum_findings
from kview.derive.brokers.silence import led_rates, none_answer_since, total_out
from kview.derive.brokers.throttles import throttle_findings
from kview.derive.groups import past_ends
from kview.derive.groups.figures import group_figures, group_lags, group_series
from kview.derive.groups.offsets import Kept
from kview.derive.headline import NO_HEADLINE, headline
from kview.derive.partitions.figures import partition_figures, worst_first
from kview.derive.partitions.inputs import input_findings
from kview.derive.partitions.logs import log_ends
from kview.derive.partitions.placement import in_rates
from kview.derive.partitions.reassignments import move_figures
from kview.derive.partitions.topics import throughput, topic_figures, topic_rates, total_in
from kview.derive.sampled import Sample
from kview.derive.series import extended
from kview.derive.state import State, offsets_of, read_of, seen_of
from kview.derive.view import View
from kview.model.units import UNKNOWN


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


def view_of(state: State, sampled: Sample) -> View:
    """Return the view of a state that was sampled."""
    seen = seen_of(state)
    snapshot, offsets = seen.snapshot, sampled.offsets
    seeded = sampled.in_rate
    if not np.isfinite(seeded).all():
        seeded = past_ends.seed_rate(state.logs.points, *log_ends(snapshot))
    figures = partition_figures(seen, sampled.in_rate, seeded, state.changed_ms, state.busy)
    groups = group_figures(snapshot, offsets, sampled.groups, state.group_series, state.busy, state.ignore)
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
