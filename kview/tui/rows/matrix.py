"""Rows of brokers by partitions: a sign for each replica, and for many partitions the worst one's."""

from collections.abc import Hashable, Mapping, Sequence
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from kview.derive.align import first_that_holds, positions
from kview.derive.view import View
from kview.language import glyphs, words
from kview.model.events import Severity, severity_rank
from kview.model.snapshot import Longs
from kview.model.units import NO_BROKER, UNKNOWN
from kview.tui.options import Options, Sort
from kview.tui.rows.columns import GAP, Column
from kview.tui.rows.common import Keyed, broker_state, fresh, name_width, title
from kview.tui.rows.figures import STATE, Figure, count_figure, number_figure
from kview.tui.rows.placement import placed_rows
from kview.tui.rows.row import Row
from kview.tui.rows.sorting import codes
from kview.tui.rows.topics import ALL
from kview.tui.text import Line, Role, Span, content, line, middle, painted, width


class Kind(IntEnum):
    """What a cell shows. The first of several stands for all of them."""

    SILENT_IN_ISR = 0
    LEADERLESS = 1
    """A replica of a partition that has no leader."""
    SILENT = 2
    OUT_OF_SYNC = 3
    UNREACHED = 4
    ADDED = 5
    REMOVED = 6
    OTHER_LEADER = 7
    """A leader that is not the preferred one."""
    PREFERRED_LEADER = 8
    PREFERRED_FOLLOWER = 9
    FOLLOWER = 10
    NO_REPLICA = 11


_LOOKS: Mapping[Kind, tuple[str, Role]] = {
    Kind.SILENT_IN_ISR: (glyphs.DEAD, Role.RISK),
    Kind.LEADERLESS: (glyphs.DEAD, Role.RISK),
    Kind.SILENT: (glyphs.DEAD, Role.WARN),
    Kind.OUT_OF_SYNC: (glyphs.OUT_OF_SYNC, Role.WARN),
    Kind.UNREACHED: (words.UNSEEN, Role.WARN),
    Kind.ADDED: (glyphs.ADDED, Role.TEXT),
    Kind.REMOVED: (glyphs.REMOVED, Role.TEXT),
    Kind.OTHER_LEADER: (glyphs.LEADER, Role.BRIGHT),
    Kind.PREFERRED_LEADER: (glyphs.LEADER, Role.TEXT),
    Kind.PREFERRED_FOLLOWER: (glyphs.FOLLOWER, Role.PREFERRED),
    Kind.FOLLOWER: (glyphs.FOLLOWER, Role.DIM),
    Kind.NO_REPLICA: (glyphs.DOT, Role.RULE),
}

PANEL = "matrix"
CELLS = "cells"
"""The column of the partitions."""

WIDEST_CELL = 3
"""The most cells that a partition takes."""

LEAST_LABEL = 3
"""A topic's name above its partitions is left out if it has less room than this."""

STATE_CELLS = 17
"""The cells of what a broker is doing, in words. It is left out first."""

_BESIDE = 2 + 1 + 5 + 6 + 5 * GAP
"""The cells that everything but the partitions, the ids, the racks and the states takes."""

_STEPS = [unit * 10**power for power in range(7) for unit in (1, 2, 5)]
"""Every how many-th partition may have its number above it."""


def kinds(view: View, rows: Longs) -> Longs:
    """Return the `Kind` of each of these partitions' replicas, by row and position in the replica list."""
    table, figures = view.snapshot.partitions, view.partitions
    matrix = table.replicas[rows]
    leads = matrix == table.leader[rows][:, None]
    silent, member = figures.replica_silent[rows], figures.in_isr[rows]
    first = np.zeros(matrix.shape, np.bool_)
    first[:, :1] = True
    cases = {  # as `kview.language.replicas.sign` has it for one replica, if there is a leader
        Kind.NO_REPLICA: matrix == NO_BROKER,
        Kind.LEADERLESS: np.broadcast_to((table.leader[rows] == NO_BROKER)[:, None], matrix.shape),
        Kind.UNREACHED: figures.replica_unreached[rows],
        Kind.SILENT_IN_ISR: silent & (member | leads),
        Kind.SILENT: silent,
        Kind.OTHER_LEADER: leads & ~first,
        Kind.PREFERRED_LEADER: leads,
        Kind.ADDED: figures.being_added[rows],
        Kind.OUT_OF_SYNC: ~member,
        Kind.REMOVED: figures.being_removed[rows],
        Kind.PREFERRED_FOLLOWER: first,
    }
    return first_that_holds([*cases.values()], [*cases], Kind.FOLLOWER)


