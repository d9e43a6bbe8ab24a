"""Records per second of the last minute, as a curve, with the topics that make it."""

import math

from kview.derive import words
from kview.derive.view import Throughput, View
from kview.tui import glyphs
from kview.tui.canvas import canvas
from kview.tui.plot import curve, nice_top
from kview.tui.text import Line, Role, Span, cut, justified, line, middle, pad
from kview.tui.widgets.drawn import Lines

AXIS_CELLS = 8
LEGEND_CELLS = 20
MIN_PLOT_CELLS = 14
WINDOW_MS = 60_000


def totals(rates: Throughput) -> list[float]:
    """The sum over the topics at each moment; NaN where no topic's rate is known."""
    sums = []
    for moment in range(len(rates.at_ms)):
        known = [series[moment] for series in rates.in_rates if math.isfinite(series[moment])]
        sums.append(sum(known) if known else math.nan)
    return sums


def throughput_lines(view: View, cells: int, rows: int, braille: bool) -> list[Line]:
    """Title, a plot with its axis, and beside it the topics by their rates."""
    rates = view.throughput
    head = justified(
        line(" ", Span("THROUGHPUT", Role.HEAD), Span(" direct", Role.DIM)),
        line(
            Span("in ", Role.DIM),
            Span(words.si(rates.total_in)),
            Span("  out ", Role.DIM),
            Span(words.si(rates.total_out)),
            Span(" rec/s ", Role.DIM),
        ),
        cells,
    )
    body = rows - 1
    if body < 3:
        return [head]
    if len(rates.at_ms) < 2:
        return [head, line(Span(" rates need two looks at the cluster", Role.DIM))]
    legend = _legend(rates, body) if cells >= AXIS_CELLS + MIN_PLOT_CELLS + LEGEND_CELLS + 2 else []
    plot_cells = cells - AXIS_CELLS - (LEGEND_CELLS + 2 if legend else 1)
    plot = _plot(rates, plot_cells, body, braille)
    lines = [head]
    for number, drawn in enumerate(plot):
        beside = (Span("  "), *legend[number]) if number < len(legend) else ()
        lines.append(cut((*pad(drawn, AXIS_CELLS + plot_cells), *beside), cells))
    return lines


def _plot(rates: Throughput, cells: int, rows: int, braille: bool) -> list[Line]:
    sums = totals(rates)
    top = nice_top(max((value for value in sums if math.isfinite(value)), default=0.0))
    height = rows - 1
    drawn = curve(_over_window(rates.at_ms, sums), cells, height, top, braille)
    labels = {0: words.si(top), height - 1: "0"}
    if height >= 5:
        labels[height // 2] = words.si(top * (height - 1 - height // 2) / (height - 1))
    lines: list[Line] = []
    for number, text in enumerate(drawn):
        label = labels.get(number, "")
        axis = glyphs.TICK if label else glyphs.BAR
        lines.append(
            line(Span(f"{label:>{AXIS_CELLS - 2}} ", Role.DIM), Span(axis, Role.RULE), Span(text, series=0))
        )
    foot = f"{glyphs.MINUS}60 s"
    lines.append(line(Span(" " * AXIS_CELLS), Span(f"{foot}{'now':>{max(3, cells - len(foot))}}", Role.DIM)))
    return lines


def _over_window(at_ms: tuple[int, ...], values: list[float]) -> list[float]:
    """One value a second over the window that ends with the last moment; NaN before the first and in gaps."""
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
    """Slots between two samples that are one usual interval apart take the earlier one's value; longer gaps
    stay."""
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


def _legend(rates: Throughput, rows: int) -> list[Line]:
    latest = [
        (series[-1] if series else math.nan, topic)
        for topic, series in zip(rates.topics, rates.in_rates, strict=True)
    ]
    ranked = sorted(latest, key=lambda pair: (-(pair[0] if math.isfinite(pair[0]) else -1.0), pair[1]))
    shown = ranked[:rows] if len(ranked) <= rows else ranked[: rows - 1]
    lines: list[Line] = [
        justified(
            line(Span(middle(topic, LEGEND_CELLS - 8), Role.DIM)),
            line(Span(words.si(rate))),
            LEGEND_CELLS - 1,
        )
        for rate, topic in shown
    ]
    if len(shown) < len(ranked):
        lines.append(line(Span(f"+ {len(ranked) - len(shown):,} more", Role.DIM)))
    return lines


class ThroughputPanel(Lines):
    """Direct rates of the last minute."""

    def __init__(self) -> None:
        super().__init__(id="throughput")
        self.view: View | None = None

    def lines(self, width: int, height: int) -> list[Line]:
        """The panel's lines."""
        if self.view is None:
            return []
        return throughput_lines(self.view, width, height, braille=not canvas(self).ascii_only)
