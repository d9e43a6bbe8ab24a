"""The clusters of a fleet: each in a frame as long as every one has room for one, else as rows of a table."""

from collections.abc import Sequence
from textwrap import wrap
from typing import NamedTuple

import numpy as np
from textual import events
from textual.geometry import Size
from textual.strip import Strip

from kview.derive.brokers.silence import none_answer_since
from kview.derive.passing import passing_texts
from kview.derive.view import Verdict, View
from kview.language import fleet as said
from kview.language import glyphs, notices, words
from kview.language.briefs import brief
from kview.language.curves import area, top_of
from kview.model.events import Severity, severity_rank
from kview.model.findings import FindingKind
from kview.model.notices import NoticeKind
from kview.model.units import UNKNOWN
from kview.tui import edges
from kview.tui.app_of import app_of
from kview.tui.options import HOLD_MS, Options
from kview.tui.plot import Frame, Trace, framed
from kview.tui.rows.columns import Column, with_bound
from kview.tui.rows.common import ROLES, SIGNS, Keyed, name_width, title, troubled
from kview.tui.rows.figures import AT_LEAST, figure, finite
from kview.tui.rows.rack_strips import one_line
from kview.tui.rows.row import Row
from kview.tui.rows.tiles import Box
from kview.tui.text import (
    Line,
    Role,
    Span,
    blank,
    cut,
    joined,
    justified,
    line,
    line_width,
    middle,
    pad,
    strip,
    width,
)
from kview.tui.widgets.header import BETWEEN, Member, badge, rate
from kview.tui.widgets.headline import shown_incidents, state_line
from kview.tui.widgets.tiled import Tiled

LEAST_CELLS = 38
"""The narrowest frame."""

MOST_LINES = 18
"""The highest frame, with its edges."""

FIGURES = 3
"""The lines of a frame that are always there: traffic and lag, the brokers, and what is wrong."""

COMPACT = 3
"""The lines of a cluster that has a rule and two lines."""

PRODUCTION, SHORT_PRODUCTION = " PRODUCTION ", " PROD "

NARROW = 50
"""A frame with fewer cells has more room for the name than for how fresh its figures are."""

PLOT_LINES = 4
"""A plot has axes from so many lines on."""

CALM = (FindingKind.ALL_WELL, FindingKind.CLUSTER_WELL)


class HeldOrder:
    """The order of the clusters: as given while all is well, the worst first when something is wrong. An
    order that has changed is held for HOLD_MS."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._changed_ms = UNKNOWN

    def of(self, members: Sequence[Member], now_ms: int) -> list[Member]:
        """Return the members in order."""
        by_name = {member.name: member for member in members}
        wanted = sorted(by_name, key=lambda name: _rank(by_name[name], now_ms))
        is_held = self._changed_ms != UNKNOWN and 0 <= now_ms - self._changed_ms < HOLD_MS
        if sorted(wanted) != sorted(self._names):
            self._names = wanted
        elif wanted != self._names and not is_held:
            self._names, self._changed_ms = wanted, now_ms
        return [by_name[name] for name in self._names]


def _rank(member: Member, now_ms: int) -> int:
    severity = worst(member, now_ms)[1]
    return severity_rank(severity) if severity in (Severity.RISK, Severity.WARN) else len(Severity)


# -- what is said of a cluster


def name_of(member: Member, cells: int) -> Line:
    """Return a cluster's name, and that it is in production. The name is cut last."""
    name = member.name
    marks = (PRODUCTION, SHORT_PRODUCTION) if member.source.production else ("",)
    mark = next((each for each in marks if width(f"{each}{name}") < cells), marks[-1])
    first = line(Span(mark, Role.MOMENT), " ") if mark else ()
    return (*first, Span(middle(name, max(1, cells - line_width(first))), Role.CLUSTER))


