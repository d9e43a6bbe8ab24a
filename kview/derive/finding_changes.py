"""Which findings began, got worse or ended from one view to the next."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from msgspec.structs import replace

from kview.model.events import SEVERITY_ORDER, Severity
from kview.model.findings import Finding, FindingKind

HIDES_OTHERS = frozenset({FindingKind.NO_BROKER_ANSWERS, FindingKind.NOTHING_KNOWN})
"""While one of these is true, nothing is known of the others."""

PART_OF_ANOTHER = frozenset({FindingKind.FENCING_DUE})
"""Details of another finding, which is reported."""

Key = tuple[FindingKind, str, str]
"""What is the same finding from view to view: its kind and, where the kind has a finding for each, the group
or the connector."""


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
    finding: Finding


class _Reported(NamedTuple):
    """The worst that was reported of a finding, and when it was seen last, in epoch ms."""

    finding: Finding
    seen_ms: int


class FindingChanges:
    """Compares the findings of each view with those that were reported before.

    Only what is at least as severe as `least` counts, and only what has been so for `hold_ms`: what comes and
    goes within that time is never reported.
    """

    def __init__(self, least: Severity, hold_ms: int) -> None:
        self._least_rank = SEVERITY_ORDER.index(least)
        self._hold_ms = hold_ms
        self._reported: dict[Key, _Reported] = {}
        self._waiting: dict[Key, int] = {}
        """When a finding that was not reported, or has got worse since, was first seen so, in epoch ms."""

    def step(self, findings: Sequence[Finding], now_ms: int) -> Iterator[FindingChange]:
        """Yield what is to be reported at `now_ms`, with the findings of the view at that time."""
        now = self._heeded(findings)
        for key, finding in now.items():
            reported = self._reported.get(key)
            if reported is not None and not _is_worse(finding, reported.finding):
                self._waiting.pop(key, None)
                self._reported[key] = reported._replace(seen_ms=now_ms)
                continue
            if now_ms - self._waiting.setdefault(key, now_ms) >= self._hold_ms:
                del self._waiting[key]
                self._reported[key] = _Reported(finding, now_ms)
                yield FindingChange(Change.BEGINS if reported is None else Change.WORSE, finding)
            elif reported is not None:
                self._reported[key] = reported._replace(seen_ms=now_ms)
        for key in self._waiting.keys() - now.keys():
            del self._waiting[key]
        if any(finding.kind in HIDES_OTHERS for finding in findings):
            self._reported = {
                key: reported if key in now else reported._replace(seen_ms=now_ms)
                for key, reported in self._reported.items()
            }
        for key in [
            key for key, reported in self._reported.items() if now_ms - reported.seen_ms >= self._hold_ms
        ]:
            if key not in now:
                yield FindingChange(Change.ENDS, self._reported.pop(key).finding)

    def _heeded(self, findings: Sequence[Finding]) -> dict[Key, Finding]:
        """Return the findings that are severe enough. Several of one key are taken together."""
        heeded: dict[Key, Finding] = {}
        for finding in findings:
            if finding.kind in PART_OF_ANOTHER or SEVERITY_ORDER.index(finding.severity) > self._least_rank:
                continue
            key = finding.kind, of_one(finding), finding.connector
            before = heeded.get(key)
            heeded[key] = (
                finding if before is None else replace(before, brokers=before.brokers + finding.brokers)
            )
        return heeded


def of_one(finding: Finding) -> str:
    """Return the group of a finding of which each group has its own, '' for other kinds."""
    return finding.group if finding.kind is FindingKind.RECORDS_LOST else ""


def _is_worse(finding: Finding, reported: Finding) -> bool:
    """Return whether a finding is more severe than what was reported, or concerns others, too."""
    return (
        SEVERITY_ORDER.index(finding.severity) < SEVERITY_ORDER.index(reported.severity)
        or not set(finding.brokers) <= set(reported.brokers)
        or not set(finding.controllers) <= set(reported.controllers)
        or not set(finding.paths) <= set(reported.paths)
        or finding.groups > reported.groups
    )
