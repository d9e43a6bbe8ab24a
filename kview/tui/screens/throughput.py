"""6 Throughput: what Spark calculates from the recording, by topics, brokers or groups, over time."""

from functools import cache, partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical

from kview.derive.view import View
from kview.language import glossary, glyphs
from kview.model.aggregates import Key
from kview.model.sums import Kind
from kview.model.units import UNKNOWN
from kview.tui import layout, spark
from kview.tui.actions import Where, bindings
from kview.tui.app_of import app_of
from kview.tui.keys import ACTIONS
from kview.tui.options import Options
from kview.tui.rows import throughput as rows
from kview.tui.rows.throughput_detail import STRETCHES, USUAL, Canvas, detail_lines, figures_alone
from kview.tui.rows.throughput_windows import FIGURE_LINES
from kview.tui.screens.base import KviewScreen
from kview.tui.text import Line, Role, Span, Title, joined, line, line_width
from kview.tui.widgets.bottom import StatusMessage
from kview.tui.widgets.drawn import Headed, Lines
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.table import Table

LIST_SHARE = 34
"""The width of the list, in percent of the screen's width."""
LEAST_LIST = 40
"""The smallest width of the list in cells, at which names and rates are still readable."""


PLOTS_WIDTH = 72
"""Below this width there is only the list, with a curve in every row: plots would have no room."""

LIST_HEAD = 1
"""The lines of the list's head."""

SPARK_LINES = 1
"""The lines that say how the Spark job is doing."""


class SparkHead(Lines):
    """The line that says how the Spark job is doing. The line is always shown."""

    DEFAULT_CSS = "SparkHead { height: 1; }"

    view: View | None = None
    options = Options()

    def lines(self, width: int, height: int) -> list[Line]:
        if self.view is None:
            return []
        at = app_of(self)
        parts = spark.status(self.view, self.options, at.wall_ms(), at.zone)
        name = line(Span(" Spark ", Role.HEAD))
        return [(*name, *joined(parts, Span(f" {glyphs.DOT} ", Role.DIM), width - line_width(name)))]


class Detail(Headed):
    """Plots and figures for the selected row, rebuilt only when their data changes."""

    DEFAULT_CSS = "Detail { width: 1fr; height: 1fr; }"

    view: View | None = None
    options = Options()
    key: Key = rows.CLUSTER
    label = ""
    stretch = STRETCHES[USUAL]
    with_figures = True

    _kept: tuple[object, tuple[Title, list[Line]]] = (None, (Title(), []))

    def select(self, key: Key, label: str) -> None:
        """Show the plots and figures of `key`, which is called `label`."""
        self.key, self.label = key, label

    def let_go(self) -> None:
        """Drop what was made of the view, too."""
        super().let_go()
        self._kept = (None, (Title(), []))

    def headed(self, width: int, height: int) -> tuple[Title, list[Line]]:
        if self.view is None:
            return Title(), []
        at = app_of(self)
        made_from = (self.view, self.key, self.stretch, self.with_figures, width, height)
        before = self._kept[0]
        if before is None or any(old is not new for old, new in zip(before, made_from, strict=True)):  # type: ignore[call-overload]
            self._kept = (
                made_from,
                detail_lines(
                    self.view,
                    self.options,
                    self.key,
                    self.label,
                    self.stretch,
                    Canvas((width, height), at.zone),
                    self.with_figures,
                ),
            )
        return self._kept[1]


class Figures(Lines):
    """The selected row's figures by window, in the lines that the list leaves free."""

    DEFAULT_CSS = "Figures { width: 1fr; height: 1fr; }"

    view: View | None = None
    key: Key = rows.CLUSTER

    def show(self, view: View, key: Key) -> None:
        """Show the figures of `key`."""
        self.view, self.key = view, key

    def lines(self, width: int, height: int) -> list[Line]:
        return figures_alone(self.view, self.key, (width - 1, height)) if self.view else []


