"""What the headline says about consumer groups: the worst one by name, and the number of the others."""

from collections.abc import Container, Iterator

import numpy as np

from kview.derive.groups.verdicts import SEVERITIES
from kview.derive.view import GroupFigures, Verdict
from kview.model.events import Severity
from kview.model.failures import Cause, FailureKind
from kview.model.findings import Finding, FindingKind
from kview.model.snapshot import Flags, Snapshot, Strings
from kview.model.units import UNKNOWN, UNKNOWN_ID

_NO_PROBLEM = frozenset({Verdict.OK, Verdict.UNDECIDED, Verdict.UNKNOWN})
"""Verdicts that name no problem. A group that has one of them and is not calm has old figures."""

_ALARMS = frozenset({Severity.RISK, Severity.WARN})


def group_findings(snapshot: Snapshot, groups: GroupFigures) -> Iterator[Finding]:
    """Yield groups that lost records, groups in trouble, groups with old figures, and unjudged groups."""
    counts = heeded(groups)
    calm, alarms = _is_in(groups.verdict, _NO_PROBLEM), counts & _is_in(groups.severity, _ALARMS)
    safe, judged = groups.lost <= 0, np.asarray(groups.verdict == Verdict.OK, np.bool_)
    lossy = _by_place(groups, counts & ~safe)
    troubled = _by_place(groups, alarms & ~calm)
    unread = np.flatnonzero(alarms & calm & safe).tolist()
    unjudged = int((counts & calm & ~judged & ~(alarms & safe)).sum())
    by_row = [(row, _lost(snapshot, groups, row)) for row in lossy]
    if troubled:
        by_row.append((troubled[0], _troubled(snapshot, groups, troubled)))
    yield from (finding for _, finding in sorted(by_row, key=lambda pair: int(groups.place[pair[0]])))
    if unread:
        yield _unread(snapshot, groups, unread)
    if unjudged:
        yield Finding(FindingKind.GROUPS_UNJUDGED, Severity.CALM, groups=unjudged)


def are_old(verdict: Strings, severity: Strings) -> Flags:
    """Return which groups with these verdicts have old figures: because they could not be read, not because
    of a problem of their own."""
    return _is_in(verdict, _NO_PROBLEM) & _is_in(severity, _ALARMS)


def _is_in(column: Strings, words: Container[str]) -> Flags:
    return np.array([word in words for word in column.tolist()], np.bool_)


def _by_place(groups: GroupFigures, which: Flags) -> list[int]:
    """Return the rows of these groups in the order of the list of groups, the worst first."""
    return sorted(np.flatnonzero(which).tolist(), key=lambda row: int(groups.place[row]))


def _lost(snapshot: Snapshot, groups: GroupFigures, row: int) -> Finding:
    return Finding(
        FindingKind.RECORDS_LOST,
        Severity.RISK,
        group=str(snapshot.groups.group[row]),
        groups=1,
        count=int(groups.lost[row]),
        count_is_bound=bool(groups.lost_is_bound[row]),
    )


def heeded(groups: GroupFigures) -> Flags:
    """Return the groups that the headline is about: not the ignored or abandoned ones, nor workers."""
    return np.asarray(~np.isin(groups.verdict, (Verdict.ABANDONED, Verdict.NONE)) & ~groups.ignored, np.bool_)


def groups_ok(groups: GroupFigures) -> int:
    """Return the number of groups that are ok."""
    return int((heeded(groups) & np.asarray(groups.verdict == Verdict.OK, np.bool_)).sum())


def _troubled(snapshot: Snapshot, groups: GroupFigures, rows: list[int]) -> Finding:
    """Return the first of the groups in `rows`, which are in the order of the list of groups."""
    worst = rows[0]
    verdict = Verdict(groups.verdict[worst])
    lost = groups.lost[worst] > 0  # which is a finding of its own
    return Finding(
        FindingKind.GROUPS_TROUBLED,
        SEVERITIES[verdict] if lost else Severity(groups.severity[worst]),
        group=str(snapshot.groups.group[worst]),
        groups=len(rows),
        verdict=verdict.value,
        behind_ms=int(groups.behind_ms[worst]),
        behind_is_bound=bool(groups.behind_is_bound[worst]),
        behind_is_estimate=bool(groups.behind_is_estimate[worst]),
        count=int((groups.verdict[rows] == verdict).sum()),
    )


def _unread(snapshot: Snapshot, groups: GroupFigures, rows: list[int]) -> Finding:
    """Return the group in `rows` whose figures are the oldest."""
    table = snapshot.groups
    oldest = max(rows, key=lambda row: int(groups.verdict_age_ms[row]))
    age_ms, kind = int(groups.verdict_age_ms[oldest]), FailureKind(table.error[oldest])
    code = int(table.error_code[oldest]) if kind is FailureKind.KAFKA_ERROR else UNKNOWN_ID
    return Finding(
        FindingKind.GROUPS_UNREAD,
        Severity(groups.severity[oldest]),
        group=str(table.group[oldest]),
        groups=len(rows),
        since_ms=snapshot.observation.ended_ms - age_ms if age_ms != UNKNOWN else UNKNOWN,
        cause=Cause(kind, code),
        coordinator=int(table.coordinator[oldest]),
    )
