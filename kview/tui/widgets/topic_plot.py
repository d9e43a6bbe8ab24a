"""The panel with what producers write to a topic, second by second of the last minute."""

from kview.derive.view import View
from kview.language import words
from kview.model.aggregates import Key
from kview.model.sums import Kind
from kview.tui.app_of import app_of
from kview.tui.plot import Frame, Trace, framed, marks_between
from kview.tui.rows.direct import WINDOW_MS, records_in
from kview.tui.text import EDGE_CELLS, Line, Role, Span, Title, line, line_width, middle
from kview.tui.widgets.drawn import Headed

LEAST_NAME = 8
"""So much of the topic's name stays in the title."""


class TopicPlot(Headed):
    """Records per second into one topic."""

    def __init__(self) -> None:
        super().__init__(id="topic_plot")
        self.view: View | None = None
        self.topic = ""

    def headed(self, width: int, height: int) -> tuple[Title, list[Line]]:
        view = self.view
        if view is None or not self.topic:
            return Title(), []
        values = records_in(view, Key(Kind.TOPIC, self.topic))
        shown_ms = view.snapshot.observation.ended_ms
        marks = marks_between(view.moment.marks, shown_ms - WINDOW_MS, shown_ms)
        until = "now" if view.moment.live else words.clock(shown_ms, app_of(self).zone, tenths=False)
        frame = Frame("60 s", until, marks=marks, why="rates need 2 observations")
        name, unit = "RECORDS IN ", line(Span(" per second", Role.DIM))
        room = max(LEAST_NAME, width - len(name) - line_width(unit) - EDGE_CELLS)
        title = line(Span(name, Role.HEAD), Span(middle(self.topic, room), Role.DIM))
        return Title(title, unit), framed(Trace("in", values, Span("", series=0)), width, height, frame)
