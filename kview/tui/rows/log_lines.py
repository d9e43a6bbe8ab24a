"""Draw a partition's log as lines: a scale with the groups' positions, and one bar per replica."""

from enum import Enum, auto
from typing import NamedTuple

import numpy as np

from kview.derive import align
from kview.derive.partitions.log import GroupPositions, PartitionLog, ReplicaEnd, zoomed
from kview.derive.view import Verdict, View
from kview.language import glyphs, words
from kview.language import partition_log as log_words
from kview.language import replicas as replica_words
from kview.model.snapshot import Longs
from kview.model.units import UNKNOWN
from kview.tui.options import Options
from kview.tui.rows.common import ROLES, replica_role
from kview.tui.text import EMPTY, Line, Role, Span, cut, line, line_width, middle, pad, runs

MOST_LABEL_LINES = 3
"""The most lines for labels. Groups beyond them are counted."""

NARROW = 60
"""Below this width, offsets have short names."""

MOST_GROUP_NAME = 20

LABELS_A_CELL = 3
"""The most labels for one cell that are tried on a line."""

LEAST_CELLS = 10
"""The fewest cells on which a log can be drawn."""


class Scale(NamedTuple):
    """Which cells stand for which offsets: `cells` cells for the offsets `low` to `high`."""

    low: int
    high: int
    cells: int

    def cell(self, offset: int) -> int:
        """Return the cell of an offset. Offsets outside are at the ends."""
        span = max(1, self.high - self.low)
        return max(0, min(self.cells - 1, (offset - self.low) * (self.cells - 1) // span))

    def cells_of(self, offsets: Longs) -> Longs:
        """Return the cells of many offsets."""
        span, last = max(1, self.high - self.low), self.cells - 1
        begins = [self.low - (-cell * span // last) for cell in range(1, self.cells)]
        return np.searchsorted(np.array(begins, np.int64), offsets, side="right")


class Label(NamedTuple):
    """A text that belongs to a cell."""

    cell: int
    text: Line


class _Page(NamedTuple):
    """The widths of what stands to the left and to the right of the bars."""

    left: int
    right: int


class Zoom(Enum):
    """Which part of a log is drawn."""

    WHOLE = auto()
    END = auto()
    BOTH = auto()
    """The whole log, and below it its end."""


def log_lines(
    view: View, log: PartitionLog, options: Options, cells: int, zoom: Zoom, most: int, now_ms: int
) -> list[Line]:
    """Return the drawing of a log, `cells` wide, with the groups' names on at most `most` lines."""
    page = _page(log)
    room = cells - page.left - page.right
    end, whole = zoomed(log), (log.first, log.last)
    if end is None or room < LEAST_CELLS:
        return [*_unknown(log), *(_replica(view, log, r, None, page, options, now_ms) for r in log.replicas)]
    lines: list[Line] = []
    if zoom is Zoom.BOTH and end != whole:
        lines += _scale(view, log, Scale(*whole, room), page, cells, most)
    scale = Scale(*(whole if zoom is Zoom.WHOLE else end), room)
    if scale.low > log.first:
        lines.append(line(" " * page.left, Span(log_words.zoom(scale.high - scale.low), Role.HEAD)))
    lines += _scale(view, log, scale, page, cells, most)
    return [*lines, *(_replica(view, log, each, scale, page, options, now_ms) for each in log.replicas)]


def _scale(view: View, log: PartitionLog, scale: Scale, page: _Page, cells: int, most: int) -> list[Line]:
    """Return a scale between its labels."""
    room = cells - page.left - 1
    return [
        *_margin(_labels(_ends(log, scale, room < NARROW), room, MOST_LABEL_LINES), page),
        line(" " * page.left, *_axis(log, scale)),
        *_margin(_group_labels(view, log, scale, room, most), page),
    ]


def _page(log: PartitionLog) -> _Page:
    digits = max(len(words.count(replica.end)) for replica in log.replicas) if log.replicas else 1
    ids = max(len(str(replica.broker)) for replica in log.replicas) if log.replicas else 1
    return _Page(3 + ids + 3, digits + 2 + 16)


def _unknown(log: PartitionLog) -> list[Line]:
    known = log.high_watermark if log.high_watermark != UNKNOWN else log.log_end
    if known != UNKNOWN:
        return []
    return [line(Span(f"  {log_words.NOT_READ}", Role.DIM))]


def _margin(lines: list[Line], page: _Page) -> list[Line]:
    return [line(" " * page.left, *spans) for spans in lines]


def _ends(log: PartitionLog, scale: Scale, is_short: bool) -> list[Label]:
    """Return the labels of log start, high watermark and log end."""
    start_name, watermark_name, end_name = log_words.ENDS_SHORT if is_short else log_words.ENDS
    start = log_words.labelled(start_name, log.log_start)
    labels = []
    if log.log_start != UNKNOWN and scale.low <= log.log_start:
        labels.append(Label(scale.cell(log.log_start), line(Span(start, Role.DIM))))
    if log.high_watermark == log.log_end or log.log_end == UNKNOWN:
        both = watermark_name if log.log_end == UNKNOWN else f"{watermark_name} = {end_name}"
        if log.high_watermark != UNKNOWN:
            text = log_words.labelled(both, log.high_watermark)
            labels.append(Label(scale.cell(log.high_watermark), line(Span(text))))
        return labels
    if log.high_watermark != UNKNOWN:
        text = log_words.labelled(watermark_name, log.high_watermark)
        labels.append(Label(scale.cell(log.high_watermark), line(Span(text))))
    text = log_words.labelled(end_name, log.log_end)
    labels.append(Label(scale.cell(log.log_end), line(Span(text, Role.DIM))))
    return labels


def _labels(labels: list[Label], cells: int, most: int, left_out: int = 0) -> list[Line]:
    """Return labels near their cells, without overlap, on as few lines as that takes.

    Labels are given from left to right, and the ones on the right are placed first. What does not fit is
    counted on the last line, with what has been `left_out` before.
    """
    lines: list[list[tuple[int, Line]]] = []
    free: list[int] = []
    for label in sorted(labels, key=lambda label: -label.cell):
        size = line_width(label.text)
        wanted = max(0, min(label.cell - size // 2, cells - size))
        for at, limit in enumerate(free):
            begin = min(wanted, limit - size)
            if begin >= 0 and wanted - begin <= size:
                lines[at].append((begin, label.text))
                free[at] = begin - 2
                break
        else:
            if len(lines) == most:
                left_out += 1
            else:
                lines.append([(wanted, label.text)])
                free.append(wanted - 2)
    laid_out = [_laid_out(placed, cells) for placed in lines]
    if left_out and laid_out:
        laid_out[-1] = (*laid_out[-1], Span(f"  {log_words.more(left_out)}", Role.DIM))
    return [cut(each, cells) for each in laid_out]


def _laid_out(placed: list[tuple[int, Line]], cells: int) -> Line:
    spans: Line = EMPTY
    for begin, text in sorted(placed, key=lambda each: each[0]):
        spans = (*pad(spans, begin), *text) if begin else (*spans, *text)
    return cut(spans, cells)


def _axis(log: PartitionLog, scale: Scale) -> Line:
    """Return the scale: the committed part, what a transaction holds back of it, the uncommitted part, and
    marks where groups are."""
    drawn = [glyphs.RULE] * scale.cells
    roles = [Role.DIM] * scale.cells
    if UNKNOWN not in (log.high_watermark, log.log_end) and log.log_end > log.high_watermark:
        for cell in range(scale.cell(log.high_watermark), scale.cell(log.log_end) + 1):
            drawn[cell], roles[cell] = glyphs.UNCOMMITTED, Role.WARN
    if log.last_stable >= scale.low:
        for cell in range(
            scale.cell(log.last_stable), scale.cell(max(log.high_watermark, log.last_stable)) + 1
        ):
            roles[cell] = Role.WARN
        drawn[scale.cell(log.last_stable)] = glyphs.MARKED
    committed = log.groups.committed
    for cell in np.unique(scale.cells_of(committed[committed >= scale.low])).tolist():
        drawn[cell], roles[cell] = glyphs.MARKED, Role.KEY
    if log.log_start >= scale.low:
        drawn[0] = glyphs.LOG_START
    for end in (log.high_watermark, log.log_end):
        if end != UNKNOWN:
            cell = scale.cell(end)
            drawn[cell] = glyphs.TICK if drawn[cell] != glyphs.MARKED else glyphs.MARKED
    return runs(drawn, roles)


def _group_labels(view: View, log: PartitionLog, scale: Scale, cells: int, most: int) -> list[Line]:
    """Return the groups, and a last stable offset that is held back, near their marks.

    What is before the scale's beginning is on its left.
    """
    labels = []
    if log.last_stable != UNKNOWN:
        before = f"{glyphs.BEFORE} " if log.last_stable < scale.low else ""
        stable = line(
            Span(f"{before}last stable", Role.WARN), Span(f" {words.count(log.last_stable)}", Role.DIM)
        )
        labels.append(Label(scale.cell(log.last_stable), stable))
    positions, left_out = _near(log, scale, most)
    names, severity = view.snapshot.groups.group[positions.group], view.groups.severity[positions.group]
    past_the_end = view.offsets.verdict[positions.offset] == Verdict.AHEAD_OF_LOG
    for at, committed in enumerate(positions.committed.tolist()):
        role = ROLES[severity[at]]
        before = f"{glyphs.BEFORE} " if committed < scale.low else ""
        name = middle(str(names[at]), MOST_GROUP_NAME)
        text = line(
            Span(f"{before}{name}", Role.TEXT if role is Role.DIM else role),
            Span(f" {words.count(committed)}", Role.DIM),
        )
        if past_the_end[at]:
            text = (*text, Span(f" {log_words.PAST_THE_END}", Role.WARN))
        labels.append(Label(scale.cell(committed), text))
    return _labels(labels, cells, most, left_out)


def _near(log: PartitionLog, scale: Scale, most: int) -> tuple[GroupPositions, int]:
    """Return the groups that may find room near their cells, on `most` lines, and the number of others.

    A label is at most its own width away from its place, so that a line has two labels for a cell, and three
    if one is shorter. Thousands of groups can be at the end of one partition.
    """
    groups = log.groups
    begins, ends = align.runs(scale.cells_of(groups.committed))
    is_near = np.arange(len(groups)) - np.repeat(begins, ends - begins) < LABELS_A_CELL * most
    near = GroupPositions(groups.group[is_near], groups.offset[is_near], groups.committed[is_near])
    return near, len(groups) - len(near)


def _replica(
    view: View,
    log: PartitionLog,
    replica: ReplicaEnd,
    scale: Scale | None,
    page: _Page,
    options: Options,
    now_ms: int,
) -> Line:
    """Return one replica's line: its broker and sign, its bar, its log end, and how it lags."""
    table, figures = view.snapshot.partitions, view.partitions
    sign = replica_words.sign(table, figures, log.row, replica.position)
    role = replica_role(sign, replica.in_isr)
    ids = page.left - 6
    head = line("  ", Span(f"{replica.broker:>{ids}} "), Span(f"{sign} ", role))
    head = pad(head, page.left)
    old = replica.end_ms != UNKNOWN and now_ms - replica.end_ms > options.stale_ms
    bar: Line = EMPTY
    if scale is not None:
        bar = _bar(replica, scale, Role.DIM if old and role is not Role.RISK else role)
    end = Span(f" {words.count(replica.end):>{page.right - 18}}", Role.DIM if old else Role.TEXT)
    leader = next((each for each in log.replicas if each.is_leader), None)
    note = log_words.replica_note(replica, leader, old, now_ms)
    room = scale.cells if scale is not None else 0
    return (*head, *pad(bar, room), end, Span(f"  {note}", role if not replica.answers else Role.DIM))


def _bar(replica: ReplicaEnd, scale: Scale, role: Role) -> Line:
    if replica.end == UNKNOWN:
        return EMPTY
    if replica.end < scale.low:
        return line(Span(f"{glyphs.BEFORE} {log_words.before(scale.low - replica.end)}", role))
    cell = scale.cell(replica.end)
    return line(Span(glyphs.LINE * cell + glyphs.LOG_END, role))
