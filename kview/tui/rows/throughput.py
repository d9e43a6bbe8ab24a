"""Rows of the throughput screen, with rates in and out.

They are the cluster's topics, its racks with their brokers, or its groups.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from msgspec import Struct

from kview.derive.groups.readers import topic_out_rates
from kview.derive.passing import Listed, Passing
from kview.derive.view import Floats, View
from kview.derive.windows import Window, series_of, window
from kview.language import words
from kview.language.curves import sparkline
from kview.model.aggregates import Key
from kview.model.events import Severity, severity_rank
from kview.model.sums import Kind, Sum
from kview.tui.options import OWN_ORDER, Options
from kview.tui.rows.columns import Column, with_bound
from kview.tui.rows.common import ROLES, SIGNS, Keyed, name_width, rate_width
from kview.tui.rows.figures import ABOUT, figure, finite, rate_figure
from kview.tui.rows.row import Row
from kview.tui.rows.sorting import by_number, order_note
from kview.tui.spark import RATE_S, covered_until_s
from kview.tui.text import Line, Role, Span, line

PANEL = "rates"
SORTS = ("name", "in", "out", "bytes", "skew", "spark")
LISTS = {"topics": Listed.PARTITIONS, "brokers": Listed.BROKERS, "groups": Listed.GROUPS}
SPARK_CELLS = 15
SPARK_STEP_S = 4

CLUSTER = Key(Kind.CLUSTER)
INTERNAL = Key(Kind.INTERNAL)


class Entry(Struct, frozen=True):
    """A row before Spark's figures are added.

    `indent` is the number of cells before the label. The rates are direct rates.
    """

    key: Key
    label: str
    severity: str = Severity.CALM
    indent: int = 0
    in_rate: float = math.nan
    out_rate: float = math.nan
    dim: bool = False
    in_is_bound: bool = False
    out_is_bound: bool = False
    """Whether a direct rate leaves out partitions or groups whose rate is not known."""


class ThroughputRows(Keyed[Key]):
    """The rows of the throughput screen. The key is the cluster, or the row's topic, rack, broker or
    group."""

    def __init__(self, view: View, options: Options, listed: str) -> None:
        self._view = view
        self._end_s = covered_until_s(view, options)
        self._sort = options.sort(PANEL)
        self.panel, self.sorts = PANEL, SORTS
        self._windows: dict[Kind, tuple[Window, dict[str, int]]] = {}
        self._trends: dict[Kind, Floats] = {}
        blocks = {"topics": _topics, "brokers": _brokers, "groups": _groups}[listed](view, options)
        self.entries = [
            _all(view, options, listed),
            *(entry for block in self._sorted(blocks, options, listed) for entry in block),
        ]
        self.severities = np.array([entry.severity for entry in self.entries], object)
        super().__init__([entry.key for entry in self.entries])
        others = "  ".join(name for name in LISTS if name != listed)
        basis = "" if self._end_s is None else f"{RATE_S} s"
        names = [_indented(entry) for entry in self.entries]
        rates = np.array([self._rates(entry) for entry in self.entries], np.float64)
        columns = (
            Column("sign", "", 1),
            Column("name", "", name_width(names, 9, 24), flex=1, most=50, name=True),
            Column(
                "in",
                "in rec/s",
                rate_width(rates[:, 0], 8) + len("≥"),
                right=True,
                exported=with_bound("in rec/s"),
            ),
            Column(
                "out",
                "out rec/s",
                rate_width(rates[:, 1], 8) + len("≥"),
                right=True,
                exported=with_bound("out rec/s"),
            ),
            Column("bytes", "in bytes/s ≈", 12, right=True, rank=2, exported=with_bound("in bytes/s")),
            Column("skew", "× mean", 6, right=True, rank=3),
            Column("spark", "last minute", SPARK_CELLS, rank=1, exported=()),
        )
        # A group only has records out.
        without = ("in", "bytes", "skew") if listed == "groups" else ()
        self._kept = [place for place, column in enumerate(columns) if column.key not in without]
        self.columns: Sequence[Column] = [columns[place] for place in self._kept]
        filtered = options.filter_of(LISTS[listed])
        notes = [basis, order_note(options, PANEL, self.columns, ""), filtered]
        self.title: Line = line(
            Span(listed.upper(), Role.HEAD),
            *(Span(f" {note}", Role.DIM) for note in notes if note),
            Span(f"  {others} ", Role.DIM),
            Span(options.keys.name("previous-list") + options.keys.name("next-list"), Role.KEY),
        )

    def row(self, index: int, now_ms: int) -> Row:
        entry = self.entries[index]
        in_rate, out_rate = self._rates(entry)
        window_row = self._window(entry.key)
        bytes_rate = window_row[0].bytes_rate[window_row[1]] if window_row else math.nan
        skew = window_row[0].skew[window_row[1]] if window_row else math.nan
        worrying = entry.severity in (Severity.RISK, Severity.WARN)
        role = (
            Role.DIM if entry.dim else Role.HEAD if entry.key.kind in (Kind.RACK, Kind.CLUSTER) else Role.TEXT
        )
        name = (Span(_indented(entry), role),)
        is_direct = self._end_s is None
        cells = (
            (Span(SIGNS[entry.severity], ROLES[entry.severity]),) if worrying else (),
            name,
            rate_figure(in_rate, is_bound=is_direct and entry.in_is_bound),
            rate_figure(out_rate, is_bound=is_direct and entry.out_is_bound),
            figure(
                words.size(round(bytes_rate)) if math.isfinite(bytes_rate) else words.NONE,
                finite(bytes_rate),
                ABOUT,
            ),
            figure(f"{skew:.1f}" if math.isfinite(skew) else words.NONE, finite(skew)),
            (Span(self._spark(entry.key), Role.DIM),),
        )
        return Row(tuple(cells[place] for place in self._kept))

    def label(self, key: Key) -> str:
        """Return a row's name for places where its list is not visible: `broker 4`."""
        if key == CLUSTER:
            return key.kind.value
        index = self.find(key)
        label = self.entries[index].label if index is not None else key.name
        return f"{key.kind} {label}" if key.kind in (Kind.BROKER, Kind.RACK, Kind.GROUP) else label

    def _rates(self, entry: Entry) -> tuple[float, float]:
        """Return records per second, in and out."""
        if self._end_s is None:
            return entry.in_rate, entry.out_rate
        window_row = self._window(entry.key)
        if window_row is None:
            return (math.nan, 0.0) if entry.key.kind is Kind.GROUP else (0.0, 0.0)
        figures, row = window_row
        in_rate = math.nan if entry.key.kind is Kind.GROUP else float(figures.in_rate[row])
        return in_rate, float(figures.out_rate[row])

    def _window(self, key: Key) -> tuple[Window, int] | None:
        """Return the window of the last seconds and the key's row in it, or None if there is no such row."""
        if self._end_s is None:
            return None
        if key.kind not in self._windows:
            kind_window = window(self._view.aggregates.rollups, key.kind, self._end_s, RATE_S)
            self._windows[key.kind] = kind_window, {name: row for row, name in enumerate(kind_window.names)}
        kind_window, rows = self._windows[key.kind]
        return (kind_window, rows[key.name]) if key.name in rows else None

    def _spark(self, key: Key) -> str:
        """Return a sparkline of the last minute.

        The first call calculates the figures of all keys of its kind.
        """
        window_row = self._window(key)
        if window_row is None or self._end_s is None:
            return ""
        if key.kind not in self._trends:
            self._trends[key.kind] = series_of(
                self._view.aggregates.rollups,
                [Key(key.kind, name) for name in window_row[0].names],
                Sum.RECORDS_OUT if key.kind is Kind.GROUP else Sum.RECORDS_IN,
                self._end_s,
                SPARK_CELLS * SPARK_STEP_S,
                SPARK_STEP_S,
            )
        return sparkline(self._trends[key.kind][window_row[1]].tolist(), SPARK_CELLS)

    def _sorted(self, blocks: list[list[Entry]], options: Options, listed: str) -> Iterable[list[Entry]]:
        """Return the blocks in order, and below each block's first entry its other entries in order.

        The order is that of the view that holds it, as far as that has the same rows.
        """
        if self._sort == OWN_ORDER:
            return blocks
        if options.held is not None and options.held is not self._view:
            before = ThroughputRows(options.held, replace(options, held=None), listed).keys
            places = {key: place for place, key in enumerate(before)}
            if all(entry.key in places for block in blocks for entry in block):
                inner = [
                    [block[0], *sorted(block[1:], key=lambda each: places[each.key])] for block in blocks
                ]
                return sorted(inner, key=lambda block: places[block[0].key])
        inner = [[block[0], *self._by_column(block[1:])] for block in blocks]
        first = {block[0].key: block for block in inner}
        return [first[entry.key] for entry in self._by_column([block[0] for block in inner])]

    def _by_column(self, listed: list[Entry]) -> list[Entry]:
        """Return entries sorted by the column; what is not known comes last."""
        if self._sort.column not in SORTS:
            return listed[::-1] if self._sort.descending else listed
        if self._sort.column == "name":
            return sorted(listed, key=lambda entry: entry.label.casefold(), reverse=self._sort.descending)
        values = np.array([self._value(entry) for entry in listed], np.float64)
        key = np.where(np.isfinite(values), -values if self._sort.descending else values, np.inf)
        return [listed[at] for at in np.argsort(key, kind="stable")]

    def _value(self, entry: Entry) -> float:
        """Return an entry's figure in the column by which the rows are sorted."""
        in_rate, out_rate = self._rates(entry)
        window_row = self._window(entry.key)
        match self._sort.column:
            case "out":
                return out_rate
            case "bytes":
                return float(window_row[0].bytes_rate[window_row[1]]) if window_row else math.nan
            case "skew":
                return float(window_row[0].skew[window_row[1]]) if window_row else math.nan
            case _:
                return in_rate if math.isfinite(in_rate) else out_rate


