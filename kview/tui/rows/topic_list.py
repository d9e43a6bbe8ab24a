"""Rows of the Topics screen: one line per topic."""

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from kview.derive.lookup import index_of, topic_row
from kview.derive.readers import topic_readers
from kview.derive.retention import retention
from kview.derive.topic_health import topic_health
from kview.derive.view import Floats, PartitionStatus, RackSafety, View
from kview.language import glyphs, words
from kview.language import topics as topic_words
from kview.language.lists import Order, order_name
from kview.language.verdicts import counted
from kview.model.events import Severity
from kview.model.snapshot import Longs
from kview.model.units import UNKNOWN
from kview.tui.options import Options
from kview.tui.plot import sparkline
from kview.tui.rows.columns import Column
from kview.tui.rows.common import (
    ROLES,
    SIGNS,
    STATUS_SIGNS,
    count_width,
    figure,
    name_width,
    rate_width,
    title,
    troubled,
)
from kview.tui.rows.row import Row
from kview.tui.text import Line, Role, Span, line

PANEL = "topic_list"
ORDERS = (Order.WORST_FIRST, Order.BY_NAME, Order.BY_RECORDS_IN, Order.BY_LAG)
SPARK_CELLS = 12


def passing(view: View, options: Options) -> NDArray[np.bool_]:
    """Return which topics pass the options: a flag for each row of `view.topics`."""
    topics = view.topics
    shown = np.ones(len(topics.topic), np.bool_) if options.internal else ~topics.internal
    if options.filter:
        shown = shown & np.fromiter(map(options.matches, topics.topic.tolist()), np.bool_, len(topics.topic))
    return shown


def _sorted(view: View, rows: Longs, order: Order, lag: Longs) -> Longs:
    figures = view.topics
    keys: Longs | Floats
    match order:
        case Order.BY_NAME:
            return rows
        case Order.BY_RECORDS_IN:
            keys = -np.nan_to_num(figures.in_rate[rows], nan=-1.0, neginf=-1.0)
        case Order.BY_LAG:
            keys = -lag[rows].astype(np.float64)
        case _:
            severity = figures.severity[rows]
            need = np.select([severity == Severity.RISK, severity == Severity.WARN], [0, 1], 2)
            return rows[np.lexsort((-figures.busy[rows], need))]
    return rows[np.argsort(keys, kind="stable")]


