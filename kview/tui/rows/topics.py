"""Rows of the list of topics below the placement table."""

from collections.abc import Hashable, Sequence

import numpy as np

from kview.derive.passing import Passing
from kview.derive.view import PartitionStatus, RackSafety, View
from kview.language import glyphs, words
from kview.language.lists import Order, order_name
from kview.language.verdicts import counted
from kview.tui.options import Options
from kview.tui.rows.columns import Column
from kview.tui.rows.common import (
    ROLES,
    SIGNS,
    STATUS_SIGNS,
    Keyed,
    figure,
    name_width,
    rank,
    rate_width,
    title,
    troubled,
)
from kview.tui.rows.row import Row
from kview.tui.text import Line, Role, Span, line

PANEL = "topics"
ORDERS = (Order.WORST_FIRST, Order.BY_NAME, Order.BY_RECORDS_IN)
ALL = ""
"""The key of the row that stands for all topics."""

_COUNTED = (
    PartitionStatus.NO_LEADER,
    PartitionStatus.SILENT_LEADER,
    PartitionStatus.FROZEN,
    PartitionStatus.UNDER_MIN_ISR,
    PartitionStatus.AT_MIN_ISR,
    PartitionStatus.UNDER_REPLICATED,
    PartitionStatus.UNREAD,
    PartitionStatus.UNKNOWN,
)
"""The statuses that a topic's health counts. Each partition counts once, with its worst status."""


def topic_rows(view: View, options: Options, held: Sequence[Hashable] = ()) -> list[int]:
    """Return the rows of `view.topics` that pass the options, in the order in force.

    Topics in `held` keep its order, unless one is in more trouble than another.
    """
    figures = view.topics
    passing = Passing(view, options.wanted).topics
    rows = np.flatnonzero(passing & (~figures.internal | options.internal)).tolist()
    places = {topic: place for place, topic in enumerate(held)}

    def place(row: int) -> int:
        return places.get(str(figures.topic[row]), len(places))

    match options.order(PANEL, ORDERS):
        case Order.WORST_FIRST:
            rows.sort(key=lambda row: (rank(figures.severity[row]), place(row), -int(figures.busy[row])))
        case Order.BY_RECORDS_IN:
            rows.sort(key=lambda row: (place(row), -float(np.nan_to_num(figures.in_rate[row]))))
    return rows


class TopicRows(Keyed[str]):
    """The rows of topics, in the order of `held` as far as it goes.

    The key is the topic's name; the last row, ALL, stands for all topics.
    """

    def __init__(self, view: View, options: Options, held: Sequence[Hashable] = ()) -> None:
        figures = view.topics
        self._rows = topic_rows(view, options, held)
        super().__init__([*(str(figures.topic[row]) for row in self._rows), ALL])
        self._view = view
        in_force = options.order(PANEL, ORDERS)
        if in_force is Order.WORST_FIRST:
            self.troubled = troubled(figures.severity[self._rows])
        self.title: Line = title("TOPICS", order_name(in_force, self.troubled), options.shown_filter)
        self.empty = ""
        self.columns: Sequence[Column] = (
            Column("topic", "topic", name_width(self.keys, 10, 24), flex=1, most=50, name=True),
            Column("partitions", "partitions", 10, right=True, rank=1),
            Column("replication", "replicas", 8, right=True, rank=2),
            Column("min_isr", "min isr", 7, right=True, rank=3),
            Column("in", "in rec/s", rate_width(figures.in_rate, 8), right=True),
            Column("size", "size", 7, right=True, rank=4),
            Column("health", "", 24, flex=3, most=90),
        )

    def row(self, index: int, now_ms: int) -> Row:
        """Return a topic's cells."""
        figures = self._view.topics
        if self.keys[index] == ALL:
            return self._all()
        at = self._rows[index]
        return Row(
            (
                line(Span(str(figures.topic[at]), Role.DIM if figures.internal[at] else Role.TEXT)),
                figure(words.count(int(figures.partitions[at]))),
                figure(words.count(int(figures.replication[at]))),
                figure(words.setting(int(figures.min_isr[at]))),
                figure(words.rate(float(figures.in_rate[at]))),
                figure(words.size(int(figures.size_bytes[at]))),
                self._health(at),
            )
        )

    def _all(self) -> Row:
        head = self._view.headline
        return Row(
            (
                line(Span("all topics", Role.DIM)),
                figure(words.at_least(words.count(head.partitions), head.topics_are_bound), Role.DIM),
                (),
                (),
                figure(words.rate(self._view.throughput.total_in), Role.DIM),
                (),
                line(Span("select to see replicas per broker", Role.DIM)),
            )
        )

    def _health(self, at: int) -> Line:
        figures = self._view.topics
        severity = str(figures.severity[at])
        first = int(figures.first_row[at])
        statuses = self._view.partitions.status[first : first + int(figures.partitions[at])].tolist()
        parts = [counted(status, number) for status in _COUNTED if (number := statuses.count(status))]
        if figures.not_preferred[at]:
            parts.append(counted(PartitionStatus.NOT_PREFERRED, int(figures.not_preferred[at])))
        if figures.rack_safe[at] == RackSafety.NO:
            parts.append(f"{int(figures.not_rack_safe[at]):,} not rack-safe")
        role = ROLES[severity]
        if not parts and not self._view.moment.complete:
            return line(Span(glyphs.ELLIPSIS, Role.DIM))
        text = f" {glyphs.DOT} ".join(parts) or "ok"
        if role is Role.DIM and figures.unknown[at]:
            return line(Span(f"{words.UNSEEN} {text}", Role.DIM))
        if role is Role.DIM and figures.not_preferred[at]:
            return line(Span(f"{STATUS_SIGNS[PartitionStatus.NOT_PREFERRED]} {text}", role))
        if role is Role.DIM:
            return line(Span(f"{SIGNS[severity]} ", Role.GOOD), Span(text, Role.DIM))
        return line(Span(f"{SIGNS[severity]} {text}", role))
