"""Rows of brokers by position in the replica lists, with the partitions in the cells, and the heading above
them."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kview.derive.lookup import topic_partitions
from kview.derive.view import PartitionStatus, RackSafety, View
from kview.language import glyphs, reassignments, words
from kview.language import replicas as replica_words
from kview.language.verdicts import counted
from kview.model.events import severity_rank
from kview.model.units import NO_BROKER, UNKNOWN
from kview.tui.options import Options, Sort
from kview.tui.rows.columns import Column
from kview.tui.rows.common import Keyed, broker_state, fresh, name_width, replica_role, title
from kview.tui.rows.figures import STATE, Figure, number_figure
from kview.tui.rows.row import Row
from kview.tui.rows.topics import ALL
from kview.tui.text import EMPTY, Line, Role, Span, content, joined, line, line_width, middle

PANEL = "grid"
ORDINALS = ("1ST (preferred)", "2ND", "3RD", "4TH")
PLACE_CELLS = 11
MAX_PLACES = len(ORDINALS)
"""The number of columns of positions in the table. Higher replication factors are rare; their further
followers are shown in the last column."""

MAX_NAMED = 12
"""The most partitions that a cell names. If there are more, it counts them, and names those that are not as
usual, or counts these too if there are as many of them."""


def place_column(place: int) -> str:
    """Return the key of the column of a position in the replica lists, from 0."""
    return f"place{min(place, MAX_PLACES - 1)}"


def is_place(column: str) -> bool:
    """Return whether a column is that of a position."""
    return column.startswith("place")


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


def placed_rows(view: View, options: Options, topic: str) -> NDArray[np.int64]:
    """Return the rows of a topic's partitions, for ALL those of all topics."""
    table = view.snapshot.partitions
    if topic != ALL:
        return topic_partitions(view.topics, topic)
    rows = np.arange(len(table)) if options.internal else np.flatnonzero(~table.internal)
    return rows.astype(np.int64)


