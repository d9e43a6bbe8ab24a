"""The panel of records per second: a curve of the last minute, and the rate of each topic.

The figures are from Spark's roll-ups if they reach the moment shown, otherwise they are direct rates.
"""

from collections.abc import Sequence
from datetime import tzinfo
from heapq import nsmallest
from typing import NamedTuple

from kview.derive.view import View
from kview.derive.windows import series, window
from kview.language import words
from kview.model.aggregates import Key
from kview.model.sums import Kind, Sum
from kview.tui.app_of import app_of
from kview.tui.options import Options
from kview.tui.plot import AXIS_CELLS, Frame, Trace, framed
from kview.tui.rows.direct import WINDOW_MS, marks, over_window
from kview.tui.spark import RATE_S, basis, covered_until_s
from kview.tui.text import EDGE_CELLS, Line, Role, Span, Title, cut, justified, line, line_width, middle, pad
from kview.tui.widgets.drawn import Headed

LEGEND_CELLS = 17
MIN_PLOT_CELLS = 12

CLOCK_PLOT_CELLS = 15
"""A plot at least this wide has room for the time of day at its end. The header shows that time too."""


class Rates(NamedTuple):
    """What the panel draws: one value per second of the last minute, oldest first, and the latest rates.

    The latest rates are those in and out in total, and that of each topic. Each of the first two may be a
    bound, because it leaves out partitions or groups whose rate is not known.
    """

    values: list[float]
    total_in: float
    in_is_bound: bool
    total_out: float
    out_is_bound: bool
    topics: Sequence[str]
    in_rates: Sequence[float]
    """The latest rate of each topic."""


def direct_rates(view: View) -> Rates:
    """Return the view's own rates, which are direct rates."""
    rates = view.throughput
    values = over_window(rates.at_ms, rates.in_series) if len(rates.at_ms) > 1 else []
    totals = rates.total_in, rates.in_is_bound, rates.total_out, rates.out_is_bound
    return Rates(values, *totals, rates.topics, rates.in_rates)


def spark_rates(view: View, end_s: int) -> Rates:
    """Return the rates from the roll-ups, over the last RATE_S seconds and for each second."""
    rollups = view.aggregates.rollups
    cluster = window(rollups, Kind.CLUSTER, end_s, RATE_S)
    topics = window(rollups, Kind.TOPIC, end_s, RATE_S)
    in_rates = dict(zip(topics.names, topics.in_rate.tolist(), strict=True))
    values = series(rollups, Key(Kind.CLUSTER), Sum.RECORDS_IN, end_s, WINDOW_MS // 1000, 1).tolist()
    return Rates(
        values,
        float(cluster.in_rate.sum()),
        False,
        float(cluster.out_rate.sum()),
        False,
        view.throughput.topics,
        [in_rates.get(topic, 0.0) for topic in view.throughput.topics],
    )


def rates_of(view: View, options: Options) -> Rates:
    """Return the rates from the roll-ups if they reach the moment shown, else the view's own."""
    end_s = covered_until_s(view, options)
    return direct_rates(view) if end_s is None else spark_rates(view, end_s)


def throughput_lines(
    view: View,
    rates: Rates,
    zone: tzinfo | None,
    cells: int,
    rows: int,
) -> list[Line]:
    """Return a plot with its axes, and to its right the topics in the order of their names."""
    if rows < 3:
        return []
    has_room = cells >= AXIS_CELLS + MIN_PLOT_CELLS + LEGEND_CELLS + 2
    legend = _legend(rates, rows) if has_room else []
    plot_cells = cells - (LEGEND_CELLS + 2 if legend else 1)
    shown_ms = view.snapshot.observation.ended_ms
    clock = words.clock(shown_ms, zone, tenths=False) if plot_cells >= AXIS_CELLS + CLOCK_PLOT_CELLS else ""
    until = "now" if view.moment.live else clock
    frame = Frame("60 s", until, marks=marks(view), why="rates need 2 observations")
    plot = framed(Trace("in", rates.values, Span("", series=0)), plot_cells, rows, frame)
    lines = []
    for number, drawn in enumerate(plot):
        right = (Span("  "), *legend[number]) if number < len(legend) else ()
        lines.append(cut((*pad(drawn, plot_cells), *right), cells))
    return lines


def throughput_title(rates: Rates, source: str, cells: int) -> Title:
    """Return the name, the source of the rates, and as many of the latest rates as fit into `cells`."""
    left = line(Span("THROUGHPUT", Role.HEAD), Span(f" {source}", Role.DIM))
    unit = Span(" rec/s", Role.DIM)
    bare = line(Span(words.at_least(words.si(rates.total_in), rates.in_is_bound)), unit)
    labelled = (Span("in ", Role.DIM), *bare)
    out = line(
        Span("  out ", Role.DIM), Span(words.at_least(words.si(rates.total_out), rates.out_is_bound)), unit
    )
    room = cells - line_width(left) - EDGE_CELLS
    fitting = (right for right in ((*labelled[:-1], *out), labelled) if line_width(right) <= room)
    return Title(left, next(fitting, bare), has_note=True)


def _legend(rates: Rates, rows: int) -> list[Line]:
    topics = len(rates.topics)
    shown = nsmallest(rows if topics <= rows else rows - 1, zip(rates.topics, rates.in_rates, strict=True))
    lines: list[Line] = [
        justified(
            line(Span(middle(topic, LEGEND_CELLS - 8), Role.DIM)),
            line(Span(words.si(rate))),
            LEGEND_CELLS - 1,
        )
        for topic, rate in shown
    ]
    if len(shown) < topics:
        lines.append(line(Span(f"+ {topics - len(shown):,} more", Role.DIM)))
    return lines


class ThroughputPanel(Headed):
    """Records per second of the last minute."""

    def __init__(self) -> None:
        super().__init__(id="throughput")
        self.view: View | None = None
        self.options = Options()

    def headed(self, width: int, height: int) -> tuple[Title, list[Line]]:
        if self.view is None:
            return Title(), []
        rates = rates_of(self.view, self.options)
        title = throughput_title(rates, basis(self.view, self.options), width)
        return title, throughput_lines(self.view, rates, app_of(self).zone, width, height)
