"""Rows of the BROKERS panel, sorted by rack. Silent brokers stay in their usual place."""

from collections.abc import Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kview.derive.brokers.controllers import Controller
from kview.derive.brokers.silence import answering, other_apis
from kview.derive.passing import Listed, Passing
from kview.derive.view import View
from kview.language import brokers, controllers, failures, glyphs, words
from kview.language.curves import sparkline
from kview.language.lists import Order, order_name
from kview.model.address import Address
from kview.model.events import Severity, severity_rank
from kview.model.states import BrokerState
from kview.model.units import UNKNOWN
from kview.tui.options import OWN_ORDER, Options
from kview.tui.rows import tiles
from kview.tui.rows.columns import Column, with_bound
from kview.tui.rows.common import (
    ROLES,
    SIGNS,
    Keyed,
    broker_state,
    fresh,
    name_width,
    rate_width,
    state_cell,
    title,
    troubled,
)
from kview.tui.rows.figures import (
    STATE,
    count_figure,
    latency_figure,
    number_figure,
    rate_figure,
    size_figure,
)
from kview.tui.rows.row import Row
from kview.tui.rows.sorting import Values, codes, figures, ids, order_note, ranks, sorted_rows
from kview.tui.text import Line, Role, Span, line, width


class ControllerKey(NamedTuple):
    """The key of a controller's row."""

    node: int


BrokerKey = int | ControllerKey
"""The key of a row: a broker's id, or a controller that is not a broker."""

PANEL = "brokers"
SPARK_CELLS = 20


def _order(view: View, options: Options, is_short: bool) -> list[int]:
    table = view.snapshot.brokers
    rows = np.flatnonzero(Passing(view, options.wanted).brokers)
    keys: list[NDArray[Any]] = [
        table.id,
        np.nan_to_num(codes(table.rack), nan=-1.0),
    ]  # the last decides first
    if is_short:
        keys += [~view.brokers.is_controller, ranks(view.brokers.severity)]
    own = rows[np.lexsort([key[rows] for key in keys])]
    arranged: list[int] = sorted_rows(own, options, PANEL, view, SORTS, _identity).tolist()
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


