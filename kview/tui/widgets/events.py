"""The panel of the latest events, newest first."""

from datetime import tzinfo

from kview.derive.view import View
from kview.language import glyphs, words
from kview.language.events import sentence
from kview.model.events import Event, Severity
from kview.tui.app_of import app_of
from kview.tui.rows.common import FRESH_MS
from kview.tui.text import Line, Role, Span, Title, cut, joined, line
from kview.tui.widgets.drawn import Lines

NONE_YET = line("  ", Span("none yet", Role.DIM))

_ROLES = {
    Severity.RISK: Role.RISK,
    Severity.WARN: Role.WARN,
    Severity.GOOD: Role.GOOD,
    Severity.CALM: Role.TEXT,
}


def event_lines(
    events: tuple[Event, ...], now_ms: int, zone: tzinfo | None, cells: int, rows: int
) -> list[Line]:
    """Return the latest events, newest first, one per line.

    If there is only one line, it has as many events as fit.
    """
    if not events:
        return [NONE_YET]
    newest = list(reversed(events))
    if rows == 1:
        parts = [event_line(event, now_ms, zone) for event in newest[:20]]
        return [line("  ", *joined(parts, Span(f" {glyphs.DOT} ", Role.DIM), cells - 2))]
    return [cut(line("  ", *event_line(event, now_ms, zone)), cells) for event in newest[:rows]]


def event_line(event: Event, now_ms: int, zone: tzinfo | None) -> Line:
    """Return an event with its time of day."""
    return dated_line(event.at_ms, event.severity, sentence(event), now_ms, zone)


def dated_line(at_ms: int, severity: Severity, text: str, now_ms: int, zone: tzinfo | None) -> Line:
    """Return a text about a moment with its time of day."""
    role = _ROLES[severity]
    if now_ms - at_ms < FRESH_MS and role is Role.TEXT:
        role = Role.BRIGHT
    return line(Span(words.clock(at_ms, zone), Role.DIM), "  ", Span(text, role))


class EventsPanel(Lines):
    """The latest events."""

    DEFAULT_CSS = "EventsPanel { height: 1fr; }"

    title = Title(line(Span("EVENTS", Role.HEAD)))

    def __init__(self) -> None:
        super().__init__(id="events")
        self.view: View | None = None

    def lines(self, width: int, height: int) -> list[Line]:
        at = app_of(self)
        if self.view is None:
            return []
        view = self.view
        return event_lines(view.events, at.now_ms(), at.zone, width, height)
