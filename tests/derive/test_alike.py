"""Which groups a list shows as one: those in trouble that do the same."""

import numpy as np
from msgspec.structs import replace

from kview.derive.groups.alike import LEAST_ALIKE, Alike, Fold, folded
from kview.derive.view import Reason, Verdict, View
from kview.language import verdicts
from kview.model.events import Severity
from tests.worlds.crowd import AUDIT, GROUPS, STOPPED, WAITING, crowd


def in_order(view: View) -> list[int]:
    rows: list[int] = view.groups.place.argsort().tolist()
    return rows


def names(view: View, entries: list[int | Fold]) -> list[str]:
    return [str(view.snapshot.groups.group[each]) for each in entries if isinstance(each, int)]


def test_groups_that_stopped_in_the_same_way_are_one_entry_at_the_place_of_the_first() -> None:
    view = crowd()
    first, *rest = folded(view, in_order(view), 40)
    assert isinstance(first, Fold) and len(first.rows) == STOPPED
    assert first.alike == (Severity.WARN, Verdict.STOPPED, Reason.NO_MEMBERS, False, False)
    assert str(view.snapshot.groups.group[first.first]) == AUDIT[0]
    assert len(rest) == GROUPS - STOPPED and names(view, rest)[0] == "reader-0000", "healthy ones by name"


def test_its_lag_is_that_of_all_and_its_lag_in_time_that_of_the_worst() -> None:
    view = crowd()
    figures, fold = view.groups, folded(view, in_order(view), 40)[0]
    assert isinstance(fold, Fold)
    groups = fold.together(figures)
    assert groups.lag == figures.lag[fold.rows].sum() >= STOPPED * 2 * WAITING and not groups.lag_is_bound
    assert figures.behind_ms[groups.furthest] == figures.behind_ms[fold.rows].max() > 0


def test_each_figure_is_the_worst_of_all_and_what_was_lost_is_said() -> None:
    figures, first = crowd().groups, np.arange(3)
    of_three = replace(
        figures,
        reason_ms=np.concatenate(([2_000, 9_000, 5_000], figures.reason_ms[3:])),
        reason_count=np.concatenate(([7, 4, 3], figures.reason_count[3:])),
        behind_ms=np.concatenate(([1, 2, 3], figures.behind_ms[3:])),
        lost=np.concatenate(([5, 35, 0], figures.lost[3:])),
        lost_is_bound=np.concatenate(([True, False, False], figures.lost_is_bound[3:])),
    )
    alike = Alike(Severity.RISK, Verdict.STUCK, Reason.STILL, True, False)
    groups = Fold(alike, first).together(of_three)
    assert (groups.furthest, groups.reason_ms, groups.reason_count, groups.lost) == (2, 9_000, 7, 35)
    assert verdicts.of_alike(groups) == (
        "no progress for ≥ 9.0 s, ≥ 35 records deleted before being read at worst"
    )
    stopped = groups._replace(reason=Reason.NO_MEMBERS, lost_is_bound=False)
    assert verdicts.of_alike(stopped) == "no members, 35 records deleted before being read at worst"
    assert verdicts.of_alike(stopped._replace(lost=0)) == "no members"


def test_nothing_is_folded_where_all_fit_or_where_few_are_alike() -> None:
    view = crowd(30, 20)
    assert folded(view, in_order(view), 30) == in_order(view)
    assert len(folded(view, in_order(view), 29)) == 11
    few = crowd(30, LEAST_ALIKE - 1)
    assert folded(few, in_order(few), 5) == in_order(few)


def test_the_only_one_of_its_kind_and_the_selected_one_keep_their_rows() -> None:
    view = crowd()
    lost = view.groups.lost.copy()
    lost[7] = 3
    severity = view.groups.severity.copy()
    severity[7] = Severity.RISK
    worse = replace(view, groups=replace(view.groups, lost=lost, severity=severity))
    entries = folded(worse, in_order(worse), 40, AUDIT[100])
    assert names(worse, entries)[:2] == [AUDIT[7], AUDIT[100]]
    folds = [each for each in entries if isinstance(each, Fold)]
    assert [len(each.rows) for each in folds] == [STOPPED - 2]
    opened = folded(worse, in_order(worse), 40, AUDIT[100], {folds[0].alike})
    assert AUDIT[100] not in names(worse, opened), "those that it is like have their rows, too"
