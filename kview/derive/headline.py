"""Is anything wrong: one severity and the sentences that say what, the worst first."""

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
from kview.language import nouns as text
from kview.language import words
from kview.model.events import Severity
from kview.model.snapshot import Flags, Quorum, Snapshot
from kview.model.states import BrokerState, QuorumRole
from kview.model.units import UNKNOWN

QUORUM_OLD_MS = 6_000
"""The quorum is asked every second round; without an answer for this long its controller may not be there."""

VOTER_QUIET_MS = 5_000
"""A voter this far behind the latest fetch of any node is taken for lost: Kafka's fetch time-out is 2 s."""

Finding = tuple[Severity, str]


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
    """Counts are of the user's topics; the severity and the sentences take internal ones in."""
    table = snapshot.partitions
    mine = ~table.internal
    findings = [
        *_brokers(snapshot, brokers, partitions, quiet),
        *_partitions(snapshot, partitions, placed),
        *_groups(snapshot, groups),
        *_quorum(snapshot),
    ]
    findings.sort(key=lambda finding: finding[0] is not Severity.RISK)
    severity = next(
        (s for s in (Severity.RISK, Severity.WARN) if any(f[0] is s for f in findings)), Severity.CALM
    )
    sentences = tuple(sentence for _, sentence in findings) or (_calm(snapshot),)
    offline = np.asarray(partitions.status == PartitionStatus.NO_LEADER, np.bool_)
    return Headline(
        severity=severity,
        sentences=sentences,
        topics=int((~topics.internal).sum()),
        partitions=int(mine.sum()),
        under_replicated=int((mine & under_replicated(placed)).sum()),
        offline=int((mine & offline).sum()),
        under_min_isr=int((mine & under_min(table, placed)).sum()),
        at_min_isr=int((mine & at_min(table, placed)).sum()),
        requests_per_second=requests_per_second,
        severities=tuple(found for found, _ in findings) or (Severity.CALM,),
    )


def _split(mask: Flags, internal: Flags) -> tuple[int, int]:
    inside = int((mask & internal).sum())
    return int(mask.sum()) - inside, inside


def _brokers(
    snapshot: Snapshot, figures: BrokerFigures, partitions: PartitionFigures, quiet: Silence
) -> Iterator[Finding]:
    """Silent brokers with what they lead, what is frozen and the countdown; then fenced and gone ones."""
    table, now_ms = snapshot.brokers, snapshot.observation.ended_ms
    silent = np.asarray(table.state == BrokerState.SILENT, np.bool_)
    if silent.any():
        since = quiet.since_ms[silent & (quiet.since_ms != UNKNOWN)]
        for_ms = f" {words.duration(now_ms - int(since.min()))}" if len(since) else ""
        if int(silent.sum()) == int((table.state != BrokerState.GONE).sum()):
            yield (
                Severity.RISK,
                f"no broker has answered{for_ms and ' for'}{for_ms}: the figures are that old",
            )
            return
        who = _with_rack(snapshot, silent)
        mine, internal = int(figures.leads[silent].sum()), int(figures.leads_internal[silent].sum())
        frozen = np.asarray(partitions.status == PartitionStatus.FROZEN, np.bool_)
        if mine:
            yield Severity.RISK, f"{who} silent{for_ms}, still listed as leader of {mine:,}"
        elif internal:
            yield Severity.RISK, f"{who} silent{for_ms}, still listed as leader of {internal:,} internal"
        else:
            yield Severity.RISK, f"{who} silent{for_ms}, leads nothing"
        if frozen.any() or internal:
            yield Severity.RISK, _frozen(snapshot, frozen, bool(mine), internal)
        heard = silent & still_heard(snapshot, quiet)
        due = figures.fencing_due_ms[silent & (figures.fencing_due_ms != UNKNOWN)]
        if heard.any():
            yield (
                Severity.WARN,
                f"the quorum still hears {text.brokers(table.id[heard].tolist())}: only kview does not",
            )
        if len(due):
            yield Severity.RISK, words.fencing(int(due.min()), now_ms)
    for state, says in ((BrokerState.FENCED, "fenced"), (BrokerState.GONE, "gone")):
        out = np.asarray(table.state == state, np.bool_)
        if out.any():
            yield Severity.WARN, f"{_with_rack(snapshot, out)} {says}"


