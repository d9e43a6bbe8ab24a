"""The headline, which says whether anything is wrong: one severity and the findings, the worst first."""

import math
from collections.abc import Hashable, Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from kview.derive.brokers.log_dirs import log_dir_findings, stranded
from kview.derive.brokers.silence import Silence, none_answer_since, other_apis
from kview.derive.groups.connect import connector_findings
from kview.derive.groups.findings import group_findings, groups_ok, heeded
from kview.derive.groups.unheard import unheard
from kview.derive.hidden import hidden, lacks_topics
from kview.derive.partitions.placement import Placement, at_min, under_min, under_replicated
from kview.derive.seen import Seen
from kview.derive.transactions.findings import transaction_findings
from kview.derive.view import (
    BrokerFigures,
    GroupFigures,
    Headline,
    PartitionFigures,
    PartitionStatus,
    TopicFigures,
    View,
)
from kview.model.events import SEVERITY_ORDER, Event, EventKind, Severity
from kview.model.failures import NO_FAILURE, Cause, FailureKind, Part
from kview.model.findings import MOST_TOPICS, Finding, FindingKind
from kview.model.incidents import Incident
from kview.model.snapshot import Flags, Longs, Snapshot, UncleanElections
from kview.model.states import BrokerState
from kview.model.units import UNKNOWN

K = FindingKind

_NOT_BELIEVED = frozenset({FailureKind.MALFORMED, FailureKind.OUTDATED, FailureKind.KAFKA_ERROR})
"""Why metadata that was answered is not used. A broker that does not answer is a finding of its own."""

UNCLEAN_STAYS_MS = 900_000
"""How long an unclean election stays in the headline of those who open no incident."""

APIS_DIFFER_FOR_MS = 3_600_000
"""Brokers that offer different APIs for this long are not just being upgraded one after the other."""

LOSS_STAYS_MS = 120_000
"""How long records that were lost at an election stay in the headline. The event stays longer."""


NO_HEADLINE = Headline(Severity.CALM, (), (), 0, 0, False, 0, 0, 0, 0, math.nan)
"""That of a view which has none yet."""


def headline(view: View, seen: Seen, controllers: Sequence[Finding], advice: Sequence[Finding]) -> Headline:
    """Return the headline of a view: what is wrong with the cluster, or that it is well, and what is wrong
    with groups.

    `controllers` are the findings about these, `advice` calm ones. The counts cover the user's topics;
    severity and findings include internal topics.
    """
    snapshot, placed, quiet = seen.snapshot, seen.placed, seen.quiet
    brokers, partitions, topics, groups = view.brokers, view.partitions, view.topics, view.groups
    table = snapshot.partitions
    mine = ~table.internal
    none_since = none_answer_since(snapshot.brokers)
    if none_since != UNKNOWN:  # nothing else is known about the present
        cause = _one_cause(snapshot)
        findings = [Finding(K.NO_BROKER_ANSWERS, Severity.RISK, since_ms=none_since, cause=cause)]
    else:
        findings = [
            *_metadata(snapshot),
            *hidden(snapshot.observation, unheard(snapshot.observation)),
            *_brokers(snapshot, brokers, partitions, quiet),
            *log_dir_findings(snapshot),
            *_partitions(snapshot, brokers, partitions, placed, topics),
            *controllers,
        ]
    well = () if findings else (_calm(snapshot),)
    if none_since == UNKNOWN:
        findings += transaction_findings(snapshot, view.offsets)
        findings += group_findings(snapshot, groups)
        findings += connector_findings(snapshot)
        findings += _lost_lately(view.events, snapshot.observation.ended_ms)
        findings += advice
        findings += _leadership(snapshot, brokers, partitions)
        findings += _different_apis(snapshot)
    if well and not findings and len(snapshot.groups) and not unheard(snapshot.observation):
        well = (_all_well(well[0], groups),)
    findings.sort(key=lambda finding: (SEVERITY_ORDER.index(finding.severity), _is_internal(finding)))
    found = _composed(
        findings, well, unclean_finding(view.unclean, lately(view.unclean, snapshot.observation.ended_ms))
    )
    offline = partitions.having(PartitionStatus.NO_LEADER)
    return Headline(
        severity=_worst(found),
        findings=found,
        well=well,
        topics=int((~topics.internal).sum()),
        partitions=int(mine.sum()),
        topics_are_bound=lacks_topics(snapshot.observation),
        under_replicated=int((mine & under_replicated(placed)).sum()),
        offline=int((mine & offline).sum()),
        under_min_isr=int((mine & under_min(table, placed)).sum()),
        at_min_isr=int((mine & at_min(table, placed)).sum()),
        requests_per_second=_requests_rate(seen),
    )


