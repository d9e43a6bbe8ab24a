"""The panel with the timeline of events."""

from kview.derive.view import View
from kview.tui.app_of import app_of
from kview.tui.rows.lanes import lane_lines
from kview.tui.text import Line, Title
from kview.tui.widgets.drawn import Headed


class Lanes(Headed):
    """A lane per broker, one for the controllers and one for the partitions."""

    def __init__(self) -> None:
        super().__init__(id="lanes")
        self.view: View | None = None

    def headed(self, width: int, height: int) -> tuple[Title, list[Line]]:
        if self.view is None:
            return Title(), []
        at = app_of(self)
        return lane_lines(self.view, at.now_ms(), at.zone, width, height)
