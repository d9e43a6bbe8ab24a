"""Rows of consumer groups, the worst first."""

from collections.abc import Sequence

import numpy as np

from kview.derive.view import View
from kview.language import failures, glyphs, verdicts, words
from kview.model.units import NO_BROKER, UNKNOWN
from kview.tui.options import Options
from kview.tui.plot import sparkline
from kview.tui.rows.columns import Column
from kview.tui.rows.common import (
    Keyed,
    count_width,
    figure,
    fresh,
    name_width,
    rank,
    rate_width,
    title,
    verdict,
)
from kview.tui.rows.row import Row
from kview.tui.text import Line, Role, Span, line

PANEL = "groups"
ORDERS = ("worst first", "by name", "by lag")
SPARK_CELLS = 20


def _order(view: View, options: Options) -> list[int]:
    table, figures = view.snapshot.groups, view.groups
    rows = [row for row in range(len(table)) if options.matches(str(table.group[row]))]
    match ORDERS[options.sort(PANEL, len(ORDERS))]:
        case "worst first":
            return sorted(rows, key=lambda row: rank(figures.severity[row]))
        case "by lag":
            return sorted(rows, key=lambda row: -int(figures.lag[row]))
        case _:
            return rows


def changes(view: View) -> dict[str, int]:
    """Return the time of each group's last event in the view, epoch ms."""
    return {event.group: event.at_ms for event in view.events if event.group}


def behind(view: View, row: int, trend: bool = True) -> str:
    """Return a group's lag in time, with its trend: `2 m 10 s ▲`."""
    figures = view.groups
    text = words.at_least(words.duration(int(figures.behind_ms[row])), bool(figures.behind_is_bound[row]))
    if not trend:
        return text
    sign = {1: glyphs.UP, -1: glyphs.DOWN}.get(int(figures.behind_trend[row]), " ")
    return f"{text} {sign}"


def members(view: View, row: int) -> str:
    """Return a group's state, and how many of its members own partitions: `Stable 2/3`."""
    table, figures = view.snapshot.groups, view.groups
    active, joined = words.count(int(figures.members_active[row])), words.count(int(table.members[row]))
    return f"{table.state[row]} {active}/{joined}"


class GroupRows(Keyed[str]):
    """The rows of groups. The key is the group's name."""

    def __init__(self, view: View, options: Options) -> None:
        self._rows = _order(view, options)
        table, figures = view.snapshot.groups, view.groups
        super().__init__([str(table.group[row]) for row in self._rows])
        self._view = view
        self._options = options
        self._changed = changes(view)
        self.empty = f"no group matches /{options.filter}" if options.filter else "no group is known"
        notes = [ORDERS[options.sort(PANEL, len(ORDERS))]]
        notes += [f"/{options.filter}"] if options.filter else []
        self.title: Line = title("GROUPS", *notes)
        at = np.array(self._rows, np.int64)
        self.columns: Sequence[Column] = (
            Column("group", "group", name_width(self.keys, 6, 14), flex=1, most=40, name=True),
            Column("state", "state", 10, flex=1, most=22, name=True, rank=3),
            Column("lag", "lag", count_width(figures.lag[at], 7, 1), right=True),
            Column("behind", "behind  ", self._behind_width(), right=True),
            Column("read", "read/s", rate_width(figures.read_rate[at], 7), right=True, rank=4),
            Column("write", "write/s", rate_width(figures.write_rate[at], 7), right=True, rank=4),
            Column("coordinator", "coordinator", 11, right=True, rank=6),
            Column("strategy", "assignor", 12, flex=1, most=24, name=True, rank=7),
            Column("spark", "lag, last minute", SPARK_CELLS, rank=5),
            Column("verdict", "verdict", 9, flex=2, most=16),
            Column("reason", "", 16, flex=3, most=70, rank=2),
        )

    def _behind_width(self) -> int:
        """Return the width of the widest lag in time, because none of its digits may be cut."""
        return max(10, *(len(behind(self._view, row)) for row in self._rows)) if self._rows else 10

    def row(self, index: int, now_ms: int) -> Row:
        """Return a group's cells."""
        at = self._rows[index]
        table, figures = self._view.snapshot.groups, self._view.groups
        group = str(table.group[at])
        received_ms = int(table.received_ms[at])
        old = received_ms != UNKNOWN and now_ms - received_ms > self._options.stale_ms
        coordinator = int(table.coordinator[at])
        lag = words.at_least(words.count(int(figures.lag[at])), bool(figures.lag_is_bound[at]))
        verdict_cell = verdict(figures.verdict[at], "", figures.severity[at])
        notes = [
            verdicts.of_group(figures, at),
            f"{words.age(received_ms, now_ms)} old" if old else "",
            failures.of_group(table.error[at], int(table.error_code[at]), coordinator),
        ]
        cells = (
            line(group),
            figure(members(self._view, at), Role.DIM),
            figure(lag, dim=old),
            figure(behind(self._view, at), dim=old),
            figure(words.rate(float(figures.read_rate[at])), dim=old),
            figure(words.rate(float(figures.write_rate[at])), dim=old),
            figure(str(coordinator) if coordinator > NO_BROKER else words.NONE, Role.DIM),
            figure(str(table.assignment_strategy[at]) or words.NONE, Role.DIM),
            line(Span(sparkline(figures.lag_series[at], SPARK_CELLS), Role.DIM)),
            verdict_cell,
            line(Span(f" {glyphs.DOT} ".join(note for note in notes if note), Role.DIM)),
        )
        return Row(cells, fresh(self._changed.get(group, UNKNOWN), now_ms))
