"""The panel with the timeline of events."""

from kview.derive.view import View
from kview.tui.app_of import app_of
from kview.tui.rows.lanes import lane_lines
from kview.tui.text import Line, Role, Span, Title, line
from kview.tui.widgets.drawn import Lines


class Lanes(Lines):
    """A lane per broker, one for the controllers and one for the partitions."""

    title = Title(line(Span("TIMELINE", Role.HEAD)))

    def __init__(self) -> None:
        super().__init__(id="lanes")
        self.view: View | None = None

    def lines(self, width: int, height: int) -> list[Line]:
        if self.view is None:
            return []
        at = app_of(self)
        return lane_lines(self.view, at.now_ms(), at.zone, width, height)
