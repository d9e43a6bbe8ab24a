"""Rows of partitions: the worst first on the overview, or all partitions of a single topic."""

from collections.abc import Collection, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from kview.derive.lookup import index_of, partition_row, topic_partitions
from kview.derive.partitions.figures import ordered
from kview.derive.passing import Listed, Passing
from kview.derive.transactions.findings import stands_still
from kview.derive.view import PartitionStatus, RackSafety, View
from kview.language import failures, glyphs, reassignments, verdicts, words
from kview.language.lists import Order, order_name
from kview.model.snapshot import Flags, IdMatrix, Ids, Longs
from kview.model.units import NO_BROKER, UNKNOWN
from kview.tui.options import OWN_ORDER, Options
from kview.tui.rows.columns import Column, with_bound
from kview.tui.rows.common import (
    ROLES,
    STATUS_SIGNS,
    count_width,
    fresh,
    isr,
    leader_epoch,
    name_width,
    rate_width,
    replicas,
    replicas_width,
    title,
)
from kview.tui.rows.figures import Figure, Value, age, count_figure, figure, known, number_figure, rate_figure
from kview.tui.rows.row import Row, Rows
from kview.tui.rows.sorting import Values, figures, ids, order_note, sorted_rows
from kview.tui.text import Line, Role, Span, line

PANEL = "partitions"
TOPIC_PANEL = "topic_partitions"
"""The panel of a single topic's partitions, whose own order is by number."""

_AGED = (PartitionStatus.SILENT_LEADER, PartitionStatus.FROZEN)


def passing(view: View, options: Options) -> Flags:
    """Return which rows of `snapshot.partitions` pass the options."""
    table = view.snapshot.partitions
    shown = np.ones(len(table), bool) if options.internal else ~table.internal
    return shown & Passing(view, options.wanted).partitions if options.wanted else shown


def worst_first(view: View, options: Options) -> NDArray[np.int64]:
    """Return the rows of `snapshot.partitions` that pass the options, those that need attention first."""
    table = view.snapshot.partitions
    rows = view.worst_partitions
    if options.internal:
        internal = np.flatnonzero(table.internal)
        rows = ordered(np.concatenate([rows, internal]), view.partitions)
    return rows[Passing(view, options.wanted).partitions[rows]] if options.wanted else rows


SORTS: Values = {
    "topic": lambda view: np.arange(len(view.snapshot.partitions), dtype=np.float64),
    "p": lambda view: figures(view.snapshot.partitions.partition),
    "leader": lambda view: ids(view.snapshot.partitions.leader),
    "replicas": lambda view: ids(first_column(view.snapshot.partitions.replicas)),
    "isr": lambda view: figures(view.partitions.isr_count),
    "start": lambda view: figures(view.snapshot.partitions.log_start),
    "watermark": lambda view: figures(view.snapshot.partitions.high_watermark),
    "end": lambda view: figures(view.snapshot.partitions.log_end),
    "uncommitted": lambda view: figures(view.partitions.uncommitted),
    "in": lambda view: figures(view.partitions.in_rate),
    "state": lambda view: view.partitions.rank,
    "why": lambda view: view.partitions.rank,
}


def first_column(matrix: IdMatrix) -> Ids:
    """Return the first column of a matrix, which may have none."""
    return matrix[:, 0] if matrix.shape[1] else np.full(len(matrix), NO_BROKER, np.int32)


def _nothing(view: View, filter: str) -> str:
    """Return why there is no row."""
    if filter:
        return f"no partition matches {filter}"
    return f"no partitions{' that kview is authorized to see' if view.headline.topics_are_bound else ''}"


def _identity(view: View) -> object:
    return view.snapshot.partitions.topic, view.snapshot.partitions.partition


def ordered_rows(view: View, options: Options, panel: str, sorts: Values, topic: str | None = None) -> Longs:
    """Return the rows of `snapshot.partitions` that pass the options, in the panel's order.

    With a topic they are all its partitions, by number until the user sorts them.
    """
    own = worst_first(view, options) if topic is None else topic_partitions(view.topics, topic)
    return sorted_rows(own, options, panel, view, sorts, _identity)


