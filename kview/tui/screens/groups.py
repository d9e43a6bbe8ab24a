"""5 Groups: all consumer groups, how far each is behind, and why; below, the selected group's partitions and
its lag."""

from collections.abc import Hashable
from functools import partial
from typing import ClassVar, NamedTuple

from msgspec.structs import replace
from textual import on
from textual.app import ComposeResult
from textual.containers import Container

from kview.derive.align import runs
from kview.derive.groups.alike import Alike
from kview.derive.view import View
from kview.language.lists import Order, order_name
from kview.tui.layout import LEAST_LAG
from kview.tui.options import Options
from kview.tui.rows import group as of_group
from kview.tui.rows import groups
from kview.tui.rows.common import title
from kview.tui.rows.group import OffsetRows
from kview.tui.rows.sorting import order_note
from kview.tui.screens.folding import FoldingScreen
from kview.tui.widgets.minute_plot import GROUP_LAG, MinutePlot
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.table import Table

LEAST_OFFSETS = 6
"""The fewest lines for the selected group's partitions, without their edges."""


class _Made(NamedTuple):
    """Rows, and what they were made of."""

    view: View
    options: Options
    unfolding: groups.Unfolding
    rows: groups.GroupRows


class GroupsScreen(FoldingScreen):
    """The list of all groups, and in the lines it leaves free the partitions of the selected one."""

    AUTO_FOCUS = "#groups"
    CSS = "GroupsScreen #below { height: 1fr; }"
    partition_panels: ClassVar[frozenset[str]] = frozenset({of_group.PANEL})
    _made: _Made | None = None

    def let_go(self) -> None:
        """Drop the view with the rows that were made of it."""
        super().let_go()
        self._made = None

    def body(self) -> ComposeResult:
        with Panel(id="groups_side"):
            yield Table(id="groups")
        with Container(id="below"):
            with Panel(id="offsets_side"):
                yield Table(id=of_group.PANEL)
            with Panel(id="lag_side"):
                yield MinutePlot(GROUP_LAG, id="lag")

    def draw(self, view: View) -> None:
        options = self.dashboard.options
        listed = self.query_one("#groups", Table)
        listed.fill(lambda: self._groups(view, options, listed.chosen))
        group, plot = self.selected_group(), self.query_one(MinutePlot)
        plot.view, plot.about = view, group
        wanted = len(listed.rows) + 1 if group else self.room
        if left := self.split(self.room, "groups_side", "below", wanted, LEAST_OFFSETS):
            begins, ends = runs(view.snapshot.offsets.group)
            longest = int((ends - begins).max(initial=0))  # of all groups, so that another one moves no panel
            self.split(left, "offsets_side", "lag_side", longest + 1, LEAST_LAG, LEAST_OFFSETS)
            self.query_one(f"#{of_group.PANEL}", Table).fill(partial(self._offsets, view, group))
        else:
            self.query_one(f"#{of_group.PANEL}", Table).let_go()

    def _groups(self, view: View, options: Options, chosen: Hashable) -> groups.GroupRows:
        """Return the rows of groups, which stay the same while the selection moves."""
        unfolding, made = self.unfolding(self.room - self.edge_lines - 1, chosen), self._made
        if (
            made is not None
            and made.view is view
            and made.options is options
            and made.unfolding == replace(unfolding, apart=made.unfolding.apart)
        ):
            return made.rows
        rows = groups.GroupRows(view, options, unfolding)
        self._made = _Made(view, options, unfolding, rows)
        return rows

    def _offsets(self, view: View, group: str) -> OffsetRows:
        options = self.dashboard.options
        rows = OffsetRows(view, group, options)
        order = order_note(options, of_group.PANEL, rows.columns, order_name(Order.WORST_FIRST))
        rows.title = title("PARTITIONS", f"of {group}", order)
        return rows

    @on(Table.Moved, "#groups")
    def _another(self) -> None:
        self.update()

    @on(Table.Opened)
    def _open(self, event: Table.Opened) -> None:
        if isinstance(event.key, str):
            self.dashboard.go.group(event.key)
        elif isinstance(event.key, Alike):
            self.unfold(event.key)
        elif isinstance(event.key, tuple):
            rows, group = event.table.rows, self.selected_group()
            if (
                isinstance(rows, OffsetRows)
                and self.dashboard.reads_records
                and rows.leads_to_record(event.key)
            ):
                self.dashboard.go.position(group, *event.key)
            else:
                self.dashboard.go.topic(*event.key)
