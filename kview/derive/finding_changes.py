"""Which findings began, got worse or ended from one view to the next."""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from msgspec.structs import replace

from kview.model.events import SEVERITY_ORDER, Severity
from kview.model.findings import Finding, FindingKind
from kview.model.units import UNKNOWN

HIDES_OTHERS = frozenset({FindingKind.NO_BROKER_ANSWERS, FindingKind.NOTHING_KNOWN})
"""While one of these is true, nothing is known of the others."""

PART_OF_ANOTHER = frozenset({FindingKind.FENCING_DUE})
"""Details of another finding, which is reported."""

LOST_BROKERS = frozenset({FindingKind.BROKERS_SILENT, FindingKind.BROKERS_FENCED, FindingKind.BROKERS_GONE})
"""What is said of a dead broker, one after the other: it is one finding, with the key of the first."""

PAST = frozenset({FindingKind.RECORDS_LOST, FindingKind.UNCLEAN_ELECTION, FindingKind.LEADER_RECORDS_LOST})
"""What has happened, and leaves the headline after a while. It does not end."""

MOST_LOSSES = 5
"""When more groups than this have lost records at once, the last of so many changes is about all others."""

MUCH_MORE = 2
"""So many times as many partitions, or lost records, are worse."""

Key = tuple[str, ...]
"""What is the same finding from view to view: its kind and, if each group has its own, the group."""


class Change(StrEnum):
    """What happened to a finding. Documents contain the values, so they must not change."""

    BEGINS = "begins"
    WORSE = "gets worse"
    ENDS = "ends"
    TEST = "test"
    """Nothing happened: somebody wants to see what comes."""


class FindingChange(NamedTuple):
    """A finding that changed. One that ends is as it was last."""

    change: Change
    key: Key
    finding: Finding


@dataclass(slots=True)
class _Reported:
    """A finding that was reported."""

    finding: Finding
    """What counts as reported: what is worse than this is reported again."""
    last: Finding
    better: Finding | None = None
    """What it has not exceeded since `better_since_ms`."""
    better_since_ms: int = 0
    gone_since_ms: int | None = None

    def compare(self, finding: Finding, now_ms: int, hold_ms: int) -> None:
        """Lower what counts as reported once the finding has been better than that for `hold_ms`."""
        if not _is_worse(self.finding, finding):
            self.better = None
        elif self.better is None or _is_worse(finding, self.better):
            self.better, self.better_since_ms = finding, now_ms
        elif now_ms - self.better_since_ms >= hold_ms:
            self.finding, self.better = self.better, None


class FindingChanges:
    """Compares the findings of each view with those that were reported before.

    Only what is at least as severe as `least` counts, and only what has been so for `hold_ms`: what comes and
    goes within that time is never reported. Brokers that fell silent stay a risk until they are back.
    """

    def __init__(self, least: Severity, hold_ms: int) -> None:
        self._least_rank = SEVERITY_ORDER.index(least)
        self._hold_ms = hold_ms
        self._reported: dict[Key, _Reported] = {}
        self._waiting: dict[Key, int] = {}
        """When a finding that was not reported, or has got worse since, was first seen so, in epoch ms."""
        self._fell_silent: frozenset[int] = frozenset()
        """The brokers that fell silent and are not back."""

    def step(self, findings: Sequence[Finding], now_ms: int) -> list[FindingChange]:
        """Return what is to be reported at `now_ms`, with the findings of the view at that time."""
        return _fewer_losses(list(self._changes(findings, now_ms)))

    def _changes(self, findings: Sequence[Finding], now_ms: int) -> Iterator[FindingChange]:
        hidden = any(finding.kind in HIDES_OTHERS for finding in findings)
        if not hidden:
            self._fell_silent &= _brokers(findings, LOST_BROKERS)
            self._fell_silent |= _brokers(findings, {FindingKind.BROKERS_SILENT})
        now = self._heeded(findings)
        for key, finding in now.items():
            reported = self._reported.get(key)
            if reported is None or _is_worse(finding, reported.finding):
                if now_ms - self._waiting.setdefault(key, now_ms) >= self._hold_ms:
                    del self._waiting[key]
                    self._reported[key] = _Reported(finding, finding)
                    change = Change.BEGINS if reported is None else Change.WORSE
                    yield FindingChange(change, key, finding)
                elif reported is not None:
                    reported.last, reported.better, reported.gone_since_ms = finding, None, None
            else:
                self._waiting.pop(key, None)
                reported.compare(finding, now_ms, self._hold_ms)
                reported.last, reported.gone_since_ms = finding, None
        for key in self._waiting.keys() - now.keys():
            del self._waiting[key]
        for key in [key for key in self._reported if key not in now]:
            reported = self._reported[key]
            if hidden:
                reported.gone_since_ms = None
                continue
            if reported.gone_since_ms is None:
                reported.gone_since_ms = now_ms
            if now_ms - reported.gone_since_ms >= self._hold_ms:
                del self._reported[key]
                if reported.last.kind not in PAST:
                    yield FindingChange(Change.ENDS, key, reported.last)

    def _heeded(self, findings: Sequence[Finding]) -> dict[Key, Finding]:
        """Return the findings that are severe enough. Several of one key are taken together."""
        heeded: dict[Key, Finding] = {}
        for finding in findings:
            if finding.kind in LOST_BROKERS and (fell := self._fell_silent.intersection(finding.brokers)):
                finding = replace(finding, severity=Severity.RISK)
                if self._least_rank == SEVERITY_ORDER.index(Severity.RISK) and len(fell) < len(
                    finding.brokers
                ):
                    only = tuple(broker for broker in finding.brokers if broker in fell)
                    finding = replace(finding, brokers=only, rack="")
            if finding.kind in PART_OF_ANOTHER or SEVERITY_ORDER.index(finding.severity) > self._least_rank:
                continue
            key = _key(finding)
            before = heeded.get(key)
            heeded[key] = finding if before is None else _together(before, finding)
        return heeded


