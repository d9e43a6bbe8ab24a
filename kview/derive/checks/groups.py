"""What a check finds about consumer groups: one finding for each group with a problem."""

from collections.abc import Iterator, Mapping

import numpy as np

from kview.derive.align import group_rows
from kview.derive.checks.causes import why_of
from kview.derive.checks.consequences import Causes
from kview.derive.checks.partitions import blame_of
from kview.derive.groups.verdicts import RANK, SEVERITIES
from kview.derive.view import Reason, Verdict, View
from kview.model.checks import GROUP_KINDS, CheckFinding, CheckKind, Key, Level, NotJudged, NotJudgedWhy
from kview.model.failures import Cause, FailureKind
from kview.model.snapshot import Longs
from kview.model.units import NO_BROKER, UNKNOWN

KINDS: Mapping[Verdict, CheckKind] = {
    Verdict.STUCK: CheckKind.GROUP_STUCK,
    Verdict.STOPPED: CheckKind.GROUP_STOPPED,
    Verdict.FALLING_BEHIND: CheckKind.GROUP_FALLING_BEHIND,
    Verdict.REWOUND: CheckKind.GROUP_REWOUND,
    Verdict.BLOCKED: CheckKind.GROUP_BLOCKED,
    Verdict.HELD: CheckKind.GROUP_BLOCKED_BY_TRANSACTION,
    Verdict.AHEAD_OF_LOG: CheckKind.GROUP_AHEAD_OF_LOG,
}
"""The verdicts that name a problem. An abandoned group is not one: nobody reads with it any more."""

TELLS_MS = 60_000
"""The commits of a minute tell whether a group keeps up, unless it commits rarely or not at all."""


def group_findings(view: View, may_explain: Causes) -> Iterator[CheckFinding]:
    """Yield the groups with a problem, and the groups that have lost records.

    A group that the cluster or a transaction keeps waiting has causes if these explain all partitions that it
    waits for.
    """
    table, figures = view.snapshot.groups, view.groups
    causes = _causes(view, may_explain)
    unowned = _unowned(view)
    for row, verdict in enumerate(figures.verdict.tolist()):
        name, group_type = str(table.group[row]), str(table.type[row])
        if verdict in KINDS:
            yield CheckFinding(
                KINDS[verdict],
                Level(SEVERITIES[verdict]),
                name=name,
                group_type=group_type,
                verdict=verdict,
                reason=figures.reason[row],
                reason_ms=int(figures.reason_ms[row]),
                reason_count=int(figures.reason_count[row]),
                unowned=int(unowned[row]) if verdict == Verdict.STUCK else 0,
                lag=int(figures.lag[row]),
                lag_is_bound=bool(figures.lag_is_bound[row]),
                behind_ms=int(figures.behind_ms[row]),
                is_bound=bool(figures.behind_is_bound[row]),
                is_estimate=bool(figures.behind_is_estimate[row]),
                explained_by=causes.get(row, ()),
            )
        if figures.lost[row] > 0 and verdict != Verdict.ABANDONED:
            yield CheckFinding(
                CheckKind.GROUP_LOST_RECORDS,
                Level.RISK,
                name=name,
                group_type=group_type,
                amount=int(figures.lost[row]),
                lag=int(figures.lag[row]),
                lag_is_bound=bool(figures.lag_is_bound[row]),
                is_bound=bool(figures.lost_is_bound[row]),
            )


def _unowned(view: View) -> Longs:
    """Return on how many partitions each group is stuck because no member owns them."""
    groups = group_rows(view.snapshot.groups.group, view.snapshot.offsets.group)
    mine = (groups >= 0) & np.equal(view.offsets.reason, Reason.NO_OWNER)
    return np.bincount(groups[mine], minlength=len(view.snapshot.groups)).astype(np.int64)


def _causes(view: View, may_explain: Causes) -> Mapping[int, tuple[Key, ...]]:
    """Return what explains why a group waits, by the group's row."""
    causes = {}
    if may_explain:
        table, blame = view.snapshot.partitions, blame_of(view)
        blamed = np.where((table.leader == NO_BROKER)[:, None], blame.last, blame.awaited)
        for group, rows in _waiting(view, Verdict.BLOCKED):
            causes[group] = may_explain.of(rows, blamed[rows])
    if may_explain.transactions:
        for group, rows in _waiting(view, Verdict.HELD):
            causes[group] = may_explain.of_waiting(rows)
    return causes


def _waiting(view: View, why: Verdict) -> Iterator[tuple[int, Longs]]:
    """Yield the rows of the groups with this verdict, with the rows of all partitions that have it."""
    figures = view.offsets
    groups = group_rows(view.snapshot.groups.group, view.snapshot.offsets.group)
    waits = np.equal(figures.rank, RANK[why])
    for group in np.flatnonzero(view.groups.verdict == why).tolist():
        rows = figures.partition_row[waits & (groups == group)]
        if len(rows) and (rows >= 0).all():
            yield group, rows


def groups_not_judged(view: View, watched_ms: int) -> Iterator[NotJudged]:
    """Yield the groups without a verdict. `watched_ms` is how long the check has lasted."""
    table, figures = view.snapshot.groups, view.groups
    waiting = {group for group, _ in _waiting(view, Verdict.UNDECIDED)} if watched_ms >= TELLS_MS else set()
    verdicts = figures.verdict
    old = figures.verdict_age_ms != UNKNOWN
    open_ = np.isin(verdicts, (Verdict.UNDECIDED, Verdict.UNKNOWN))
    by_cause: dict[tuple[NotJudgedWhy, Cause, tuple[int, ...]], list[str]] = {}
    for row in np.flatnonzero(open_ | (old & (verdicts == Verdict.OK))).tolist():
        why, cause = NotJudgedWhy.NO_HISTORY, Cause(FailureKind.NONE)
        brokers: tuple[int, ...] = ()
        if table.error[row]:
            cause = Cause(FailureKind(table.error[row]), int(table.error_code[row]))
            why, brokers = why_of(cause), _coordinator(int(table.coordinator[row]))
        elif figures.reason[row] == Reason.NO_COMMIT:
            why = NotJudgedWhy.NOTHING_COMMITTED
        elif row in waiting:
            why = NotJudgedWhy.FEW_COMMITS
        by_cause.setdefault((why, cause, brokers), []).append(str(table.group[row]))
    for (why, cause, brokers), names in by_cause.items():
        yield NotJudged(GROUP_KINDS, why, tuple(names), brokers, cause)


def _coordinator(broker: int) -> tuple[int, ...]:
    return (broker,) if broker >= 0 else ()