class ListedPartitions(Rows):
    """Finds the rows of partitions. The key is (topic, partition). Keys are made when they are asked for."""

    def __init__(self, view: View, rows: Longs) -> None:
        self._view = view
        self._rows = rows

    @property
    def in_trouble(self) -> Flags:
        return self._view.partitions.alarming[self._rows]

    @property
    def keys(self) -> list[tuple[str, int]]:
        table = self._view.snapshot.partitions
        topics, numbers = table.topic[self._rows].tolist(), table.partition[self._rows].tolist()
        return list(zip(topics, numbers, strict=True))

    def __len__(self) -> int:
        return len(self._rows)

    def key(self, index: int) -> tuple[str, int]:
        """Return the topic and the number of the partition in a row."""
        table, at = self._view.snapshot.partitions, self._rows[index]
        return str(table.topic[at]), int(table.partition[at])

    def find(self, key: Hashable) -> int | None:
        at = partition_row(self._view, *key) if isinstance(key, tuple) else None
        return None if at is None else index_of(self._rows, at)

    def _names_width(self) -> int:
        """Return the width that the names of the listed topics need."""
        topics = self._view.topics
        if not len(self._rows):
            return name_width((), 5, 24)
        is_listed = np.zeros(len(self._view.snapshot.partitions), bool)
        is_listed[self._rows] = True
        return name_width(topics.topic[np.logical_or.reduceat(is_listed, topics.first_row)], 5, 24)

    def _number_width(self) -> int:
        """Return the width that the numbers of the listed partitions need."""
        numbers = self._view.snapshot.partitions.partition[self._rows]
        return max(2, len(str(int(numbers.max(initial=0)))))


