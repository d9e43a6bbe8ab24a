"""5 Groups: all consumer groups, how far each is behind, and why; below, the selected group's partitions."""

from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult

from kview.derive.view import View
from kview.language.lists import Order, order_name
from kview.tui import layout
from kview.tui.rows import group as of_group
from kview.tui.rows import groups
from kview.tui.rows.common import title
from kview.tui.rows.group import OffsetRows
from kview.tui.rows.sorting import order_note
from kview.tui.screens.base import KviewScreen
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.table import Table

LEAST_OFFSETS = 8
"""The fewest lines that the groups must leave free for the selected group's partitions to be shown."""


class GroupsScreen(KviewScreen):
    """The list of all groups, and in the lines it leaves free the partitions of the selected one."""

    AUTO_FOCUS = "#groups"
    partition_panels: ClassVar[frozenset[str]] = frozenset({of_group.PANEL})

    def body(self) -> ComposeResult:
        with Panel(id="groups_side"):
            yield Table(id="groups")
        with Panel(id="below"):
            yield Table(id=of_group.PANEL)

    def draw(self, view: View) -> None:
        options = self.dashboard.options
        listed = self.query_one("#groups", Table)
        listed.fill(lambda: groups.GroupRows(view, options))
        room = self.page_height - layout.CHROME - self.edge_lines
        needed = len(listed.rows) + 1 + self.edge_lines
        group = listed.selected
        is_below = room - needed >= LEAST_OFFSETS and isinstance(group, str)
        self.query_one("#groups_side").styles.height = needed if is_below else "1fr"
        self.query_one("#below").display = is_below
        if is_below:
            self.query_one(f"#{of_group.PANEL}", Table).fill(partial(self._offsets, view, str(group)))

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
            self.dashboard.go.topic(*event.key)