def _requests_rate(seen: Seen) -> float:
    """Return kview's own requests per second since the previous observation, NaN in the first step."""
    requests, elapsed_ms = seen.snapshot.observation.requests, seen.interval_ms
    return requests * 1000.0 / elapsed_ms if elapsed_ms > 0 else math.nan


def _is_internal(finding: Finding) -> bool:
    """Return whether a finding is about partitions of internal topics alone."""
    return finding.internal_partitions > 0 and not finding.partitions and not finding.brokers


def _metadata(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield that the last metadata was not believed or could not be read, while brokers answer."""
    for failure in snapshot.observation.failures:
        if failure.part == Part.METADATA and failure.kind in _NOT_BELIEVED:
            yield Finding(
                K.METADATA_FAILED,
                Severity.WARN,
                since_ms=failure.shown_since_ms,
                cause=Cause(FailureKind(failure.kind), failure.code),
            )
            return


def _one_cause(snapshot: Snapshot) -> Cause:
    """Return why the brokers do not answer, if it is the same for all of them."""
    table = snapshot.brokers
    causes = set(table.error[np.asarray(table.state != BrokerState.GONE, np.bool_)].tolist())
    return Cause(FailureKind(causes.pop())) if len(causes) == 1 else NO_FAILURE


def _split(mask: Flags, internal: Flags) -> tuple[int, int]:
    inside = int((mask & internal).sum())
    return int(mask.sum()) - inside, inside


def _brokers(
    snapshot: Snapshot, figures: BrokerFigures, partitions: PartitionFigures, quiet: Silence
) -> Iterator[Finding]:
    """Yield silent brokers, then starting, fenced and gone brokers.

    Silent brokers come with what they lead, what is frozen, and the countdown.
    """
    table = snapshot.brokers
    silent = np.asarray(table.state == BrokerState.SILENT, np.bool_)
    if silent.any():
        if (lost := silent & ~figures.unreached).any():
            yield from _silent(snapshot, figures, partitions, quiet, lost)
        if figures.unreached.any():
            yield _unreached(snapshot, figures, quiet)
    if (owing := figures.late).any():
        since_ms = _first(table.answered_ms[owing])
        yield Finding(K.BROKERS_LATE, Severity.WARN, brokers=_ids(snapshot, owing), since_ms=since_ms)
    if (slow := figures.slow_since_ms != UNKNOWN).any():
        slowest_ms = int(table.latency_us[slow].max()) // 1000
        since_ms = _first(figures.slow_since_ms)
        ids = _ids(snapshot, slow)
        yield Finding(K.BROKERS_SLOW, Severity.WARN, brokers=ids, count=slowest_ms, since_ms=since_ms)
    if (alone := figures.cut_off_since_ms != UNKNOWN).any():
        since_ms = _first(figures.cut_off_since_ms)
        yield Finding(K.BROKERS_CUT_OFF, Severity.WARN, brokers=_ids(snapshot, alone), since_ms=since_ms)
    for state, kind in (
        (BrokerState.STARTING, FindingKind.BROKERS_STARTING),
        (BrokerState.FENCED, FindingKind.BROKERS_FENCED),
        (BrokerState.GONE, FindingKind.BROKERS_GONE),
    ):
        out = np.asarray(table.state == state, np.bool_)
        if out.any():
            yield Finding(kind, Severity.WARN, brokers=_ids(snapshot, out), rack=_rack(snapshot, out))


def _silent(
    snapshot: Snapshot, figures: BrokerFigures, partitions: PartitionFigures, quiet: Silence, silent: Flags
) -> Iterator[Finding]:
    ids = _ids(snapshot, silent)
    mine, internal = int(figures.leads[silent].sum()), int(figures.leads_internal[silent].sum())
    yield Finding(
        FindingKind.BROKERS_SILENT,
        Severity.RISK,
        brokers=ids,
        rack=_rack(snapshot, silent),
        partitions=mine,
        internal_partitions=internal,
        since_ms=_first(quiet.since_ms[silent]),
        since_is_bound=bool(figures.since_is_bound[silent].any()),
    )
    frozen = partitions.having(PartitionStatus.FROZEN)
    more, more_internal = _split(frozen, snapshot.partitions.internal)
    if mine:  # the finding above counts the user's partitions alone
        led = partitions.having(PartitionStatus.SILENT_LEADER)
        more_internal += _split(led & (partitions.frozen_since_ms != UNKNOWN), snapshot.partitions.internal)[
            1
        ]
    if more or more_internal:
        yield Finding(
            FindingKind.WATERMARK_FROZEN,
            Severity.RISK,
            partitions=more,
            internal_partitions=more_internal,
            count=mine,
        )
    due_ms = _first(figures.fencing_due_ms[silent])
    if due_ms != UNKNOWN:
        yield Finding(FindingKind.FENCING_DUE, Severity.RISK, brokers=ids, due_ms=due_ms)


def _unreached(snapshot: Snapshot, figures: BrokerFigures, quiet: Silence) -> Finding:
    """Return the brokers that only we cannot reach, with what they lead."""
    mask = figures.unreached
    return Finding(
        FindingKind.QUORUM_HEARS_BROKERS,
        Severity.WARN,
        brokers=_ids(snapshot, mask),
        partitions=int(figures.leads[mask].sum()),
        internal_partitions=int(figures.leads_internal[mask].sum()),
        since_ms=_first(quiet.since_ms[mask]),
    )


def _first(times_ms: Longs) -> int:
    """Return the earliest of the known times, UNKNOWN if none is known."""
    known = times_ms[times_ms != UNKNOWN]
    return int(known.min()) if len(known) else UNKNOWN


def _ids(snapshot: Snapshot, mask: Flags) -> tuple[int, ...]:
    return tuple(snapshot.brokers.id[mask].tolist())


def _rack(snapshot: Snapshot, mask: Flags) -> str:
    """Return the rack if the masked brokers are all its brokers and there are at least two of them, else
    ''."""
    racks = snapshot.brokers.rack
    racks_hit = set(racks[mask])
    if int(mask.sum()) < 2 or len(racks_hit) != 1:
        return ""
    rack = str(racks_hit.pop())
    return rack if int((racks == rack).sum()) == int(mask.sum()) else ""


def _partitions(
    snapshot: Snapshot,
    brokers: BrokerFigures,
    figures: PartitionFigures,
    placed: Placement,
    topics: TopicFigures,
) -> Iterator[Finding]:
    """Yield what is wrong with partitions, except for what the findings about silent brokers already count.

    A partition counts once, as the worst that is true of it.
    """
    table, internal = snapshot.partitions, snapshot.partitions.internal
    any_silent = bool(((snapshot.brokers.state == BrokerState.SILENT) & ~brokers.unreached).any())

    def having(status: PartitionStatus) -> Flags:
        return figures.having(status)

    nobody = np.zeros(len(table), np.bool_)
    S = PartitionStatus
    frozen = nobody if any_silent else having(S.FROZEN)
    refusing = frozen & under_min(table, placed)  # which is why their watermarks stand still
    for mask, severity, kind in (
        (having(S.NO_LEADER), Severity.RISK, K.NO_LEADER),
        (nobody if any_silent else having(S.SILENT_LEADER), Severity.RISK, K.SILENT_LEADER),
        (frozen & ~refusing, Severity.RISK, K.WATERMARK_FROZEN),
        (having(S.UNDER_MIN_ISR) | refusing, Severity.RISK, K.UNDER_MIN_ISR),
        (having(S.AT_MIN_ISR), Severity.WARN, K.AT_MIN_ISR),
        (having(S.UNDER_REPLICATED), Severity.WARN, K.UNDER_REPLICATED),
    ):
        if mask.any():
            mine, inside = _split(mask, internal)
            named = _topics(topics, mask)
            yield Finding(kind, severity, topics=named, partitions=mine, internal_partitions=inside)
    if (refused := having(S.UNREAD)).any():
        mine, inside = _split(refused, internal)
        since_ms, code = _first(table.high_watermark_ms[refused]), int(table.error_code[refused][0])
        yield Finding(
            K.PARTITIONS_UNREAD,
            Severity.WARN,
            topics=_topics(topics, refused),
            partitions=mine,
            internal_partitions=inside,
            since_ms=since_ms,
            cause=Cause(FailureKind.KAFKA_ERROR, code),
        )


def _topics(topics: TopicFigures, mask: Flags) -> tuple[str, ...]:
    """Return the first topics of the partitions in `mask`, the user's before internal ones."""
    concerned = np.flatnonzero(np.logical_or.reduceat(mask, topics.first_row))
    first = concerned[np.argsort(topics.internal[concerned], kind="stable")][:MOST_TOPICS]
    return tuple(topics.topic[first].tolist())


def _lost_lately(events: Sequence[Event], now_ms: int) -> Iterator[Finding]:
    """Yield the records that were lost in the last elections with their only replica.

    Nothing can be done about them any more, so the cluster may well be healthy again.
    """
    lost = [e for e in events if e.kind is EventKind.RECORDS_LOST and now_ms - e.at_ms < LOSS_STAYS_MS]
    if lost:
        yield Finding(
            K.LEADER_RECORDS_LOST,
            Severity.CALM,
            partitions=sum(event.partition_count for event in lost),
            internal_partitions=sum(event.internal_count for event in lost),
            count=sum(event.records for event in lost),
            since_ms=lost[-1].at_ms,
        )


def lately(unclean: UncleanElections, now_ms: int) -> Flags:
    """Return which unclean elections are in the headline of those who open no incident."""
    return np.asarray(now_ms - unclean.at_ms < UNCLEAN_STAYS_MS, np.bool_)


def unclean_finding(unclean: UncleanElections, which: Flags) -> Finding | None:
    """Return what unclean elections lost, None if `which` has none of them."""
    if not which.any():
        return None
    elections = unclean.take(which)
    known = elections.records != UNKNOWN
    return Finding(
        K.UNCLEAN_ELECTION,
        Severity.RISK,
        topics=tuple(dict.fromkeys(reversed(elections.topic.tolist()))),
        partitions=int(elections.partitions.sum()),
        internal_partitions=int(elections.internal_partitions.sum()),
        count=int(elections.records[known].sum()) if known.any() else UNKNOWN,
        count_is_bound=True,
        since_ms=int(elections.at_ms[-1]),
    )


def with_unclean(head: Headline, unclean: UncleanElections, which: Flags) -> Headline:
    """Return a headline that tells `which` of the unclean elections, and no others."""
    others = [f for f in head.findings if f.kind is not K.UNCLEAN_ELECTION and f not in head.well]
    findings = _composed(others, head.well, unclean_finding(unclean, which))
    return replace(head, findings=findings, severity=_worst(findings))


def opened_with(
    unclean: UncleanElections, incidents: Sequence[Incident], key: Hashable | None
) -> frozenset[int]:
    """Return the times of the unclean elections that somebody has opened with an incident, or that belong to
    no known incident if `key` is None."""
    at_ms = unclean.at_ms
    inside = {
        incident.key: (at_ms >= incident.began_ms) & (incident.is_open | (at_ms <= incident.ended_ms))
        for incident in incidents
    }
    nowhere = ~np.any([*inside.values(), np.zeros(len(at_ms), np.bool_)], axis=0)
    which = nowhere if key is None else inside.get(key, np.zeros(len(at_ms), np.bool_))  # type: ignore[call-overload]
    return frozenset(at_ms[which].tolist())


def _composed(
    others: Sequence[Finding], well: tuple[Finding, ...], lost: Finding | None
) -> tuple[Finding, ...]:
    """Return the findings in their order. That all is well is not said next to an unclean election."""
    risks = sum(finding.severity is Severity.RISK for finding in others)
    between = well if lost is None else (lost,)
    return (*others[:risks], *between, *others[risks:])


def _worst(found: Sequence[Finding]) -> Severity:
    return min((finding.severity for finding in found), key=SEVERITY_ORDER.index, default=Severity.CALM)


def _leadership(snapshot: Snapshot, brokers: BrokerFigures, figures: PartitionFigures) -> Iterator[Finding]:
    """Yield brokers that lead nothing, and partitions whose preferred leaders are up and do not lead."""
    table = snapshot.partitions
    if brokers.leads_nothing.any():
        yield Finding(K.LEADS_NOTHING, Severity.CALM, brokers=_ids(snapshot, brokers.leads_nothing))
    if not table.replicas.shape[1]:
        return
    up = snapshot.brokers.id[np.asarray(snapshot.brokers.state == BrokerState.UP, np.bool_)]
    away = ~figures.preferred & (table.leader >= 0) & np.isin(table.replicas[:, 0], up)
    away &= ~stranded(snapshot)[:, 0]
    if away.any():
        mine, internal = _split(away, table.internal)
        yield Finding(K.NOT_PREFERRED, Severity.CALM, partitions=mine, internal_partitions=internal)


def _different_apis(snapshot: Snapshot) -> Iterator[Finding]:
    """Yield that brokers have offered different APIs for an hour."""
    since_ms, others = snapshot.observation.apis_differ_since_ms, other_apis(snapshot)
    if others.any() and snapshot.observation.ended_ms - since_ms >= APIS_DIFFER_FOR_MS:
        yield Finding(K.APIS_DIFFER, Severity.CALM, brokers=_ids(snapshot, others), since_ms=since_ms)


def _calm(snapshot: Snapshot) -> Finding:
    """Return the finding for a cluster with which nothing is wrong.

    It says that the cluster is well, that there are no partitions, or that nothing is known yet.
    """
    up = int((snapshot.brokers.state == BrokerState.UP).sum())
    if not up:
        return Finding(FindingKind.NOTHING_KNOWN, Severity.CALM)
    kind = FindingKind.CLUSTER_WELL if len(snapshot.partitions) else FindingKind.NO_PARTITIONS
    return Finding(kind, Severity.CALM, count=up)


def _all_well(cluster: Finding, groups: GroupFigures) -> Finding:
    """Return the same finding for cluster and groups, if the cluster is well and every group is ok."""
    ok = groups_ok(groups)
    if cluster.kind is not FindingKind.CLUSTER_WELL or ok < int(heeded(groups).sum()):
        return cluster
    return replace(cluster, kind=FindingKind.ALL_WELL, groups=ok)
