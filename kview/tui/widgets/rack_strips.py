"""The panel with a sign per broker, for clusters with more brokers than rows."""

from kview.derive.view import View
from kview.tui.app_of import app_of
from kview.tui.rows.rack_strips import strips
from kview.tui.text import Line
from kview.tui.widgets.drawn import Lines


class RackStrips(Lines):
    """All brokers by rack, a sign for each."""

    DEFAULT_CSS = "RackStrips { height: 1; }"

    most = 0

    def fit(self, view: View | None, cells: int, most: int) -> None:
        """Take as many lines as all brokers need in `cells`, at most `most`; none if `most` is 0."""
        self.view, self.most = view if most > 0 else None, most
        self.display = most > 0
        if view is not None and most > 0:
            self.attempt(lambda: self._take(view, cells, most))

    def _take(self, view: View, cells: int, most: int) -> None:
        self.styles.height = len(strips(view, cells, most, app_of(self).now_ms()))

    def lines(self, width: int, height: int) -> list[Line]:
        return strips(self.view, width, self.most, app_of(self).now_ms()) if self.view and self.most else []