def freshness(member: Member, now_ms: int, is_short: bool = False) -> Line:
    """Return how many brokers answer, or how old the figures are."""
    if member.view is not None:
        return badge(member.view, member.source, now_ms, is_short)
    waited = words.duration(now_ms - member.began_ms, tenths=False)
    if member.notice is None:
        return line(Span(waited if is_short else said.waiting(waited), Role.DIM))
    text = waited if is_short else said.no_answer(waited)
    return line(Span(f"{SIGNS[Severity.RISK]} {text}", Role.RISK))


def figures(member: Member, cells: int, now_ms: int) -> Line:
    """Return what flows in and out, and the lag of all groups. Old figures are dim."""
    view = member.view
    if view is None:
        return ()
    flow = view.throughput
    rates = [rate("in", flow.total_in, flow.in_is_bound), rate("out", flow.total_out, flow.out_is_bound)]
    lag = _lag(view)
    between = Span(BETWEEN if sum(map(line_width, (*rates, lag))) + 2 * len(BETWEEN) <= cells else "  ")
    is_short = sum(map(line_width, (*rates, lag))) + 2 * len(between.text) > cells
    shown = joined([*rates, lag[:-1] if is_short else lag], between, cells)
    return _dimmed(shown) if _is_old(member, now_ms) else shown


def _is_old(member: Member, now_ms: int) -> bool:
    view = member.view
    return view is not None and (
        member.is_late(now_ms) or none_answer_since(view.snapshot.brokers) != UNKNOWN
    )


def _dimmed(spans: Line) -> Line:
    return tuple(span._replace(role=Role.DIM) for span in spans)


class Lag(NamedTuple):
    """The records that the groups of a cluster are behind together, and the longest time that one is behind
    (ms), each with whether it is a lower bound. UNKNOWN if nothing is known."""

    records: int = UNKNOWN
    is_bound: bool = False
    behind_ms: int = UNKNOWN
    behind_is_bound: bool = False


def lag_of(view: View) -> Lag:
    """Return the lag of all groups but the ignored and the abandoned ones, for which nobody waits."""
    groups = view.groups
    rows = np.flatnonzero(~groups.ignored & (groups.verdict != Verdict.ABANDONED))
    lag, behind = groups.lag[rows], groups.behind_ms[rows]
    known = lag[lag != UNKNOWN]
    if not len(known):
        return Lag()
    is_bound = len(known) < len(lag) or bool(groups.lag_is_bound[rows].any())
    last = rows[behind.argmax()]
    return Lag(int(known.sum()), is_bound, int(behind.max()), bool(groups.behind_is_bound[last]))


def _lag(view: View) -> Line:
    lag = lag_of(view)
    if lag.records == UNKNOWN:
        return (Span("lag ", Role.DIM), Span(words.NONE, Role.HEAD), Span(""))
    text = words.at_least(words.si(float(lag.records)), lag.is_bound)
    longest = ""
    if lag.behind_ms >= 1000:
        behind = words.at_least(words.duration(lag.behind_ms, tenths=False), lag.behind_is_bound)
        longest = f" {glyphs.DOT} {behind}"
    return (Span("lag ", Role.DIM), Span(text, Role.HEAD), Span(longest, Role.DIM))


def state(member: Member, view: View, cells: int, now_ms: int) -> Line:
    """Return what is wrong in a few words, or that all is well. `view` is the member's."""
    text, severity = worst(member, now_ms)
    if member.notice is not None:
        text = notices.text(member.notice)
    elif not member.is_late(now_ms):
        return state_line(view, shown_incidents(view, member.opened), now_ms, cells)
    return cut(line(Span(f" {SIGNS[severity]} {text}", ROLES[severity])), cells)


