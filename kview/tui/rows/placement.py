"""Rows of the placement table: brokers by position in the replica lists, with the partitions in the cells."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from kview.derive.view import View
from kview.language import glyphs, words
from kview.model.states import BrokerState
from kview.model.units import NO_BROKER, UNKNOWN
from kview.tui.options import Options
from kview.tui.rows.columns import Column
from kview.tui.rows.common import ROLES, Keyed, fresh, name_width, title
from kview.tui.rows.row import Row
from kview.tui.rows.topics import ALL
from kview.tui.text import EMPTY, Line, Role, Span, line

ORDINALS = ("LEADERS", "1ST FOLLOWERS", "2ND FOLLOWERS", "3RD FOLLOWERS")
MAX_PLACES = 4
"""The number of columns of positions in the table. Higher replication factors are rare; their further
followers are shown in the last column."""

MAX_CELLS = 200
"""The most partitions in a cell. More would not fit into any line."""


def place_title(place: int) -> str:
    """Return the column title for a position in the replica list."""
    return ORDINALS[place]


def alternating(ids: Sequence[int], racks: Sequence[str]) -> list[int]:
    """Return the brokers in placement order: round-robin over the racks, and by id within each rack.

    With two racks of three brokers, that is 0, 3, 1, 4, 2, 5.
    """
    by_rack: dict[str, list[int]] = defaultdict(list)
    for broker, rack in sorted(zip(ids, racks, strict=True)):
        by_rack[rack].append(broker)
    queues = [by_rack[rack] for rack in sorted(by_rack)]
    longest = max((len(queue) for queue in queues), default=0)
    return [queue[turn] for turn in range(longest) for queue in queues if turn < len(queue)]


class PlacementRows(Keyed[int]):
    """The rows of the placement table. The key is the broker's id.

    For the topic ALL, cells are counts of replicas instead of partitions.
    """

    empty = "no broker is known"

    def __init__(self, view: View, options: Options, topic: str) -> None:
        table = view.snapshot.brokers
        ids, racks = [int(b) for b in table.id], [str(rack) for rack in table.rack]
        together = [b for _, b in sorted(zip(racks, ids, strict=True))]
        super().__init__(together if options.racks_together else alternating(ids, racks))
        self._view = view
        self._at = {broker: row for row, broker in enumerate(ids)}
        self._topic = topic
        self._rows = self._partition_rows(options)
        matrix = view.snapshot.partitions.replicas[self._rows]
        used = (matrix != NO_BROKER).any(0)
        self._places = min(MAX_PLACES, int(used.sum())) or 1
        self.title: Line = title("")
        self._cells = self._counted() if topic == ALL else self._placed()
        self._changed = self._changes()
        self.columns: Sequence[Column] = (
            Column("rack", "", name_width(racks, 2, 12), name=True),
            Column("id", "", max(2, len(str(max(ids, default=0)))), right=True),
            Column("state", "", 17, rank=1),
            *(
                Column(f"place{place}", place_title(place), 14, flex=1, most=60, rank=0 if place < 2 else 2)
                for place in range(self._places)
            ),
        )

    def _partition_rows(self, options: Options) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        table = self._view.snapshot.partitions
        if self._topic != ALL:
            return np.flatnonzero(table.topic == self._topic).astype(np.int64)
        rows = np.arange(len(table)) if options.internal else np.flatnonzero(~table.internal)
        return rows.astype(np.int64)

    def _placed(self) -> dict[tuple[int, int], list[Span]]:
        """Return the partitions in each cell, by broker and position."""
        table, figures = self._view.snapshot.partitions, self._view.partitions
        cells: dict[tuple[int, int], list[Span]] = defaultdict(list)
        for row in self._rows:
            leader = int(table.leader[row])
            number = f"P{int(table.partition[row])}"
            for position, broker in enumerate(table.replicas[row].tolist()):
                if broker == NO_BROKER:
                    continue
                place = min(position, self._places - 1)
                silent, member = (
                    bool(figures.replica_silent[row, position]),
                    bool(figures.in_isr[row, position]),
                )
                cells[broker, place].append(_marked(number, position, broker == leader, silent, member))
        return cells

    def _counted(self) -> dict[tuple[int, int], list[Span]]:
        table = self._view.snapshot.partitions
        cells: dict[tuple[int, int], list[Span]] = {}
        leaders = table.leader[self._rows]
        for place in range(self._places):
            brokers, counts = np.unique(table.replicas[self._rows, place], return_counts=True)
            replicas = dict(zip(brokers.tolist(), counts.tolist(), strict=True))
            for broker in self.keys:
                text = words.count(replicas.get(broker, 0))
                if place == 0:
                    leads = int((leaders == broker).sum())
                    text += "" if leads == replicas.get(broker, 0) else f" {glyphs.DOT} leads {leads:,}"
                cells[broker, place] = [Span(text)]
        return cells

    def _changes(self) -> dict[int, int]:
        """Return when a partition of each broker last changed its leader, epoch or ISR, epoch ms."""
        changed: dict[int, int] = {}
        table, figures = self._view.snapshot.partitions, self._view.partitions
        for row in self._rows[figures.changed_ms[self._rows] != UNKNOWN]:
            for broker in table.replicas[row].tolist():
                changed[broker] = max(changed.get(broker, UNKNOWN), int(figures.changed_ms[row]))
        return changed

    def row(self, index: int, now_ms: int) -> Row:
        """Return a broker's cells."""
        broker = self.keys[index]
        at = self._at[broker]
        table = self._view.snapshot.brokers
        cells = (
            line(Span(str(table.rack[at]) or words.NONE, Role.HEAD)),
            line(str(broker)),
            self._state(at, now_ms),
            *(_cell(self._cells.get((broker, place), [])) for place in range(self._places)),
        )
        return Row(cells, fresh(self._changed.get(broker, UNKNOWN), now_ms))

    def _state(self, at: int, now_ms: int) -> Line:
        table = self._view.snapshot.brokers
        state, role = str(table.state[at]), ROLES[self._view.brokers.severity[at]]
        if state == BrokerState.UP:
            return line(Span(glyphs.OK, Role.GOOD))
        return line(Span(f"{glyphs.DEAD} {state} {words.age(int(table.since_ms[at]), now_ms)}", role))

    def headline(self) -> Line:
        """Return the topic's size and settings, and whether its placement is good."""
        view = self._view
        if self._topic == ALL:
            return line(
                Span("all topics ", Role.BRIGHT),
                Span(f"{len(self._rows):,} partitions, replicas counted by position", Role.DIM),
            )
        found = np.flatnonzero(view.topics.topic == self._topic)
        if not len(found):
            return line(Span(self._topic, Role.BRIGHT), Span(" is not listed", Role.WARN))
        at, figures = int(found[0]), view.topics
        safe = bool(figures.rack_safe[at])
        away = int(figures.not_preferred[at])
        partitions = words.plural(int(figures.partitions[at]), "partition")
        shape = f" {partitions} × {words.plural(int(figures.replication[at]), 'replica')}"
        spans = [
            Span(self._topic, Role.BRIGHT),
            Span(shape, Role.DIM),
            Span(f" {glyphs.DOT} min.insync.replicas {int(figures.min_isr[at])}", Role.DIM),
            Span("   rack-safe " if safe else "   not rack-safe ", Role.DIM if safe else Role.WARN),
            Span(glyphs.OK if safe else glyphs.UP, Role.GOOD if safe else Role.WARN),
        ]
        if away:
            spans.append(Span(f" {glyphs.DOT} {away:,} not led by their preferred leaders", Role.WARN))
        return tuple(spans)


