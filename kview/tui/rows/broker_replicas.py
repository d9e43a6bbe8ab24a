"""Rows of a broker's replicas, those in trouble first."""

from collections.abc import Hashable, Sequence

from kview.derive.broker_replicas import broker_replicas
from kview.derive.lookup import index_of, partition_row, replica_rows
from kview.derive.view import PartitionStatus, View
from kview.language import glyphs, verdicts, words
from kview.language import replicas as replica_words
from kview.language.lists import Order, order_name
from kview.model.units import UNKNOWN
from kview.tui.options import Options
from kview.tui.rows.columns import Column
from kview.tui.rows.common import (
    ROLES,
    STATUS_SIGNS,
    count_width,
    figure,
    fresh,
    leader_epoch,
    name_width,
    rate_width,
    replica_role,
    title,
    troubled,
)
from kview.tui.rows.partitions import ordered_rows
from kview.tui.rows.row import Row
from kview.tui.text import Line, Role, Span, line

PANEL = "replicas"
ORDERS = (Order.WORST_FIRST, Order.BY_NAME, Order.BY_RECORDS_IN)
_WORDS = {
    glyphs.LEADER: "leader",
    glyphs.FOLLOWER: "in sync",
    glyphs.OUT_OF_SYNC: "not in sync",
}


class BrokerReplicaRows:
    """The rows of one broker's replicas. The key is (topic, partition)."""

    def __init__(self, view: View, broker: int, options: Options) -> None:
        table, figures = view.snapshot.partitions, view.partitions
        order = options.order(PANEL, ORDERS)
        found = broker_replicas(view, broker, ordered_rows(view, options, order))
        self._rows, self._positions = found.rows, found.positions
        self._view, self._broker, self._options = view, broker, options
        self.troubled = troubled(figures.severity[self._rows]) if order is Order.WORST_FIRST else 0
        self.title: Line = title(
            "REPLICAS", order_name(order, self.troubled), f"/{options.filter}" if options.filter else ""
        )
        self.empty = (
            ""
            if len(self._rows)
            else f"no topic matches /{options.filter}"
            if options.filter
            else "this broker has no replica"
        )
        ends = figures.replica_end[self._rows, self._positions]
        lags = figures.replica_lag[self._rows, self._positions]
        names = set(table.topic[self._rows[:1_000]].tolist())
        most = int(table.partition[self._rows].max(initial=0))
        self.columns: Sequence[Column] = (
            Column("topic", "topic", name_width(names, 5, 24), flex=1, most=50, name=True),
            Column("p", "p", max(2, len(str(most))), right=True),
            Column("role", "role", 13),
            Column("leader", f"leader{glyphs.DOT}ep", 9, rank=1),
            Column("end", "log end", count_width(ends, 9), right=True, rank=2),
            Column("lag", "lag", count_width(lags, 6), right=True),
            Column("age", "read", 6, right=True, rank=4),
            Column("size", "size", 7, right=True, rank=3),
            Column("in", "in rec/s", rate_width(figures.in_rate[self._rows], 8), right=True, rank=5),
            Column("state", "partition", 20, flex=1, most=40),
        )

    @property
    def keys(self) -> list[tuple[str, int]]:
        """The keys of all rows, in order."""
        return [self.key(index) for index in range(len(self))]

    def __len__(self) -> int:
        return len(self._rows)

    def key(self, index: int) -> tuple[str, int]:
        """Return the topic and the number of the partition in a row."""
        table, at = self._view.snapshot.partitions, self._rows[index]
        return str(table.topic[at]), int(table.partition[at])

    def find(self, key: Hashable) -> int | None:
        """Return the index of a partition's row, or None if it is not listed."""
        at = partition_row(self._view, *key) if isinstance(key, tuple) else None
        return None if at is None else index_of(self._rows, at)

    def row(self, index: int, now_ms: int) -> Row:
        """Return a replica's cells."""
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
                figure(str(int(table.partition[at]))),
                line(Span(f"{sign} {text}", replica_role(sign, in_isr))),
                leader_epoch(view, at),
                figure(words.count(int(figures.replica_end[at, position])), Role.DIM, dim=old),
                figure(self._lag(at, position, is_leader), dim=old),
                figure(words.age(end_ms, now_ms) if old else "", Role.DIM),
                figure(words.size(self._size(at)), Role.DIM),
                figure(words.rate(float(figures.in_rate[at])), Role.DIM),
                line(
                    Span(f"{STATUS_SIGNS[status]} ", role),
                    Span(verdicts.STATUSES[status], Role.DIM if role is Role.GOOD else role),
                ),
            ),
            fresh(int(figures.changed_ms[at]), now_ms),
        )

    def _lag(self, at: int, position: int, is_leader: bool) -> str:
        """Return the replica's lag, '' for the leader, which cannot lag behind itself."""
        return "" if is_leader else words.count(int(self._view.partitions.replica_lag[at, position]))

    def _size(self, at: int) -> int:
        """Return the size of the broker's replica in bytes, UNKNOWN if it is not known."""
        table = self._view.snapshot.replicas
        mine = (row for row in replica_rows(table.row, at) if int(table.broker[row]) == self._broker)
        return next((int(table.size_bytes[row]) for row in mine), UNKNOWN)