def worst(member: Member, now_ms: int) -> tuple[str, Severity]:
    """Return the worst finding of a cluster in a few words and how bad it is, '' if it is well. A cluster
    that cannot be reached, or has old figures, is a risk."""
    notice = member.notice
    if member.view is None:
        return ("", Severity.CALM) if notice is None else (said.NOT_REACHED, Severity.RISK)
    if notice is not None and notice.kind is NoticeKind.SOURCE_RESTARTED:
        return said.RESTARTED, notice.severity
    if notice is not None or member.is_late(now_ms):
        return said.NO_NEW_FIGURES, Severity.RISK
    found = [each for each in member.view.headline.findings if each.kind not in CALM]
    return (brief(found[0], now_ms)[0], found[0].severity) if found else ("", Severity.GOOD)


class FleetRows(Keyed[str]):
    """The rows of a fleet's clusters, which are given in order. The key is the cluster's name."""

    def __init__(self, members: Sequence[Member], options: Options, now_ms: int) -> None:
        names = [member.name for member in members]
        passing = passing_texts(names, [()] * len(names), options.wanted)
        self.members = [member for member, passes in zip(members, passing, strict=True) if passes]
        super().__init__([member.name for member in self.members])
        self.severities = np.array([worst(member, now_ms)[1] for member in self.members], object)
        self.troubled = troubled(self.severities)
        hidden = len(members) - len(self.members)
        self.empty = said.none_matches(options.shown_filter) if hidden else said.NO_CLUSTER
        self.title: Line = title("CLUSTERS", *([said.hidden(options.shown_filter, hidden)] if hidden else []))
        self.columns: Sequence[Column] = (
            Column("name", "", name_width(self.keys, 4, 24), flex=1, most=60, name=True),
            Column("answers", "", 18, rank=1),
            Column("in", "in rec/s", 8, right=True, rank=2, exported=with_bound("in rec/s")),
            Column("out", "out rec/s", 9, right=True, rank=4, exported=with_bound("out rec/s")),
            Column("lag", "lag", 8, right=True, rank=3, exported=with_bound("lag")),
            Column("state", "", 22, flex=4),
        )

    def row(self, index: int, now_ms: int) -> Row:
        member = self.members[index]
        text, severity = worst(member, now_ms)
        well = text or (said.WELL if member.view is not None else said.CONNECTING)
        cells = [
            name_of(member, 60),
            freshness(member, now_ms),
            *_figures(member, now_ms),
            line(Span(f"{SIGNS[severity]} {well}", ROLES[severity])),
        ]
        return Row(tuple(cells))


def _figures(member: Member, now_ms: int) -> list[Line]:
    """Return the cells of a cluster's traffic and lag."""
    if member.view is None:
        return [(), (), ()]
    flow, summed = member.view.throughput, lag_of(member.view)
    lag = np.nan if summed.records == UNKNOWN else float(summed.records)
    is_old = _is_old(member, now_ms)
    return [
        figure(
            words.at_least(words.si(value), is_bound) if np.isfinite(value) else words.NONE,
            finite(value),
            AT_LEAST if is_bound else "",
            old=is_old,
        )
        for value, is_bound in (
            (flow.total_in, flow.in_is_bound),
            (flow.total_out, flow.out_is_bound),
            (lag, summed.is_bound),
        )
    ]


# -- frames


class Framed(NamedTuple):
    """Where the frames lie, all of them of the same size. With `has_edges` they have lines on all sides, else
    a rule with the title."""

    boxes: tuple[Box, ...]
    has_edges: bool


