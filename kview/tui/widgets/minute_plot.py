"""A panel with a figure of one topic, group or broker, second by second of the last minute."""

from typing import NamedTuple

from kview.derive.view import View
from kview.language import words
from kview.model.aggregates import Key
from kview.model.sums import Kind
from kview.tui.app_of import app_of
from kview.tui.plot import Frame, Trace, framed
from kview.tui.rows.direct import lag, marks, records_in
from kview.tui.text import EDGE_CELLS, Line, Role, Span, Title, line, line_width, middle
from kview.tui.widgets.drawn import Headed

LEAST_NAME = 8
"""So much of the name stays in the title."""


class Figure(NamedTuple):
    """What the area shows."""

    called: str
    """Its title, before the name of what it is of."""
    unit: str
    of: Kind
    series: int
    """Its colour."""

    def values(self, view: View, name: str) -> list[float]:
        """Return one value per second of the last minute, [] if there is none."""
        return lag(view, name) if self.of is Kind.GROUP else records_in(view, Key(self.of, name))


TOPIC_INPUT = Figure("RECORDS IN", "per second", Kind.TOPIC, 0)
BROKER_INPUT = Figure("RECORDS IN broker", "per second", Kind.BROKER, 0)
GROUP_LAG = Figure("LAG of", "records", Kind.GROUP, 3)


class MinutePlot(Headed):
    """An area. `about` is the name of the topic, group or broker, '' if none is listed."""

    def __init__(self, figure: Figure, *, id: str) -> None:
        super().__init__(id=id)
        self.figure = figure
        self.view: View | None = None
        self.about = ""

    def headed(self, width: int, height: int) -> tuple[Title, list[Line]]:
        view, figure = self.view, self.figure
        if view is None:
            return Title(), []
        shown_ms = view.snapshot.observation.ended_ms
        until = "now" if view.moment.live else words.clock(shown_ms, app_of(self).zone, tenths=False)
        why = "not known" if len(view.throughput.at_ms) > 1 else "figures need 2 observations"
        if not self.about:
            why = f"no {figure.of} is listed"
        frame = Frame("60 s", until, marks=marks(view), why=why)
        unit = line(Span(figure.unit, Role.DIM))
        room = max(LEAST_NAME, width - len(figure.called) - 1 - line_width(unit) - EDGE_CELLS)
        title = line(Span(f"{figure.called} ", Role.HEAD), Span(middle(self.about, room), Role.DIM))
        values = figure.values(view, self.about) if self.about else []
        trace = Trace("", values, Span("", series=figure.series))
        return Title(title, unit), framed(trace, width - 1, height, frame)
