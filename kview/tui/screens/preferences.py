"""`,`: a small list of what kview keeps for the next time, above the screen."""

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, NamedTuple

from msgspec.structs import replace
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from kview.config.display import DisplayDefaults, keep
from kview.errors import KviewError
from kview.language import preferences as said
from kview.language.errors import message, remedy
from kview.model.events import Severity
from kview.tui.app_of import app_of
from kview.tui.layout import edge_lines
from kview.tui.rows.columns import Column
from kview.tui.rows.common import Keyed
from kview.tui.rows.row import Row
from kview.tui.screens.over import OverScreen
from kview.tui.text import Line, Role, Span, line
from kview.tui.widgets.bottom import StatusMessage
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.prompt import Question
from kview.tui.widgets.table import Table

INTERVALS = ("500ms", "1s", "2s", "5s", "10s", "30s")
"""The intervals offered. The file may have any other."""

Value = str | bool | tuple[str, ...]


class Setting(NamedTuple):
    """A setting: its key in the file, its value, and what is offered in its place, () for what is typed."""

    key: str
    value: Value
    offered: tuple[Value, ...]


def settings(kept: DisplayDefaults, themes: Sequence[str], theme: str, interval: str) -> list[Setting]:
    """Return the settings, given what the file has, the themes, and the theme and interval in use."""
    chosen = kept.theme if kept.theme in themes else theme
    every = kept.interval or interval
    offered = INTERVALS if every in INTERVALS else (every, *INTERVALS)
    return [
        *([Setting("theme", chosen, tuple(themes))] if themes else []),
        Setting("interval", every, offered),
        Setting("mouse", kept.mouse, (True, False)),
        Setting("ignore-group", kept.ignore_group, ()),
    ]


class PreferenceRows(Keyed[str]):
    """The rows of settings. The key is that of the file."""

    columns: Sequence[Column] = (
        Column("name", "", 14),
        Column("value", "", 16, flex=1, name=True),
        Column("note", "", 24),
    )

    def __init__(self, listed: Sequence[Setting]) -> None:
        super().__init__([setting.key for setting in listed])
        self.listed = listed
        self.title: Line = line(Span("SETTINGS", Role.HEAD), Span(f"  {said.KEYS}", Role.DIM))

    def row(self, index: int, now_ms: int) -> Row:
        setting = self.listed[index]
        return Row(
            (
                line(said.NAMES[setting.key]),
                line(Span(said.value(setting.value), Role.BRIGHT)),
                line(Span(said.NOTES[setting.key], Role.DIM)),
            )
        )


class PreferencesScreen(OverScreen, inherit_bindings=False):
    """The list of settings. A choice is written into the file at once."""

    CSS = """
    PreferencesScreen { align: right bottom; background: $background 0%; }
    PreferencesScreen Panel { width: 66; max-width: 100%; margin: 0 1 2 0; }
    """
    AUTO_FOCUS = "Table"
    CHOOSES: ClassVar[str] = said.CHOOSES
    """What Enter does, for the key line of the screen below."""
    LEAVES: ClassVar[str] = "close"
    """What Escape does there."""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,comma", "dismiss", "back", key_display="Esc"),
        Binding("left", "change(-1)", "the value before"),
        Binding("right", "change(1)", "the next value"),
    ]

    def __init__(self, file: Path, kept: DisplayDefaults, interval_ms: int) -> None:
        super().__init__()
        self._file, self._kept, self._interval = file, kept, said.interval(interval_ms)

    def compose(self) -> ComposeResult:
        with Panel():
            yield Table(id="preferences")

    def on_mount(self) -> None:
        """Fill the list."""
        self._fill()
        height = len(self.query_one(Table).rows) + edge_lines(framed=True)
        self.query_one(Panel).styles.height = height

    def _fill(self) -> None:
        colours = app_of(self).colours
        listed = settings(self._kept, colours.names, colours.palette.name, self._interval)
        self.query_one(Table).fill(lambda: PreferenceRows(listed))

    def action_change(self, by: int) -> None:
        """Choose another value of the selected setting."""
        rows = self.query_one(Table).rows
        at = rows.find(self.query_one(Table).selected)
        if not isinstance(rows, PreferenceRows) or at is None:
            return
        setting = rows.listed[at]
        if not setting.offered:
            self._ask()
            return
        place = setting.offered.index(setting.value)
        self._keep(setting.key, setting.offered[(place + by) % len(setting.offered)])

    @on(Table.Opened)
    def _next(self) -> None:
        self.action_change(1)

    def _keep(self, key: str, value: Value) -> None:
        app = app_of(self)
        try:
            keep(self._file, key, list(value) if isinstance(value, tuple) else value)
        except KviewError as error:
            self.leave()
            app.say(StatusMessage(message(error), remedy(error), Severity.WARN))
            return
        if key == "theme":
            app.colours.use(str(value))
        self._kept = replace(self._kept, **{key.replace("-", "_"): value})
        if self.is_current:
            self._fill()
        else:
            app.say(StatusMessage(said.kept(str(self._file))))

    def _ask(self) -> None:
        """Ask for the names of groups to hide, in a line of the screen below."""
        app = app_of(self)
        if not self.leave():
            return
        hint = said.hint(self._kept.ignore_group)
        app.ask(
            Question("names", hint, "keep", lambda typed: self._keep("ignore-group", tuple(typed.split())))
        )