class PlaceRows(Keyed[int]):
    """The rows of brokers, in the order in which replicas are dealt out. The key is the broker's id.

    For the topic ALL, cells are counts of replicas instead of partitions. A broker's cells are made when
    its row is drawn.
    """

    empty = "no broker is known"

    def __init__(self, view: View, options: Options, topic: str) -> None:
        table = view.snapshot.brokers
        ids, racks = [int(b) for b in table.id], [str(rack) for rack in table.rack]
        super().__init__(alternating(ids, racks))
        self._view = view
        self._at = {broker: row for row, broker in enumerate(ids)}
        self._topic = topic
        self._rows = placed_rows(view, options, topic)
        matrix = view.snapshot.partitions.replicas[self._rows]
        used = (matrix != NO_BROKER).any(0)
        self._places = min(MAX_PLACES, int(used.sum()))
        self.title: Line = title("")
        self._matrix = matrix
        self._numbers = {
            (broker, place): number
            for place in range(self._places)
            for broker, number in _counts(matrix[:, place]).items()
        }
        """The number of replicas by broker and position."""
        self._counts = self._counted() if topic == ALL else {}
        self.panel = PANEL
        self.sorts = ("rack", "id", "state", *(f"place{place}" for place in range(self._places)))
        self._arrange(options.sort(PANEL))
        self.severities = view.brokers.severity[[self._at[broker] for broker in self.keys]]
        self.columns: Sequence[Column] = (
            Column("rack", "", name_width(racks, 2, 12), name=True),
            Column("id", "", max(2, len(str(max(ids, default=0)))), right=True),
            Column("state", "", 17, rank=2, exported=STATE),
            *(
                Column(
                    f"place{place}",
                    ORDINALS[place],
                    max(PLACE_CELLS, len(ORDINALS[place])),
                    flex=1,
                    most=60,
                    rank=int(place > 1),
                    exported=(ORDINALS[place], f"{ORDINALS[place]} replicas", f"{ORDINALS[place]} leads"),
                )
                for place in range(self._places)
            ),
        )

    def _arrange(self, sort: Sort) -> None:
        """Put the brokers in the order that the user chose. Those of equal value stay in placement order."""
        keys, brokers = list(self.keys), self._view.snapshot.brokers
        if sort.column not in self.sorts:
            self.keys = keys[::-1] if sort.descending else keys
            return

        def value(broker: int) -> tuple[float, str]:
            at = self._at[broker]
            match sort.column:
                case "rack":
                    return 0, str(brokers.rack[at])
                case "id":
                    return broker, ""
                case "state":
                    return severity_rank(self._view.brokers.severity[at]), ""
                case column:
                    return self._numbers.get((broker, int(column.removeprefix("place"))), 0), ""

        self.keys = sorted(keys, key=value, reverse=sort.descending)

    def _placed(self, broker: int) -> list[Line]:
        """Return the broker's partitions at each position of the replica lists."""
        at, positions = np.nonzero(self._matrix == broker)
        rows, places = self._rows[at], np.minimum(positions, self._places - 1)
        unusual = self._unusual(broker, rows, positions)
        leads = self._view.snapshot.partitions.leader[rows] == broker
        cells: list[Line] = []
        for place in range(self._places):
            here = np.flatnonzero(places == place)
            named, counts = here, EMPTY
            led = int(leads[here].sum())
            if len(here) > MAX_NAMED:
                named = here[unusual[here]]
                text = words.count(len(here)) + (f", leads {led:,}" if led else "")
                counts = line(Span(text, Role.TEXT if led else Role.DIM))
            if len(named) > MAX_NAMED:
                spans = self._unusual_counts(rows[named], positions[named])
            else:
                spans = [self._marked(broker, int(rows[each]), int(positions[each])) for each in named]
            names = content(_spaced(spans)) if len(named) <= MAX_NAMED else ""
            cells.append(Figure(_spaced([*counts, *spans]), names, len(here), led))
        return cells

    def _unusual_counts(self, rows: NDArray[np.int64], positions: NDArray[np.int64]) -> list[Span]:
        """Return how many of these replicas are silent, added, removed and otherwise unusual: `333✕ 2⊕`."""
        figures, at = self._view.partitions, (rows, positions)
        rest = np.ones(len(rows), np.bool_)
        counts = []
        for sign, role, mask in (
            (glyphs.DEAD, Role.RISK, figures.replica_silent[at]),
            (glyphs.ADDED, Role.TEXT, figures.being_added[at]),
            (glyphs.REMOVED, Role.TEXT, figures.being_removed[at] & figures.in_isr[at]),
            (glyphs.OUT_OF_SYNC, Role.WARN, rest),
        ):
            counts += [Span(f"{int((mask & rest).sum()):,}{sign}", role)] if (mask & rest).any() else []
            rest = rest & ~mask
        return counts

    def _unusual(
        self, broker: int, rows: NDArray[np.int64], positions: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return which replicas of a broker are not as they should be, or lead without being preferred."""
        figures, leader = self._view.partitions, self._view.snapshot.partitions.leader[rows]
        unusual: NDArray[np.bool_]
        unusual = figures.replica_silent[rows, positions] | figures.replica_unreached[rows, positions]
        unusual |= ~figures.in_isr[rows, positions]
        unusual |= figures.being_added[rows, positions] | figures.being_removed[rows, positions]
        unusual |= (positions == 0) != (leader == broker)
        return unusual

    def _marked(self, broker: int, row: int, position: int) -> Span:
        """Return a partition in a cell: `P3●` if the broker leads it, `P3` if it follows.

        Other signs are those of the replica. A leader that is not the preferred one is brighter.
        """
        table, figures = self._view.snapshot.partitions, self._view.partitions
        number, leads = f"P{int(table.partition[row])}", broker == int(table.leader[row])
        sign = replica_words.sign(table, figures, row, position)
        if sign not in (glyphs.LEADER, glyphs.FOLLOWER):
            member = bool(figures.in_isr[row, position])
            return Span(f"{number}{sign}", replica_role(sign, member or leads))
        if leads:
            return Span(f"{number}{glyphs.LEADER}", Role.BRIGHT if position else Role.TEXT)
        return Span(number, Role.DIM)

    def _counted(self) -> dict[tuple[int, int], Figure]:
        """Return the number of replicas of each broker at each position, and of those that lead."""
        leaders = _counts(self._view.snapshot.partitions.leader[self._rows])
        cells: dict[tuple[int, int], Figure] = {}
        for place in range(self._places):
            for broker in self.keys:
                number = self._numbers.get((broker, place), 0)
                text = words.count(number)
                if place == 0 and leaders.get(broker, 0) != number:
                    text += f", leads {leaders.get(broker, 0):,}"
                cells[broker, place] = Figure(
                    line(text), "", number, leaders.get(broker, 0) if place == 0 else None
                )
        return cells

    def row(self, index: int, now_ms: int) -> Row:
        broker = self.keys[index]
        at, view = self._at[broker], self._view
        table = view.snapshot.brokers
        if self._counts:
            places: list[Line] = [self._counts[broker, place] for place in range(self._places)]
        else:
            places = self._placed(broker)
        cells = (
            line(Span(str(table.rack[at]) or words.NONE, Role.HEAD)),
            number_figure(broker),
            broker_state(view, at, now_ms),
            *places,
        )
        changed = view.partitions.changed_ms[self._rows[(self._matrix == broker).any(axis=1)]]
        return Row(cells, fresh(int(changed.max(initial=UNKNOWN)), now_ms))


def heading(view: View, options: Options, topic: str, cells: int) -> Line:
    """Return a topic's size, whether its placement is good, and its settings, as far as they fit into
    `cells`."""
    listed = placed_rows(view, options, topic)
    if topic == ALL:
        count = words.at_least(f"{len(listed):,}", view.headline.topics_are_bound)
        return line(Span("all topics ", Role.BRIGHT), Span(f"{count} partitions", Role.DIM))
    rows = np.flatnonzero(view.topics.topic == topic)
    if not len(rows):
        return line(Span(topic, Role.BRIGHT), Span(" is not listed", Role.WARN))
    at, figures = int(rows[0]), view.topics
    away = int(figures.not_preferred[at])
    partitions = words.plural(int(figures.partitions[at]), "partition")
    shape = f" {partitions} × {words.plural(int(figures.replication[at]), 'replica')}"
    safe = _rack_safe(str(figures.rack_safe[at]), int(figures.not_rack_safe[at]))
    least = words.setting(int(figures.min_isr[at]))
    room = max(8, cells - len(shape) - line_width(safe) - 3)
    parts = [line(Span(middle(topic, room), Role.BRIGHT), Span(shape, Role.DIM)), safe]
    if away:
        parts.append(line(Span(counted(PartitionStatus.NOT_PREFERRED, away), Role.WARN)))
    masks = view.partitions.being_added, view.partitions.being_removed
    added, removed = (int(mask[listed].sum()) for mask in masks)
    if said := reassignments.counted(added, removed):
        parts.append(line(Span(said, Role.TEXT)))
    parts.append(line(Span(f"min.insync.replicas {least}", Role.DIM)))
    return joined(parts, Span(f" {glyphs.DOT} ", Role.DIM), cells)


def _rack_safe(answer: str, not_safe: int) -> Line:
    """Return whether the topic survives the loss of any one rack, `–` if that cannot be."""
    match answer:
        case RackSafety.YES:
            return line(Span("rack-safe ", Role.DIM), Span(glyphs.OK, Role.GOOD))
        case RackSafety.NO:
            return line(Span(f"not rack-safe {glyphs.DEAD} {words.plural(not_safe, 'partition')}", Role.WARN))
        case _:
            return line(Span(f"rack-safe {words.NONE}", Role.DIM))


def _counts(brokers: NDArray[np.integer[Any]]) -> dict[int, int]:
    """Return how often each broker occurs."""
    ids, counts = np.unique(brokers, return_counts=True)
    return dict(zip(ids.tolist(), counts.tolist(), strict=True))


def _spaced(spans: Sequence[Span]) -> Line:
    """Return partitions side by side."""
    joined: list[Span] = []
    for span in spans:
        joined += [Span("  "), span] if joined else [span]
    return tuple(joined)