def arranged(number: int, cells: int, rows: int, has_edges: bool) -> Framed | None:
    """Return frames for so many clusters in as few columns as possible: with plots if there are lines enough,
    else without, else of a rule and two lines. None if nothing fits."""
    if not number:
        return None
    most = max(1, cells // LEAST_CELLS)
    edge = 2 if has_edges else 1
    for least in (edge + FIGURES + PLOT_LINES + 1, edge + FIGURES, COMPACT):
        for columns in range(1, most + 1):
            lines = min(MOST_LINES, rows // -(-number // columns))
            if lines < least:
                continue
            lines = COMPACT if least == COMPACT else lines
            framed = has_edges and lines > COMPACT
            wide, gap = cells // columns, 0 if framed or columns == 1 else 1
            boxes = tuple(
                Box(at, at % columns * wide, at // columns * lines, wide - gap, lines) for at in range(number)
            )
            return Framed(boxes, framed)
    return None


class Frames(Tiled):
    """Clusters in frames, or in rows if there are too many of them."""

    has_edges = True
    """Whether there are lines enough for edges on all sides."""

    @property
    def arranged(self) -> Framed | None:
        """Where the frames lie, None if the rows are a table."""
        return arranged(len(self.rows), self.size.width, self.size.height, self.has_edges)

    @property
    def boxes(self) -> Sequence[Box] | None:
        """Where the frames lie."""
        placed = self.arranged
        return None if placed is None else placed.boxes

    def fits(self, number: int, size: Size) -> bool:
        """Return whether so many clusters have frames in `size`."""
        return arranged(number, size.width, size.height, self.has_edges) is not None

    def on_click(self, event: events.Click) -> None:
        """Open the cluster under the mouse. Rows are the table's own."""
        boxes = self.boxes
        if boxes is None:
            return
        event.prevent_default()
        for box in boxes:
            if box.holds(event.x, event.y):
                self.choose(box.at)
                self.action_open()

    def figures(self) -> list[str]:
        """Return the names of the figures that it can show."""
        return [*super().figures()] or ["in rec/s", "out rec/s", "lag"]

    def _below(self) -> int:
        return int(len(self.rows) > max(0, self.size.height - self._head_height()))

    def painted(self, size: Size) -> list[Strip]:
        """Return the strips of the frames, or those of a table with the number of rows out of sight."""
        placed, rows, at = self.arranged, self.rows, app_of(self)
        if not isinstance(rows, FleetRows):
            return super().painted(size)
        if placed is None:
            below = self._below()
            lines = super().painted(Size(size.width, size.height - below))
            if below:
                left = len(rows) - self.scroll_offset.y - self._room()
                more = said.more(self.scroll_offset.y, max(0, left))
                lines += [strip(line(Span(f"  {more}", Role.DIM)), size.width, at.palette, at.ascii_only)]
            return lines
        self.title = None
        drawn: list[list[Strip]] = [[] for _ in range(size.height)]
        for box in placed.boxes:
            is_selected = box.at == self.index and self.has_focus
            palette = at.colours.of_cluster(rows.members[box.at].source.colour)
            for y, spans in enumerate(self._frame(rows, box, placed.has_edges, is_selected)):
                gap = box.x - sum(part.cell_length for part in drawn[box.y + y])
                drawn[box.y + y] += [blank(gap, palette)] * (gap > 0)
                drawn[box.y + y].append(strip(spans, box.width, palette, at.ascii_only))
        return [
            Strip.join(parts).adjust_cell_length(size.width) if parts else blank(size.width, at.palette)
            for parts in drawn
        ]

    def _frame(self, rows: FleetRows, box: Box, has_edges: bool, is_selected: bool) -> list[Line]:
        at = app_of(self)
        member, now_ms = rows.members[box.at], at.now_ms()
        severity = rows.severities[box.at]
        role = Role.RISK if severity == Severity.RISK else Role.KEY if is_selected else Role.RULE
        scope = freshness(member, now_ms, box.width < NARROW)
        scope = (*scope[:-1], scope[-1]._replace(text=scope[-1].text.rstrip()))
        mark = Span(f"{glyphs.MARK} ", Role.KEY) if is_selected else Span("")
        room = edges.title_cells(box.width, has_edges) - line_width(scope) - 4
        head = (mark, *name_of(member, max(4, room)))
        upper = edges.upper(head, scope, box.width, role, has_edges)
        inner = box.width - (4 if has_edges else 2)
        height = box.height - (2 if has_edges else 1)
        body = [pad(each, inner) for each in self._body(member, inner, height, now_ms)]
        if not has_edges:
            return [upper, *((Span(" "), *each, Span(" ")) for each in body)]
        side = Span(glyphs.BAR, role)
        return [
            upper,
            *((side, Span(" "), *each, Span(" "), side) for each in body),
            edges.lower(box.width, role),
        ]

    def _body(self, member: Member, cells: int, height: int, now_ms: int) -> list[Line]:
        """Return exactly `height` lines about a cluster."""
        view, at = member.view, app_of(self)
        if view is None:
            text = notices.text(member.notice, at.zone) if member.notice is not None else said.CONNECTING
            role = Role.DIM if member.notice is None else Role.RISK
            lines = [line(Span(part, role)) for part in wrap(text, cells)[:height]]
            return [*lines, *[()] * height][:height]
        lines = [state(member, view, cells, now_ms), line(" ", *figures(member, cells - 1, now_ms))]
        if height >= FIGURES:
            brokers = one_line(view, cells - 1, now_ms)
            lines.insert(1, (Span(" "), *(_dimmed(brokers) if member.is_late(now_ms) else brokers)))
            lines += _plot(member, cells, height - FIGURES, now_ms)
        return [*lines, *[()] * height][:height]


def _plot(member: Member, cells: int, height: int, now_ms: int) -> list[Line]:
    """Return the last minute of what flowed in."""
    view = member.view
    if view is None or not height:
        return []
    values = view.throughput.in_series
    paint = Span("", Role.DIM) if _is_old(member, now_ms) else Span("", series=0)
    if height >= PLOT_LINES:
        return framed(Trace("in", values, paint), cells, height, Frame("60 s"))
    return [line(paint._replace(text=text)) for text in area(values, cells, height, top_of(values))]


# -- the head


def in_trouble(members: Sequence[Member], now_ms: int) -> list[Member]:
    """Return the clusters that need attention, the worst first."""
    ranked = sorted(members, key=lambda member: _rank(member, now_ms))
    return [member for member in ranked if _rank(member, now_ms) < len(Severity)]


def head_line(members: Sequence[Member], now_ms: int, cells: int) -> Line:
    """Return how many clusters there are, and how many have current figures."""
    current = sum(
        member.view is not None and not _is_old(member, now_ms) and member.notice is None
        for member in members
    )
    left = line(
        Span(" kview ", Role.BRIGHT),
        Span(f"{glyphs.MARK} ", Role.DIM),
        Span(words.plural(len(members), "cluster"), Role.CLUSTER),
    )
    is_all = current == len(members)
    sign = Span(f"{glyphs.OK} ", Role.GOOD) if is_all else Span(f"{glyphs.UP} ", Role.WARN)
    right = line(sign, Span(said.current(current, len(members)), Role.DIM if is_all else Role.WARN))
    return justified(left, right, cells)


def worst_line(members: Sequence[Member], now_ms: int, cells: int) -> Line:
    """Return the worst cluster by its name and what is wrong with it, and how many others are in trouble."""
    troubled = in_trouble(members, now_ms)
    if not troubled:
        seen = sum(member.view is not None for member in members)
        if seen < len(members):
            return line(Span(f"   {said.connecting_to(len(members) - seen)}", Role.DIM))
        return line(Span(f" {glyphs.OK} ", Role.GOOD), Span(said.ALL_WELL, Role.BRIGHT))
    first, *others = troubled
    text, severity = worst(first, now_ms)
    more = line(Span(f"  {said.others(len(others))}", Role.WARN)) if others else ()
    name = middle(first.name, max(8, cells - len(text) - line_width(more) - 8))
    role = Role.ALERT if severity is Severity.RISK else ROLES[severity]
    return cut(line(" ", Span(f" {SIGNS[severity]} {name}: {text} ", role), *more), cells)
