"""Rows of a broker's replicas, those in trouble first."""

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kview.derive.brokers.replicas import broker_replicas
from kview.derive.lookup import replica_rows
from kview.derive.passing import Listed
from kview.derive.view import Floats, PartitionStatus, View
from kview.language import glyphs, verdicts, words
from kview.language import replicas as replica_words
from kview.language.lists import Order, order_name
from kview.model.units import UNKNOWN
from kview.tui.options import OWN_ORDER, Options
from kview.tui.rows.columns import Column, with_bound
from kview.tui.rows.common import (
    ROLES,
    STATUS_SIGNS,
    count_width,
    fresh,
    leader_epoch,
    rate_width,
    replica_role,
    title,
)
from kview.tui.rows.figures import age, count_figure, figure, number_figure, rate_figure, size_figure
from kview.tui.rows.partitions import SORTS, ListedPartitions, ordered_rows
from kview.tui.rows.row import Row
from kview.tui.rows.sorting import Values, figures, order_note
from kview.tui.text import EMPTY, Line, Role, Span, line

PANEL = "replicas"
_WORDS = {
    glyphs.LEADER: "leader",
    glyphs.FOLLOWER: "in sync",
    glyphs.OUT_OF_SYNC: "not in sync",
    glyphs.ADDED: "adding",
    glyphs.REMOVED: "removing",
}


def _sorts(broker: int) -> Values:
    """Return what to sort a broker's replicas by: one value for each partition, NaN without a replica."""

    def of_replica(view: View, values: NDArray[Any]) -> Floats:
        mine = view.snapshot.partitions.replicas == broker
        held = mine.any(axis=1)
        rows = np.flatnonzero(held)
        by_partition = np.full(len(held), np.nan)
        by_partition[rows] = figures(values[rows, mine[rows].argmax(axis=1)])
        return by_partition

    return {
        **{name: SORTS[name] for name in ("topic", "p", "leader", "in", "state")},
        "role": lambda view: np.where(view.snapshot.partitions.leader == broker, 0.0, 1.0),
        "end": lambda view: of_replica(view, view.partitions.replica_end),
        "lag": lambda view: of_replica(view, view.partitions.replica_lag),
        "age": lambda view: of_replica(view, view.partitions.replica_end_ms),
    }


class BrokerReplicaRows(ListedPartitions):
    """The rows of one broker's replicas. The key is (topic, partition)."""

    def __init__(self, view: View, broker: int, options: Options) -> None:
        shown, sorts = view.partitions, _sorts(broker)
        replicas = broker_replicas(view, broker, ordered_rows(view, options, PANEL, sorts))
        super().__init__(view, replicas.rows)
        self._positions = replicas.positions
        self._broker, self._options = broker, options
        self.panel = PANEL
        self.sorts: Collection[str] = sorts
        worst = int(self.in_trouble.sum())
        self.troubled = worst if options.sort(PANEL) == OWN_ORDER else 0
        self.empty = (
            ""
            if len(self._rows)
            else f"no partition matches {options.filter_of(Listed.PARTITIONS)}"
            if options.filter_of(Listed.PARTITIONS)
            else "this broker has no replica"
        )
        ends = shown.replica_end[self._rows, self._positions]
        lags = shown.replica_lag[self._rows, self._positions]
        self.columns: Sequence[Column] = (
            Column("topic", "topic", self._names_width(), flex=1, most=50, name=True),
            Column("p", "p", self._number_width(), right=True),
            Column("role", "role", 13),
            Column("leader", f"leader{glyphs.DOT}ep", 9, rank=1, exported=("leader", "leader epoch")),
            Column(
                "end", "log end", count_width(ends, 9), right=True, rank=2, exported=with_bound("log end")
            ),
            Column("lag", "lag", count_width(lags, 6), right=True, exported=with_bound("lag")),
            Column("age", "read", 6, right=True, rank=4, exported=("read s",)),
            Column("size", "size", 7, right=True, rank=3, exported=("size bytes",)),
            Column("in", "in rec/s", rate_width(shown.in_rate[self._rows], 8), right=True, rank=5),
            Column("state", "partition", 20, flex=1, most=40),
        )
        note = order_note(options, PANEL, self.columns, order_name(Order.WORST_FIRST, worst))
        self.title: Line = title("REPLICAS", note, options.filter_of(Listed.PARTITIONS))

    def row(self, index: int, now_ms: int) -> Row:
        at, position = int(self._rows[index]), int(self._positions[index])
        view = self._view
        table, figures = view.snapshot.partitions, view.partitions
        sign = replica_words.sign(table, figures, at, position)
        in_isr = bool(figures.in_isr[at, position])
        is_leader = int(table.leader[at]) == self._broker
        end_ms = int(figures.replica_end_ms[at, position])
        old = end_ms != UNKNOWN and now_ms - end_ms > self._options.stale_ms
        text = _WORDS.get(sign) or ("leader" if is_leader else "in ISR" if in_isr else "not in sync")
        status = PartitionStatus(figures.status[at])
        role = Role.GOOD if status is PartitionStatus.OK else ROLES[figures.severity[at]]
        return Row(
            (
                line(str(table.topic[at])),
                number_figure(int(table.partition[at])),
                line(Span(f"{sign} {text}", replica_role(sign, in_isr))),
                leader_epoch(view, at),
                count_figure(int(figures.replica_end[at, position]), Role.DIM, old=old),
                # The leader cannot lag behind itself.
                EMPTY if is_leader else count_figure(int(figures.replica_lag[at, position]), old=old),
                figure(words.age(end_ms, now_ms) if old else "", age(end_ms, now_ms), role=Role.DIM),
                size_figure(self._size(at), Role.DIM),
                rate_figure(float(figures.in_rate[at]), Role.DIM),
                line(
                    Span(f"{STATUS_SIGNS[status]} ", role),
                    Span(verdicts.STATUSES[status], Role.DIM if role is Role.GOOD else role),
                ),
            ),
            fresh(int(figures.changed_ms[at]), now_ms),
        )

    def _size(self, at: int) -> int:
        """Return the size of the broker's replica in bytes, UNKNOWN if it is not known."""
        table = self._view.snapshot.replicas
        mine = (row for row in replica_rows(table.row, at) if int(table.broker[row]) == self._broker)
        return next((int(table.size_bytes[row]) for row in mine), UNKNOWN)
