"""What all screens share: header, headline, status and keys around a body; the filter line; being too
small."""

from typing import TYPE_CHECKING, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Input

from kview.derive.view import View
from kview.tui.aim import Target
from kview.tui.layout import MIN_HEIGHT, MIN_WIDTH, headline_height
from kview.tui.widgets.bottom import KeyLine, StatusLine, TooSmall
from kview.tui.widgets.drawn import Drawn, Lines
from kview.tui.widgets.header import Header, HeadlinePanel
from kview.tui.widgets.prompt import Prompt, Question
from kview.tui.widgets.table import Table

if TYPE_CHECKING:
    from kview.tui.app import KviewApp


class KviewScreen(Screen[None], inherit_bindings=False):
    """A screen that draws views."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "escape",
            "back",
            "back",
            show=False,
            tooltip="one step back: the filter, then the screen before, then the live moment",
        ),
        Binding("tab", "app.focus_next", "next panel", show=False, tooltip="give the keys to the next panel"),
        Binding(
            "shift+tab", "app.focus_previous", "previous panel", show=False, tooltip="and to the one before"
        ),
    ]

    panel_sorts: ClassVar[dict[str, int]] = {}
    """By the id of a table: how many orders it has."""

    has_targets: ClassVar[bool] = False
    """Whether something can be selected here that a fault could hit."""

    @property
    def kview(self) -> "KviewApp":
        """The app, as what it is."""
        return cast("KviewApp", self.app)

    @property
    def view(self) -> View | None:
        """The latest picture."""
        return self.kview.view

    def body(self) -> ComposeResult:
        """The panels between headline and status."""
        raise NotImplementedError

    def draw(self, view: View) -> None:
        """Hand the panels a picture."""
        raise NotImplementedError

    def share_out(self) -> None:
        """Share the size among the panels."""

    def target(self) -> Target | None:
        """What a fault would hit now."""
        return None

    def compose(self) -> ComposeResult:
        """Chrome around the body."""
        with Vertical(id="page"):
            timeline = self.kview.timeline
            yield Header(self.kview.source, timeline is not None and timeline.replay, self.kview.started_ms)
            yield HeadlinePanel()
            with Vertical(id="body"):
                yield from self.body()
            yield StatusLine()
            yield Input(
                placeholder="part of a topic's or a group's name; Enter keeps it, Esc clears it",
                compact=True,
                id="filter",
            )
            yield Prompt()
            yield KeyLine()
        yield TooSmall(id="small")

    # -- drawing

    def on_mount(self) -> None:
        """Draw what is known already."""
        self.refit()

    def on_screen_resume(self) -> None:
        """Catch up with what was drawn elsewhere meanwhile."""
        self.refit()

    def on_resize(self) -> None:
        """Fit the panels anew."""
        self.refit()

    def refit(self) -> None:
        """Arrange and draw everything."""
        size = self.app.size
        small = size.width < MIN_WIDTH or size.height < MIN_HEIGHT
        self.query_one("#page").display = not small
        self.query_one("#small").display = small
        if small:
            self.query_one(TooSmall).refresh()
            return
        headline = self.query_one(HeadlinePanel)
        headline.styles.height = headline_height(size.height)
        self.share_out()
        self.update()

    def update(self) -> None:
        """Draw the app's picture."""
        view = self.view
        header, headline = self.query_one(Header), self.query_one(HeadlinePanel)
        header.view = headline.view = view
        headline.notice = self.kview.notice
        if view is not None:
            self.draw(view)
        self.say()
        for widget in self.query(Lines):
            widget.redraw()

    def tick(self, whole_second: bool) -> None:
        """Let ages and countdowns go on: tenths in the two top lines, whole seconds everywhere."""
        for widget in self.query(Drawn) if whole_second else self.query("#header, #headline").results(Drawn):
            widget.redraw()

    def say(self) -> None:
        """Show what the app has to say."""
        status = self.query_one(StatusLine)
        status.said, status.active = self.kview.said, self.kview.faults.active
        status.redraw()

    # -- keys

    def action_back(self) -> None:
        """One step back."""
        if self.has_class("-asking"):
            self._end_question()
        elif self.kview.options.filter or self.has_class("-filtering"):
            self._end_filter(keep=False)
        elif len(self.app.screen_stack) > 1:
            self.app.pop_screen()
        elif self.kview.time.allows("live"):
            self.kview.time.do("live")

    def begin_filter(self) -> None:
        """Ask for a part of a name."""
        self.add_class("-filtering")
        line = self.query_one("#filter", Input)
        line.value = self.kview.options.filter
        self.set_focus(line)

    def _end_filter(self, keep: bool) -> None:
        self.remove_class("-filtering")
        if not keep:
            self.query_one("#filter", Input).value = ""
            self.kview.set_filter("")
        self._give_keys_back()

    def ask(self, question: Question) -> None:
        """Ask something in the status line's place."""
        if self.has_class("-filtering"):
            self._end_filter(keep=True)
        self.query_one(Prompt).ask(question)

    def _end_question(self) -> Question | None:
        question = self.query_one(Prompt).leave()
        self._give_keys_back()
        return question

    @on(Input.Submitted, "#prompt")
    def _answered(self, event: Input.Submitted) -> None:
        question = self._end_question()
        if question is not None:
            question.answer(event.value.strip())

    def _give_keys_back(self) -> None:
        if tables := [table for table in self.query(Table) if table.display]:
            self.set_focus(self._before_filter() or tables[0])

    def _before_filter(self) -> Table | None:
        return next((table for table in self.query(Table) if table.id == self._last_table), None)

    _last_table: str | None = None

    def on_descendant_focus(self) -> None:
        """Remember which panel had the keys, for when the filter line gives them back."""
        if isinstance(self.focused, Table):
            self._last_table = self.focused.id
        self.query_one(KeyLine).redraw()

    @on(Input.Changed, "#filter")
    def _filter_typed(self, event: Input.Changed) -> None:
        if self.has_class("-filtering"):
            self.kview.set_filter(event.value)

    @on(Input.Submitted, "#filter")
    def _filter_kept(self) -> None:
        self._end_filter(keep=True)

    def focused_table(self) -> Table | None:
        """The table that has the keys."""
        return self.focused if isinstance(self.focused, Table) else None
