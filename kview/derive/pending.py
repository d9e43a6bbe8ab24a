"""A view whose past is still being read.

The view shows what the snapshot itself contains, and marks everything else as pending.
"""

from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from kview.derive.evidence import undecided
from kview.derive.statuses import RANK
from kview.derive.topics import severities
from kview.derive.view import BrokerFigures, Floats, PartitionStatus, Reason, Verdict, View
from kview.model.events import SEVERITY_ORDER, Severity
from kview.model.findings import Finding, FindingKind
from kview.model.snapshot import Flags, Longs, Strings
from kview.model.units import PENDING, PENDING_RATE, UNKNOWN

_OF_THE_PAST = frozenset(
    {FindingKind.GROUPS_TROUBLED, FindingKind.GROUPS_UNREAD, FindingKind.CONTROLLERS_LOST}
)
"""Findings that follow from earlier snapshots, such as those from verdicts."""

_OF_SILENT_BROKERS = frozenset({FindingKind.WATERMARK_FROZEN, FindingKind.FENCING_DUE})
"""Findings that follow from the silence of brokers, and from what is known about these."""


def pending(view: View) -> View:
    """Return `view`, which was folded from its own snapshot only, with its unfinished figures marked.

    Every figure that depends on another snapshot becomes PENDING (PENDING_RATE, Verdict.PENDING …). Findings
    from the snapshot itself stay, but the view does not say that all is well.
    """
    brokers, table, topics = view.brokers, view.partitions, view.topics
    groups, offsets, head = view.groups, view.offsets, view.headline
    open_ = undecided(view.snapshot, brokers.unreached)
    wrong = tuple(_wrong(view, open_))
    rest = FindingKind.REST_PENDING if wrong else FindingKind.PAST_PENDING
    unsure = _unsure(view, open_)
    status = _words(table.status, unsure, PartitionStatus.PENDING)
    severity = _words(table.severity, status == PartitionStatus.PENDING, Severity.CALM)
    worst = min((finding.severity for finding in wrong), key=SEVERITY_ORDER.index, default=Severity.CALM)
    return replace(
        view,
        headline=replace(
            head,
            severity=worst,
            findings=(*wrong, Finding(rest, Severity.CALM)),
            well=(),
            requests_per_second=PENDING_RATE,
        ),
        brokers=_brokers(brokers, open_),
        partitions=replace(
            table,
            rank=np.where(unsure, RANK[PartitionStatus.PENDING], table.rank).astype(np.int8),
            status=status,
            severity=severity,
            in_rate=_rates(table.in_rate),
            frozen_since_ms=np.where(status == PartitionStatus.FROZEN, PENDING, UNKNOWN),
            undecided=view.snapshot.brokers.id[open_].astype(np.int64),
        ),
        moves=replace(view.moves, time_left_ms=_times(view.moves.time_left_ms)),
        topics=replace(
            topics,
            severity=severities(severity, topics.first_row),
            in_rate=_rates(topics.in_rate),
            in_series=_series(len(topics.in_series)),
        ),
        groups=replace(
            groups,
            severity=_words(groups.severity, None, Severity.CALM),
            place=np.arange(len(groups.place)),
            verdict=_words(groups.verdict, None, Verdict.PENDING),
            reason=_words(groups.reason, None, Reason.NONE),
            reason_ms=_unknown(groups.reason_ms),
            reason_count=_unknown(groups.reason_count),
            behind_ms=_times(groups.behind_ms),
            behind_is_bound=np.zeros_like(groups.behind_is_bound),
            behind_is_estimate=np.zeros_like(groups.behind_is_estimate),
            behind_trend=np.zeros_like(groups.behind_trend),
            read_rate=_rates(groups.read_rate),
            write_rate=_rates(groups.write_rate),
            lag_series=_series(len(groups.lag_series)),
        ),
        offsets=replace(
            offsets,
            verdict=_words(offsets.verdict, None, Verdict.PENDING),
            reason=_words(offsets.reason, None, Reason.NONE),
            reason_ms=_unknown(offsets.reason_ms),
            reason_count=_unknown(offsets.reason_count),
            behind_ms=_times(offsets.behind_ms),
            behind_is_bound=np.zeros_like(offsets.behind_is_bound),
            behind_is_estimate=np.zeros_like(offsets.behind_is_estimate),
            read_rate=_rates(offsets.read_rate),
            write_rate=_rates(offsets.write_rate),
            catch_up_ms=_times(offsets.catch_up_ms),
        ),
        throughput=replace(
            view.throughput,
            at_ms=(),
            in_series=(),
            in_rates=(PENDING_RATE,) * len(view.throughput.topics),
            total_in=PENDING_RATE,
            total_out=PENDING_RATE,
        ),
        events=(),
        new_events=(),
        incidents=(),
    )


def _wrong(view: View, undecided_: Flags) -> Iterator[Finding]:
    """Yield the findings that no earlier snapshot can refute."""
    ids = set(view.snapshot.brokers.id[undecided_].tolist())
    for finding in view.headline.findings:
        if finding.severity is Severity.CALM or finding.kind in _OF_THE_PAST:
            continue
        if finding.kind in _OF_SILENT_BROKERS and ids:
            continue
        if finding.kind is not FindingKind.BROKERS_SILENT or not ids:
            yield finding
        elif sure := tuple(broker for broker in finding.brokers if broker not in ids):
            mine = np.isin(view.snapshot.brokers.id, sure)
            yield replace(
                finding,
                brokers=sure,
                rack="",
                partitions=int(view.brokers.leads[mine].sum()),
                internal_partitions=int(view.brokers.leads_internal[mine].sum()),
                since_ms=int(view.brokers.silent_since_ms[mine].min()),
            )


def _brokers(figures: BrokerFigures, undecided_: Flags) -> BrokerFigures:
    return replace(
        figures,
        severity=_words(figures.severity, undecided_, Severity.CALM),
        fencing_due_ms=np.where(undecided_, UNKNOWN, figures.fencing_due_ms),
        cannot_be_fenced=figures.cannot_be_fenced & ~undecided_,
        undecided=undecided_,
        in_rate=_rates(figures.in_rate),
        out_rate=_rates(figures.out_rate),
        in_series=_series(len(figures.in_series)),
    )


def _unsure(view: View, undecided_: Flags) -> Flags:
    """Return the partitions of which the past may tell something else.

    These are healthy ones, and those in trouble only if an undecided broker is lost.
    """
    table, figures = view.snapshot.partitions, view.partitions
    ids = view.snapshot.brokers.id[undecided_]
    led = figures.having(PartitionStatus.SILENT_LEADER) & np.isin(table.leader, ids)
    in_isr = (np.isin(table.replicas, ids) & view.partitions.in_isr).any(1)
    waits = figures.having(PartitionStatus.FROZEN) & in_isr
    return np.asarray(figures.having(PartitionStatus.OK) | led | waits, np.bool_)


def _rates(figures: Floats) -> Floats:
    return np.full(len(figures), PENDING_RATE)


def _times(figures: Longs) -> Longs:
    return np.full(len(figures), PENDING, np.int64)


def _unknown(figures: Longs) -> Longs:
    return np.full(len(figures), UNKNOWN, np.int64)


def _series(rows: int) -> tuple[tuple[float, ...], ...]:
    return ((PENDING_RATE,),) * rows


def _words(words: Strings, where: Flags | None, word: str) -> Strings:
    made = words.copy()
    made[slice(None) if where is None else where] = word
    return made
