"""Topics as strips: a sign for each partition, or for several of them the worst one's."""

import math

import numpy as np

from kview.derive.statuses import RANK, SEVERITIES, STATUSES, PartitionStatus
from kview.derive.view import View
from kview.language import glyphs, words
from kview.language.curves import sparkline
from kview.tui.options import Options
from kview.tui.rows.common import ROLES, STATUS_SIGNS
from kview.tui.rows.topic_list import passing
from kview.tui.text import Line, Role, Span, justified, line, line_width, middle, runs, width

MOST_NAME = 28
"""A longer name of a topic is cut in its middle."""

SPARK_CELLS = 12
"""The width of a topic's latest traffic, if there is room for it."""

MOST_STRIP = 60
"""The most cells of a strip. A topic with more partitions has cells for several of them."""

SEVERAL = glyphs.UNCOMMITTED
"""The sign of several partitions of which none is in trouble."""

_SIGNS = np.array([STATUS_SIGNS[status] for status in STATUSES], object)
_ROLES = [ROLES[SEVERITIES[status]] if status in SEVERITIES else Role.DIM for status in STATUSES]
_OK = RANK[PartitionStatus.REASSIGNING]
"""From this rank on, nothing is wrong with a partition."""


def strip(view: View, topic: int, cells: int) -> Line:
    """Return the signs of a topic's partitions, in order, in at most `cells`."""
    first, number = int(view.topics.first_row[topic]), int(view.topics.partitions[topic])
    ranks = view.partitions.rank[first : first + number].astype(np.int64)
    if not number or cells < 1:
        return ()
    if number <= cells:
        worst, signs = ranks.tolist(), _SIGNS[ranks].tolist()
    else:
        begins = np.arange(cells) * number // cells
        worst = np.minimum.reduceat(ranks, begins).tolist()
        is_unknown = np.maximum.reduceat(ranks == RANK[PartitionStatus.UNKNOWN], begins).tolist()
        signs = [
            _SIGNS[rank] if rank < _OK else words.UNSEEN if unknown else SEVERAL
            for rank, unknown in zip(worst, is_unknown, strict=True)
        ]
    return runs(signs, [_ROLES[rank] for rank in worst])


def topic_strips(view: View, options: Options, cells: int, rows: int) -> list[Line]:
    """Return a line for each topic: its name, its strip and its traffic. Those in trouble come first if not
    all of them have a line, and the number of the others comes last."""
    topics = view.topics
    shown = np.flatnonzero(passing(view, options))
    if not len(shown) or rows < 1:
        return []
    if len(shown) > rows:
        worst = np.minimum(np.minimum.reduceat(view.partitions.rank, topics.first_row), _OK)
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