def _fewer_losses(changes: list[FindingChange]) -> list[FindingChange]:
    """Return changes of which at most MOST_LOSSES are about groups that have lost records."""
    losses = [change for change in changes if change.finding.kind is FindingKind.RECORDS_LOST]
    if len(losses) <= MOST_LOSSES:
        return changes
    first, *others = losses[MOST_LOSSES - 1 :]
    finding = first.finding
    for other in others:
        finding = replace(
            _together(finding, other.finding),
            groups=finding.groups + other.finding.groups,
            count_is_bound=finding.count_is_bound or other.finding.count_is_bound,
        )
    left = [change for change in changes if change.finding.kind is not FindingKind.RECORDS_LOST]
    return [*left, *losses[: MOST_LOSSES - 1], first._replace(finding=finding)]


def _brokers(findings: Sequence[Finding], kinds: Set[FindingKind]) -> frozenset[int]:
    return frozenset(broker for each in findings if each.kind in kinds for broker in each.brokers)


def _key(finding: Finding) -> Key:
    if finding.kind in LOST_BROKERS:
        return (FindingKind.BROKERS_SILENT.value,)
    return (finding.kind.value, *((finding.group,) if finding.kind is FindingKind.RECORDS_LOST else ()))


def _together(first: Finding, other: Finding) -> Finding:
    """Return two findings of one key as one: the more severe one, with the brokers and counts of both."""
    worse = min(first, other, key=lambda each: SEVERITY_ORDER.index(each.severity))
    known = [each.count for each in (first, other) if each.count != UNKNOWN]
    return replace(
        worse,
        brokers=tuple(dict.fromkeys(first.brokers + other.brokers)),
        paths=tuple(dict.fromkeys(first.paths + other.paths)),
        partitions=first.partitions + other.partitions,
        internal_partitions=first.internal_partitions + other.internal_partitions,
        count=sum(known) if known else UNKNOWN,
    )


def _is_worse(finding: Finding, reported: Finding) -> bool:
    """Return whether a finding is more severe than what was reported, or concerns others, or many more."""
    return (
        SEVERITY_ORDER.index(finding.severity) < SEVERITY_ORDER.index(reported.severity)
        or not set(finding.brokers) <= set(reported.brokers)
        or not set(finding.controllers) <= set(reported.controllers)
        or not set(finding.paths) <= set(reported.paths)
        or finding.groups > reported.groups
        or _many_more(_partitions(finding), _partitions(reported))
        or (finding.kind in PAST and _many_more(finding.count, reported.count))
        or (finding.kind is FindingKind.CONNECT_TASK_FAILED and finding.count > reported.count)
    )


def _partitions(finding: Finding) -> int:
    return finding.partitions + finding.internal_partitions


def _many_more(number: int, before: int) -> bool:
    return number > max(0, before) and number >= MUCH_MORE * before
