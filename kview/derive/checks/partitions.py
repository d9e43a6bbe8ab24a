"""What a check finds about topics: one finding for each kind and topic, with the partitions concerned."""

from collections.abc import Iterator

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kview.derive.brokers.log_dirs import stranded
from kview.derive.checks.causes import cause_of, why_of
from kview.derive.checks.consequences import Causes
from kview.derive.view import PartitionStatus, RackSafety, View
from kview.model.checks import LEVELS, CheckFinding, CheckKind, Level, NotJudged, NotJudgedWhy
from kview.model.failures import Cause, FailureKind, Part
from kview.model.snapshot import Flags, Longs
from kview.model.states import BrokerState
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID

MOST_PARTITIONS = 200
"""The most partitions that a finding names. All of them are counted."""

ENOUGH_FOR_MIN_ISR_2 = 3
"""With this many replicas, min.insync.replicas=2 still allows one broker to be down."""

MIN_ISR_KINDS = (
    CheckKind.UNDER_MIN_ISR,
    CheckKind.AT_MIN_ISR,
    CheckKind.MIN_ISR_1,
    CheckKind.BROKER_LOSS,
    CheckKind.RACK_LOSS,
)
"""The kinds that depend on min.insync.replicas."""

_S, _K = PartitionStatus, CheckKind


def by_topic(view: View, mask: Flags) -> Iterator[tuple[int, Longs]]:
    """Yield the rows of `mask` by topic, internal topics last: the topic's row in `view.topics`, and rows of
    its partitions."""
    rows = np.flatnonzero(mask).astype(np.int64)
    if not len(rows):
        return
    topics = np.searchsorted(view.topics.first_row, rows, "right") - 1
    cuts = np.flatnonzero(np.diff(topics)) + 1
    parts = [(int(topics[part[0]]), rows[part]) for part in np.split(np.arange(len(rows)), cuts)]
    yield from sorted(parts, key=lambda part: bool(view.topics.internal[part[0]]))


def names_of(view: View, rows: Longs) -> tuple[tuple[str, int], ...]:
    """Return the first partitions of `rows` as (topic, partition)."""
    table, some = view.snapshot.partitions, rows[:MOST_PARTITIONS]
    return tuple(zip(table.topic[some].tolist(), table.partition[some].tolist(), strict=True))


class Blame(Struct, frozen=True):
    """The replicas whose brokers are the cause of what is wrong with their partitions.

    The matrices have the shape of `Partitions.replicas`.
    """

    out_of_sync: Flags
    last: Flags
    """Those that may lead a partition that has no leader: they are in the ISR or the ELR, or all are offline
    on brokers that are up."""
    leads: Flags
    awaited: Flags
    """Those that a high watermark waits for: in the ISR and silent, a silent leader too. If there is none and
    the ISR is smaller than min.insync.replicas, those out of sync (KIP-966)."""


def blame_of(view: View) -> Blame:
    """Return who is to blame for what may be wrong."""
    table, figures = view.snapshot.partitions, view.partitions
    real = table.replicas >= 0
    in_elr = (table.replicas[:, :, None] == table.elr[:, None, :]).any(2)
    offline = stranded(view.snapshot)
    all_offline = np.asarray((offline | ~real).all(1), np.bool_)
    out_of_sync = real & ~figures.in_isr & ~figures.being_added
    silent = real & figures.in_isr & figures.replica_silent
    under = (table.min_isr != UNKNOWN_ID) & (figures.isr_count < table.min_isr) & ~silent.any(1)
    return Blame(
        out_of_sync=out_of_sync,
        last=real & (figures.in_isr | in_elr | all_offline[:, None]),
        leads=real & (table.replicas == table.leader[:, None]),
        awaited=silent | (under[:, None] & out_of_sync),
    )


