"""The panel that draws a partition's log, and the panel of what happened to a partition or a broker."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kview.derive.partitions.log import PartitionLog
from kview.derive.view import View
from kview.language import history
from kview.model.events import Event
from kview.model.history import Led
from kview.model.units import UNKNOWN
from kview.tui.app_of import app_of
from kview.tui.looks import Look, Spot
from kview.tui.options import Options
from kview.tui.rows.log_lines import MOST_LABEL_LINES, Zoom, log_lines
from kview.tui.rows.log_marks import log_spot
from kview.tui.rows.partition_heading import partition_heading, unlisted_heading
from kview.tui.text import EMPTY, Line, Role, Span, Title, cut, line
from kview.tui.widgets.drawn import Headed
from kview.tui.widgets.events import dated_line, event_line


class LogDrawn(NamedTuple):
    """What is drawn of a partition."""

    view: View
    topic: str
    partition: int
    log: PartitionLog | None
    options: Options
    zoom: Zoom
    is_low: bool
    """Whether the drawing leaves out what it can."""
    first_ms: int = UNKNOWN
    """The timestamp of the partition's first record, UNKNOWN if it is not known."""


class LogPanel(Headed):
    """A partition's heading and its log."""

    _drawn: LogDrawn | None = None

    def fill(self, make: Callable[[], LogDrawn], inner_width: int) -> None:
        """Show what `make` returns, in a panel of that width.

        If `make` raises an exception, the panel says so.
        """

        def take() -> None:
            self._drawn = make()
            self.styles.height = len(self._headed_for(inner_width)[1]) or 1

        self.attempt(take)

    def let_go(self) -> None:
        """Drop what it draws, with the view."""
        super().let_go()
        self._drawn = None

    def headed(self, width: int, height: int) -> tuple[Title, list[Line]]:
        return self._headed_for(width)

    def spots(self, look: Look) -> list[Spot]:
        """Return the cells of a figure that is marked, or none: then the title is marked."""
        spot = log_spot(self.lines(*self.size), look)
        return [spot] if spot is not None else super().spots(look)

    def _headed_for(self, width: int) -> tuple[Title, list[Line]]:
        if self._drawn is None:
            return Title(), []
        view, topic, partition, log, options, zoom, is_low, first_ms = self._drawn
        if log is None:
            return Title(unlisted_heading(topic, partition, width)), []
        now_ms = app_of(self).now_ms()
        first, *heading = partition_heading(view, log, options, now_ms, first_ms, width)
        head = [cut(spans, width) for spans in heading]
        most = 1 if is_low else MOST_LABEL_LINES
        drawn = log_lines(view, log, options, width, zoom, most, now_ms)
        return Title(first), [*head, *([] if is_low else [EMPTY]), *(cut(spans, width) for spans in drawn)]


class History(Headed):
    """What happened to a partition or a broker, the newest first."""

    DEFAULT_CSS = "History { height: 1fr; }"

    called = ""
    none = ""
    note = ""
    events: Sequence[Event] = ()
    recorded: Sequence[Led] = ()

    def fill(
        self,
        title: str,
        make: Callable[[], tuple[Sequence[Event], str]],
        none: str,
        recorded: Sequence[Led] = (),
    ) -> None:
        """Show the events that `make` returns with a note, among the leaders and ISRs that were `recorded`.

        `none` is said if there are none of both.
        """

        def take() -> None:
            self.called, self.none, self.recorded = title, none, recorded
            self.events, self.note = make()

        self.attempt(take)

    def headed(self, width: int, height: int) -> tuple[Title, list[Line]]:
        """Return the title, and one line per event."""
        at = app_of(self)
        head = Title(
            line(Span(self.called, Role.HEAD), Span(f"  {self.note}" if self.note else "", Role.DIM))
        )
        if not self.events and not self.recorded:
            return head, [line("  ", Span(self.none, Role.DIM))]
        now_ms, most = at.now_ms(), height
        recorded = [led for led in self.recorded if led.at_ms <= now_ms]
        events = [event for event in self.events if not history.is_told(event, tuple(recorded))][:most]
        dated = [(event.at_ms, event_line(event, now_ms, at.zone)) for event in events]
        for led, before in list(zip(recorded, [*recorded[1:], None], strict=False))[:most]:
            text, severity = history.change(led, before), history.severity(led, before)
            dated.append((led.at_ms, dated_line(led.at_ms, severity, text, now_ms, at.zone)))
        dated.sort(key=lambda each: -each[0])
        return head, [cut(line("  ", *spans), width) for _, spans in dated[:most]]