class BrokerRows(Keyed[BrokerKey]):
    """The rows of brokers, and of `others`, controllers that are not brokers.

    The key is the broker's id, or a `ControllerKey`. Controllers come last. `is_short` says that not every
    broker has a row in sight: then one controller in trouble has a row, below the brokers in trouble, and the
    others have none.
    """

    def __init__(
        self, view: View, options: Options, others: Sequence[Controller] = (), is_short: bool = False
    ) -> None:
        is_own = options.sort(PANEL) == OWN_ORDER
        self._order = _order(view, options, is_short)
        severities = view.brokers.severity[self._order]
        wrong: list[Controller] = []
        if is_short:
            wrong = [other for other in others if not controllers.state(other).fine][:1]
            others = ()
        self._before = troubled(severities) if is_own else len(self._order)
        """The number of brokers above the controller in trouble."""
        self._wrong = len(wrong)
        self._others = [*wrong, *others]
        ids = [int(view.snapshot.brokers.id[row]) for row in self._order]
        keys = [ControllerKey(other.node) for other in self._others]
        self.closed = frozenset(keys)
        above = self._before
        super().__init__([*ids[:above], *keys[: self._wrong], *ids[above:], *keys[self._wrong :]])
        self._view = view
        self._other_apis = other_apis(view.snapshot)
        self._last_ms = answering(view).last_ms
        self._options = options
        self.panel, self.sorts = PANEL, SORTS
        hidden = len(view.snapshot.brokers) - len(self._order)
        self.empty = (
            f"no broker matches {options.filter_of(Listed.BROKERS)}" if hidden else "no broker is known"
        )
        own_racks = view.snapshot.brokers.rack.tolist()
        racks = [*own_racks, *([controllers.QUORUM] if others else [])]
        self._grouped = is_own and not is_short and any(racks)
        has_racks = any(own_racks)
        names = [self._rack_of(index) if has_racks else "" for index in range(len(self._order))]
        self.racks: Sequence[tuple[str, int]] = (
            tuple((name, len(list(same))) for name, same in groupby(names)) if is_own and not is_short else ()
        )
        """The racks and how many rows each has, as (name, rows), if every rack's rows lie together."""
        self.quorum = len(self._others)
        """The number of controllers, whose rows are the last ones."""
        shown = view.brokers
        self.severities = np.array(
            [
                *severities[:above],
                *[Severity.RISK] * self._wrong,
                *severities[above:],
                *(controllers.severity(other) for other in self._others[self._wrong :]),
            ],
            object,
        )
        self.columns: Sequence[Column] = (
            Column("rack", "", name_width(racks, 2, 12), name=True),
            Column(
                "id",
                "",
                max((len(str(id)) for id in (*ids, *(key.node for key in keys))), default=1),
                right=True,
            ),
            Column("state", "", 14, flex=1, most=20, exported=STATE),
            Column("leads", "leads", 5, right=True, exported=with_bound("leads")),
            Column("replicas", "replicas", 8, right=True, rank=2, exported=with_bound("replicas")),
            Column(
                "in",
                "in rec/s",
                rate_width(shown.in_rate, 8, shown.in_is_bound),
                right=True,
                exported=with_bound("in rec/s"),
            ),
            Column(
                "out",
                "out rec/s",
                rate_width(shown.out_rate, 9, shown.out_is_bound),
                right=True,
                rank=1,
                exported=with_bound("out rec/s"),
            ),
            Column("latency", "latency", 7, right=True, rank=2, exported=("latency s",)),
            Column("disk", "disk", 6, right=True, rank=3, exported=with_bound("disk", "bytes")),
            Column("spark", "in, last minute", SPARK_CELLS, rank=4, exported=()),
            Column("address", "address", 21, flex=1, most=30, rank=5, name=True),
            Column("note", "note", 24, flex=3, rank=6),
        )

        notes = [
            order_note(
                options, PANEL, self.columns, order_name(Order.WORST_FIRST if is_short else Order.IN_PLACE)
            )
        ]
        notes += [options.filter_of(Listed.BROKERS), f"{glyphs.DOT} {hidden:,} hidden"] if hidden else []
        self.title: Line = title("BROKERS", *notes)

    def row(self, index: int, now_ms: int) -> Row:
        key = self.keys[index]
        if isinstance(key, ControllerKey):
            return self._controller(index, now_ms)
        index -= self._wrong if index >= self._before else 0
        at = self._order[index]
        table, figures = self._view.snapshot.brokers, self._view.brokers
        internal = self._options.internal
        leads = int(figures.leads[at]) + (int(figures.leads_internal[at]) if internal else 0)
        replicas = int(figures.replicas[at]) + (int(figures.replicas_internal[at]) if internal else 0)
        state = str(table.state[at])
        lost = state == BrokerState.SILENT and not figures.unreached[at]
        old = self._last_ms != UNKNOWN and now_ms - self._last_ms > self._options.stale_ms
        cells = (
            line(Span(self._rack(index), Role.HEAD)),
            number_figure(int(table.id[at])),
            broker_state(self._view, at, now_ms),
            count_figure(leads, Role.RISK if lost and leads else Role.TEXT, old=old),
            count_figure(replicas, old=old),
            rate_figure(float(figures.in_rate[at]), is_bound=bool(figures.in_is_bound[at]), old=old),
            rate_figure(float(figures.out_rate[at]), is_bound=bool(figures.out_is_bound[at]), old=old),
            self._latency(at),
            size_figure(int(table.disk_bytes[at]), old=state != BrokerState.UP),
            line(Span(sparkline(figures.in_series[at], SPARK_CELLS), Role.DIM)),
            line(Span(str(Address(table.host[at], int(table.port[at]))), Role.DIM)),
            self._note(at, now_ms),
        )
        return Row(cells, fresh(int(table.since_ms[at]), now_ms))

    def _controller(self, index: int, now_ms: int) -> Row:
        """Return a controller's cells: what it is doing, and how far behind it is."""
        is_above = index < self._before + self._wrong
        at = index - self._before if is_above else index - len(self._order)
        other = self._others[at]
        said = controllers.state(other)
        epoch = self._view.snapshot.observation.controller_epoch
        note = controllers.note(other, epoch, now_ms, 2 * self._options.stale_ms)
        cells = {
            "rack": line(Span(controllers.QUORUM if at == 0 else "", Role.HEAD)),
            "id": number_figure(other.node),
            "state": state_cell(said, ROLES[controllers.severity(other)]),
            "note": line(Span(note, Role.DIM)),
        }
        return Row(tuple(cells.get(column.key, ()) for column in self.columns))

    def tile(self, index: int, kind: tiles.Kind, cells: int, now_ms: int) -> list[Line]:
        """Return a row as the lines of a tile."""
        if index >= len(self._order):
            return [tiles.controller_tile(self._others[index - len(self._order)])]
        return tiles.broker_tile(self._view, self._unwell, self._order[index], kind, cells, now_ms)

    @cached_property
    def _unwell(self) -> tiles.Unwell:
        return tiles.unwell(self._view, self._options.internal)

    def is_fresh(self, index: int, now_ms: int) -> bool:
        """Return whether a row's state has changed within the last seconds."""
        if index >= len(self._order):
            return False
        return fresh(int(self._view.snapshot.brokers.since_ms[self._order[index]]), now_ms)

    def rack_state(self, rack: int) -> Role:
        """Return how the name of a rack is drawn: solid if it has several brokers, and all are at risk."""
        solid = [tiles.is_solid(self._view, row) for row in self._all_of(rack)]
        if all(solid) and len(solid) > 1:
            return Role.ALERT
        return Role.RISK if any(solid) else Role.HEAD

    def rack_counts(self, rack: int, cells: int) -> Line:
        """Return how many brokers of a rack answer in at most `cells`: `✕ 2 of 3 brokers answer`, `✕ 2 of 3`
        or `✕`."""
        same = self._all_of(rack)
        answer = int(self._view.snapshot.brokers.answers[same].sum())
        worst = min((str(self._view.brokers.severity[row]) for row in same), key=severity_rank)
        all_do = answer == len(same)
        counted = "" if all_do else f"{answer:,} of "
        sign = Span(SIGNS[worst], Role.GOOD if all_do and ROLES[worst] is Role.DIM else ROLES[worst])
        role = Role.DIM if all_do else ROLES[worst]
        number, verb = f" {counted}{len(same):,}", "answers" if len(same) == 1 else "answer"
        whole = f" {counted}{words.plural(len(same), 'broker')} {verb}"
        for text in (whole, f"{number} {verb}", number, ""):
            if width(text) + 1 <= cells:
                break
        return line(sign, Span(text, role))

    def _all_of(self, rack: int) -> list[int]:
        """Return the brokers' rows in a rack, also of those that a filter hides."""
        table, first = self._view.snapshot.brokers, sum(number for _, number in self.racks[:rack])
        rows: list[int] = np.flatnonzero(table.rack == table.rack[self._order[first]]).tolist()
        return rows

    def _rack_of(self, index: int) -> str:
        return str(self._view.snapshot.brokers.rack[self._order[index]]) or words.NONE

    def _rack(self, index: int) -> str:
        rack = self._rack_of(index)
        return "" if self._grouped and index and rack == self._rack_of(index - 1) else rack

    def _latency(self, at: int) -> Line:
        """Return how long the broker takes to answer, `–` if it does not answer."""
        table, figures = self._view.snapshot.brokers, self._view.brokers
        if table.state[at] != BrokerState.UP:
            return latency_figure(UNKNOWN)
        role = Role.WARN if figures.slow_since_ms[at] != UNKNOWN else Role.DIM
        return latency_figure(int(table.latency_us[at]), role)

    def _note(self, at: int, now_ms: int) -> Line:
        table, figures = self._view.snapshot.brokers, self._view.brokers
        notes = [
            brokers.fencing(figures, at, now_ms),
            brokers.log_dirs(figures, at, now_ms),
            "active controller" if figures.is_controller[at] else "",
            "offers other APIs than the rest" if self._other_apis[at] else "",
            failures.of_broker(table.error[at], bool(figures.unreached[at])),
        ]
        if table.state[at] == BrokerState.UP and table.answered_ms[at] != UNKNOWN:
            quiet_ms = now_ms - int(table.answered_ms[at])
            if quiet_ms > 2 * self._options.stale_ms:
                notes.append(f"last answer {words.duration(quiet_ms, tenths=False)} ago")
        return line(Span(f" {glyphs.DOT} ".join(note for note in notes if note), Role.DIM))
