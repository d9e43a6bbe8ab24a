"""Rows of consumer groups, the worst first."""

import sys
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Self

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kview.derive.groups.alike import Alike, Fold, Together, folded
from kview.derive.groups.unheard import unheard
from kview.derive.passing import Listed, Passing
from kview.derive.view import Verdict, View
from kview.language import failures, glyphs, nouns, verdicts, words
from kview.language import unheard as whose
from kview.language.curves import sparkline
from kview.language.lists import NEXT_GROUP_LIST, Order, order_name
from kview.language.verdicts import UNDECIDED
from kview.model.events import Severity, severity_rank
from kview.model.snapshot import Flags, Longs
from kview.model.states import GroupType
from kview.model.turns import rounds_of_groups
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID
from kview.tui.options import OWN_ORDER, Options
from kview.tui.rows.columns import Column, with_bound
from kview.tui.rows.common import (
    ROLES,
    SIGNS,
    Keyed,
    count_width,
    fresh,
    name_width,
    rate_width,
    title,
    verdict,
)
from kview.tui.rows.figures import (
    Figure,
    behind_figure,
    count_figure,
    known,
    number_figure,
    rate_figure,
    text_figure,
)
from kview.tui.rows.row import Row
from kview.tui.rows.sorting import Values, codes, figures, ids, order_note, sorted_rows
from kview.tui.text import EMPTY, Line, Role, Span, content, joined, line, line_width, width

PANEL = "groups"
SPARK_CELLS = 20
TENTHS_BELOW_MS = 10_000
"""Lags in time are shown with tenths of a second below this, and in whole seconds from there on."""
OLD_VERDICT_CELLS = 13
"""A verdict's age fits: `▲ ok 12 s ago`."""
REASON_CELLS = 20
"""Most reasons fit: `coordinator 4 silent`."""
SUMMARY_LABEL = "  GROUPS  "


def listed(view: View, options: Options) -> Flags:
    """Return which groups are listed, if no filter leaves them out."""
    figures = view.groups
    abandoned = np.asarray(figures.verdict == Verdict.ABANDONED, np.bool_)
    lists = np.array([[options.lists(ignored, idle) for idle in (False, True)] for ignored in (False, True)])
    return lists[figures.ignored.astype(np.int8), abandoned.astype(np.int8)]


def _listed(view: View, options: Options) -> list[int]:
    """Return the rows of the groups that are listed."""
    rows: list[int] = np.flatnonzero(Passing(view, options.wanted).groups & listed(view, options)).tolist()
    return rows


SORTS: Values = {
    "group": lambda view: codes(view.snapshot.groups.group),
    "state": lambda view: codes(view.snapshot.groups.state),
    "lag": lambda view: figures(view.groups.lag),
    "behind": lambda view: figures(view.groups.behind_ms),
    "read": lambda view: figures(view.groups.read_rate),
    "write": lambda view: figures(view.groups.write_rate),
    "coordinator": lambda view: ids(view.snapshot.groups.coordinator),
    "strategy": lambda view: codes(view.snapshot.groups.assignment_strategy),
    "spark": lambda view: figures(view.groups.lag),
    "verdict": lambda view: figures(view.groups.place),
    "reason": lambda view: codes(view.groups.reason),
}


def _order(view: View, options: Options) -> list[int]:
    rows = np.array(_listed(view, options), np.int64)
    worst = rows[np.argsort(view.groups.place[rows], kind="stable")]
    arranged: list[int] = sorted_rows(worst, options, PANEL, view, SORTS, _identity).tolist()
    return arranged


def _each_once(rows: Sequence[int], *columns: NDArray[Any]) -> Iterable[int]:
    """Return one row for each combination of values of the columns."""
    at = np.array(rows, np.int64)
    keys = zip(*(column[at].tolist() for column in columns), strict=True)
    return dict(zip(keys, rows, strict=True)).values()


def _identity(view: View) -> object:
    return (view.snapshot.groups.group,)