class PartitionRows(ListedPartitions):
    """The rows of all partitions, or of those of a topic.

    With `among`, a flag for each row of `snapshot.partitions`, only those partitions are listed. `panel` is
    the name under which their order is kept.
    """

    def __init__(
        self,
        view: View,
        options: Options,
        topic: str | None = None,
        panel: str = "",
        among: NDArray[np.bool_] | None = None,
    ) -> None:
        table, shown = view.snapshot.partitions, view.partitions
        self.panel = panel or (PANEL if topic is None else TOPIC_PANEL)
        rows = ordered_rows(view, options, self.panel, SORTS, topic)
        super().__init__(view, rows if among is None else rows[among[rows]])
        self.sorts: Collection[str] = SORTS
        self._held = stands_still(view.snapshot)
        self._options = options
        self.empty = (
            ""
            if len(self._rows)
            else _nothing(view, options.filter_of(Listed.PARTITIONS) if topic is None else "")
        )
        # Columns are as wide as all partitions need, so that they stay in place while a filter is typed.
        all_rows = slice(None) if topic is None else self._rows
        own_name = ""
        if topic is None:
            is_own = options.sort(self.panel) == OWN_ORDER
            worst = int(np.count_nonzero(self.in_trouble))
            self.troubled = worst if is_own else 0
            unknown = int(np.count_nonzero(shown.having(PartitionStatus.UNKNOWN)[self._rows]))
            own_name = order_name(Order.WORST_FIRST, worst + unknown)
            head: tuple[Column, ...] = (
                Column("topic", "topic", self._names_width(), flex=1, most=40, name=True),
            )
        else:
            head = ()
        self.columns: Sequence[Column] = (
            *head,
            Column("p", "p", self._number_width(), right=True),
            Column("leader", f"leader{glyphs.DOT}ep", 9, exported=("leader", "leader epoch")),
            Column("replicas", "replicas", replicas_width(view), rank=1),
            Column("isr", "isr", 3, right=True, rank=3, exported=("isr", "replica count")),
            Column(
                "start",
                "log start",
                count_width(table.log_start[all_rows], 9),
                right=True,
                rank=6,
                exported=with_bound("log start"),
            ),
            Column(
                "watermark",
                "watermark",
                count_width(table.high_watermark[all_rows], 9),
                right=True,
                exported=with_bound("watermark"),
            ),
            Column(
                "end",
                "log end",
                count_width(table.log_end[all_rows], 9),
                right=True,
                rank=7,
                exported=with_bound("log end"),
            ),
            Column(
                "uncommitted",
                "uncomm.",
                count_width(shown.uncommitted[all_rows], 7, 1),
                right=True,
                rank=2,
                exported=with_bound("uncommitted"),
            ),
            Column(
                "in",
                "in rec/s",
                rate_width(shown.in_rate[all_rows], 8),
                right=True,
                rank=5,
                exported=with_bound("in rec/s"),
            ),
            Column("state", "", 6, exported=("state", "state s", "read s")),
            Column("why", "", 14, flex=2, most=60, rank=4),
        )
        self._headed = bool(head)
        note = order_note(options, self.panel, self.columns, own_name)
        self.title: Line = title(
            "PARTITIONS", note, options.filter_of(Listed.PARTITIONS) if topic is None else ""
        )

    def row(self, index: int, now_ms: int) -> Row:
        at = int(self._rows[index])
        table, figures = self._view.snapshot.partitions, self._view.partitions
        old, uncommitted = self._old(at, now_ms), int(figures.uncommitted[at])
        sign, why = self._status(at, now_ms, old)
        cells = (
            number_figure(int(table.partition[at])),
            leader_epoch(self._view, at),
            replicas(self._view, at),
            isr(self._view, at),
            count_figure(int(table.log_start[at]), Role.DIM, old=old),
            count_figure(int(table.high_watermark[at]), old=old),
            count_figure(int(table.log_end[at]), Role.DIM, old=old),
            figure(words.signed(uncommitted), known(uncommitted), old=old),
            rate_figure(float(figures.in_rate[at]), old=old),
            Figure(sign, *self._state(at, now_ms)),
            why,
        )
        name = (line(str(table.topic[at])),) if self._headed else ()
        return Row((*name, *cells), fresh(int(figures.changed_ms[at]), now_ms))

    def _old(self, at: int, now_ms: int) -> bool:
        read_ms = int(self._view.snapshot.partitions.high_watermark_ms[at])
        return read_ms != UNKNOWN and now_ms - read_ms > self._options.stale_ms

    def _aged_ms(self, at: int) -> int:
        """Return since when a leader has been silent or a watermark frozen, epoch ms, UNKNOWN if neither."""
        figures = self._view.partitions
        since_ms = max(int(figures.leader_silent_since_ms[at]), int(figures.frozen_since_ms[at]))
        return since_ms if figures.status[at] in _AGED else UNKNOWN

    def _state(self, at: int, now_ms: int) -> tuple[Value, ...]:
        """Return a partition's state, for how many seconds it has been so, and for how many it was not
        read."""
        status = PartitionStatus(self._view.partitions.status[at])
        said = verdicts.STATUSES[status]
        read_ms = int(self._view.snapshot.partitions.high_watermark_ms[at])
        return said, age(self._aged_ms(at), now_ms), age(read_ms, now_ms)

    def _status(self, at: int, now_ms: int, old: bool) -> tuple[Line, Line]:
        """Return the partition's state as a sign with an age, and in words."""
        table, figures = self._view.snapshot.partitions, self._view.partitions
        status = figures.status[at]
        text = verdicts.STATUSES[status]
        role = ROLES[figures.severity[at]]
        since_ms = self._aged_ms(at)
        if since_ms != UNKNOWN:
            return line(Span(f"{STATUS_SIGNS[status]} {words.age(since_ms, now_ms)}", role)), line(
                Span(text, role)
            )
        moved = reassignments.note(self._view, at)
        if status == PartitionStatus.REASSIGNING:
            text, moved = moved, ""
        notes = [moved] * bool(moved)
        sign, sign_role = STATUS_SIGNS[status], Role.GOOD if status == PartitionStatus.OK else role
        age = words.age(int(table.high_watermark_ms[at]), now_ms)
        if status == PartitionStatus.UNREAD:
            text = f"{text} for {age}: leader refuses"
        elif old:
            notes.append(f"read {age} ago")
            if status == PartitionStatus.OK:
                sign, sign_role = f"? {age}", Role.DIM
        if self._held[at]:
            age = words.age(int(table.last_stable_since_ms[at]), now_ms)
            notes.append(f"last stable {int(table.last_stable[at]):,} for {age}")
        if table.error_code[at]:
            notes.append(failures.of_partition(int(table.error_code[at])))
        if figures.leader_unreached[at]:
            notes.append("kview cannot reach its leader")
        if figures.rack_safe[at] == RackSafety.NO:
            notes.append("all replicas in one rack")
        parts = [] if old and status == PartitionStatus.OK else [Span(text, role)]
        for note in notes:
            parts.append(Span(f" {glyphs.DOT} {note}" if parts else note, Role.DIM))
        return line(Span(sign, sign_role)), tuple(parts)
