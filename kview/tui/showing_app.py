"""Which screen an app shows, and what its status line says."""

from collections.abc import Callable
from typing import Any

from textual.app import ScreenStackError
from textual.screen import Screen

from kview.derive.view import View
from kview.tui.actions import Keys
from kview.tui.fault_keys import FaultKeys
from kview.tui.lab_keys import LabKeys
from kview.tui.screens.answers import AnswerScreen
from kview.tui.screens.base import KviewScreen
from kview.tui.screens.commands import CommandScreen
from kview.tui.screens.demos import DemoScreen
from kview.tui.screens.themes import ThemeScreen
from kview.tui.status import Status
from kview.tui.textual_internals import OwnApp
from kview.tui.widgets.bottom import StatusMessage, shown_key
from kview.tui.widgets.key_line import KeyLine
from kview.tui.widgets.prompt import Question


class ShowingApp(OwnApp, inherit_bindings=False):
    """An app whose screens draw views, and have a status line."""

    keys: Keys
    view: View | None
    faults: FaultKeys
    lab: LabKeys
    status: Status
    wall_ms: Callable[[], int]

    def __init__(self, colourless: bool) -> None:
        super().__init__(colourless)
        self._inert_on: Screen[Any] | None = None
        """The screen about which the status line says that a key does nothing there."""

    def shown(self) -> KviewScreen | None:
        """Return the screen that draws views.

        None while help or the palette covers the screen, and before the screen exists.
        """
        try:
            screen = self.screen
        except ScreenStackError:
            return None
        return screen if isinstance(screen, KviewScreen) and screen.is_mounted else None

    @property
    def unseen(self) -> bool:
        """Whether only the sentence is drawn that the terminal is too small."""
        screen = self.shown()
        return screen is not None and screen.is_small

    def _visible(self) -> KviewScreen | None:
        """Return the screen that draws views, also if the list of `:` or of themes lies over it."""
        below = self.screen_stack[-2:-1]
        if (
            below
            and isinstance(self.screen, (CommandScreen, ThemeScreen, DemoScreen, AnswerScreen))
            and isinstance(below[0], KviewScreen)
        ):
            return below[0]
        return self.shown()

    def _update(self) -> None:
        if screen := self._visible():
            screen.update()
            return
        for over in self.screen_stack[1:]:  # Help shows which keys work.
            for keys in over.query(KeyLine):
                keys.redraw()

    def say(self, message: StatusMessage, keep: bool = False) -> None:
        """Show a message in the status line. With `keep`, the message stays until the next one."""
        self._inert_on = None
        self.status.say(message, self.wall_ms(), keep)
        self.redraw_status()

    def forget_inert(self) -> None:
        """Remove the message that a key does nothing, because it is about another screen."""
        if self._inert_on not in (None, self.screen):
            self._inert_on = None
            self.clear_message()

    def clear_message(self, kept: bool = True) -> None:
        """Remove the message from the status line, because it is about another moment. Without `kept`, one
        that stays until the next message stays."""
        if not kept and self.status.is_kept:
            return
        self.status.say(StatusMessage(), self.wall_ms(), keep=False)
        self.redraw_status()

    def say_inert(self, key: str, character: str | None) -> None:
        """Say in the status line that a key does nothing here."""
        if self.shown() is None or self.unseen:
            return
        fault = self.faults.inert(key) or self.lab.inert(key)
        self.say(
            StatusMessage(
                fault or f"{shown_key(key, character)} does nothing here",
                f"{self.keys.name('help')} lists the keys",
            )
        )
        self._inert_on = self.screen

    def redraw(self) -> None:
        """Draw the screen again, because something that is not in the view has changed."""
        self._update()

    def redraw_status(self) -> None:
        """Redraw the status line and the key line."""
        if screen := self.shown():
            screen.say()

    def ask(self, question: Question) -> None:
        """Ask for a line of text."""
        if screen := self.shown():
            screen.ask(question)