def summary(view: View, options: Options, cells: int) -> Line:
    """Return all groups in one line, counted by verdict, the worst first: `✕ 2 blocked: a, b · ● 1 ok`.

    Groups in trouble are named as far as the names fit.
    """
    figures = view.groups
    by_verdict: dict[tuple[str, str], list[str]] = {}
    for row in sorted(_listed(view, options), key=lambda row: severity_rank(figures.severity[row])):
        is_old = int(figures.verdict_age_ms[row]) != UNKNOWN
        name = verdicts.of_many(figures.verdict[row], is_old, bool(figures.lost[row] > 0))
        key = str(figures.severity[row]), name
        by_verdict.setdefault(key, []).append(str(view.snapshot.groups.group[row]))
    between, room = Span(f" {glyphs.DOT} ", Role.DIM), cells - len(SUMMARY_LABEL)
    missing = whose.heading(unheard(view.snapshot.observation))
    first = [line(Span(missing, Role.WARN))] if missing else []
    for named in range(len(by_verdict), -1, -1):
        parts = first + [
            _counted(severity, name, groups, at < named and ROLES[severity] is not Role.DIM)
            for at, ((severity, name), groups) in enumerate(by_verdict.items())
        ]
        if sum(line_width(part) + width(between.text) for part in parts) <= room + width(between.text):
            break
    parts = parts or [line(Span(_none(view, options), Role.DIM))]
    return (Span(SUMMARY_LABEL, Role.HEAD), *joined(parts, between, room))


MOST_NAMED = 3
"""The most groups of a verdict that the one line names."""


def _counted(severity: str, verdict: str, groups: Sequence[str], are_named: bool) -> Line:
    """Return how many groups have a verdict, and which: `✕ 2 blocked: billing, reporting`."""
    sign = "" if severity == Severity.CALM and verdict == UNDECIDED else f"{SIGNS[severity]} "
    count = line(Span(f"{sign}{len(groups):,} {verdict}", ROLES[severity]))
    if not are_named:
        return count
    more = len(groups) - MOST_NAMED
    names = ", ".join(groups[:MOST_NAMED]) + (f" + {more:,} more" if more > 0 else "")
    return (*count, Span(f": {names}", Role.TEXT))


def _none(view: View, options: Options) -> str:
    """Return why no group is listed."""
    if shown := options.filter_of(Listed.GROUPS):
        return f"no group matches {shown}"
    hidden = hidden_groups(view, options)
    if hidden:
        key = options.keys.name("ignored-groups")
        return f"no groups to show ({hidden:,} hidden {glyphs.DOT} {key}: {NEXT_GROUP_LIST[options.groups]})"
    return "no consumer groups seen"


def changes(view: View) -> dict[str, int]:
    """Return the time of each group's last event in the view, epoch ms."""
    return {event.group: event.at_ms for event in view.events if event.group}


def behind(view: View, row: int, trend: bool = True) -> str:
    """Return a group's lag in time, with its trend: `2 m 10 s ▲`."""
    return verdicts.behind(view.groups, row) + (_trend(view, row) if trend else "")


def _trend(view: View, row: int) -> str:
    sign = {1: glyphs.UP, -1: glyphs.DOWN}.get(int(view.groups.behind_trend[row]), " ")
    return f" {sign}"


def members(view: View, row: int) -> str:
    """Return a group's kind, its state and its members: `share Empty 0/0`."""
    return content(members_figure(view, row))


def last_read_ms(view: View, row: int) -> int:
    """Return when the figures of a group were read, epoch ms, UNKNOWN if they never were."""
    age_ms = int(view.groups.age_ms[row])
    return UNKNOWN if age_ms == UNKNOWN else view.snapshot.observation.ended_ms - age_ms


def is_stale(view: View, read_ms: int, options: Options, now_ms: int) -> bool:
    """Return whether figures of a group that were read then are old. If groups are read in turn, they are
    late only after as many turns."""
    late_ms = options.stale_ms * rounds_of_groups(len(view.snapshot.groups))
    return read_ms != UNKNOWN and now_ms - read_ms > late_ms


MEMBERS = ("state", "active members", "members")
"""The titles of the values of `members_figure`."""


def members_figure(view: View, row: int) -> Figure:
    """Return the cell of what `members` says."""
    table = view.snapshot.groups
    kind, state = str(table.type[row]), str(table.state[row])
    active, joined = int(view.groups.members_active[row]), int(table.members[row])
    cell = text_figure(nouns.members(kind, state, active, joined), Role.DIM)
    if kind == GroupType.SIMPLE:
        return Figure(cell, kind)
    return Figure(cell, nouns.of_kind(kind, state), known(active), known(joined))


def hidden_groups(view: View, options: Options) -> int:
    """Return the number of groups that are not listed because they are ignored or abandoned."""
    return int(np.count_nonzero(~listed(view, options)))


UNLIMITED = sys.maxsize


class Unfolding(Struct, frozen=True):
    """How many rows a list of groups has room for, and what is not folded there.

    If all groups do not fit, those in trouble that do the same are one row. `opened`: what the user has
    unfolded. `apart`: the group that the user has selected, which keeps its row.
    """

    room: int = UNLIMITED
    opened: frozenset[Hashable] = frozenset()
    apart: str = ""


ALL_ROWS = Unfolding()
"""Every group has a row."""


