"""5 Groups: all consumer groups, how far each is behind, and why."""

from textual import on
from textual.app import ComposeResult

from kview.derive.view import View
from kview.tui.rows import groups
from kview.tui.screens.base import KviewScreen
from kview.tui.widgets.bottom import Rule
from kview.tui.widgets.table import Table


class GroupsScreen(KviewScreen):
    """The list of all groups."""

    AUTO_FOCUS = "#groups"

    def body(self) -> ComposeResult:
        """Make the panel of the screen."""
        yield Rule()
        yield Table(id="groups")

    def draw(self, view: View) -> None:
        """Pass to the panel its part of a view."""
        options = self.dashboard.options
        self.query_one("#groups", Table).fill(lambda: groups.GroupRows(view, options))

    @on(Table.Opened)
    def _open(self, event: Table.Opened) -> None:
        if isinstance(event.key, str):
            self.dashboard.show_group(event.key)
