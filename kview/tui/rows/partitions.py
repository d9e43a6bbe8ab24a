"""Rows of partitions: the worst first on the overview, or all partitions of a single topic."""

from collections.abc import Collection, Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from kview.derive.partitions import ordered
from kview.derive.passing import Passing
from kview.derive.view import PartitionStatus, RackSafety, View
from kview.language import failures, glyphs, verdicts, words
from kview.language.lists import Order, order_name
from kview.model.events import Severity
from kview.model.snapshot import Flags, IdMatrix, Ids, Longs
from kview.model.units import NO_BROKER, UNKNOWN
from kview.tui.options import OWN_ORDER, Options
from kview.tui.rows.columns import Column
from kview.tui.rows.common import (
    ROLES,
    STATUS_SIGNS,
    count_width,
    figure,
    fresh,
    isr,
    leader_epoch,
    name_width,
    rate_width,
    replicas,
    replicas_width,
    title,
    troubled,
)
from kview.tui.rows.row import Row
from kview.tui.rows.sorting import Values, figures, ids, order_note, ranks, sorted_rows
from kview.tui.text import Line, Role, Span, line

PANEL = "partitions"
TOPIC_PANEL = "topic_partitions"
"""The panel of a single topic's partitions, whose own order is by number."""

_AGED = (PartitionStatus.SILENT_LEADER, PartitionStatus.FROZEN)


def worst_first(view: View, options: Options) -> NDArray[np.int64]:
    """Return the rows of `snapshot.partitions` that pass the options, those that need attention first."""
    table = view.snapshot.partitions
    rows = view.worst_partitions
    if options.internal:
        internal = np.flatnonzero(table.internal)
        rows = ordered(np.concatenate([rows, internal]), view.partitions)
    return rows[Passing(view, options.wanted).partitions[rows]] if options.wanted else rows


_RANKS = tuple(PartitionStatus)

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
    "state": lambda view: ranks(view.partitions.status, _RANKS),
    "why": lambda view: ranks(view.partitions.status, _RANKS),
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


def partition_row(view: View, key: Hashable) -> int | None:
    """Return the row of the partition (topic, partition) in `snapshot.partitions`, None if there is none."""
    if not isinstance(key, tuple):
        return None
    found = np.flatnonzero(view.topics.topic == key[0])
    if not len(found):
        return None
    first, count = int(view.topics.first_row[found[0]]), int(view.topics.partitions[found[0]])
    numbers = view.snapshot.partitions.partition[first : first + count]
    at = int(np.searchsorted(numbers, key[1]))
    return first + at if at < count and int(numbers[at]) == key[1] else None


