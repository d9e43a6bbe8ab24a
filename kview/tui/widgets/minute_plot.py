"""Panels with a figure of one topic or group, second by second of the last minute."""

from typing import ClassVar

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


class MinutePlot(Headed):
    """An area. `about` is the name of the topic or group, '' if none is listed."""

    figure: ClassVar[str]
    """What the area shows, for the title."""
    unit: ClassVar[str]
    unknown: ClassVar[str]
    """Why there is nothing to draw of a topic or group."""
    none: ClassVar[str]
    """Why there is none."""
    series: ClassVar[int]

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.view: View | None = None
        self.about = ""

    def values(self, view: View) -> list[float]:
        """Return one value per second of the last minute, [] if there is none."""
        raise NotImplementedError

    def headed(self, width: int, height: int) -> tuple[Title, list[Line]]:
        view = self.view
        if view is None:
            return Title(), []
        shown_ms = view.snapshot.observation.ended_ms
        until = "now" if view.moment.live else words.clock(shown_ms, app_of(self).zone, tenths=False)
        why = self.unknown if len(view.throughput.at_ms) > 1 else "figures need 2 observations"
        frame = Frame("60 s", until, marks=marks(view), why=why if self.about else self.none)
        unit = line(Span(self.unit, Role.DIM))
        room = max(LEAST_NAME, width - len(self.figure) - 1 - line_width(unit) - EDGE_CELLS)
        title = line(Span(f"{self.figure} ", Role.HEAD), Span(middle(self.about, room), Role.DIM))
        values = self.values(view) if self.about else []
        trace = Trace("", values, Span("", series=self.series))
        return Title(title, unit), framed(trace, width - 1, height, frame)


class TopicPlot(MinutePlot):
    """What producers write to a topic."""

    figure, unit, series = "RECORDS IN", "per second", 0
    unknown, none = "its rate is not known", "no topic is listed"

    def values(self, view: View) -> list[float]:
        return records_in(view, Key(Kind.TOPIC, self.about))


class LagPlot(MinutePlot):
    """A group's lag."""

    figure, unit, series = "LAG of", "records", 3
    unknown, none = "its lag is not known", "no group is listed"

    def values(self, view: View) -> list[float]:
        return lag(view, self.about)
