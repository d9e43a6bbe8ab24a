"""The headline, which says whether anything is wrong: one severity and the findings, the worst first."""

from collections.abc import Iterator

import numpy as np

from kview.derive.brokers import Silence, still_heard
from kview.derive.partitions import Placement, at_min, under_min, under_replicated
from kview.derive.view import (
    BrokerFigures,
    GroupFigures,
    Headline,
    PartitionFigures,
    PartitionStatus,
    TopicFigures,
)
from kview.model.events import Severity
from kview.model.findings import Finding, FindingKind
from kview.model.snapshot import Flags, Longs, Quorum, Snapshot
from kview.model.states import BrokerState, QuorumRole
from kview.model.units import UNKNOWN

QUORUM_OLD_MS = 6_000
"""The age at which the quorum's last answer is too old. The quorum is queried in every second observation; if
it has not answered for this long, it may have no controller."""

VOTER_QUIET_MS = 5_000
"""A voter whose last fetch is this far behind the latest fetch of any node counts as lost. Kafka's fetch
timeout is 2 s."""


def headline(
    snapshot: Snapshot,
    brokers: BrokerFigures,
    partitions: PartitionFigures,
    topics: TopicFigures,
    groups: GroupFigures,
    placed: Placement,
    quiet: Silence,
    requests_per_second: float,
) -> Headline:
    """Return the headline.

    Its counts cover the user's topics; severity and findings include internal topics.
    """
    table = snapshot.partitions
    mine = ~table.internal
    findings = [
        *_brokers(snapshot, brokers, partitions, quiet),
        *_partitions(snapshot, partitions, placed),
        *_groups(snapshot, groups),
        *_quorum(snapshot),
    ] or [_calm(snapshot)]
    findings.sort(key=lambda finding: finding.severity is not Severity.RISK)
    offline = np.asarray(partitions.status == PartitionStatus.NO_LEADER, np.bool_)
    return Headline(
        severity=findings[0].severity,
        findings=tuple(findings),
        topics=int((~topics.internal).sum()),
        partitions=int(mine.sum()),
        under_replicated=int((mine & under_replicated(placed)).sum()),
        offline=int((mine & offline).sum()),
        under_min_isr=int((mine & under_min(table, placed)).sum()),
        at_min_isr=int((mine & at_min(table, placed)).sum()),
        requests_per_second=requests_per_second,
    )


def _split(mask: Flags, internal: Flags) -> tuple[int, int]:
    inside = int((mask & internal).sum())
    return int(mask.sum()) - inside, inside


def _brokers(
    snapshot: Snapshot, figures: BrokerFigures, partitions: PartitionFigures, quiet: Silence
) -> Iterator[Finding]:
    """Yield silent brokers, then fenced and gone brokers.

    Silent brokers come with what they lead, what is frozen, and the countdown.
    """
    table = snapshot.brokers
    silent = np.asarray(table.state == BrokerState.SILENT, np.bool_)
    if silent.any():
        if int(silent.sum()) == int((table.state != BrokerState.GONE).sum()):
            since_ms = _first(quiet.since_ms[silent])
            yield Finding(FindingKind.NO_BROKER_ANSWERS, Severity.RISK, since_ms=since_ms)
            return
        yield from _silent(snapshot, figures, partitions, quiet, silent)
    for state, kind in (
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
    )
    frozen = np.asarray(partitions.status == PartitionStatus.FROZEN, np.bool_)
    more, more_internal = _split(frozen, snapshot.partitions.internal)
    if mine:
        more_internal += internal  # the finding above counts the user's partitions alone
    if more or more_internal:
        yield Finding(
            FindingKind.WATERMARK_FROZEN,
            Severity.RISK,
            partitions=more,
            internal_partitions=more_internal,
            count=mine,
        )
    heard = silent & still_heard(snapshot, quiet)
    if heard.any():
        yield Finding(FindingKind.QUORUM_HEARS_BROKERS, Severity.WARN, brokers=_ids(snapshot, heard))
    due_ms = _first(figures.fencing_due_ms[silent])
    if due_ms != UNKNOWN:
        yield Finding(FindingKind.FENCING_DUE, Severity.RISK, brokers=ids, due_ms=due_ms)


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
    found = set(racks[mask])
    if int(mask.sum()) < 2 or len(found) != 1:
        return ""
    rack = str(found.pop())
    return rack if int((racks == rack).sum()) == int(mask.sum()) else ""