def _indented(entry: Entry) -> str:
    return " " * entry.indent + entry.label


def _all(view: View, options: Options, listed: str) -> Entry:
    """Return the first row: the cluster's rates, with the worst severity of what is listed below."""
    severities = {
        "topics": view.topics.severity[~view.topics.internal | options.internal],
        "brokers": view.brokers.severity,
        "groups": view.groups.severity[~view.groups.ignored],
    }[listed]
    return Entry(
        CLUSTER,
        f"all {listed}",
        min(severities.tolist(), key=severity_rank, default=Severity.CALM),
        in_rate=view.throughput.total_in,
        out_rate=view.throughput.total_out,
        in_is_bound=view.throughput.in_is_bound,
        out_is_bound=view.throughput.out_is_bound,
    )


def _topics(view: View, options: Options) -> list[list[Entry]]:
    figures, passing = view.topics, Passing(view, options.wanted).topics
    rows = np.flatnonzero(passing & (~figures.internal | options.internal))
    columns = (
        *(figures.topic, figures.severity, figures.in_rate, figures.in_is_bound),
        *topic_out_rates(view),
        figures.internal,
    )
    blocks = [
        [
            Entry(
                Key(Kind.TOPIC, topic),
                topic,
                severity,
                in_rate=in_rate,
                out_rate=out_rate,
                dim=internal,
                in_is_bound=in_is_bound,
                out_is_bound=out_is_bound,
            )
        ]
        for topic, severity, in_rate, in_is_bound, out_rate, out_is_bound, internal in zip(
            *(column[rows].tolist() for column in columns), strict=True
        )
    ]
    if options.internal:
        in_rate = _sum(figures.in_rate[figures.internal])
        blocks.append([Entry(INTERNAL, "internal topics", in_rate=in_rate, dim=True)])
    return blocks


