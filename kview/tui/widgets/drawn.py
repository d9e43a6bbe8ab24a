"""Widgets that are drawn line by line and repaint only the lines that changed.

If drawing a widget raises an exception, only that widget is affected. It shows a message in its place, the
log has the traceback, and the widget is drawn again once the cause has disappeared.
"""

from collections.abc import Callable
from textwrap import wrap

from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from kview.derive.view import View
from kview.language import panels
from kview.tui.app_of import app_of
from kview.tui.looks import Look, Spot, marked
from kview.tui.text import Line, Role, Span, Title, blank, cut, line, strip
from kview.tui.widgets.failing import FailureLog
from kview.tui.widgets.panel import Panel

FAILURE_MARGIN = 2
"""The number of cells before the sentence that a panel could not be drawn, as before the rows of a table."""


class Drawn(Widget):
    """A widget drawn as a list of strips. `painted` makes the strips, and `redraw` shows those that
    changed."""

    _strips: list[Strip]
    _painted_for: object = None
    looks: tuple[Look, ...] = ()
    """Where a demo says to look in this panel."""
    view: View | None = None
    """The view that it draws, for a widget that draws more than rows."""
    title: Title | None = None
    """What its painting says above it, None if something else stands there."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._has_data = True
        self._was_painted = True
        self._failures = FailureLog(f"the panel {id or type(self).__name__}")

    @property
    def is_ticking(self) -> bool:
        """Whether it shows tenths of seconds now."""
        return False

    @property
    def is_shown(self) -> bool:
        """Whether there is room for it: neither it nor anything around it is hidden."""
        return all(around.display for around in self.ancestors_with_self if isinstance(around, Widget))

    @property
    def is_drawn(self) -> bool:
        """Whether the panel is drawn. False while it says that it could not be drawn."""
        return self._has_data and self._was_painted

    def painted(self, size: Size) -> list[Strip]:
        """Return the strips of the visible part, at most `size.height`, each `size.width` wide."""
        raise NotImplementedError

    def painted_for(self) -> object:
        """Return everything except the data that determines what is drawn."""
        return (self.size, self.scroll_offset, app_of(self).palette.name)

    def spots(self, look: Look) -> list[Spot]:
        """Return the cells that a mark is about: none if the title says it, else the first line."""
        return [] if self.title is not None else [Spot(0, 0, self.size.width, 0)]

    def attempt(self, take: Callable[[], None]) -> None:
        """Let `take` pass data to the panel.

        If `take` raises an exception, the panel says that it could not be drawn, instead of showing older
        figures.
        """
        self._has_data = True
        try:
            take()
        except Exception as error:
            self._has_data = False
            self._failures.failed(error)
            self.redraw()

    def let_go(self) -> None:
        """Drop the view, while its screen is not shown. What was painted stays until there is another one."""
        self.view = None

    def redraw(self) -> None:
        """Paint again and send the lines that changed to the terminal."""
        if not self.is_attached or not self.size:
            self._painted_for = None  # what was painted is of earlier data
            return
        if self._painted_for != (key := self.painted_for()):
            self._strips, self._painted_for = self._paint(), key  # now, so that the title goes with it
            self.refresh()
            return
        before, self._strips = self._strips, self._paint()
        if len(before) != len(self._strips):
            self.refresh()
            return
        changed = [y for y, pair in enumerate(zip(before, self._strips, strict=True)) if pair[0] != pair[1]]
        if changed:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def render_line(self, y: int) -> Strip:
        """Return the strip of a line of the visible part."""
        key = self.painted_for()
        if self._painted_for != key:
            self._strips = self._paint()
            self._painted_for = key
        if y < len(self._strips):
            return self._strips[y]
        return blank(self.size.width, app_of(self).palette)

    def _paint(self) -> list[Strip]:
        """Return the panel's strips, or the sentence that the panel could not be drawn."""
        if not self._has_data:
            return self._apology(self.size)
        try:
            strips = self.painted(self.size)
            found = [(look, self.spots(look)) for look in self.looks]
            if found:
                at = app_of(self)
                spots = [spot for _, several in found for spot in several]
                strips = marked(strips, spots, at.palette, at.ascii_only)
        except Exception as error:
            self._was_painted = False
            self._failures.failed(error)
            return self._apology(self.size)
        self._was_painted = True
        self._failures.drawn()
        if self.title is not None and isinstance(self.parent, Panel):
            is_marked = any(look.key is None and not spots for look, spots in found)
            self.parent.show(self.title._replace(is_marked=is_marked))
        return strips

    def _apology(self, size: Size) -> list[Strip]:
        """Return one sentence, over as many lines as it needs and the panel has."""
        at = app_of(self)
        margin = min(FAILURE_MARGIN, size.width - 1)
        text = panels.not_drawn(at.log_file)
        parts = wrap(text, size.width - margin) if size.height > 1 else [text]
        lines = [cut(line(" " * margin, Span(part, Role.WARN)), size.width) for part in parts[: size.height]]
        return [strip(spans, size.width, at.palette, at.ascii_only) for spans in lines]


class Lines(Drawn):
    """A panel whose lines are a function of its size."""

    def lines(self, width: int, height: int) -> list[Line]:
        """Return the panel's lines, each at most `width` wide. Lines beyond `height` are not shown."""
        raise NotImplementedError

    def painted(self, size: Size) -> list[Strip]:
        """Return the lines as strips."""
        at = app_of(self)
        lines = self.lines(size.width, size.height)[: size.height]
        return [strip(line, size.width, at.palette, at.ascii_only) for line in lines]


class Headed(Lines):
    """A panel whose lines and title are made together, as a function of its size."""

    def headed(self, width: int, height: int) -> tuple[Title, list[Line]]:
        """Return the title, and the panel's lines, each at most `width` wide."""
        raise NotImplementedError

    def lines(self, width: int, height: int) -> list[Line]:
        """Return the panel's lines, and have its title."""
        self.title, lines = self.headed(width, height)
        return lines
