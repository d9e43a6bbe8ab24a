"""The panel that draws a partition's log, and the panel of what happened to a partition or a broker."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kview.derive.partition_log import PartitionLog
from kview.derive.view import View
from kview.language import glyphs
from kview.model.events import Event
from kview.tui.canvas import canvas
from kview.tui.options import Options
from kview.tui.rows.log_lines import MOST_LABEL_LINES, Zoom, log_lines
from kview.tui.rows.partition_heading import partition_heading
from kview.tui.text import EMPTY, Line, Role, Span, cut, line
from kview.tui.widgets.drawn import Lines
from kview.tui.widgets.events import event_line

LOW = 20
"""Below this height, the drawing leaves out what it can."""


class LogDrawn(NamedTuple):
    """What is drawn of a partition."""

    view: View
    topic: str
    partition: int
    log: PartitionLog | None
    options: Options
    zoom: Zoom


class LogPanel(Lines):
    """A partition's heading and its log."""

    _drawn: LogDrawn | None = None

    def fill(self, make: Callable[[], LogDrawn]) -> None:
        """Show what `make` returns. If `make` raises an exception, the panel says so."""

        def take() -> None:
            self._drawn = make()
            self.styles.height = len(self._made(self.app.size.width)) or 1

        self.attempt(take)

    def lines(self, width: int, height: int) -> list[Line]:
        """Return the panel's lines."""
        return self._made(width)

    def _made(self, width: int) -> list[Line]:
        if self._drawn is None:
            return []
        view, topic, partition, log, options, zoom = self._drawn
        now_ms = canvas(self).now_ms()
        is_low = self.app.size.height < LOW
        head = [
            cut(made, width)
            for made in partition_heading(view, topic, partition, log, options, now_ms, width)
        ]
        if log is None:
            return head
        most = 1 if is_low else MOST_LABEL_LINES
        drawn = log_lines(view, log, options, width, zoom, most, now_ms)
        return [*head, *([] if is_low else [EMPTY]), *(cut(made, width) for made in drawn)]


class History(Lines):
    """What happened to a partition or a broker, the newest first."""

    DEFAULT_CSS = "History { height: 1fr; }"

    title = ""
    none = ""
    note = ""
    events: Sequence[Event] = ()
    complete = True

    def fill(
        self, title: str, make: Callable[[], tuple[Sequence[Event], str]], none: str, complete: bool
    ) -> None:
        """Show the events that `make` returns with a note. `none` is said if there are none."""

        def take() -> None:
            self.title, self.none, self.complete = title, none, complete
            self.events, self.note = make()

        self.attempt(take)

    def lines(self, width: int, height: int) -> list[Line]:
        """Return the title, and one line per event."""
        at = canvas(self)
        head = line("  ", Span(self.title, Role.HEAD), Span(f"  {self.note}" if self.note else "", Role.DIM))
        if not self.complete:
            return [head, line("  ", Span(glyphs.ELLIPSIS, Role.DIM))]
        if not self.events:
            return [head, line("  ", Span(self.none, Role.DIM))]
        shown = self.events[: max(0, height - 1)]
        return [head, *(cut(line("  ", *event_line(e, at.now_ms(), at.zone)), width) for e in shown)]