def _cells_each(number: int, room: int) -> int:
    """Return how wide each of the cells is. They are narrow before the words of the state go."""
    for cells in (room - STATE_CELLS - GAP, room):
        for each in range(WIDEST_CELL, 0, -1):
            if number * each <= cells:
                return each
    return 1


class MatrixRows(Keyed[int]):
    """The rows of brokers, with a cell for each partition of a topic, or for several of them. The key is the
    broker's id. `cells` is the width of the table.

    For the topic ALL, the partitions are those of all topics.
    """

    empty = "no broker is known"

    def __init__(self, view: View, options: Options, topic: str, cells: int) -> None:
        brokers, sort = view.snapshot.brokers, options.sort(PANEL)
        self._view, self._topic = view, topic
        self._rows = placed_rows(view, options, topic)
        self.panel, self.sorts = PANEL, ("rack", "id", "state", "leads", "copies")
        self.title: Line = title("")
        matrix = view.snapshot.partitions.replicas[self._rows]
        # A broker that died before kview came may be in replica lists only.
        unlisted = np.setdiff1d(matrix[matrix >= 0], brokers.id)
        ids = np.concatenate([brokers.id.astype(np.int64), unlisted.astype(np.int64)])
        self._ids, self._racks = ids, np.concatenate([brokers.rack, np.full(len(unlisted), "", object)])
        at = positions(ids, matrix)
        leads = matrix == view.snapshot.partitions.leader[self._rows][:, None]
        held, changed = at >= 0, view.partitions.changed_ms[self._rows]
        self._changed_ms = np.full(len(ids), UNKNOWN, np.int64)
        np.maximum.at(self._changed_ms, at[held], np.broadcast_to(changed[:, None], at.shape)[held])
        self._copies, self._leads = (
            np.bincount(at[mask], minlength=len(ids)) for mask in (held, held & leads)
        )
        self._severities = [*view.brokers.severity.tolist(), *[Severity.RISK] * len(unlisted)]
        self._at: list[int] = self._arranged(sort).tolist()
        super().__init__(ids[self._at].tolist())
        self.severities = np.array([self._severities[row] for row in self._at], object)
        racks = self._racks[self._at]
        by_rack = sort.column not in self.sorts[1:]
        self._begins_rack = np.ones(len(racks), np.bool_)
        self._begins_rack[1:] = (racks[1:] != racks[:-1]) | (not by_rack)
        self._is_tinted = (np.cumsum(self._begins_rack) % 2 == 0) & by_rack
        rack_width, id_width = name_width(racks.tolist(), 2, 12), max(2, len(str(ids.max(initial=0))))
        room = max(8, cells - _BESIDE - rack_width - id_width)
        shown = min(len(self._rows), room)
        self._each = _cells_each(shown, room)
        self._begins = np.arange(shown, dtype=np.int64) * len(self._rows) // max(1, shown)
        self._grid = self._filled(at, shown)
        self.columns: Sequence[Column] = (
            Column("rack", "", rack_width, name=True),
            Column("id", "", id_width, right=True),
            Column("sign", "", 1, exported=()),
            Column(CELLS, self._head(), max(1, shown * self._each), exported=()),
            Column("leads", "leads", 5, right=True),
            Column("copies", "copies", 6, right=True),
            Column("state", "", STATE_CELLS, flex=1, rank=1, exported=STATE),
        )

    def _arranged(self, sort: Sort) -> Longs:
        """Return the rows of brokers in the order that the user chose, by themselves by rack and id."""
        order = np.lexsort((self._ids, np.nan_to_num(codes(self._racks), nan=-1.0)))
        match sort.column:
            case "id":
                values = self._ids
            case "state":
                values = np.array([severity_rank(each) for each in self._severities], np.int64)
            case "leads":
                values = self._leads
            case "copies":
                values = self._copies
            case _:
                return order[::-1] if sort.descending else order
        return order[np.argsort(values[order] * (-1 if sort.descending else 1), kind="stable")]

    def _filled(self, at: Longs, shown: int) -> NDArray[np.int8]:
        """Return the worst kind of each broker's replicas among the partitions of each cell. `at` has the
        broker of each replica."""
        found = kinds(self._view, self._rows)
        cell = np.searchsorted(self._begins, np.arange(len(self._rows)), side="right") - 1
        cells = np.broadcast_to(cell[:, None], at.shape)
        grid = np.full((len(self._ids), shown), Kind.NO_REPLICA, np.int8)
        for kind in sorted(Kind, reverse=True)[1:]:  # the worst one last
            mask = (at >= 0) & (found == kind)
            grid[at[mask], cells[mask]] = kind
        return grid

    def _head(self) -> str:
        """Return the numbers of partitions above their cells, or the names of topics, as far as they fit."""
        table = self._view.snapshot.partitions
        marks: list[tuple[int, str]] = []
        if self._topic == ALL:
            names = table.topic[self._rows[self._begins]].tolist() if len(self._begins) else []
            marks = [(i, name) for i, name in enumerate(names) if not i or name != names[i - 1]]
        else:
            numbers = [f"{number:,}" for number in table.partition[self._rows[self._begins]].tolist()]
            widest = max(map(len, numbers), default=0)
            step = next(step for step in _STEPS if step * self._each > widest)
            marks = [(i, numbers[i]) for i in range(0, len(numbers), step)]
        text = ""
        for place, (i, label) in enumerate(marks):
            end = marks[place + 1][0] if place + 1 < len(marks) else len(self._begins)
            room = (end - i) * self._each - (place + 1 < len(marks))
            least = LEAST_LABEL if self._topic == ALL else width(label)
            said = label if width(label) <= room else middle(label, room) if room >= least else ""
            text += " " * (i * self._each - width(text)) + said
        return text

    def row(self, index: int, now_ms: int) -> Row:
        at, view = self._at[index], self._view
        broker, rack = self.keys[index], str(self._racks[at]) or words.NONE
        if at < len(view.snapshot.brokers):
            state = broker_state(view, at, now_ms)
        else:
            state = Figure(line(Span(f"{glyphs.DEAD} not listed", Role.RISK)), "not listed", None, "")
        sign, said = Span(state[0].text[:1], state[0].role), (Span(content(state)[2:], state[-1].role),)
        cells = (
            Figure(line(Span(rack, Role.HEAD)) if self._begins_rack[index] else (), rack),
            number_figure(broker),
            (sign,),
            self._cells(at),
            count_figure(int(self._leads[at])),
            count_figure(int(self._copies[at]), Role.DIM),
            Figure(said, *state.values),
        )
        return Row(cells, fresh(int(self._changed_ms[at]), now_ms), bool(self._is_tinted[index]))

    def _cells(self, at: int) -> Line:
        shown = [_LOOKS[kind] for kind in self._grid[at].tolist()]
        signs = [sign.ljust(self._each) for sign, _ in shown]
        return painted(signs, [Span("", role) for _, role in shown])

    def partition_at(self, broker: Hashable, offset: int) -> tuple[str, int] | None:
        """Return the partition, as (topic, partition), whose replica is shown in a broker's row so many cells
        from the left: the worst one if several share the cell. None if the broker has none there."""
        cell = offset // self._each
        if not 0 <= cell < len(self._begins):
            return None
        table, end = self._view.snapshot.partitions, [*self._begins[1:], len(self._rows)][cell]
        rows = self._rows[self._begins[cell] : end]
        own = table.replicas[rows] == broker
        rows, shown = rows[own.any(1)], kinds(self._view, rows)[own]
        if not len(rows):
            return None
        row = int(rows[shown.argmin()])
        return str(table.topic[row]), int(table.partition[row])