class GroupRows(Keyed[str | Alike]):
    """The rows of groups. The key is the group's name, or what groups have in common that share a row.

    Groups that the user has unfolded follow the row that they share. If the list is filtered or sorted, each
    group has a row.
    """

    def __init__(self, view: View, options: Options, unfolding: Unfolding = ALL_ROWS) -> None:
        self._rows = _order(view, options)
        table, shown = view.snapshot.groups, view.groups
        self._view, self._options = view, options
        self._entries = self._folded(view, options, unfolding)
        self._opened = unfolding.opened
        first = [each.first if isinstance(each, Fold) else each for each in self._entries]
        names: list[str] = table.group[np.array(first, np.int64)].tolist()
        keys: list[str | Alike] = list(names)
        for index, each in enumerate(self._entries):
            if isinstance(each, Fold):
                keys[index], names[index] = each.alike, "".join(self._parts(each))
        super().__init__(keys)
        self.panel, self.sorts = PANEL, SORTS
        self.severities = view.groups.severity[first]
        self._changed = changes(view)
        self._together: dict[Alike, tuple[Together, int]] = {}
        """The figures of folds that have been drawn, and when the last of their groups changed."""
        missing = whose.sentence(unheard(view.snapshot.observation))
        self.empty = _none(view, options)
        if missing and not len(table):
            self.empty = f"groups: {missing}"
        notes = [options.filter_of(Listed.GROUPS)]
        hidden = hidden_groups(view, options)
        notes += [f"{glyphs.DOT} {hidden:,} hidden"] if hidden else []
        at = np.array(self._rows, np.int64)
        longest = name_width(names, 6, 40)
        self.columns: Sequence[Column] = (
            Column("group", "group", min(longest, 20), flex=1, most=longest, name=True),
            Column(
                "state", "state", self._state_width(), flex=1, most=24, name=True, rank=3, exported=MEMBERS
            ),
            Column("lag", "lag", count_width(shown.lag[at], 7, 1), right=True, exported=with_bound("lag")),
            Column(
                "behind", "behind  ", self._behind_width(), right=True, exported=with_bound("behind", "s")
            ),
            Column(
                "read",
                "read/s",
                rate_width(shown.read_rate[at], 7, shown.read_is_bound[at]),
                right=True,
                rank=4,
                exported=with_bound("read/s"),
            ),
            Column(
                "write",
                "write/s",
                rate_width(shown.write_rate[at], 7, shown.write_is_bound[at]),
                right=True,
                rank=5,
                exported=with_bound("write/s"),
            ),
            Column("coordinator", "coordinator", 11, right=True, rank=6),
            Column("strategy", "assignor", 12, flex=1, most=24, name=True, rank=7),
            Column("spark", "lag, last minute", SPARK_CELLS, rank=4, exported=()),
            Column("verdict", "verdict", self._verdict_width(at), flex=2, most=16),
            Column("reason", "", 11, flex=20, most=70, rank=2, roomy=REASON_CELLS),
        )
        troubled = int(np.count_nonzero(shown.severity[at] != Severity.CALM))
        notes.insert(0, order_note(options, PANEL, self.columns, order_name(Order.WORST_FIRST, troubled)))
        self.title: Line = title("GROUPS", *notes)
        if missing:
            self.title = line(
                Span("GROUPS", Role.HEAD),
                Span(f" {whose.heading(unheard(view.snapshot.observation))} {glyphs.DOT}", Role.WARN),
                *self.title[1:],
            )

    def _folded(self, view: View, options: Options, unfolding: Unfolding) -> list[int | Fold]:
        """Return the entries of the list: rows of groups, and folds."""
        is_own = options.sort(PANEL) == OWN_ORDER and not options.filter_of(Listed.GROUPS)
        room = unfolding.room if is_own else UNLIMITED
        entries: list[int | Fold] = []
        for each in folded(view, self._rows, room, unfolding.apart, unfolding.opened):
            entries.append(each)
            if isinstance(each, Fold) and each.alike in unfolding.opened:
                entries += each.rows.tolist()
        return entries

    def _changed_ms(self, fold: Fold) -> int:
        """Return the time of the last event of any of these groups, epoch ms."""
        names = self._view.snapshot.groups.group[fold.rows].tolist() if self._changed else ()
        return max((self._changed.get(name, UNKNOWN) for name in names), default=UNKNOWN)

    def whole(self) -> Self:
        """Return the rows with nothing folded, for an export."""
        return type(self)(self._view, self._options)

    def example(self, key: Hashable) -> str:
        """Return the group that a row is about, the first one if groups share it, or '' if there is none."""
        index = self.find(key)
        if index is None:
            return ""
        entry = self._entries[index]
        return str(self._view.snapshot.groups.group[entry.first if isinstance(entry, Fold) else entry])

    def _parts(self, fold: Fold) -> tuple[str, str]:
        """Return the name of a row that groups share: whether it is unfolded and how many they are, and what
        they are like."""
        sign = glyphs.UNFOLDED if fold.alike in self._opened else glyphs.FOLDED
        like = str(self._view.snapshot.groups.group[fold.first])
        return f"{sign} {verdicts.of_fold(len(fold.rows), '')}", like

    def _fold(self, index: int, fold: Fold, now_ms: int) -> Row:
        """Return the row that groups share: their lag together, and the worst of their other figures."""
        figures = self._view.groups
        if fold.alike not in self._together:
            self._together[fold.alike] = fold.together(figures), self._changed_ms(fold)
        groups, changed = self._together[fold.alike]
        none, why = text_figure(words.NONE, Role.DIM), verdicts.of_alike(groups)
        cells = (
            line(*self._parts(fold)),
            none,
            count_figure(groups.lag, is_bound=groups.lag_is_bound),
            behind_figure(figures, groups.furthest, _trend(self._view, groups.furthest)),
            none,
            none,
            none,
            none,
            EMPTY,
            verdict(fold.alike.verdict, "", fold.alike.severity, groups.age_ms, groups.lost),
            line(Span(why, Role.DIM)),
        )
        return Row(cells, fresh(changed, now_ms))

    def _state_width(self) -> int:
        """Return the width of the longest state, of which the kind comes first."""
        table, figures = self._view.snapshot.groups, self._view.groups
        columns = (table.type, table.state, figures.members_active, table.members)
        return max([10, *(len(members(self._view, row)) for row in _each_once(self._rows, *columns))])

    def _behind_width(self) -> int:
        """Return the width of the widest lag in time, because none of its digits may be cut."""
        shown = self._view.groups
        second = np.where(shown.behind_ms < TENTHS_BELOW_MS, shown.behind_ms, shown.behind_ms // 1000 * 1000)
        columns = (second, shown.behind_is_bound, shown.behind_is_estimate)
        return max([10, *(len(behind(self._view, row)) for row in _each_once(self._rows, *columns))])

    def _verdict_width(self, at: Longs) -> int:
        """Return the width of the longest verdict of some groups, with its sign."""
        figures = self._view.groups
        is_old = figures.verdict_age_ms[at] != UNKNOWN
        names = [verdicts.VERDICTS[Verdict(each)] for each in set(figures.verdict[at].tolist())]
        names += [verdicts.LOST] if (figures.lost[at] > 0).any() else []
        widths = [2 + width(name) for name in names] + [OLD_VERDICT_CELLS] * bool(is_old.any())
        return max(7, *widths) if widths else 7

    def row(self, index: int, now_ms: int) -> Row:
        at = self._entries[index]
        if isinstance(at, Fold):
            return self._fold(index, at, now_ms)
        table, figures = self._view.snapshot.groups, self._view.groups
        group = str(table.group[at])
        read_ms = last_read_ms(self._view, at)
        old = is_stale(self._view, read_ms, self._options, now_ms)
        coordinator = int(table.coordinator[at])
        age_ms = int(figures.verdict_age_ms[at])
        as_of = age_ms != UNKNOWN
        lost = int(figures.lost[at])
        verdict_cell = verdict(figures.verdict[at], "", figures.severity[at], age_ms, lost)
        notes = [
            verdicts.of_group(figures, at, beside_figures=True),
            f"{words.age(read_ms, now_ms)} old" if old and not as_of else "",
            failures.of_group(table.error[at], int(table.error_code[at]), coordinator),
        ]
        cells = (
            line(group),
            members_figure(self._view, at),
            count_figure(int(figures.lag[at]), is_bound=bool(figures.lag_is_bound[at]), old=old),
            behind_figure(figures, at, _trend(self._view, at), old=old),
            rate_figure(float(figures.read_rate[at]), is_bound=bool(figures.read_is_bound[at]), old=old),
            rate_figure(float(figures.write_rate[at]), is_bound=bool(figures.write_is_bound[at]), old=old),
            number_figure(coordinator if coordinator > NO_BROKER else UNKNOWN_ID, Role.DIM),
            text_figure(str(table.assignment_strategy[at]) or words.NONE, Role.DIM),
            line(Span(sparkline(figures.lag_series[at], SPARK_CELLS), Role.DIM)),
            verdict_cell,
            line(Span(f" {glyphs.DOT} ".join(note for note in notes if note), Role.DIM)),
        )
        return Row(cells, fresh(self._changed.get(group, UNKNOWN), now_ms))