class ThroughputScreen(KviewScreen):
    """Throughput from Spark's roll-ups, or direct rates while there are no roll-ups."""

    AUTO_FOCUS = "#rates"
    has_live_figures = True
    CSS = "ThroughputScreen #sides { height: 1fr; } ThroughputScreen #left { height: 1fr; }"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ACTIONS, Where.THROUGHPUT)]

    _listed = 0
    _stretch = USUAL

    def body(self) -> ComposeResult:
        yield SparkHead()
        with Horizontal(id="sides"):
            with Vertical(id="left"):
                with Panel(id="list_side"):
                    yield Table(id=rows.PANEL)
                with Panel(id="figures_side"):
                    yield Figures(id="figures")
            with Panel(id="detail_side"):
                yield Detail()

    def lay_out_panels(self) -> None:
        """Set the width of the list. The plots get the remaining width, if it is enough for them."""
        width = max(LEAST_LIST, self.app.size.width * LIST_SHARE // 100)
        width += layout.edge_cells(self.is_framed)
        is_alone = self.app.size.width < PLOTS_WIDTH
        self.query_one("#left").styles.width = "1fr" if is_alone else width
        self.query_one("#detail_side").display = not is_alone

    def _lay_out_list(self, listed: int) -> bool:
        """Show the figures below the list of `listed` rows if there are enough lines.

        Returns whether there are.
        """
        needed = listed + LIST_HEAD + self.edge_lines
        room = self.page_height - layout.CHROME - SPARK_LINES - needed - self.edge_lines
        is_below = room >= FIGURE_LINES
        self.query_one("#list_side").styles.height = needed if is_below else "1fr"
        self.query_one("#figures_side").display = is_below
        return is_below

    def draw(self, view: View) -> None:
        options = self.dashboard.options
        head, detail = self.query_one(SparkHead), self.query_one(Detail)
        table = self.query_one(f"#{rows.PANEL}", Table)
        make_rows = cache(partial(rows.ThroughputRows, view, options, list(rows.LISTS)[self._listed]))
        table.fill(make_rows)
        head.view = detail.view = view
        head.options = detail.options = options
        detail.stretch = STRETCHES[self._stretch]
        key = table.selected if isinstance(table.selected, Key) else rows.CLUSTER
        has_rollups = view.aggregates.rollups.from_ms != UNKNOWN
        is_below = self._lay_out_list(len(table.rows) if has_rollups else self.page_height)
        detail.with_figures = not is_below
        figures = self.query_one(Figures)
        figures.attempt(lambda: figures.show(view, key))
        detail.attempt(lambda: detail.select(key, make_rows().label(key)))

    def figures(self) -> list[str]:
        """Return the names of the figures shown, for help."""
        return [*super().figures(), *glossary.THROUGHPUT_FIGURES]

    def action_list(self, by: int) -> None:
        """Show another list."""
        self._listed = (self._listed + by) % len(rows.LISTS)
        self.update()

    def action_stretch(self) -> None:
        """Plot another stretch of time."""
        if self.view is not None and self.view.aggregates.rollups.from_ms == UNKNOWN:
            self.dashboard.say(StatusMessage("only Spark's figures cover more than the last minute"))
            return
        self._stretch = (self._stretch + 1) % len(STRETCHES)
        self.update()

    @on(Table.Moved)
    def _another(self) -> None:
        self.update()

    @on(Table.Opened)
    def _open(self, event: Table.Opened) -> None:
        if not isinstance(event.key, Key):
            return
        if event.key.kind is Kind.TOPIC:
            self.dashboard.go.topic(event.key.name)
        elif event.key.kind is Kind.GROUP:
            self.dashboard.go.group(event.key.name)
        elif event.key.kind is Kind.BROKER:
            self.dashboard.go.broker(int(event.key.name))
        else:
            self.dashboard.say(
                StatusMessage(
                    self.dashboard.keys.said("{open} opens topics, groups and brokers"),
                    self.dashboard.keys.said("{previous-list} {next-list} list them"),
                )
            )
