"""The base of all screens: header, headline, status line and key line around a body, and the filter line.

If the terminal is too small, one sentence is shown instead.
"""

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.events import Resize, ScreenResume
from textual.geometry import Size
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input

from kview.derive.view import View
from kview.language import filters
from kview.model.events import Severity
from kview.model.units import NO_PARTITION, UNKNOWN
from kview.tui.actions import Where, bindings
from kview.tui.app_of import app_of
from kview.tui.faults import Target
from kview.tui.keys import ACTIONS
from kview.tui.layout import (
    CHROME,
    FRAMED_HEIGHT,
    MIN_HEIGHT,
    MIN_WIDTH,
    SUMMARY_HEIGHT,
    edge_cells,
    edge_lines,
    listed,
)
from kview.tui.looks import Look
from kview.tui.rows.row import Rows
from kview.tui.text import TITLE_MARGIN
from kview.tui.widgets.bottom import StatusLine, StatusMessage, TooSmall, filter_chip
from kview.tui.widgets.caption import CaptionStrip, caption_rows
from kview.tui.widgets.drawn import Drawn, Lines
from kview.tui.widgets.header import Header
from kview.tui.widgets.headline import Headline
from kview.tui.widgets.key_line import KeyLine
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.prompt import Prompt, Question, fitting
from kview.tui.widgets.table import Table

if TYPE_CHECKING:
    from kview.tui.app import KviewApp

FILTER_HINT = f"part of a name, or {filters.FORMS}"

JUST_DRAWN_MS = {True: 500, False: 100}
"""Ticks of whole seconds and of tenths that follow a drawing within this time have nothing to redraw."""

BROKER_TABLES = ("brokers", "grid")
"""The ids of the tables whose rows are brokers, which fault keys hit."""