def partition_findings(view: View, may_explain: Causes) -> Iterator[CheckFinding]:
    """Yield what is wrong with partitions, by kind and topic.

    Each kind is judged on its own, so that ignoring one does not hide another: a partition under min ISR is
    under-replicated, too. Replicas that a reassignment adds do not make it so. A finding has causes if these
    explain all of its partitions.
    """
    table, figures = view.snapshot.partitions, view.partitions
    real = table.replicas >= 0
    replication, isr = real.sum(1), figures.isr_count
    known, least = table.min_isr != UNKNOWN_ID, np.minimum(table.min_isr.astype(np.int64), replication)
    target = replication - figures.being_removed.sum(1)
    short = isr < (real & ~figures.being_added).sum(1)
    up = view.snapshot.brokers.id[np.asarray(view.snapshot.brokers.state == BrokerState.UP, np.bool_)]
    preferred = table.replicas[:, 0] if table.replicas.shape[1] else table.leader
    away = ~figures.preferred & (table.leader >= 0) & np.isin(preferred, up)
    away &= ~may_explain.stranded[:, :1].any(1)
    three = replication >= ENOUGH_FOR_MIN_ISR_2
    frozen_ms, silent_ms = figures.frozen_since_ms, figures.leader_silent_since_ms

    def having(status: PartitionStatus) -> Flags:
        return figures.having(status)

    blame = blame_of(view)
    out_of_sync = blame.out_of_sync
    first = np.zeros_like(real)
    first[:, :1] = True
    nobody, (risk, warn, weak) = np.zeros_like(real), LEVELS
    for kind, level, mask, since_ms, blamed in (
        (_K.OFFLINE, risk, table.leader == NO_BROKER, None, blame.last),
        (_K.SILENT_LEADER, risk, having(_S.SILENT_LEADER), silent_ms, blame.leads),
        (_K.FROZEN, risk, having(_S.FROZEN), frozen_ms, blame.awaited),
        (_K.UNDER_MIN_ISR, risk, known & (isr < least), None, out_of_sync),
        (_K.AT_MIN_ISR, warn, known & (isr == table.min_isr) & short, None, out_of_sync),
        (_K.UNDER_REPLICATED, warn, short & (replication > 0), None, out_of_sync),
        (_K.NOT_RACK_SAFE, weak, figures.rack_safe == RackSafety.NO, None, nobody),
        (_K.REPLICATION_FACTOR_1, weak, target == 1, None, nobody),
        (_K.MIN_ISR_1, weak, known & (table.min_isr == 1) & three, None, nobody),
        (_K.NOT_PREFERRED, weak, away, None, first),
    ):
        for topic, rows in by_topic(view, np.asarray(mask, np.bool_)):
            finding = _finding(view, kind, level, topic, rows, since_ms, blamed)
            here = table.replicas[rows][blamed[rows] & may_explain.stranded[rows]]
            finding = replace(finding, stranded=tuple(np.unique(here).tolist()))
            causes = may_explain.of(rows, blamed[rows]) if may_explain else ()
            yield replace(finding, explained_by=causes) if causes else finding


def _finding(
    view: View,
    kind: CheckKind,
    level: Level,
    topic: int,
    rows: Longs,
    since_ms: Longs | None,
    blamed: Flags,
) -> CheckFinding:
    """Return one topic's finding. `blamed` marks the replicas whose brokers are the cause."""
    table = view.snapshot.partitions
    brokers = np.unique(table.replicas[rows][blamed[rows]])
    began = UNKNOWN
    if since_ms is not None and len(known := since_ms[rows][since_ms[rows] != UNKNOWN]):
        began = int(known.min())
    return CheckFinding(
        kind,
        level,
        name=str(view.topics.topic[topic]),
        brokers=tuple(brokers[brokers >= 0].tolist()),
        partitions=names_of(view, rows),
        partition_count=len(rows),
        of_partitions=int(view.topics.partitions[topic]),
        replicas=int(view.topics.replication[topic]),
        since_ms=began,
    )


def partitions_not_judged(view: View) -> Iterator[NotJudged]:
    """Yield what could not be judged about partitions, and why."""
    seen, table, figures = view.snapshot.observation, view.snapshot.partitions, view.partitions
    unknown = np.asarray(table.min_isr == UNKNOWN_ID, np.bool_)
    if unknown.any():
        cause = cause_of(seen, Part.CONFIGS)
        yield NotJudged(MIN_ISR_KINDS, why_of(cause), topics_of(view, unknown), cause=cause)
    leaderless = table.leader < 0
    lost = figures.leader_silent_since_ms != UNKNOWN
    refused = figures.having(PartitionStatus.UNREAD)
    if refused.any():
        cause = Cause(FailureKind.KAFKA_ERROR, int(table.error_code[refused][0]))
        yield NotJudged((CheckKind.FROZEN,), why_of(cause), topics_of(view, refused), cause=cause)
    hidden = np.asarray(figures.leader_unreached & ~leaderless, np.bool_)
    if hidden.any():
        brokers = tuple(np.unique(table.leader[hidden]).tolist())
        yield NotJudged(
            (CheckKind.FROZEN,), NotJudgedWhy.NOT_ANSWERED, topics_of(view, hidden), brokers=brokers
        )
    unread = (table.high_watermark_ms == UNKNOWN) & ~leaderless & ~lost & ~refused & ~hidden
    if unread.any():
        yield NotJudged((CheckKind.FROZEN,), NotJudgedWhy.NO_HISTORY, topics_of(view, unread))
    nameless = np.asarray(table.leader == UNKNOWN_ID, np.bool_)
    if nameless.any():
        code = int(table.error_code[nameless][0])
        cause = Cause(FailureKind.KAFKA_ERROR, code) if code else Cause(FailureKind.INCOMPLETE)
        kinds = (CheckKind.OFFLINE, CheckKind.SILENT_LEADER, CheckKind.FROZEN)
        yield NotJudged(kinds, why_of(cause), topics_of(view, nameless), cause=cause)


def topics_of(view: View, mask: Flags) -> tuple[str, ...]:
    """Return the topics of the partitions in `mask`."""
    return tuple(str(view.topics.topic[topic]) for topic, _ in by_topic(view, mask))
