"""Rows of the Topics screen: one line per topic."""

from collections.abc import Collection, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from kview.derive.groups.readers import topic_readers
from kview.derive.lookup import index_of, topic_row
from kview.derive.partitions.retention import Retention, retention
from kview.derive.partitions.topic_health import TopicHealth, topic_health
from kview.derive.passing import Listed, Passing
from kview.derive.view import PartitionStatus, RackSafety, View
from kview.language import glyphs
from kview.language import topics as topic_words
from kview.language.curves import sparkline
from kview.language.lists import Order, order_name
from kview.language.verdicts import counted
from kview.model.events import Severity
from kview.model.snapshot import Flags, Longs
from kview.tui.options import OWN_ORDER, Options
from kview.tui.rows.columns import Column, with_bound
from kview.tui.rows.common import (
    ROLES,
    SIGNS,
    STATUS_SIGNS,
    count_width,
    name_width,
    needing_attention,
    rate_width,
    title,
)
from kview.tui.rows.figures import (
    Figure,
    count_figure,
    number_figure,
    rate_figure,
    seconds,
    size_figure,
    text_figure,
)
from kview.tui.rows.row import Row, Rows
from kview.tui.rows.sorting import Values, order_note, ranks, sorted_rows
from kview.tui.rows.sorting import figures as numbers
from kview.tui.rows.strip import strip
from kview.tui.text import Line, Role, Span, line

PANEL = "topic_list"
SPARK_CELLS = 12
MOST_STRIP = 24


def passing(view: View, options: Options) -> NDArray[np.bool_]:
    """Return which topics pass the options: a flag for each row of `view.topics`."""
    topics = view.topics
    shown = np.ones(len(topics.topic), np.bool_) if options.internal else ~topics.internal
    return shown & Passing(view, options.wanted).topics if options.wanted else shown


def worst_first(view: View, options: Options) -> Longs:
    """Return the rows of `view.topics` that pass the options, those that need attention first."""
    figures, rows = view.topics, np.flatnonzero(passing(view, options))
    severity = figures.severity[rows]
    need = np.select([severity == Severity.RISK, severity == Severity.WARN], [0, 1], 2)
    return rows[np.argsort(need, kind="stable")]


def _identity(view: View) -> object:
    return (view.topics.topic,)


SORTS: Values = {
    "topic": lambda view: np.arange(len(view.topics.topic), dtype=np.float64),
    "partitions": lambda view: numbers(view.topics.partitions),
    "replication": lambda view: numbers(view.topics.replication),
    "min_isr": lambda view: numbers(view.topics.min_isr),
    "health": lambda view: ranks(view.topics.severity),
    "in": lambda view: numbers(view.topics.in_rate),
    "out": lambda view: numbers(topic_readers(view).out_rate),
    "spark": lambda view: numbers(view.topics.in_rate),
    "size": lambda view: numbers(view.topics.size_bytes),
    "groups": lambda view: numbers(topic_readers(view).groups),
    "lag": lambda view: numbers(topic_readers(view).lag),
}