def _frozen(snapshot: Snapshot, frozen: Flags, more: bool, internal_led: int) -> str:
    """The watermark's sentence; internal partitions whose leader is silent stand still too and are counted
    here."""
    mine, internal = _split(frozen, snapshot.partitions.internal)
    counted = text.with_internal(mine, internal + (internal_led if more else 0))
    return (
        f"watermark frozen on {mine:,} more{counted[len(f'{mine:,}') :]}"
        if more and mine
        else (f"watermark frozen on {counted}")
    )


def _with_rack(snapshot: Snapshot, mask: Flags) -> str:
    """`broker 4`, `brokers 3, 4 and 5`, `rack R2 (brokers 3, 4 and 5)` where it is all of a rack of
    several."""
    table = snapshot.brokers
    ids, racks = table.id[mask].tolist(), set(table.rack[mask])
    if len(ids) > 1 and len(racks) == 1:
        (rack,) = racks
        if rack and int((table.rack == rack).sum()) == len(ids):
            return f"rack {rack} ({text.brokers(ids)})"
    return text.brokers(ids)


def _partitions(snapshot: Snapshot, figures: PartitionFigures, placed: Placement) -> Iterator[Finding]:
    """Troubles that the sentences about silent brokers do not name."""
    table, internal = snapshot.partitions, snapshot.partitions.internal
    any_silent = bool((snapshot.brokers.state == BrokerState.SILENT).any())

    def having(status: PartitionStatus) -> Flags:
        return np.asarray(figures.status == status, np.bool_)

    nobody = np.zeros(len(table), np.bool_)
    S = PartitionStatus
    for mask, severity, says in (
        (having(S.NO_LEADER), Severity.RISK, "without a leader"),
        (
            nobody if any_silent else having(S.SILENT_LEADER),
            Severity.RISK,
            "led by a broker that is not there",
        ),
        (nobody if any_silent else having(S.FROZEN), Severity.RISK, "with a frozen watermark"),
        (under_min(table, placed) & (table.leader >= 0), Severity.RISK, "under min ISR, acks=all is refused"),
        (under_replicated(placed), Severity.WARN, "under-replicated"),
        (at_min(table, placed), Severity.WARN, "at min ISR"),
    ):
        if mask.any():
            yield severity, f"{text.partitions(*_split(mask, internal))} {says}"


def _groups(snapshot: Snapshot, groups: GroupFigures) -> Iterator[Finding]:
    """Groups that lost records: nothing else of a group is the cluster's trouble."""
    for row in np.flatnonzero(groups.severity == Severity.RISK).tolist():
        if "gone before" in groups.reason[row]:
            yield Severity.RISK, f"{snapshot.groups.group[row]}: {groups.reason[row]}"


def _quorum(snapshot: Snapshot) -> Iterator[Finding]:
    seen = snapshot.observation
    if "quorum" not in seen.capabilities or seen.quorum_received_ms == UNKNOWN:
        return
    age_ms = seen.ended_ms - seen.quorum_received_ms
    if seen.controller_id < 0:
        yield Severity.RISK, "no active controller: nothing is fenced or elected"
    elif age_ms > QUORUM_OLD_MS:
        silence = f"no answer about the controller quorum for {words.duration(age_ms)}"
        yield Severity.WARN, f"{silence}: is anything fenced or elected?"
    else:
        voters, lost = _voters(snapshot.quorum)
        if lost:
            left = f"{voters - len(lost)} of {voters} controllers left"
            yield Severity.WARN, f"{text.controllers(lost)} out of the quorum: {left}"


def _voters(quorum: Quorum) -> tuple[int, list[int]]:
    """How many voters there are, the leader among them, and which fetch no longer (DescribeQuorum v1)."""
    fetched = quorum.last_fetch_ms
    newest = int(fetched.max(initial=UNKNOWN))
    follows = np.asarray(quorum.role == QuorumRole.VOTER, np.bool_)
    quiet = follows & (fetched < newest - VOTER_QUIET_MS) if newest != UNKNOWN else follows & False
    return int(follows.sum()) + int((quorum.role == QuorumRole.LEADER).sum()), quorum.node[quiet].tolist()


def _calm(snapshot: Snapshot) -> str:
    """One calm sentence; what is not known yet is not called well."""
    up = int((snapshot.brokers.state == BrokerState.UP).sum())
    if not up:
        return "nothing is known of the cluster yet"
    if not len(snapshot.partitions):
        return f"{words.plural(up, 'broker')} up, no partitions seen"
    return f"all well: {words.plural(up, 'broker')} up, every partition led and every replica in sync"
