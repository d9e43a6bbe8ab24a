"""A few dim lines of explanation below a list."""

from textwrap import wrap

from kview.language import glyphs
from kview.tui.text import Line, Role, Span, Title, cut, line
from kview.tui.widgets.drawn import Lines

MARGIN = 2


class Explanation(Lines):
    """A text in as many lines as it needs, at most MOST_LINES."""

    MOST_LINES = 3
    title = Title(line(Span("WATCH", Role.HEAD)))
    DEFAULT_CSS = "Explanation { height: 1; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._text = ""

    def say(self, text: str, width: int) -> None:
        """Show a text, for a screen of that width."""
        self._text = text
        self.styles.height = max(1, len(self.lines(width, self.MOST_LINES)))
        self.redraw()

    def lines(self, width: int, height: int) -> list[Line]:
        room = max(10, width - 2 * MARGIN)
        parts = wrap(self._text, room, max_lines=self.MOST_LINES, placeholder=f" {glyphs.ELLIPSIS}")
        return [cut(line(" " * MARGIN, Span(part, Role.DIM)), width) for part in parts]