def _partitions(snapshot: Snapshot, figures: PartitionFigures, placed: Placement) -> Iterator[Finding]:
    """Yield what is wrong with partitions, except for what the findings about silent brokers already
    count."""
    table, internal = snapshot.partitions, snapshot.partitions.internal
    any_silent = bool((snapshot.brokers.state == BrokerState.SILENT).any())

    def having(status: PartitionStatus) -> Flags:
        return np.asarray(figures.status == status, np.bool_)

    nobody = np.zeros(len(table), np.bool_)
    S, K = PartitionStatus, FindingKind
    for mask, severity, kind in (
        (having(S.NO_LEADER), Severity.RISK, K.NO_LEADER),
        (nobody if any_silent else having(S.SILENT_LEADER), Severity.RISK, K.SILENT_LEADER),
        (nobody if any_silent else having(S.FROZEN), Severity.RISK, K.WATERMARK_FROZEN),
        (under_min(table, placed) & (table.leader >= 0), Severity.RISK, K.UNDER_MIN_ISR),
        (under_replicated(placed), Severity.WARN, K.UNDER_REPLICATED),
        (at_min(table, placed), Severity.WARN, K.AT_MIN_ISR),
    ):
        if mask.any():
            mine, inside = _split(mask, internal)
            yield Finding(kind, severity, partitions=mine, internal_partitions=inside)


def _groups(snapshot: Snapshot, groups: GroupFigures) -> Iterator[Finding]:
    """Yield groups that lost records, because nothing else about a group is the cluster's fault."""
    for row in np.flatnonzero(groups.lost > 0).tolist():
        name, lost = str(snapshot.groups.group[row]), int(groups.lost[row])
        yield Finding(FindingKind.RECORDS_LOST, Severity.RISK, group=name, count=lost)


def _quorum(snapshot: Snapshot) -> Iterator[Finding]:
    seen = snapshot.observation
    if "quorum" not in seen.capabilities or seen.quorum_received_ms == UNKNOWN:
        return
    if seen.controller_id < 0:
        yield Finding(FindingKind.NO_CONTROLLER, Severity.RISK)
    elif seen.ended_ms - seen.quorum_received_ms > QUORUM_OLD_MS:
        yield Finding(FindingKind.QUORUM_SILENT, Severity.WARN, since_ms=seen.quorum_received_ms)
    else:
        voters, lost = _voters(snapshot.quorum)
        if lost:
            yield Finding(FindingKind.CONTROLLERS_LOST, Severity.WARN, controllers=tuple(lost), count=voters)


def _voters(quorum: Quorum) -> tuple[int, list[int]]:
    """Return the number of voters, including the leader, and the voters that no longer fetch.

    This needs DescribeQuorum v1.
    """
    fetched = quorum.last_fetch_ms
    newest = int(fetched.max(initial=UNKNOWN))
    follows = np.asarray(quorum.role == QuorumRole.VOTER, np.bool_)
    quiet = follows & (fetched < newest - VOTER_QUIET_MS) if newest != UNKNOWN else follows & False
    return int(follows.sum()) + int((quorum.role == QuorumRole.LEADER).sum()), quorum.node[quiet].tolist()


def _calm(snapshot: Snapshot) -> Finding:
    """Return the finding for when nothing is wrong.

    It says that all is well, that there are no partitions, or that nothing is known yet.
    """
    up = int((snapshot.brokers.state == BrokerState.UP).sum())
    if not up:
        return Finding(FindingKind.NOTHING_KNOWN, Severity.CALM)
    kind = FindingKind.ALL_WELL if len(snapshot.partitions) else FindingKind.NO_PARTITIONS
    return Finding(kind, Severity.CALM, count=up)
