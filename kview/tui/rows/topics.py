"""Rows of the list of topics below the placement table."""

from collections.abc import Sequence

import numpy as np

from kview.derive.partitions.topic_health import TROUBLED
from kview.derive.passing import Listed, Passing
from kview.derive.statuses import RANK, STATUSES
from kview.derive.view import PartitionStatus, RackSafety, View
from kview.language import glyphs, words
from kview.language.lists import Order, order_name
from kview.language.verdicts import counted
from kview.tui.options import OWN_ORDER, Options
from kview.tui.rows.columns import Column, with_bound
from kview.tui.rows.common import (
    ROLES,
    SIGNS,
    STATUS_SIGNS,
    Keyed,
    count_width,
    name_width,
    rate_width,
    title,
    troubled,
)
from kview.tui.rows.figures import count_figure, number_figure, rate_figure, size_figure
from kview.tui.rows.row import Row
from kview.tui.rows.sorting import Values, figures, ids, order_note, ranks, sorted_rows
from kview.tui.text import Line, Role, Span, line

PANEL = "topics"
ALL = ""
"""The key of the row that stands for all topics."""

SORTS: Values = {
    "topic": lambda view: np.arange(len(view.topics.topic), dtype=np.float64),
    "partitions": lambda view: figures(view.topics.partitions),
    "replication": lambda view: figures(view.topics.replication),
    "min_isr": lambda view: ids(view.topics.min_isr),
    "in": lambda view: figures(view.topics.in_rate),
    "size": lambda view: figures(view.topics.size_bytes),
    "health": lambda view: ranks(view.topics.severity),
}


def topic_rows(view: View, options: Options) -> list[int]:
    """Return the rows of `view.topics` that pass the options, in the order in force: by itself, the worst
    first."""
    shown = view.topics
    passing = Passing(view, options.wanted).topics
    rows = np.flatnonzero(passing & (~shown.internal | options.internal))
    worst = rows[np.argsort(ranks(shown.severity[rows]), kind="stable")]
    arranged: list[int] = sorted_rows(worst, options, PANEL, view, SORTS, _identity).tolist()
    return arranged


def _identity(view: View) -> object:
    return (view.topics.topic,)


class TopicRows(Keyed[str]):
    """The rows of topics.

    The key is the topic's name; the last row, ALL, stands for all topics.
    """

    def __init__(self, view: View, options: Options) -> None:
        shown = view.topics
        self._rows = topic_rows(view, options)
        super().__init__([*(str(shown.topic[row]) for row in self._rows), ALL])
        self._view = view
        self.panel, self.sorts = PANEL, SORTS
        self.severities = shown.severity[self._rows]
        worst = troubled(self.severities)
        self.troubled = worst if options.sort(PANEL) == OWN_ORDER else 0
        self.columns: Sequence[Column] = (
            Column("topic", "topic", name_width(self.keys, 10, 24), flex=1, most=50, name=True),
            Column(
                "partitions",
                "part.",
                count_width(shown.partitions[self._rows], 5),
                right=True,
                rank=1,
                exported=with_bound("part."),
            ),
            Column("replication", "replicas", 8, right=True, rank=2),
            Column("min_isr", "min isr", 7, right=True, rank=3),
            Column(
                "in",
                "in rec/s",
                rate_width(shown.in_rate, 8, shown.in_is_bound),
                right=True,
                exported=with_bound("in rec/s"),
            ),
            Column("size", "size", 7, right=True, rank=4, exported=("size bytes",)),
            Column("health", "", 24, flex=9, most=90, roomy=48),
        )
        note = order_note(options, PANEL, self.columns, order_name(Order.WORST_FIRST, worst))
        self.title: Line = title("TOPICS", note, options.filter_of(Listed.PARTITIONS))

    def row(self, index: int, now_ms: int) -> Row:
        shown = self._view.topics
        if self.keys[index] == ALL:
            return self._all()
        at = self._rows[index]
        return Row(
            (
                line(Span(str(shown.topic[at]), Role.DIM if shown.internal[at] else Role.TEXT)),
                count_figure(int(shown.partitions[at])),
                count_figure(int(shown.replication[at])),
                number_figure(int(shown.min_isr[at])),
                rate_figure(float(shown.in_rate[at]), is_bound=bool(shown.in_is_bound[at])),
                size_figure(int(shown.size_bytes[at])),
                self._health(at),
            )
        )

    def _all(self) -> Row:
        head, shown = self._view.headline, self._view.topics
        unknown = (shown.in_is_bound | ~np.isfinite(shown.in_rate)) & ~shown.internal
        return Row(
            (
                line(Span("all topics", Role.DIM)),
                count_figure(head.partitions, Role.DIM, is_bound=head.topics_are_bound),
                (),
                (),
                rate_figure(self._view.throughput.total_in, Role.DIM, is_bound=bool(unknown.any())),
                (),
                (),
            )
        )

    def _health(self, at: int) -> Line:
        shown = self._view.topics
        severity = str(shown.severity[at])
        first = int(shown.first_row[at])
        ranks = self._view.partitions.rank[first : first + int(shown.partitions[at])]
        numbers = np.bincount(ranks, minlength=len(STATUSES)).tolist()
        parts = [counted(status, number) for status in TROUBLED if (number := numbers[RANK[status]])]
        if shown.not_preferred[at]:
            parts.append(counted(PartitionStatus.NOT_PREFERRED, int(shown.not_preferred[at])))
        if shown.rack_safe[at] == RackSafety.NO:
            parts.append(f"{int(shown.not_rack_safe[at]):,} not rack-safe")
        role = ROLES[severity]
        text = f" {glyphs.DOT} ".join(parts) or "ok"
        if role is Role.DIM and shown.unknown[at]:
            return line(Span(f"{words.UNSEEN} {text}", Role.DIM))
        if role is Role.DIM and shown.not_preferred[at]:
            return line(Span(f"{STATUS_SIGNS[PartitionStatus.NOT_PREFERRED]} {text}", role))
        if role is Role.DIM:
            return line(Span(f"{SIGNS[severity]} ", Role.GOOD), Span(text, Role.DIM))
        return line(Span(f"{SIGNS[severity]} {text}", role))
