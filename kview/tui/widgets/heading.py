"""The line that says what a screen shows."""

from collections.abc import Callable

from kview.tui.text import EMPTY, Line, line
from kview.tui.widgets.drawn import Lines


class Heading(Lines):
    """A line of text under the headline."""

    DEFAULT_CSS = "Heading { height: 1; }"

    _text: Line = EMPTY

    def fill(self, make: Callable[[], Line]) -> None:
        """Show the text that `make` returns. If `make` raises an exception, the panel says so."""

        def take() -> None:
            self._text = make()

        self.attempt(take)

    def lines(self, width: int, height: int) -> list[Line]:
        return [line("  ", *self._text)]
