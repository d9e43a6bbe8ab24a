"""The groups in one line, for a screen that has no room for the panel of groups."""

from kview.derive.view import View
from kview.tui.options import Options
from kview.tui.rows.groups import summary
from kview.tui.text import Line
from kview.tui.widgets.drawn import Lines


class GroupsLine(Lines):
    """How many groups have which verdict."""

    DEFAULT_CSS = "GroupsLine { height: 1; }"

    def __init__(self) -> None:
        super().__init__(id="groups_line")
        self.view: View | None = None
        self.options = Options()

    def lines(self, width: int, height: int) -> list[Line]:
        return [] if self.view is None else [summary(self.view, self.options, width)]
