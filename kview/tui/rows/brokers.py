"""Rows of the BROKERS panel, sorted by rack. Silent brokers stay in their usual place."""

from collections.abc import Sequence

import numpy as np

from kview.derive.brokers import answering
from kview.derive.passing import Passing
from kview.derive.view import View
from kview.language import brokers, failures, glyphs, words
from kview.language.lists import Order, order_name
from kview.model.address import Address
from kview.model.states import BrokerState
from kview.model.units import UNKNOWN
from kview.tui.options import OWN_ORDER, Options
from kview.tui.plot import sparkline
from kview.tui.rows.columns import Column
from kview.tui.rows.common import (
    Keyed,
    broker_state,
    figure,
    fresh,
    name_width,
    rate_width,
    title,
)
from kview.tui.rows.row import Row
from kview.tui.rows.sorting import Values, codes, figures, ids, order_note, ranks, sorted_rows
from kview.tui.text import Line, Role, Span, line

PANEL = "brokers"
SPARK_CELLS = 20


def _order(view: View, options: Options) -> list[int]:
    table = view.snapshot.brokers
    rows = np.flatnonzero(Passing(view, options.wanted).brokers)
    racks = codes(table.rack)
    by_rack = rows[np.lexsort((table.id[rows], np.nan_to_num(racks[rows], nan=-1.0)))]
    arranged: list[int] = sorted_rows(by_rack, options, PANEL, view, SORTS, _identity).tolist()
    return arranged


def _identity(view: View) -> object:
    return (view.snapshot.brokers.id,)


SORTS: Values = {
    "rack": lambda view: codes(view.snapshot.brokers.rack),
    "id": lambda view: ids(view.snapshot.brokers.id),
    "state": lambda view: ranks(view.brokers.severity),
    "leads": lambda view: figures(view.brokers.leads),
    "replicas": lambda view: figures(view.brokers.replicas),
    "in": lambda view: figures(view.brokers.in_rate),
    "out": lambda view: figures(view.brokers.out_rate),
    "latency": lambda view: figures(view.snapshot.brokers.latency_us),
    "disk": lambda view: figures(view.snapshot.brokers.disk_bytes),
    "spark": lambda view: figures(view.brokers.in_rate),
    "address": lambda view: codes(view.snapshot.brokers.host),
    "note": lambda view: np.where(view.brokers.is_controller, 0.0, np.nan),
}


class BrokerRows(Keyed[int]):
    """The rows of brokers. The key is the broker's id."""

    def __init__(self, view: View, options: Options) -> None:
        self._order = _order(view, options)
        super().__init__([int(view.snapshot.brokers.id[row]) for row in self._order])
        self._view = view
        self._last_ms = answering(view.snapshot).last_ms
        self._options = options
        self.panel, self.sorts = PANEL, SORTS
        hidden = len(view.snapshot.brokers) - len(self._order)
        self.empty = f"no broker matches {options.shown_filter}" if hidden else "no broker is known"
        racks = list(view.snapshot.brokers.rack)
        self._grouped = options.sort(PANEL) == OWN_ORDER and any(racks)
        shown = view.brokers
        self.severities = shown.severity[self._order]
        self.columns: Sequence[Column] = (
            Column("rack", "", name_width(racks, 2, 12), name=True),
            Column("id", "", len(str(max(self.keys, default=0))), right=True),
            Column("state", "", 14, flex=1, most=20),
            Column("leads", "leads", 5, right=True),
            Column("replicas", "replicas", 8, right=True, rank=2),
            Column("in", "in rec/s", rate_width(shown.in_rate, 8), right=True),
            Column("out", "out rec/s", rate_width(shown.out_rate, 9), right=True, rank=1),
            Column("latency", "latency", 7, right=True, rank=2),
            Column("disk", "disk", 6, right=True, rank=3),
            Column("spark", "in, last minute", SPARK_CELLS, rank=4),
            Column("address", "address", 21, flex=1, most=30, rank=5, name=True),
            Column("note", "note", 24, flex=3, rank=6),
        )

        notes = [order_note(options, PANEL, self.columns, order_name(Order.IN_PLACE))]
        notes += [options.shown_filter, f"{glyphs.DOT} {hidden:,} hidden"] if hidden else []
        self.title: Line = title("BROKERS", *notes)

    def row(self, index: int, now_ms: int) -> Row:
        """Return a broker's cells."""
        at = self._order[index]
        table, figures = self._view.snapshot.brokers, self._view.brokers
        internal = self._options.internal
        leads = int(figures.leads[at]) + (int(figures.leads_internal[at]) if internal else 0)
        replicas = int(figures.replicas[at]) + (int(figures.replicas_internal[at]) if internal else 0)
        state = str(table.state[at])
        lost = state == BrokerState.SILENT and not (figures.unreached[at] or figures.undecided[at])
        old = self._last_ms != UNKNOWN and now_ms - self._last_ms > self._options.stale_ms
        cells = (
            line(Span(self._rack(index), Role.HEAD)),
            figure(str(int(table.id[at]))),
            broker_state(self._view, at, now_ms),
            figure(words.count(leads), Role.RISK if lost and leads else Role.TEXT, dim=old),
            figure(words.count(replicas), dim=old),
            figure(words.rate(float(figures.in_rate[at])), dim=old),
            figure(words.rate(float(figures.out_rate[at])), dim=old),
            self._latency(at),
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

    def _latency(self, at: int) -> Line:
        """Return how long the broker takes to answer, `–` if it does not answer."""
        table, figures = self._view.snapshot.brokers, self._view.brokers
        if table.state[at] != BrokerState.UP:
            return figure(words.NONE)
        role = Role.WARN if figures.slow_since_ms[at] != UNKNOWN else Role.DIM
        return figure(words.latency(int(table.latency_us[at])), role)

    def _note(self, at: int, now_ms: int) -> Line:
        table, figures = self._view.snapshot.brokers, self._view.brokers
        notes = [
            brokers.fencing(figures, at, now_ms),
            "active controller" if figures.is_controller[at] else "",
            failures.of_broker(table.error[at], bool(figures.unreached[at])),
        ]
        if table.state[at] == BrokerState.UP and table.answered_ms[at] != UNKNOWN:
            quiet_ms = now_ms - int(table.answered_ms[at])
            if quiet_ms > 2 * self._options.stale_ms:
                notes.append(f"last answer {words.duration(quiet_ms, tenths=False)} ago")
        return line(Span(f" {glyphs.DOT} ".join(note for note in notes if note), Role.DIM))