class PartitionRows:
    """The rows of partitions. The key is (topic, partition). Keys are made when they are asked for."""

    def __init__(self, view: View, options: Options, topic: str | None = None) -> None:
        table, shown = view.snapshot.partitions, view.partitions
        self.panel = PANEL if topic is None else TOPIC_PANEL
        own = worst_first(view, options) if topic is None else np.flatnonzero(table.topic == topic)
        self._rows = sorted_rows(own, options, self.panel, view, SORTS, _identity)
        self.sorts: Collection[str] = SORTS
        self._severities = shown.severity[self._rows]
        self.troubled = 0
        self._places: Longs | None = None
        self._view = view
        self._options = options
        self.empty = "" if len(self._rows) else _nothing(view, options.shown_filter if topic is None else "")
        watermarks, rates = table.high_watermark[self._rows], shown.in_rate[self._rows]
        numbers = table.partition[self._rows]
        offset = count_width(watermarks, 9)
        own_name = ""
        if topic is None:
            is_own = options.sort(PANEL) == OWN_ORDER
            worst = troubled(self._severities)
            self.troubled = worst if is_own else 0
            unknown = int((shown.status[self._rows] == PartitionStatus.UNKNOWN).sum())
            own_name = order_name(Order.WORST_FIRST, worst + unknown)
            every = np.repeat(np.arange(len(view.topics.topic)), view.topics.partitions)
            topics = view.topics.topic[np.unique(every[self._rows])].tolist()
            head: tuple[Column, ...] = (
                Column("topic", "topic", name_width(topics, 5, 24), flex=1, most=40, name=True),
            )
        else:
            head = ()
        self.columns: Sequence[Column] = (
            *head,
            Column("p", "p", max(2, len(str(int(numbers.max(initial=0))))), right=True),
            Column("leader", f"leader{glyphs.DOT}ep", 9),
            Column("replicas", "replicas", replicas_width(view), rank=1),
            Column("isr", "isr", 3, right=True, rank=3),
            Column("start", "log start", count_width(table.log_start[self._rows], 9), right=True, rank=6),
            Column("watermark", "watermark", offset, right=True),
            Column("end", "log end", count_width(table.log_end[self._rows], 9), right=True, rank=7),
            Column(
                "uncommitted",
                "uncomm.",
                count_width(shown.uncommitted[self._rows], 7, 1),
                right=True,
                rank=2,
            ),
            Column("in", "in rec/s", rate_width(rates, 8), right=True, rank=5),
            Column("state", "", 6),
            Column("why", "", 14, flex=2, most=60, rank=4),
        )
        self._headed = bool(head)
        note = order_note(options, self.panel, self.columns, own_name)
        self.title: Line = title("PARTITIONS", note, options.shown_filter if topic is None else "")

    @property
    def in_trouble(self) -> Flags:
        """Which rows need attention, by index."""
        found: Flags = (self._severities == Severity.RISK) | (self._severities == Severity.WARN)
        return found

    @property
    def keys(self) -> list[tuple[str, int]]:
        """The keys of all rows, in order."""
        table = self._view.snapshot.partitions
        topics, numbers = table.topic[self._rows].tolist(), table.partition[self._rows].tolist()
        return list(zip(topics, numbers, strict=True))

    def __len__(self) -> int:
        return len(self._rows)

    def key(self, index: int) -> Hashable:
        """Return the key of the row at `index`."""
        at, table = int(self._rows[index]), self._view.snapshot.partitions
        return str(table.topic[at]), int(table.partition[at])

    def find(self, key: Hashable) -> int | None:
        """Return the index of the row with that key, or None if there is no such row."""
        at = partition_row(self._view, key)
        if at is None:
            return None
        if self._places is None:
            self._places = np.full(len(self._view.snapshot.partitions), -1, np.int64)
            self._places[self._rows] = np.arange(len(self._rows))
        place = int(self._places[at])
        return place if place >= 0 else None

    def row(self, index: int, now_ms: int) -> Row:
        """Return a partition's cells."""
        at = int(self._rows[index])
        table, figures = self._view.snapshot.partitions, self._view.partitions
        old = self._old(at, now_ms)
        cells = (
            figure(str(int(table.partition[at]))),
            leader_epoch(self._view, at),
            replicas(self._view, at),
            isr(self._view, at),
            figure(words.count(int(table.log_start[at])), Role.DIM, dim=old),
            figure(words.count(int(table.high_watermark[at])), dim=old),
            figure(words.count(int(table.log_end[at])), Role.DIM, dim=old),
            figure(words.signed(int(figures.uncommitted[at])), dim=old),
            figure(words.rate(float(figures.in_rate[at])), dim=old),
            *self._status(at, now_ms, old),
        )
        name = (line(str(table.topic[at])),) if self._headed else ()
        return Row((*name, *cells), fresh(int(figures.changed_ms[at]), now_ms))

    def _old(self, at: int, now_ms: int) -> bool:
        read_ms = int(self._view.snapshot.partitions.high_watermark_ms[at])
        return read_ms != UNKNOWN and now_ms - read_ms > self._options.stale_ms

    def _status(self, at: int, now_ms: int, old: bool) -> tuple[Line, Line]:
        """Return the partition's state as a sign with an age, and in words."""
        table, figures = self._view.snapshot.partitions, self._view.partitions
        status = figures.status[at]
        text = verdicts.STATUSES[status]
        role = ROLES[figures.severity[at]]
        since_ms = max(int(figures.leader_silent_since_ms[at]), int(figures.frozen_since_ms[at]))
        if status in _AGED and since_ms != UNKNOWN:
            return line(Span(f"{STATUS_SIGNS[status]} {words.age(since_ms, now_ms)}", role)), line(
                Span(text, role)
            )
        notes = []
        sign, sign_role = STATUS_SIGNS[status], Role.GOOD if status == PartitionStatus.OK else role
        age = words.age(int(table.high_watermark_ms[at]), now_ms)
        if status == PartitionStatus.UNREAD:
            text = f"{text} for {age}: leader refuses"
        elif old:
            notes.append(f"read {age} ago")
            if status == PartitionStatus.OK:
                sign, sign_role = f"? {age}", Role.DIM
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
