"""Groups in trouble that do the same, so that a list can show many of them as one."""

from collections.abc import Collection, Hashable, Sequence
from typing import NamedTuple

import numpy as np

from kview.derive.view import GroupFigures, Reason, View
from kview.model.checks import CheckFinding
from kview.model.events import Severity
from kview.model.snapshot import Longs
from kview.model.units import UNKNOWN

LEAST_ALIKE = 9
"""The fewest groups that are shown as one: fewer are read one by one as quickly."""


class Alike(NamedTuple):
    """What groups have in common that are shown as one."""

    severity: str
    verdict: str
    reason: str
    lost: bool
    """Whether they lost records."""
    is_old: bool
    """Whether their figures are late."""


class Fold(NamedTuple):
    """Groups that are alike. `rows` are those in `snapshot.groups`, in the order of the list."""

    alike: Alike
    rows: Longs

    @property
    def first(self) -> int:
        """The row of the group that comes first in the list, which is the worst in its own order."""
        return int(self.rows[0])

    def together(self, figures: GroupFigures) -> "Together":
        """Return the figures of all of them."""
        rows = self.rows
        lags, lost = figures.lag[rows], figures.lost[rows]
        known = lags != UNKNOWN
        return Together(
            furthest=int(rows[figures.behind_ms[rows].argmax()]),
            lag=int(lags[known].sum()) if known.any() else UNKNOWN,
            lag_is_bound=bool(known.any() and not (known.all() and not figures.lag_is_bound[rows].any())),
            reason=Reason(self.alike.reason),
            reason_ms=int(figures.reason_ms[rows].max()),
            reason_count=int(figures.reason_count[rows].max()),
            lost=int(lost.max()),
            lost_is_bound=bool(figures.lost_is_bound[rows][lost > 0].any()),
            age_ms=int(figures.verdict_age_ms[rows].max()),
        )


class Together(NamedTuple):
    """The figures of groups that are alike: their lag together, and the worst of each other figure.

    UNKNOWN if none is known.
    """

    furthest: int
    """The row of the group that is furthest behind in time."""
    lag: int
    lag_is_bound: bool
    reason: Reason
    reason_ms: int
    reason_count: int
    lost: int
    lost_is_bound: bool
    age_ms: int
    """The age of the oldest readings, if they are late."""


def folded(
    view: View, rows: Sequence[int], room: int, apart: str = "", opened: Collection[Hashable] = ()
) -> list[int | Fold]:
    """Return rows of `snapshot.groups`, in which groups in trouble that are alike are one entry, at the place
    of the first of them.

    Nothing is folded if `room` rows show all. The group `apart` has a row of its own, unless those that are
    like it are among the `opened` ones.
    """
    if len(rows) <= room:
        return list(rows)
    figures, names = view.groups, view.snapshot.groups.group
    at = np.array(rows, np.int64)
    at = at[np.asarray(figures.severity[at] != Severity.CALM, np.bool_)]
    columns = (
        figures.severity[at].tolist(),
        figures.verdict[at].tolist(),
        figures.reason[at].tolist(),
        (figures.lost[at] > 0).tolist(),
        (figures.verdict_age_ms[at] != UNKNOWN).tolist(),
    )
    together: dict[Alike, list[int]] = {}
    for row, *common in zip(at.tolist(), *columns, strict=True):
        alike = Alike(*common)
        if names[row] != apart or alike in opened:
            together.setdefault(alike, []).append(row)
    fold_of = {
        same[0]: Fold(alike, np.array(same, np.int64))
        for alike, same in together.items()
        if len(same) >= LEAST_ALIKE
    }
    inside = {row for fold in fold_of.values() for row in fold.rows[1:].tolist()}
    return [fold_of.get(row, row) for row in rows if row not in inside]


def worst_findings(findings: Sequence[CheckFinding]) -> list[list[CheckFinding]]:
    """Return findings about groups, those of groups that are alike in one list, of which the worst comes
    first. Every other finding is alone in its list."""
    together: dict[Hashable, list[CheckFinding]] = {}
    for finding in findings:
        alike = finding.level, finding.verdict, finding.reason
        key = finding.kind, alike, finding.group_type, finding.explained_by
        together.setdefault(key, []).append(finding)
    out = []
    for same in together.values():
        if len(same) < LEAST_ALIKE:
            out += [[finding] for finding in same]
        else:
            out.append(sorted(same, key=_badness, reverse=True))
    return out


def _badness(finding: CheckFinding) -> tuple[int, ...]:
    return finding.behind_ms, finding.amount, finding.reason_ms, finding.reason_count
