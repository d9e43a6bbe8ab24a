"""The panel of records per second: a curve of the last minute, and the rate of each topic.

The figures are from Spark's roll-ups if they reach the moment shown, otherwise they are direct rates.
"""

import math
from datetime import tzinfo
from typing import NamedTuple

from kview.derive.view import Throughput, View
from kview.derive.windows import series, window
from kview.language import glyphs, words
from kview.model.aggregates import Key, Kind, Sum
from kview.tui.canvas import canvas
from kview.tui.options import Options
from kview.tui.plot import AXIS_CELLS, Frame, framed
from kview.tui.rows.throughput import out_is_bound
from kview.tui.spark import RATE_S, basis, covered_until_s
from kview.tui.text import Line, Role, Span, cut, justified, line, line_width, middle, pad
from kview.tui.widgets.drawn import Lines

LEGEND_CELLS = 17
MIN_PLOT_CELLS = 12

CLOCK_PLOT_CELLS = 15
"""A plot at least this wide has room for the time of day at its end. The header shows that time too."""
WINDOW_MS = 60_000


class Rates(NamedTuple):
    """What the panel draws: one value per second of the last minute, oldest first, and the latest rates.

    The latest rates are those in and out in total, and that of each topic. `out_is_bound` says whether the
    rate out leaves out groups whose rate is not known.
    """

    values: list[float]
    total_in: float
    total_out: float
    out_is_bound: bool
    topics: list[tuple[str, float]]


def totals(rates: Throughput) -> list[float]:
    """Return the sum over the topics at each moment, NaN if no topic's rate is known."""
    sums = []
    for moment in range(len(rates.at_ms)):
        known = [series[moment] for series in rates.in_rates if math.isfinite(series[moment])]
        sums.append(sum(known) if known else math.nan)
    return sums


def direct_rates(view: View) -> Rates:
    """Return the view's own rates, which are direct rates."""
    rates = view.throughput
    latest = [series[-1] if series else math.nan for series in rates.in_rates]
    values = _over_window(rates.at_ms, totals(rates)) if len(rates.at_ms) > 1 else []
    topics = list(zip(rates.topics, latest, strict=True))
    return Rates(values, rates.total_in, rates.total_out, out_is_bound(view), topics)


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
        float(cluster.out_rate.sum()),
        False,
        [(topic, in_rates.get(topic, 0.0)) for topic in view.throughput.topics],
    )


def throughput_lines(
    view: View, options: Options, zone: tzinfo | None, cells: int, rows: int, braille: bool
) -> list[Line]:
    """Return the title, a plot with its axes, and to its right the topics, the highest rate first."""
    end_s = covered_until_s(view, options)
    if end_s is None and not view.moment.complete:
        source = Span(f" {basis(view, options)}", Role.DIM)
        return [cut(line(" ", Span("THROUGHPUT", Role.HEAD), source, f" {glyphs.ELLIPSIS}"), cells)]
    rates = direct_rates(view) if end_s is None else spark_rates(view, end_s)
    head = _head(rates, basis(view, options), cells)
    body = rows - 1
    if body < 3:
        return [head]
    if not rates.values:
        return [head, line(Span(" rates need 2 observations", Role.DIM))]
    legend = _legend(rates.topics, body) if cells >= AXIS_CELLS + MIN_PLOT_CELLS + LEGEND_CELLS + 2 else []
    plot_cells = cells - (LEGEND_CELLS + 2 if legend else 1)
    shown_ms = view.snapshot.observation.ended_ms
    clock = words.clock(shown_ms, zone, tenths=False) if plot_cells >= AXIS_CELLS + CLOCK_PLOT_CELLS else ""
    until = "now" if view.moment.live else clock
    plot = framed(rates.values, plot_cells, body, braille, Frame("60 s", until))
    lines = [head]
    for number, drawn in enumerate(plot):
        right = (Span("  "), *legend[number]) if number < len(legend) else ()
        lines.append(cut((*pad(drawn, plot_cells), *right), cells))
    return lines


def _head(rates: Rates, source: str, cells: int) -> Line:
    """Return the name, the source of the rates, and as many of the latest rates as fit."""
    left = line(" ", Span("THROUGHPUT", Role.HEAD), Span(f" {source} ", Role.DIM))
    unit = Span(" rec/s", Role.DIM)
    bare = line(Span(words.si(rates.total_in)), unit)
    labelled = (Span("in ", Role.DIM), *bare)
    out = line(
        Span("  out ", Role.DIM),
        Span(words.at_least(words.si(rates.total_out), rates.out_is_bound)),
        unit,
        " ",
    )
    room = cells - line_width(left)
    fitting = (right for right in ((*labelled[:-1], *out), labelled) if line_width(right) <= room)
    return justified(left, next(fitting, bare), cells)


def _over_window(at_ms: tuple[int, ...], values: list[float]) -> list[float]:
    """Return one value per second over the window that ends at the last moment.

    Seconds before the first value and in gaps are NaN.
    """
    end = at_ms[-1]
    step_ms = 1_000
    slots = WINDOW_MS // step_ms
    found = [math.nan] * slots
    for moment, value in zip(at_ms, values, strict=True):
        slot = slots - 1 - (end - moment) // step_ms
        if 0 <= slot < slots:
            found[slot] = value
    return _bridged(found, max(1, (at_ms[-1] - at_ms[0]) // max(1, len(at_ms) - 1) // step_ms))


def _bridged(values: list[float], spacing: int) -> list[float]:
    """Fill slots between two samples that are one usual interval apart with the earlier sample's value.

    Longer gaps remain.
    """
    filled = list(values)
    last, age = math.nan, 0
    for slot, value in enumerate(values):
        if math.isfinite(value):
            last, age = value, 0
        else:
            age += 1
            if age <= spacing and math.isfinite(last):
                filled[slot] = last
    return filled


def _legend(topics: list[tuple[str, float]], rows: int) -> list[Line]:
    ranked = sorted(topics, key=lambda pair: (-(pair[1] if math.isfinite(pair[1]) else -1.0), pair[0]))
    shown = ranked[:rows] if len(ranked) <= rows else ranked[: rows - 1]
    lines: list[Line] = [
        justified(
            line(Span(middle(topic, LEGEND_CELLS - 8), Role.DIM)),
            line(Span(words.si(rate))),
            LEGEND_CELLS - 1,
        )
        for topic, rate in shown
    ]
    if len(shown) < len(ranked):
        lines.append(line(Span(f"+ {len(ranked) - len(shown):,} more", Role.DIM)))
    return lines


class ThroughputPanel(Lines):
    """Records per second of the last minute."""

    def __init__(self) -> None:
        super().__init__(id="throughput")
        self.view: View | None = None
        self.options = Options()

    def lines(self, width: int, height: int) -> list[Line]:
        """Return the panel's lines."""
        if self.view is None:
            return []
        at = canvas(self)
        return throughput_lines(self.view, self.options, at.zone, width, height, braille=not at.ascii_only)