class TopicListRows:
    """The rows of topics. The key is the topic's name."""

    def __init__(self, view: View, options: Options) -> None:
        figures = view.topics
        order = options.order(PANEL, ORDERS)
        self._view = view
        self._readers = topic_readers(view)
        self._health = topic_health(view)
        self._rows = _sorted(view, np.flatnonzero(passing(view, options)), order, self._readers.lag)
        self.troubled = troubled(figures.severity[self._rows]) if order is Order.WORST_FIRST else 0
        rows = self._rows
        hidden = 0 if options.internal else int(figures.internal.sum())
        self.title: Line = title(
            "TOPICS",
            order_name(order, self.troubled),
            f"/{options.filter}" if options.filter else "",
            f"{glyphs.DOT} {hidden:,} internal hidden (i)" if hidden else "",
        )
        self.empty = "" if len(rows) else topic_words.none(options.filter, view.headline.topics_are_bound)
        names = figures.topic[rows]
        readers = self._readers
        self.columns: Sequence[Column] = (
            Column("topic", "topic", name_width(names, 10, 32), flex=4, most=80, name=True),
            Column("partitions", "part.", count_width(figures.partitions[rows], 5), right=True, rank=1),
            Column("replication", "repl.", 5, right=True, rank=3),
            Column("min_isr", "min isr", 7, right=True, rank=5),
            Column("health", "health", 21, flex=1, most=34),
            Column("in", "in rec/s", rate_width(figures.in_rate, 8), right=True),
            Column("out", "out rec/s", rate_width(readers.out_rate, 9), right=True, rank=2),
            Column("spark", "last minute", SPARK_CELLS, rank=6),
            Column("size", "size", 7, right=True, rank=4),
            Column("retention", "retention", 9, right=True, rank=7),
            Column("groups", "groups", 6, right=True, rank=3),
            Column("lag", "worst lag", count_width(readers.lag[rows], 9, 1), right=True, rank=2),
            Column("reader", "", 12, flex=1, most=30, rank=6, name=True),
        )

    @property
    def keys(self) -> list[str]:
        """The keys of all rows, in order."""
        names: list[str] = self._view.topics.topic[self._rows].tolist()
        return names

    def __len__(self) -> int:
        return len(self._rows)

    def key(self, index: int) -> str:
        """Return the topic in a row."""
        return str(self._view.topics.topic[self._rows[index]])

    def find(self, key: Hashable) -> int | None:
        """Return the index of a topic's row, or None if it is not listed."""
        at = topic_row(self._view.topics, key) if isinstance(key, str) else None
        return None if at is None else index_of(self._rows, at)

    def row(self, index: int, now_ms: int) -> Row:
        """Return a topic's cells."""
        at = int(self._rows[index])
        figures, readers = self._view.topics, self._readers
        name = str(figures.topic[at])
        lag = words.at_least(words.count(int(readers.lag[at])), bool(readers.lag_is_bound[at]))
        return Row(
            (
                line(Span(name, Role.DIM if figures.internal[at] else Role.TEXT)),
                figure(words.count(int(figures.partitions[at]))),
                figure(words.count(int(figures.replication[at])), Role.DIM),
                figure(words.setting(int(figures.min_isr[at])), Role.DIM),
                self._worst(at),
                figure(words.rate(float(figures.in_rate[at]))),
                figure(words.rate(float(readers.out_rate[at]))),
                line(Span(sparkline(figures.in_series[at], SPARK_CELLS), Role.DIM)),
                figure(words.size(int(figures.size_bytes[at]))),
                figure(topic_words.retention(retention(self._view.snapshot.topic_configs, name)), Role.DIM),
                figure(words.count(int(readers.groups[at])), Role.DIM),
                figure(lag if readers.lag[at] != UNKNOWN else words.NONE),
                self._reader(at),
            )
        )

    def _worst(self, at: int) -> Line:
        """Return the worst thing about a topic, in words."""
        figures, health = self._view.topics, self._health
        status = PartitionStatus(health.status[at])
        severity = str(figures.severity[at])
        role = ROLES[severity]
        if status is PartitionStatus.PENDING:
            return line(Span(glyphs.ELLIPSIS, Role.DIM))
        if role is not Role.DIM:
            return line(Span(f"{SIGNS[severity]} {counted(status, int(health.count[at]))}", role))
        if status not in (PartitionStatus.OK, PartitionStatus.NOT_PREFERRED):
            text = f"{STATUS_SIGNS[status]} {counted(status, int(health.count[at]))}"
            return line(Span(text, Role.DIM))
        if figures.rack_safe[at] == RackSafety.NO:
            text = topic_words.not_rack_safe(int(figures.not_rack_safe[at]))
            return line(Span(f"{STATUS_SIGNS[PartitionStatus.NOT_PREFERRED]} {text}", Role.DIM))
        if status is PartitionStatus.NOT_PREFERRED:
            text = topic_words.not_preferred(int(figures.not_preferred[at]))
            return line(Span(f"{STATUS_SIGNS[status]} {text}", Role.DIM))
        return line(Span(f"{STATUS_SIGNS[status]} ", Role.GOOD), Span("ok", Role.DIM))

    def _reader(self, at: int) -> Line:
        """Return the group with the worst lag."""
        group = int(self._readers.worst[at])
        if group < 0:
            return ()
        role = ROLES[self._view.groups.severity[group]]
        return line(Span(str(self._view.snapshot.groups.group[group]), role))
