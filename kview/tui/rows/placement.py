"""Rows of the placement table: brokers by position in the replica lists, with the partitions in the cells."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from kview.derive.view import PartitionStatus, RackSafety, View
from kview.language import glyphs, words
from kview.language import replicas as replica_words
from kview.language.verdicts import counted
from kview.model.units import NO_BROKER, UNKNOWN
from kview.tui.options import Options, Sort
from kview.tui.rows.columns import Column
from kview.tui.rows.common import Keyed, broker_state, fresh, name_width, rank, replica_role, title
from kview.tui.rows.row import Row
from kview.tui.rows.topics import ALL
from kview.tui.text import EMPTY, Line, Role, Span, line

PANEL = "grid"
ORDINALS = ("PREFERRED LEADER", "2ND REPLICA", "3RD REPLICA", "4TH REPLICA")
PLACE_CELLS = len(ORDINALS[0])
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
        self._places = min(MAX_PLACES, int(used.sum()))
        self.title: Line = title("")
        self._numbers: dict[tuple[int, int], int] = {}
        """The number of replicas by broker and position."""
        self._cells = self._counted() if topic == ALL else self._placed()
        if topic != ALL:
            self._numbers = {place: len(spans) for place, spans in self._cells.items()}
        self._changed = self._changes()
        self.panel = PANEL
        self.sorts = ("rack", "id", "state", *(f"place{place}" for place in range(self._places)))
        self._arrange(options.sort(PANEL))
        self.severities = view.brokers.severity[[self._at[broker] for broker in self.keys]]
        self.columns: Sequence[Column] = (
            Column("rack", "", name_width(racks, 2, 12), name=True),
            Column("id", "", max(2, len(str(max(ids, default=0)))), right=True),
            Column("state", "", 17, rank=1),
            *(
                Column(
                    f"place{place}", place_title(place), PLACE_CELLS, flex=1, most=60, rank=2 * (place > 1)
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
                    return rank(self._view.brokers.severity[at]), ""
                case column:
                    return self._numbers.get((broker, int(column.removeprefix("place"))), 0), ""

        self.keys = sorted(keys, key=value, reverse=sort.descending)

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
        for row in self._rows.tolist():
            leader = int(table.leader[row])
            number = f"P{int(table.partition[row])}"
            for position, broker in enumerate(table.replicas[row].tolist()):
                if broker == NO_BROKER:
                    continue
                place = min(position, self._places - 1)
                sign = replica_words.sign(table, figures, row, position)
                member = bool(figures.in_isr[row, position])
                cells[broker, place].append(_marked(number, position, sign, broker == leader, member))
        return cells

    def _counted(self) -> dict[tuple[int, int], list[Span]]:
        table = self._view.snapshot.partitions
        cells: dict[tuple[int, int], list[Span]] = {}
        leaders = table.leader[self._rows]
        for place in range(self._places):
            brokers, counts = np.unique(table.replicas[self._rows, place], return_counts=True)
            replicas = dict(zip(brokers.tolist(), counts.tolist(), strict=True))
            for broker in self.keys:
                self._numbers[broker, place] = replicas.get(broker, 0)
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
            broker_state(self._view, at, now_ms),
            *(_cell(self._cells.get((broker, place), [])) for place in range(self._places)),
        )
        return Row(cells, fresh(self._changed.get(broker, UNKNOWN), now_ms))

    def headline(self) -> Line:
        """Return the topic's size and settings, and whether its placement is good."""
        view = self._view
        if self._topic == ALL:
            count = words.at_least(f"{len(self._rows):,}", view.headline.topics_are_bound)
            return line(
                Span("all topics ", Role.BRIGHT),
                Span(f"{count} partitions, replicas per broker and position", Role.DIM),
            )
        found = np.flatnonzero(view.topics.topic == self._topic)
        if not len(found):
            return line(Span(self._topic, Role.BRIGHT), Span(" is not listed", Role.WARN))
        at, figures = int(found[0]), view.topics
        away = int(figures.not_preferred[at])
        partitions = words.plural(int(figures.partitions[at]), "partition")
        shape = f" {partitions} × {words.plural(int(figures.replication[at]), 'replica')}"
        spans = [
            Span(self._topic, Role.BRIGHT),
            Span(shape, Role.DIM),
            Span(f" {glyphs.DOT} min.insync.replicas {words.setting(int(figures.min_isr[at]))}", Role.DIM),
            *_rack_safe(str(figures.rack_safe[at]), int(figures.not_rack_safe[at])),
        ]
        if away:
            spans.append(Span(f" {glyphs.DOT} {counted(PartitionStatus.NOT_PREFERRED, away)}", Role.WARN))
        return tuple(spans)


def _rack_safe(answer: str, not_safe: int) -> Line:
    """Return whether the topic survives the loss of any one rack, `–` if that cannot be."""
    match answer:
        case RackSafety.YES:
            return line(Span("   rack-safe ", Role.DIM), Span(glyphs.OK, Role.GOOD))
        case RackSafety.NO:
            return line(
                Span(f"   not rack-safe {glyphs.DEAD} {words.plural(not_safe, 'partition')}", Role.WARN)
            )
        case _:
            return line(Span(f"   rack-safe {words.NONE}", Role.DIM))


def _marked(number: str, position: int, sign: str, leads: bool, member: bool) -> Span:
    """Return a partition in a cell: `P3` if all is well.

    `(P3)` is a preferred leader that does not lead, and `P3▲` is another replica that leads. Other signs are
    those of the replica.
    """
    named = f"({number})" if position == 0 and not leads else number
    if sign not in (glyphs.LEADER, glyphs.FOLLOWER):
        return Span(f"{named}{sign}", replica_role(sign, member or leads))
    if leads and position:
        return Span(f"{named}{glyphs.UP}", Role.BRIGHT)
    return Span(named, Role.TEXT if leads else Role.DIM)


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
