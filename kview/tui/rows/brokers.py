"""Rows of the BROKERS panel, sorted by rack. Silent brokers stay in their usual place."""

from collections.abc import Sequence

import numpy as np

from kview.derive.brokers import silence, still_heard
from kview.derive.view import View
from kview.language import failures, glyphs, words
from kview.model.address import Address
from kview.model.states import BrokerState
from kview.model.units import UNKNOWN
from kview.tui.options import Options
from kview.tui.plot import sparkline
from kview.tui.rows.columns import Column
from kview.tui.rows.common import ROLES, Keyed, figure, fresh, name_width, rank, rate_width, title
from kview.tui.rows.row import Row
from kview.tui.text import Line, Role, Span, line

PANEL = "brokers"
ORDERS = ("", "worst first", "by records in")
SPARK_CELLS = 20


def _order(view: View, options: Options) -> list[int]:
    table, figures = view.snapshot.brokers, view.brokers
    rows = list(range(len(table)))
    by_rack = sorted(rows, key=lambda row: (table.rack[row], int(table.id[row])))
    match ORDERS[options.sort(PANEL, len(ORDERS))]:
        case "worst first":
            return sorted(by_rack, key=lambda row: rank(figures.severity[row]))
        case "by records in":
            return sorted(by_rack, key=lambda row: -float(np.nan_to_num(figures.in_rate[row])))
        case _:
            return by_rack


class BrokerRows(Keyed[int]):
    """The rows of brokers. The key is the broker's id."""

    empty = "no broker is known"

    def __init__(self, view: View, options: Options) -> None:
        self._order = _order(view, options)
        super().__init__([int(view.snapshot.brokers.id[row]) for row in self._order])
        self._view = view
        self._heard = still_heard(view.snapshot, silence(view.snapshot.brokers))
        self._options = options
        self.title: Line = title("BROKERS", ORDERS[options.sort(PANEL, len(ORDERS))])
        racks = list(view.snapshot.brokers.rack)
        self._grouped = not options.sort(PANEL, len(ORDERS)) and any(racks)
        figures = view.brokers
        self.columns: Sequence[Column] = (
            Column("rack", "", name_width(racks, 2, 12), name=True),
            Column("id", "", max(2, len(str(max(self.keys, default=0)))), right=True),
            Column("state", "", 13, flex=1, most=20),
            Column("leads", "leads", 5, right=True),
            Column("replicas", "replicas", 8, right=True, rank=2),
            Column("in", "in rec/s", rate_width(figures.in_rate, 8), right=True),
            Column("out", "out rec/s", rate_width(figures.out_rate, 9), right=True, rank=1),
            Column("disk", "disk", 7, right=True, rank=3),
            Column("spark", "in, last minute", SPARK_CELLS, rank=4),
            Column("address", "address", 21, flex=1, most=30, rank=5, name=True),
            Column("note", "note", 24, flex=3, rank=6),
        )

    def row(self, index: int, now_ms: int) -> Row:
        """Return a broker's cells."""
        at = self._order[index]
        table, figures = self._view.snapshot.brokers, self._view.brokers
        internal = self._options.internal
        leads = int(figures.leads[at]) + (int(figures.leads_internal[at]) if internal else 0)
        replicas = int(figures.replicas[at]) + (int(figures.replicas_internal[at]) if internal else 0)
        state = str(table.state[at])
        risky = state == BrokerState.SILENT and leads > 0
        cells = (
            line(Span(self._rack(index), Role.HEAD)),
            figure(str(int(table.id[at]))),
            self._state(at, now_ms),
            figure(words.count(leads), Role.RISK if risky else Role.TEXT),
            figure(words.count(replicas)),
            figure(words.rate(float(figures.in_rate[at]))),
            figure(words.rate(float(figures.out_rate[at]))),
            figure(words.size(int(table.disk_bytes[at])), dim=state != BrokerState.UP),
            line(Span(sparkline(figures.in_series[at], SPARK_CELLS), Role.DIM)),
            line(Span(str(Address(table.host[at], int(table.port[at]))), Role.DIM)),
            self._note(at, now_ms),
        )
        return Row(cells, fresh(int(table.since_ms[at]), now_ms))

    def _rack(self, index: int) -> str:
        rack = str(self._view.snapshot.brokers.rack[self._order[index]])
        if self._grouped and index and rack == str(self._view.snapshot.brokers.rack[self._order[index - 1]]):
            return ""
        return rack or words.NONE

    def _state(self, at: int, now_ms: int) -> Line:
        table = self._view.snapshot.brokers
        state, role = str(table.state[at]), ROLES[self._view.brokers.severity[at]]
        if state == BrokerState.UP:
            return line(Span(f"{glyphs.OK} ", Role.GOOD), Span(state, Role.DIM))
        since = words.age(int(table.since_ms[at]), now_ms)
        if state == BrokerState.FENCED and table.answers[at]:
            return line(Span(f"{glyphs.OUT_OF_SYNC} {state} {since}", role))
        return line(Span(f"{glyphs.DEAD} {state} {since}", role))

    def _note(self, at: int, now_ms: int) -> Line:
        table, figures = self._view.snapshot.brokers, self._view.brokers
        notes = [
            words.fencing(int(figures.fencing_due_ms[at]), now_ms),
            "active controller" if figures.is_controller[at] else "",
            failures.of_broker(table.error[at], bool(self._heard[at])),
        ]
        if table.state[at] == BrokerState.UP and table.answered_ms[at] != UNKNOWN:
            quiet_ms = now_ms - int(table.answered_ms[at])
            if quiet_ms > 2 * self._options.stale_ms:
                notes.append(f"last answer {words.duration(quiet_ms, tenths=False)} ago")
        return line(Span(f" {glyphs.DOT} ".join(note for note in notes if note), Role.DIM))
