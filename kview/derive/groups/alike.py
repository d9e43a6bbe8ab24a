"""Groups in trouble that do the same, so that a list can show many of them as one."""

from collections.abc import Collection, Hashable, Sequence
from typing import NamedTuple

import numpy as np

from kview.derive.view import GroupFigures, View
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

    def furthest(self, figures: GroupFigures) -> int:
        """Return the row of the group that is furthest behind in time."""
        return int(self.rows[figures.behind_ms[self.rows].argmax()])

    def lag(self, figures: GroupFigures) -> tuple[int, bool]:
        """Return the lag of all of them together, UNKNOWN if none is known, and whether it is a lower
        bound."""
        lags = figures.lag[self.rows]
        known = lags != UNKNOWN
        if not known.any():
            return UNKNOWN, False
        return int(lags[known].sum()), bool(not known.all() or figures.lag_is_bound[self.rows].any())


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
        row: Fold(alike, np.array(same, np.int64))
        for alike, same in together.items()
        if len(same) >= LEAST_ALIKE
        for row in same[:1]
    }
    inside = {row for fold in fold_of.values() for row in fold.rows[1:].tolist()}
    return [fold_of.get(row, row) for row in rows if row not in inside]
