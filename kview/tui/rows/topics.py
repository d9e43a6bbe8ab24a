"""Rows of the list of topics below the placement table."""

from collections.abc import Sequence

import numpy as np

from kview.derive.view import PartitionStatus, View
from kview.language import glyphs, words
from kview.language.verdicts import counted
from kview.model.units import UNKNOWN, UNKNOWN_ID
from kview.tui.options import Options
from kview.tui.rows.columns import Column
from kview.tui.rows.common import ROLES, SIGNS, Keyed, figure, name_width, rank, rate_width, title
from kview.tui.rows.row import Row
from kview.tui.text import Line, Role, Span, line

PANEL = "topics"
ORDERS = ("worst first", "by name", "by records in")
ALL = ""
"""The key of the row that stands for all topics."""

_COUNTED = (
    PartitionStatus.NO_LEADER,
    PartitionStatus.SILENT_LEADER,
    PartitionStatus.FROZEN,
    PartitionStatus.UNDER_MIN_ISR,
    PartitionStatus.AT_MIN_ISR,
    PartitionStatus.UNDER_REPLICATED,
)
"""The statuses that a topic's health counts. Each partition counts once, with its worst status."""


def topic_rows(view: View, options: Options) -> list[int]:
    """Return the rows of `view.topics` that pass the options, in the order in force."""
    figures = view.topics
    rows = [
        row
        for row in range(len(figures.topic))
        if (options.internal or not figures.internal[row]) and options.matches(str(figures.topic[row]))
    ]
    match ORDERS[options.sort(PANEL, len(ORDERS))]:
        case "worst first":
            return sorted(rows, key=lambda row: (rank(figures.severity[row]), -int(figures.partitions[row])))
        case "by records in":
            return sorted(rows, key=lambda row: -float(np.nan_to_num(figures.in_rate[row])))
        case _:
            return rows


class TopicRows(Keyed[str]):
    """The rows of topics. The key is the topic's name; the last row, ALL, stands for all topics."""

    def __init__(self, view: View, options: Options) -> None:
        figures = view.topics
        self._rows = topic_rows(view, options)
        super().__init__([*(str(figures.topic[row]) for row in self._rows), ALL])
        self._view = view
        order = ORDERS[options.sort(PANEL, len(ORDERS))]
        self.title: Line = title("TOPICS", order, f"/{options.filter}" if options.filter else "")
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
        min_isr = int(figures.min_isr[at])
        return Row(
            (
                line(Span(str(figures.topic[at]), Role.DIM if figures.internal[at] else Role.TEXT)),
                figure(words.count(int(figures.partitions[at]))),
                figure(words.count(int(figures.replication[at]))),
                figure(words.NONE if min_isr in (UNKNOWN, UNKNOWN_ID) else str(min_isr)),
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
                figure(words.count(head.partitions), Role.DIM),
                (),
                (),
                figure(words.rate(self._view.throughput.total_in), Role.DIM),
                (),
                line(Span("number of replicas by broker", Role.DIM)),
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
        if not figures.rack_safe[at]:
            parts.append("not rack-safe")
        role = ROLES[severity]
        if not parts and not self._view.moment.complete:
            return line(Span(glyphs.ELLIPSIS, Role.DIM))
        text = f" {glyphs.DOT} ".join(parts) or "ok"
        if role is Role.DIM:
            return line(Span(f"{SIGNS[severity]} ", Role.GOOD), Span(text, Role.DIM))
        return line(Span(f"{SIGNS[severity]} {text}", role))
