"""The overview's topics: a line each, with its strip and its traffic."""

import math

import numpy as np

from kview.derive.view import View
from kview.language import words
from kview.language.curves import sparkline
from kview.tui.options import Options
from kview.tui.rows.strip import LEAST_OK, strip
from kview.tui.rows.topic_list import passing
from kview.tui.text import Line, Role, Span, justified, line, line_width, middle, width

MOST_NAME = 28
"""A longer name of a topic is cut in its middle."""

SPARK_CELLS = 12
"""The width of a topic's latest traffic, if there is room for it."""

MOST_STRIP = 60
"""The most cells of a strip. A topic with more partitions has cells for several of them."""


def topic_strips(view: View, options: Options, cells: int, rows: int) -> list[Line]:
    """Return a line for each topic: its name, its strip and its traffic. Those in trouble come first if not
    all of them have a line, and the number of the others comes last."""
    topics = view.topics
    shown = np.flatnonzero(passing(view, options))
    if not len(shown) or rows < 1:
        return []
    if len(shown) > rows:
        worst = np.minimum(np.minimum.reduceat(view.partitions.rank, topics.first_row), LEAST_OK)
        ordered = shown[np.lexsort((shown, worst[shown]))]
        shown, left = np.sort(ordered[: rows - 1]), len(shown) - rows + 1
    else:
        left = 0
    names = [middle(str(topics.topic[row]), min(MOST_NAME, cells // 3)) for row in shown]
    widest = max(map(width, names), default=0)
    rates = [_rate(view, int(row)) for row in shown]
    end = max(map(line_width, rates), default=0)
    room = cells - 2 - widest - 2 - 2 - end
    has_spark = room >= MOST_STRIP + SPARK_CELLS + 2 or (
        room - SPARK_CELLS - 2 >= int(topics.partitions[shown].max(initial=0))
    )
    lines = []
    for name, row, rate in zip(names, shown.tolist(), rates, strict=True):
        most = min(MOST_STRIP, room - (SPARK_CELLS + 2 if has_spark else 0))
        left_part = line(f"  {name}{' ' * (widest - width(name) + 2)}", *strip(view, row, most))
        spark = sparkline(topics.in_series[row], SPARK_CELLS) if has_spark else ""
        lines.append(justified(left_part, line(Span(f"{spark}  ", series=0), *rate), cells))
    if left:
        lines.append(line(Span(f"  +{left:,} more", Role.DIM)))
    return lines


def _rate(view: View, topic: int) -> Line:
    rate = float(view.topics.in_rate[topic])
    text = f"{words.si(rate)}/s" if math.isfinite(rate) else words.NONE
    return line(Span(words.at_least(text, bool(view.topics.in_is_bound[topic])).rjust(8), Role.DIM))
