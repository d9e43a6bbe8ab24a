"""Findings as words: the headline's sentences, with ages and countdowns at a given moment."""

from collections.abc import Callable, Mapping

from kview.language import nouns, words
from kview.model.findings import Finding, FindingKind
from kview.model.units import UNKNOWN


def sentence(finding: Finding, now_ms: int) -> str:
    """Return what is wrong, with ages and countdowns as of `now_ms`, epoch ms."""
    return _SENTENCES[finding.kind](finding, now_ms)


def _brokers(finding: Finding) -> str:
    """Return `broker 4`, `brokers 3, 4 and 5` or `rack R2 (brokers 3, 4 and 5)`."""
    named = nouns.brokers(finding.brokers)
    return f"rack {finding.rack} ({named})" if finding.rack else named


def _partitions(finding: Finding) -> str:
    return nouns.partitions(finding.partitions, finding.internal_partitions)


def _for(finding: Finding, now_ms: int, before: str) -> str:
    """Return `before` and the age of the finding, '' if the age is not known."""
    return "" if finding.since_ms == UNKNOWN else f"{before}{words.duration(now_ms - finding.since_ms)}"


def _silent(finding: Finding, now_ms: int) -> str:
    if finding.partitions:
        leads = f"still listed as leader of {words.plural(finding.partitions, 'partition')}"
    elif finding.internal_partitions:
        leads = f"still listed as leader of {nouns.partitions(0, finding.internal_partitions)}"
    else:
        leads = "leads nothing"
    return f"{_brokers(finding)} silent{_for(finding, now_ms, ' ')}, {leads}"


def _frozen(finding: Finding, now_ms: int) -> str:
    if finding.count in (0, UNKNOWN) or not finding.partitions:
        return f"watermark frozen on {_partitions(finding)}"
    internal = f" (+{finding.internal_partitions:,} internal)" if finding.internal_partitions else ""
    return f"watermark frozen on {finding.partitions:,} more{internal}"


def _has(finding: Finding) -> str:
    return "has" if len(finding.brokers) == 1 or finding.rack else "have"


def _controllers_lost(finding: Finding, now_ms: int) -> str:
    verb = "is" if len(finding.controllers) == 1 else "are"
    left = finding.count - len(finding.controllers)
    up = f"only {left} of {finding.count} controllers {'is' if left == 1 else 'are'} up"
    return f"{nouns.controllers(finding.controllers)} {verb} not in the quorum: {up}"


_SENTENCES: Mapping[FindingKind, Callable[[Finding, int], str]] = {
    FindingKind.ALL_WELL: lambda finding, now_ms: (
        f"all well: {words.plural(finding.count, 'broker')} up, every partition led, every replica in sync"
    ),
    FindingKind.NO_PARTITIONS: lambda finding, now_ms: (
        f"{words.plural(finding.count, 'broker')} up, no partitions seen"
    ),
    FindingKind.NOTHING_KNOWN: lambda finding, now_ms: "waiting for the first answer from the cluster",
    FindingKind.PAST_PENDING: lambda finding, now_ms: f"{words.NOT_YET} loading the minutes before",
    FindingKind.REST_PENDING: lambda finding, now_ms: words.NOT_YET,
    FindingKind.NO_BROKER_ANSWERS: lambda finding, now_ms: (
        f"no broker has answered{_for(finding, now_ms, ' for ')}, so all figures are old: "
        "check the network and the brokers"
    ),
    FindingKind.BROKERS_SILENT: _silent,
    FindingKind.WATERMARK_FROZEN: _frozen,
    FindingKind.QUORUM_HEARS_BROKERS: lambda finding, now_ms: (
        f"the quorum still hears from {_brokers(finding)}, but kview does not"
    ),
    FindingKind.FENCING_DUE: lambda finding, now_ms: words.fencing(finding.due_ms, now_ms),
    FindingKind.BROKERS_FENCED: lambda finding, now_ms: f"{_brokers(finding)} fenced",
    FindingKind.BROKERS_GONE: lambda finding, now_ms: f"{_brokers(finding)} {_has(finding)} left the cluster",
    FindingKind.NO_LEADER: lambda finding, now_ms: f"{_partitions(finding)} without a leader",
    FindingKind.SILENT_LEADER: lambda finding, now_ms: f"{_partitions(finding)} led by a silent broker",
    FindingKind.UNDER_MIN_ISR: lambda finding, now_ms: (
        f"{_partitions(finding)} under min ISR: acks=all writes are refused"
    ),
    FindingKind.UNDER_REPLICATED: lambda finding, now_ms: f"{_partitions(finding)} under-replicated",
    FindingKind.AT_MIN_ISR: lambda finding, now_ms: f"{_partitions(finding)} at min ISR",
    FindingKind.RECORDS_LOST: lambda finding, now_ms: (
        f"group {finding.group}: {words.plural(finding.count, 'record')} deleted before being read"
    ),
    FindingKind.NO_CONTROLLER: lambda finding, now_ms: (
        "no active controller: brokers cannot be fenced, nor leaders elected, until there is one"
    ),
    FindingKind.QUORUM_SILENT: lambda finding, now_ms: (
        f"state of the controller quorum unknown{_for(finding, now_ms, ' for ')}: "
        "fencing and elections may have stopped"
    ),
    FindingKind.CONTROLLERS_LOST: _controllers_lost,
}
