"""A report as text, which scrolls. It stays as it was made, whatever happens in the cluster."""

from textual.app import ComposeResult

from kview.derive.view import View
from kview.model.reporting import MadeReport
from kview.tui.rows.report import ReportRows
from kview.tui.screens.base import KviewScreen
from kview.tui.text import Role, Span
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.table import GUTTER, Table


class ReportScreen(KviewScreen):
    """Shows a report. `typed` is the filter with which it was made, '' if there was none."""

    AUTO_FOCUS = "#report"
    is_filtered = False

    def __init__(self, report: MadeReport, typed: str = "") -> None:
        super().__init__()
        self._report = report
        self._typed = typed
        self._made_for: tuple[int, bool] | None = None

    def body(self) -> ComposeResult:
        with Panel(id="heading"):
            yield Table(id="report", opens=False)

    def let_go(self) -> None:
        """Drop the lines, which are made again."""
        super().let_go()
        self._made_for = None

    def draw(self, view: View) -> None:
        """Draw the lines, again only if the width has changed."""
        cells, ascii_only = max(40, self.inner_width - GUTTER), self.dashboard.ascii_only
        if self._made_for == (cells, ascii_only):
            return
        self._made_for = (cells, ascii_only)
        parts = [Span("REPORT", Role.HEAD)]
        if self._typed:
            parts.append(Span(f"  {self._typed}", Role.MOMENT))
        parts.append(Span(f"  {self._report.path}", Role.DIM, link=self._report.url))
        self.query_one(Panel).entitle(lambda: tuple(parts))
        self.query_one("#report", Table).fill(lambda: ReportRows(self._report.lines(cells, ascii_only)))