def _brokers(view: View, options: Options) -> list[list[Entry]]:
    table, figures = view.snapshot.brokers, view.brokers
    passing, indent = Passing(view, options.wanted).brokers, int(len(set(table.rack)) > 1)
    blocks = []
    racks = sorted(set(table.rack[passing]), key=by_number)
    for rack in racks:
        whole = np.flatnonzero(table.rack == rack).tolist()
        rows = sorted((row for row in whole if passing[row]), key=lambda row: int(table.id[row]))
        brokers = [
            Entry(
                Key(Kind.BROKER, str(int(table.id[row]))),
                str(int(table.id[row])),
                figures.severity[row],
                indent,
                float(figures.in_rate[row]),
                float(figures.out_rate[row]),
                in_is_bound=bool(figures.in_is_bound[row]),
                out_is_bound=bool(figures.out_is_bound[row]),
            )
            for row in rows
        ]
        if racks == [""]:
            return [[broker] for broker in brokers]
        worst = min(figures.severity[whole].tolist(), key=severity_rank)
        rates = _sum(figures.in_rate[whole]), _sum(figures.out_rate[whole])
        bounds = [bool(bound[whole].any()) for bound in (figures.in_is_bound, figures.out_is_bound)]
        total = Entry(Key(Kind.RACK, rack), rack or "no rack", worst, 0, *rates, False, *bounds)
        blocks.append([total, *brokers])
    return blocks


def _groups(view: View, options: Options) -> list[list[Entry]]:
    figures = view.groups
    passing = Passing(view, options.wanted).groups
    return [
        [
            Entry(
                Key(Kind.GROUP, str(name)),
                str(name),
                figures.severity[row],
                out_rate=float(figures.read_rate[row]),
                out_is_bound=bool(figures.read_is_bound[row]),
            )
        ]
        for row, name in enumerate(view.snapshot.groups.group)
        if passing[row]
    ]


def _sum(rates: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Return the sum of the known rates, or NaN if none is known."""
    known = rates[np.isfinite(rates)]
    return float(known.sum()) if len(known) else math.nan
