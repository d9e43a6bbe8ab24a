"""Widgets drawn line by line, which repaint only the lines that changed."""

from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from kview.tui.canvas import canvas
from kview.tui.paint import blank, strip
from kview.tui.text import Line


class Drawn(Widget):
    """A widget whose picture is a list of strips; `painted` makes them, `redraw` shows those that differ."""

    _strips: list[Strip]
    _painted_for: object = None

    def painted(self, size: Size) -> list[Strip]:
        """The strips of the visible part, at most `size.height`, each `size.width` wide."""
        raise NotImplementedError

    def painted_for(self) -> object:
        """What besides the data decides the picture."""
        return (self.size, self.scroll_offset, canvas(self).palette.name)

    def redraw(self) -> None:
        """Paint again and send the lines that changed to the terminal."""
        if not self.is_attached or not self.size:
            return
        if self._painted_for != self.painted_for():
            self.refresh()
            return
        before, self._strips = self._strips, self.painted(self.size)
        if len(before) != len(self._strips):
            self.refresh()
            return
        changed = [y for y, pair in enumerate(zip(before, self._strips, strict=True)) if pair[0] != pair[1]]
        if changed:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def render_line(self, y: int) -> Strip:
        """The strip of a line of the visible part."""
        key = self.painted_for()
        if self._painted_for != key:
            self._strips = self.painted(self.size)
            self._painted_for = key
        if y < len(self._strips):
            return self._strips[y]
        return blank(self.size.width, canvas(self).palette)


class Lines(Drawn):
    """A panel of lines that a function of its size makes."""

    def lines(self, width: int, height: int) -> list[Line]:
        """The panel's lines, each at most `width`; more than `height` are not shown."""
        raise NotImplementedError

    def painted(self, size: Size) -> list[Strip]:
        """The lines as strips."""
        at = canvas(self)
        made = self.lines(size.width, size.height)[: size.height]
        return [strip(line, size.width, at.palette, at.ascii_only) for line in made]
