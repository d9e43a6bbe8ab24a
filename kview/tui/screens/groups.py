"""5 Groups: all consumer groups, how far each is behind, and why; below, the selected group's partitions and
its lag."""

from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.containers import Container

from kview.derive.align import runs
from kview.derive.view import View
from kview.language.lists import Order, order_name
from kview.tui.layout import LEAST_LAG
from kview.tui.options import Options
from kview.tui.rows import group as of_group
from kview.tui.rows import groups
from kview.tui.rows.common import title
from kview.tui.rows.group import OffsetRows
from kview.tui.rows.sorting import order_note
from kview.tui.screens.base import KviewScreen
from kview.tui.widgets.minute_plot import GROUP_LAG, MinutePlot
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.table import Table

LEAST_OFFSETS = 6
"""The fewest lines for the selected group's partitions, without their edges."""


class GroupsScreen(KviewScreen):
    """The list of all groups, and in the lines it leaves free the partitions of the selected one."""

    AUTO_FOCUS = "#groups"
    CSS = "GroupsScreen #below { height: 1fr; }"
    partition_panels: ClassVar[frozenset[str]] = frozenset({of_group.PANEL})
    _made: tuple[View, Options, groups.GroupRows] | None = None

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
        listed.fill(lambda: self._groups(view, options))
        group, plot = listed.selected, self.query_one(MinutePlot)
        wanted = len(listed.rows) + 1 if isinstance(group, str) else self.room
        if left := self.split(self.room, "groups_side", "below", wanted, LEAST_OFFSETS):
            begins, ends = runs(view.snapshot.offsets.group)
            longest = int((ends - begins).max(initial=0))  # of all groups, so that another one moves no panel
            self.split(left, "offsets_side", "lag_side", longest + 1, LEAST_LAG, LEAST_OFFSETS)
            self.query_one(f"#{of_group.PANEL}", Table).fill(partial(self._offsets, view, str(group)))
            plot.view, plot.about = view, str(group)

    def _groups(self, view: View, options: Options) -> groups.GroupRows:
        """Return the rows of groups, which stay the same while the selection moves."""
        if self._made is None or self._made[0] is not view or self._made[1] is not options:
            self._made = (view, options, groups.GroupRows(view, options))
        return self._made[2]

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
        elif isinstance(event.key, tuple):
            rows, group = event.table.rows, self.query_one("#groups", Table).selected
            if (
                isinstance(rows, OffsetRows)
                and self.dashboard.reads_records
                and rows.leads_to_record(event.key)
            ):
                self.dashboard.go.position(str(group), *event.key)
            else:
                self.dashboard.go.topic(*event.key)