class KviewScreen(Screen[None], inherit_bindings=False):
    """A screen that draws views.

    It has the class `-filtering` or `-asking` while a filter, or the answer to a question, is typed. The
    panel that was focused before gets the focus back.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ACTIONS, Where.SCREEN)]

    partition_panels: ClassVar[frozenset[str]] = frozenset()
    """The ids of the tables whose rows are partitions and whose keys are (topic, partition)."""

    topic_panels: ClassVar[frozenset[str]] = frozenset()
    """The ids of the tables whose rows are topics and whose keys are their names."""

    has_targets: ClassVar[bool] = False
    """Whether the screen has rows that a fault could hit."""

    has_live_figures: ClassVar[bool] = False
    """Whether the screen shows what Spark calculates."""

    is_filtered: ClassVar[bool] = True
    """Whether a filter hides rows of the screen. Another says nothing of the filter, and leaves it alone."""

    says_what_is_wrong: ClassVar[bool] = False
    """Whether the screen says in whole sentences what the head says in a few words."""

    _lines: tuple[Widget, ...] = ()
    """The lines that every screen has, once they are there."""
    _all_drawn: tuple[Drawn, ...] = ()
    """All that is drawn, once it is there. Nothing is added later."""
    _around: tuple[Panel, ...] = ()
    """The panels around it."""
    _fitted_to: Size | None = None
    """The size of the screen to which the panels have been fitted."""
    _has_let_go = False
    """Whether it holds no view, because another screen was shown."""
    _took_up = False
    """Whether it has been drawn since, before Textual said that it is shown."""
    _drawn_ms = (UNKNOWN, UNKNOWN)
    """When everything was last drawn, by the clock that is shown and by one that nobody sets."""

    @property
    def dashboard(self) -> "KviewApp":
        return app_of(self)

    @property
    def view(self) -> View | None:
        """The view shown."""
        return self.dashboard.view

    def body(self) -> ComposeResult:
        """Make the panels between headline and status line."""
        raise NotImplementedError

    def head(self) -> ComposeResult:
        """Make the two lines at the top."""
        dashboard = self.dashboard
        is_replay = dashboard.timeline is not None and dashboard.timeline.replay
        yield Header(dashboard.source, is_replay, dashboard.started_ms)
        yield Headline(dashboard.source, is_replay)

    def draw(self, view: View) -> None:
        """Pass to every panel its part of a view, each in the panel's own `attempt`."""
        raise NotImplementedError

    def lay_out_panels(self) -> None:
        """Set the panels' sizes."""

    def target(self) -> Target | None:
        """Return what a fault would hit now."""
        return None

    def selected_broker(self) -> int | None:
        """Return the broker whose row is selected."""
        return None

    def partitions_in_sight(self) -> frozenset[tuple[str, int]]:
        """Return the partitions, as (topic, partition), that have a row on the screen.

        A topic with a row is (topic, NO_PARTITION).
        """
        tables = (self.query_one(f"#{id}", Table) for id in (*self.partition_panels, *self.topic_panels))
        keys = (key for table in tables for key in table.in_sight)
        pairs = ((key, NO_PARTITION) if isinstance(key, str) else key for key in keys)
        return frozenset(pair for pair in pairs if isinstance(pair, tuple))

    def compose(self) -> ComposeResult:
        """Arrange header, headline and the bottom lines around the body."""
        with Vertical(id="page"):
            yield from self.head()
            with Vertical(id="body"):
                yield from self.body()
            yield CaptionStrip()
            yield StatusLine()
            yield Input(
                compact=True,
                id="filter",
            )
            yield Prompt()
            yield KeyLine()
        yield TooSmall(id="small")

    # -- drawing

    def on_mount(self) -> None:
        """Draw what is already known."""
        self.refit()

    def on_screen_resume(self, event: ScreenResume) -> None:
        """Catch up with what happened while another screen was shown. One that was mounted just now is drawn
        once it has its size."""
        if self.app.screen is not self:  # it was mounted ahead, or left at once
            event.prevent_default()
            return
        event.refresh_styles = False  # only a theme changes them, and Textual applies that before
        self.dashboard.forget_inert()
        self.dashboard.watch_figures(self.has_live_figures)
        if not self._took_up and self._fitted_to is not None:
            self.refit()
        self._took_up = False

    def on_screen_suspend(self) -> None:
        """Say which keys work while a list lies over the screen. Another screen needs no view of this one."""
        if self.dashboard.drawn_screen() is self:
            self.query_one(KeyLine).redraw()
        else:
            self.let_go()

    def let_go(self) -> None:
        """Drop the view that was shown, while another screen is: one takes 15 MB with 15,000 groups."""
        for drawn in self._all_drawn:
            drawn.let_go()
        self._has_let_go = True

    def take_up(self) -> None:
        """Draw the view shown, if the screen has let go of its own: at once, because the next key may mean a
        row of the screen, and comes before Textual says that the screen is shown again."""
        if self._has_let_go:
            self.refit()
            self._took_up = True

    def on_resize(self, event: Resize) -> None:
        """Fit the panels to the new size. Textual says the same size several times when a screen is shown."""
        if event.size != self._fitted_to and self._is_complete:
            self._fitted_to = event.size
            self.refit()

    @property
    def is_small(self) -> bool:
        """Whether the terminal is too small for the panels, so that only a sentence is drawn."""
        size = self.app.size
        return size.width < MIN_WIDTH or size.height < MIN_HEIGHT

    @property
    def _is_complete(self) -> bool:
        """Whether all lines are there. They are not while a demo's step takes the screen away, and a view may
        arrive then; nor are all panels if it is taken away, and so has no display, before it is mounted."""
        if not self.display:
            return False
        if not self._lines:  # a query walks the whole screen
            queries = [self.query(kind) for kind in (Header, Headline, StatusLine, KeyLine)]
            self._lines = tuple(each.first() for each in queries) if all(queries) else ()
            self._all_drawn = tuple(self.query(Drawn)) if self._lines else ()
            self._around = tuple(self.query(Panel)) if self._lines else ()
        return bool(self._lines) and all(each.is_attached for each in self._lines)

    @property
    def is_framed(self) -> bool:
        """Whether panels have frames: whether there are lines enough, also above a caption."""
        return self.app.size.height >= FRAMED_HEIGHT and self.page_height >= SUMMARY_HEIGHT

    @property
    def inner_width(self) -> int:
        """The cells inside a panel that is as wide as the screen."""
        return self.app.size.width - edge_cells(self.is_framed)

    @property
    def title_cells(self) -> int:
        """The cells that the title of such a panel has at most."""
        return self.inner_width - TITLE_MARGIN

    @property
    def edge_lines(self) -> int:
        """The lines that the edges of a panel take."""
        return edge_lines(self.is_framed)

    def split(self, room: int, above: str, below: str, wanted: int, least_below: int, least: int = 0) -> int:
        """Give a panel what the list above it does not need of `room`, as `layout.listed` says.

        Returns the panel's lines with its edges, 0 if it is not shown.
        """
        lines = listed(room, wanted, least_below, self.is_framed, least)
        self.query_one(f"#{above}").styles.height = lines or "1fr"
        self.query_one(f"#{below}").display = lines > 0
        return room - lines if lines else 0

    def refit(self) -> None:
        """Arrange and draw everything."""
        if not self._is_complete:
            return
        small = self.is_small
        self.query_one("#page").display = not small
        self.query_one("#small").display = small
        if small:
            self.query_one(TooSmall).refresh()
            return
        self._fit_panels()
        self.update()

    def _fit_panels(self) -> None:
        """Give the panels their edges and their sizes."""
        for panel in self._around:
            panel.fit(self.is_framed)
        self.lay_out_panels()

    def update(self) -> None:
        """Draw the view shown. An answer may come while another screen is shown: that draws nothing."""
        if not self._is_complete or (self._has_let_go and self.dashboard.drawn_screen() is not self):
            return
        dashboard, view = self.dashboard, self.view
        header, headline = self.query_one(Header), self.query_one(Headline)
        header.view = headline.view = view
        headline.notice = dashboard.notice
        self._fit_caption()
        looks = dashboard.teaching.looks
        for drawn in self._all_drawn:
            drawn.looks = tuple(look for look in looks if drawn.id in look.ids)
        for around in self._around:
            around.mark(any(around.id in look.ids for look in looks))
        self._has_let_go = False
        if view is not None:
            self.draw(view)
        self.say()
        said = (StatusLine, KeyLine)
        for panel in self._all_drawn:
            if isinstance(panel, Lines) and not isinstance(panel, said):
                panel.redraw()
        self._drawn_ms = self._clocks_ms()

    @property
    def page_height(self) -> int:
        """The height of the screen without the caption strip."""
        return self.app.size.height - self._caption_rows

    @property
    def room(self) -> int:
        """The lines for panels."""
        return self.page_height - CHROME

    _caption_rows = 0

    def _fit_caption(self) -> None:
        """Show the caption, if there is one, in as many rows as it needs."""
        strip = self.query_one_optional(CaptionStrip)
        if strip is None:  # a tick before the screen is composed
            return
        strip.caption = shown = self.dashboard.teaching.caption
        self.query_one(Headline).instead = shown.headline if shown is not None else ""
        rows = caption_rows(shown, self.app.size.width, self.app.size.height)
        if rows != self._caption_rows:
            self._caption_rows = rows
            strip.display, strip.styles.height = rows > 0, rows
            self._fit_panels()

    def redraw_caption(self) -> None:
        """Draw the caption strip again, because its clock has moved."""
        strip = self.query_one_optional(CaptionStrip)
        if strip is not None:
            strip.caption = self.dashboard.teaching.caption
            strip.redraw()

    def _has_filter(self) -> bool:
        return self.is_filtered and bool(self.dashboard.options.filter)

    def tick(self, whole_second: bool) -> None:
        """Redraw ages and countdowns: tenths in the headline, whole seconds everywhere."""
        if not self._is_complete or self._was_just_drawn(JUST_DRAWN_MS[whole_second]):
            return
        if whole_second:
            self._fit_caption()
        for panel in self._all_drawn:
            if whole_second or panel.is_ticking:
                panel.redraw()

    def _was_just_drawn(self, within_ms: int) -> bool:
        """Return whether everything was drawn within this time, so that no age has grown since."""
        pairs = zip(self._clocks_ms(), self._drawn_ms, strict=True)
        return all(0 <= now_ms - drawn_ms < within_ms for now_ms, drawn_ms in pairs)

    def _clocks_ms(self) -> tuple[int, int]:
        return self.dashboard.wall_ms(), time.monotonic_ns() // 1_000_000

    def say(self) -> None:
        """Draw the status line."""
        if not self._is_complete:
            return
        dashboard = self.dashboard
        # The faults in force are of now, not of an earlier moment.
        active = dashboard.faults.active if dashboard.live else ()
        options, message = dashboard.options, dashboard.status_message
        wrong = filters.problem(options.wanted)
        self.set_class(bool(wrong), "-wrong")
        if wrong and (self.has_class("-filtering") or not message.text):
            message = StatusMessage(wrong, severity=Severity.WARN)
        is_said = self._has_filter() and not self.has_class("-filtering")
        chip = filter_chip(options.filter, wrong, dashboard.keys.name("back")) if is_said else ()
        self.query_one(StatusLine).show(message, active, chip)
        self.query_one(KeyLine).redraw()

    @on(Table.Moved)
    def _selection_moved(self) -> None:
        """Say what the fault keys mean for another row."""
        self.say()

    def point(self, looks: Sequence[Look], broker: int | None) -> bool:
        """Select the rows that are marked, and focus the row of `broker`. Returns False if they are not there
        yet."""
        tables = [table for table in self.query(Table) if table.is_shown]
        is_selected, focus = not any(look.key is not None for look in looks), None
        for look in looks:
            for table in tables:
                if look.key is not None and table.id in look.ids and table.select(look.key):
                    is_selected, focus = True, focus or table
        if broker is not None:
            focus = next((table for table in tables if table.id in BROKER_TABLES), None)
            is_selected = focus is not None and focus.select(broker)
        if is_selected and focus is not None and not self.has_class("-filtering", "-asking"):
            self.set_focus(focus)
        return is_selected

    # -- the lines that are typed into: the filter, and the answer to a question

    @property
    def is_typing(self) -> bool:
        """Whether a line is being typed: a filter, or the answer to a question."""
        return self.has_class("-asking") or self.has_class("-filtering")

    def begin_filter(self) -> None:
        """Ask for the part of a name to filter by."""
        self.add_class("-filtering")
        line = self.query_one("#filter", Input)
        line.placeholder = fitting(FILTER_HINT, self.app.size.width)
        line.value = self.dashboard.options.filter
        self.set_focus(line)

    def _end_filter(self, keep: bool) -> None:
        self.remove_class("-filtering")
        if not keep:
            self.query_one("#filter", Input).value = ""
            self._filter_by("")
        self._focus_panel()
        self.say()

    def ask(self, question: Question) -> None:
        """Ask a question in place of the status line."""
        if self.has_class("-filtering"):
            self._end_filter(keep=True)
        self.query_one(Prompt).ask(question)

    def _end_question(self) -> Question | None:
        if self.has_class("-refused"):
            self.remove_class("-refused")
            self.dashboard.clear_message()
        question = self.query_one(Prompt).leave()
        self._focus_panel()
        return question

    @on(Input.Submitted, "#prompt")
    def _answered(self, event: Input.Submitted) -> None:
        asked, typed = self.query_one(Prompt).question, event.value.strip()
        if asked is not None and typed and (wrong := asked.problem(typed)):
            self.add_class("-refused")
            self.dashboard.say(StatusMessage(wrong, severity=Severity.WARN))
            return
        question = self._end_question()
        if question is not None:
            question.answer(event.value.strip())

    def _focus_panel(self) -> None:
        if tables := [table for table in self.query(Table) if table.is_shown]:
            self.set_focus(self._before_filter() or tables[0])
        else:
            self.set_focus(None)

    def _before_filter(self) -> Table | None:
        return next((table for table in self.query(Table) if table.id == self._last_table), None)

    _last_table: str | None = None

    def on_descendant_focus(self) -> None:
        """Remember which panel had the focus, so that it gets the focus back after the filter line."""
        if isinstance(self.focused, Table):
            self._last_table = self.focused.id
        self.query_one(KeyLine).redraw()

    @on(Input.Changed, "#filter")
    def _filter_typed(self, event: Input.Changed) -> None:
        if self.has_class("-filtering"):
            self._filter_by(event.value)

    @on(Input.Submitted, "#filter")
    def _filter_kept(self) -> None:
        self._end_filter(keep=True)

    def _filter_by(self, text: str) -> None:
        self.dashboard.set_options(replace(self.dashboard.options, filter=text))

    # -- keys

    def action_back(self) -> None:
        """Go one step back.

        Leave the question, clear the filter, leave the screen, or return to the live moment. What is said of
        something that is done goes away, too.
        """
        self.dashboard.clear_message(kept=False)
        if self.has_class("-asking"):
            self._end_question()
        elif any(table.cancel() for table in self.query(Table)) or self.dashboard.cancel_work():
            pass
        elif self._has_filter() or self.has_class("-filtering"):
            self._end_filter(keep=False)
        elif self.fold_all() or self.dashboard.teaching.leave(len(self.app.screen_stack)):
            pass
        elif len(self.app.screen_stack) > 1:
            self.app.pop_screen()
        elif not self.dashboard.live:
            self.dashboard.return_to_live()
        else:
            self.dashboard.leave_cluster()

    def fold_all(self) -> bool:
        """Fold rows that were unfolded. Returns False if there are none."""
        return False

    def focused_rows(self) -> tuple[str, Rows] | None:
        """Return the focused table and its rows, or None if no table is focused."""
        table = self.focused_table()
        if table is None or not table.rows.columns:
            return None
        return table.id or "table", table.rows

    def figures(self) -> list[str]:
        """Return the names of the figures shown, for help: the titles of columns."""
        return [name for table in self.query(Table) if table.is_shown for name in table.figures()]

    def focused_table(self) -> Table | None:
        """Return the table that has the focus, or the first one if none has it."""
        if isinstance(self.focused, Table):
            return self.focused
        return next((table for table in self.query(Table) if table.is_shown), None)

    @on(Table.HeadClicked)
    def _sort(self, event: Table.HeadClicked) -> None:
        self.dashboard.sort_by(event.table, event.column)