class TopicListRows(Rows):
    """The rows of topics. The key is the topic's name."""

    def __init__(self, view: View, options: Options) -> None:
        figures = view.topics
        self._view = view
        self._readers = topic_readers(view)
        self._health = topic_health(view)
        self._rows = sorted_rows(worst_first(view, options), options, PANEL, view, SORTS, _identity)
        self.panel = PANEL
        self.sorts: Collection[str] = SORTS
        self._in_trouble = needing_attention(figures.severity[self._rows])
        worst = int(self._in_trouble.sum())
        self.troubled = worst if options.sort(PANEL) == OWN_ORDER else 0
        rows = self._rows
        hidden = 0 if options.internal else int(figures.internal.sum())
        self.empty = (
            ""
            if len(rows)
            else topic_words.none(options.filter_of(Listed.PARTITIONS), view.headline.topics_are_bound)
        )
        names = figures.topic[rows]
        self._strip_cells = min(MOST_STRIP, int(figures.partitions[rows].max(initial=1)))
        readers = self._readers
        self.columns: Sequence[Column] = (
            Column("topic", "topic", name_width(names, 10, 32), flex=4, most=80, name=True),
            Column("partitions", "part.", count_width(figures.partitions[rows], 5), right=True, rank=1),
            Column("strip", "", self._strip_cells, rank=4, exported=()),
            Column("replication", "repl.", 5, right=True, rank=3),
            Column("min_isr", "min isr", 7, right=True, rank=5),
            Column("health", "health", 21, flex=1, most=34),
            Column(
                "in",
                "in rec/s",
                rate_width(figures.in_rate, 8, figures.in_is_bound),
                right=True,
                exported=with_bound("in rec/s"),
            ),
            Column(
                "out",
                "out rec/s",
                rate_width(readers.out_rate, 9, readers.out_is_bound),
                right=True,
                rank=2,
                exported=with_bound("out rec/s"),
            ),
            Column("spark", "last minute", SPARK_CELLS, rank=6, exported=()),
            Column("size", "size", 7, right=True, rank=4, exported=("size bytes",)),
            Column("retention", "retention", 9, right=True, rank=7, exported=("retention s", "retention")),
            Column("groups", "groups", 6, right=True, rank=3),
            Column(
                "lag",
                "worst lag",
                count_width(readers.lag[rows], 9, 1),
                right=True,
                rank=2,
                exported=with_bound("worst lag"),
            ),
            Column("reader", "", 12, flex=1, most=30, rank=6, name=True),
        )

        self.title: Line = title(
            "TOPICS",
            order_note(options, PANEL, self.columns, order_name(Order.WORST_FIRST, worst)),
            options.filter_of(Listed.PARTITIONS),
            f"{glyphs.DOT} {hidden:,} internal hidden ({options.keys.name('internal')})" if hidden else "",
        )

    @property
    def in_trouble(self) -> Flags:
        return self._in_trouble

    @property
    def keys(self) -> list[str]:
        names: list[str] = self._view.topics.topic[self._rows].tolist()
        return names

    def __len__(self) -> int:
        return len(self._rows)

    def key(self, index: int) -> str:
        return str(self._view.topics.topic[self._rows[index]])

    def find(self, key: Hashable) -> int | None:
        at = topic_row(self._view.topics, key) if isinstance(key, str) else None
        return None if at is None else index_of(self._rows, at)

    def row(self, index: int, now_ms: int) -> Row:
        at = int(self._rows[index])
        figures, readers = self._view.topics, self._readers
        name = str(figures.topic[at])
        return Row(
            (
                line(Span(name, Role.DIM if figures.internal[at] else Role.TEXT)),
                count_figure(int(figures.partitions[at])),
                strip(self._view, at, self._strip_cells),
                count_figure(int(figures.replication[at]), Role.DIM),
                number_figure(int(figures.min_isr[at]), Role.DIM),
                worst(self._view, self._health, at),
                rate_figure(float(figures.in_rate[at]), is_bound=bool(figures.in_is_bound[at])),
                rate_figure(float(readers.out_rate[at]), is_bound=bool(readers.out_is_bound[at])),
                line(Span(sparkline(figures.in_series[at], SPARK_CELLS), Role.DIM)),
                size_figure(int(figures.size_bytes[at])),
                _retention(retention(self._view.snapshot.topic_configs, name)),
                count_figure(int(readers.groups[at]), Role.DIM),
                count_figure(int(readers.lag[at]), is_bound=bool(readers.lag_is_bound[at])),
                self._reader(at),
            )
        )

    def _reader(self, at: int) -> Line:
        """Return the group with the worst lag."""
        group = int(self._readers.worst[at])
        if group < 0:
            return ()
        role = ROLES[self._view.groups.severity[group]]
        return line(Span(str(self._view.snapshot.groups.group[group]), role))


def _retention(kept: Retention) -> Figure:
    """Return the cell of how long a topic keeps its records: in seconds, or the word for it."""
    said = topic_words.retention(kept)
    is_word = said in (topic_words.COMPACTED, topic_words.FOREVER)
    value = None if is_word else seconds(kept.ms)
    return Figure(text_figure(said, Role.DIM), value, said if is_word else "")


def worst(view: View, health: TopicHealth, at: int) -> Line:
    """Return the worst thing about the topic in a row of `view.topics`, in words."""
    figures = view.topics
    status = PartitionStatus(health.status[at])
    severity = str(figures.severity[at])
    role = ROLES[severity]
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