def _marked(number: str, position: int, leads: bool, silent: bool, member: bool) -> Span:
    """Return a partition in a cell: `P3` if all is well.

    `(P3)` is a preferred leader that does not lead, and `P3▲` is another replica that leads.
    """
    if silent:
        text = f"({number}){glyphs.DEAD}" if position == 0 and not leads else f"{number}{glyphs.DEAD}"
        return Span(text, Role.RISK if member or leads else Role.WARN)
    if not member:
        text = (
            f"({number}){glyphs.OUT_OF_SYNC}"
            if position == 0 and not leads
            else f"{number}{glyphs.OUT_OF_SYNC}"
        )
        return Span(text, Role.WARN)
    if leads:
        return Span(
            number if position == 0 else f"{number}{glyphs.UP}", Role.TEXT if position == 0 else Role.BRIGHT
        )
    return Span(f"({number})" if position == 0 else number, Role.DIM)


def _cell(spans: list[Span]) -> Line:
    """Return partitions side by side. If they are too many for any cell, those with a problem come first."""
    if not spans:
        return EMPTY
    if len(spans) > MAX_CELLS:
        spans = sorted(spans, key=lambda span: span.role not in (Role.RISK, Role.WARN))[:MAX_CELLS]
    joined: list[Span] = []
    for span in spans:
        joined += [Span("  "), span] if joined else [span]
    return tuple(joined)
