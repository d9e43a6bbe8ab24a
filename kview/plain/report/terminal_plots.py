"""Plots as lines of text, drawn by plotext."""

import math
from datetime import datetime, tzinfo

import numpy as np

from kview.derive.series import stretches
from kview.language import words
from kview.language.glyphs import printable
from kview.plain.report.plots import MOST_NAME, Plot, short

ROWS = 12
"""The height of a plot, its axes included."""

_LEAST_NAME = 5
"""Names in the legend are never shorter than this."""

_MARKERS = ("braille", "·", "x", "+", "o")
_ASCII_MARKERS = ("*", ".", "x", "+", "o")
_CORNERS = str.maketrans("┌┐└┘┬┴├", "+++++++")
_SAMPLES = ("⣀⡠⠔", "···", "xxx", "+++", "ooo")


def drawn(plot: Plot, width: int, ascii_only: bool, zone: tzinfo | None = None) -> list[str]:
    """Return a plot in lines of at most `width` cells: its legend and its curves with their axes."""
    import plotext

    plotext.terminal.limit(False, False)  # the output may be a pipe, which has no size
    figure = plotext.figure
    figure.clear()
    figure.plot_size(width, ROWS)
    greatest = max((float(np.nanmax(line.values)) for line in plot.lines if line.is_known), default=0.0)
    top = _nice(greatest)
    markers = _ASCII_MARKERS if ascii_only else _MARKERS
    # The first line is drawn last, so that it is not covered.
    for number, line in reversed(list(enumerate(plot.lines))):
        for first, values in stretches(line.values.tolist()):
            places = list(range(first, first + len(values)))
            figure.draw(figure.signal(places, values, marker=markers[number % len(markers)]).lines())
    last = len(plot.at_ms) - 1
    across, up = figure.ruler(0, 0), figure.ruler(1, 0)
    across.lim(0, last)
    across.ticks(*_times(plot, last, zone))
    up.lim(0, top)
    up.ticks([0, top / 2, top], ["0", words.si(top / 2), words.si(top)])
    rows = plotext.uncolorize(figure.build().string()).splitlines()
    samples = _ASCII_MARKERS if ascii_only else _SAMPLES
    count = len(plot.lines)
    room = max(_LEAST_NAME, min(MOST_NAME, (width + 3) // count - 7))
    legend = "   ".join(
        f"{samples[number % len(samples)]} {short(printable(line.name), room)}"
        for number, line in enumerate(plot.lines)
    )
    return [legend, *(row.rstrip().translate(_CORNERS if ascii_only else {}) for row in rows)]


def _nice(value: float) -> float:
    """Return a round number that is not below `value`: 1, 2, 3, 5 × a power of ten."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next((step * power for step in (1, 1.5, 2, 3, 5, 7.5) if step * power >= value), 10 * power)


def _times(plot: Plot, last: int, zone: tzinfo | None) -> tuple[list[int], list[str]]:
    """Return the places of the labels on the axis of time, and the labels: three
    moments, with the day if it differs."""
    places = sorted({0, last // 2, last})
    moments = [datetime.fromtimestamp(int(plot.at_ms[at]) // 1000, zone) for at in places]
    form = "%H:%M" if len({moment.date() for moment in moments}) == 1 else "%m-%d %H:%M"
    if moments[-1] - moments[0] < _SHORT:
        form = "%H:%M:%S"
    return places, [moment.strftime(form) for moment in moments]


_SHORT = datetime(2000, 1, 1, 0, 10) - datetime(2000, 1, 1)
"""Below this, seconds matter on the axis of time."""
