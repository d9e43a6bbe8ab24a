"""Rows of partitions: the worst first on the overview, or all partitions of a single topic."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from kview.derive.partitions import ordered
from kview.derive.passing import Passing
from kview.derive.view import PartitionStatus, RackSafety, View
from kview.language import failures, glyphs, verdicts, words
from kview.language.lists import Order, order_name
from kview.model.units import UNKNOWN
from kview.tui.options import Options
from kview.tui.rows.columns import Column
from kview.tui.rows.common import (
    ROLES,
    STATUS_SIGNS,
    Keyed,
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
from kview.tui.text import Line, Role, Span, line

PANEL = "partitions"
ORDERS = (Order.WORST_FIRST, Order.BY_NAME, Order.BY_UNCOMMITTED, Order.BY_RECORDS_IN)

_AGED = (PartitionStatus.SILENT_LEADER, PartitionStatus.FROZEN)


def worst_first(view: View, options: Options) -> NDArray[np.int64]:
    """Return the rows of `snapshot.partitions` that pass the options, those that need attention first."""
    table = view.snapshot.partitions
    rows = view.worst_partitions
    if options.internal:
        internal = np.flatnonzero(table.internal)
        rows = ordered(np.concatenate([rows, internal]), view.partitions)
    return rows[Passing(view, options.wanted).partitions[rows]] if options.wanted else rows


def _ordered(view: View, options: Options, panel: str) -> NDArray[np.int64]:
    rows = worst_first(view, options)
    match options.order(panel, ORDERS):
        case Order.BY_NAME:
            return np.sort(rows)
        case Order.BY_UNCOMMITTED:
            return rows[np.argsort(-view.partitions.uncommitted[rows].astype(np.float64), kind="stable")]
        case Order.BY_RECORDS_IN:
            return rows[np.argsort(-np.nan_to_num(view.partitions.in_rate[rows]), kind="stable")]
        case _:
            return rows


def _nothing(view: View, filter: str) -> str:
    """Return why there is no row."""
    if filter:
        return f"no partition matches {filter}"
    return f"no partitions{' that kview is authorized to see' if view.headline.topics_are_bound else ''}"


class PartitionRows(Keyed[tuple[str, int]]):
    """The rows of partitions. The key is (topic, partition)."""

    def __init__(self, view: View, options: Options, topic: str | None = None, panel: str = PANEL) -> None:
        table, figures = view.snapshot.partitions, view.partitions
        if topic is None:
            self._rows = _ordered(view, options, panel)
        else:
            rows = np.flatnonzero(table.topic == topic)
            self._rows = rows
        topics, numbers = table.topic[self._rows].tolist(), table.partition[self._rows].tolist()
        super().__init__(list(zip(topics, numbers, strict=True)))
        self._view = view
        self._options = options
        self.empty = "" if len(self._rows) else _nothing(view, options.shown_filter if topic is None else "")
        self.title: Line
        watermarks, rates = table.high_watermark[self._rows], figures.in_rate[self._rows]
        offset = count_width(watermarks, 9)
        if topic is None:
            in_force = options.order(panel, ORDERS)
            if in_force is Order.WORST_FIRST:
                self.troubled = troubled(figures.severity[self._rows])
            unknown = int((figures.status[self._rows] == PartitionStatus.UNKNOWN).sum())
            notes = [order_name(in_force, self.troubled + unknown)]
            notes.append(options.shown_filter)
            self.title = title("PARTITIONS", *notes)
            head: tuple[Column, ...] = (
                Column("topic", "topic", name_width(set(topics), 5, 24), flex=1, most=40, name=True),
            )
        else:
            self.title = title("PARTITIONS")
            head = ()
        self.columns: Sequence[Column] = (
            *head,
            Column("p", "p", max(2, len(str(max(numbers, default=0)))), right=True),
            Column("leader", f"leader{glyphs.DOT}ep", 9),
            Column("replicas", "replicas", replicas_width(view), rank=1),
            Column("isr", "isr", 3, right=True, rank=3),
            Column("start", "log start", count_width(table.log_start[self._rows], 9), right=True, rank=6),
            Column("watermark", "watermark", offset, right=True),
            Column("end", "log end", count_width(table.log_end[self._rows], 9), right=True, rank=7),
            Column(
                "uncommitted",
                "uncomm.",
                count_width(figures.uncommitted[self._rows], 7, 1),
                right=True,
                rank=2,
            ),
            Column("in", "in rec/s", rate_width(rates, 8), right=True, rank=5),
            Column("state", "", 6),
            Column("why", "", 14, flex=2, most=60, rank=4),
        )
        self._headed = bool(head)

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
