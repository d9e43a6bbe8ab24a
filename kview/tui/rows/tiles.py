"""Brokers as tiles in their racks: where each tile lies, and what it says. All functions are pure."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from kview.derive.brokers.controllers import Controller
from kview.derive.view import PartitionStatus, View
from kview.language import brokers, controllers, glyphs, words
from kview.language.curves import sparkline
from kview.model.events import Severity
from kview.model.snapshot import Ids
from kview.model.units import UNKNOWN
from kview.tui.rows.common import ROLES, state_cell
from kview.tui.text import EMPTY, Line, Role, Span, content, justified, line, line_width, middle, pad, width

MOST_TILE = 40
"""The widest tile."""

MOST_NAME = 12
"""A longer name of a rack is cut in its middle."""

MARGIN = 1
"""The cells to the left of the tiles."""

GAP = 1
"""The cells between two tiles."""

BETWEEN_RACKS = 2
"""The cells between two racks that stand side by side without frames."""

QUORUM_TILE = 14
"""The least width of the tile of a controller."""

QUORUM_LABEL = f" {controllers.QUORUM} "
"""What stands before the tiles of controllers."""

LEFT_CELLS = 4
"""The cells for the number of controllers that have no tile."""

MOST_SIGNS = 40
"""A broker with more copies than this has them as numbers, which are read faster."""


class Kind(NamedTuple):
    """What a tile shows: its lines, and the cells that it needs at least."""

    lines: int
    cells: int


BLOCK, PAIR, ROW = Kind(3, 17), Kind(2, 17), Kind(1, 15)
"""State and latency, traffic, led partitions and copies; without these; state and traffic in one line."""

_CHOICES = ((BLOCK, 1), (PAIR, 1), (BLOCK, 0), (PAIR, 0), (ROW, 0))
"""Kinds of tiles and the lines between two racks, the best first."""


class Box(NamedTuple):
    """A rectangle of cells. `at` is the row of the broker or controller, or the number of the rack."""

    at: int
    x: int
    y: int
    width: int
    height: int

    def holds(self, x: int, y: int) -> bool:
        """Return whether a cell is in it."""
        return self.x <= x < self.x + self.width and self.y <= y < self.y + self.height


class Arranged(NamedTuple):
    """Where the tiles of some racks lie, and the racks themselves, from their names to their last tiles."""

    kind: Kind
    tiles: tuple[Box, ...]
    racks: tuple[Box, ...]
    label: int
    height: int
    is_boxed: bool = False
    """Whether the racks have frames, which are part of their boxes."""


def arranged(racks: Sequence[tuple[str, int]], quorum: int, cells: int, rows: int) -> Arranged | None:
    """Return the largest tiles with which `racks`, as (name, number of brokers), fit into `cells` and `rows`,
    and below them one line for the controllers of the `quorum`, if there are any. None if nothing fits.

    Every rack is a row of tiles, or several racks stand side by side.
    """
    most = max((number for _, number in racks), default=0)
    if not most:
        return None
    longest = max(width(name) for name, _ in racks)
    label = min(MOST_NAME, longest) + 3 if longest else 1
    for kind, gap in _CHOICES:
        for beside in range(1, len(racks) + 1):
            band = (cells - (beside - 1) * BETWEEN_RACKS) // beside
            fit = (band - label + GAP) // (kind.cells + GAP)
            if fit < 1:
                break
            across = -(-most // -(-most // fit))
            heights = [
                max(-(-number // across) for _, number in racks[at : at + beside]) * kind.lines
                for at in range(0, len(racks), beside)
            ]
            if sum(heights) + gap * (len(heights) - 1) + bool(quorum) <= rows:
                place = _Place(kind, label, band, across, beside, gap)
                return _placed(racks, quorum, heights, place, cells)
    return None


def boxed(racks: Sequence[tuple[str, int]], quorum: int, cells: int, rows: int) -> Arranged | None:
    """Return the same with a frame around each rack, and racks side by side in as few lines as they need.
    None if nothing fits."""
    most = max((number for _, number in racks), default=0)
    if not most:
        return None
    for kind in (BLOCK, PAIR, ROW):
        choices = []
        for beside in range(1, len(racks) + 1):
            band = cells // beside
            fit = (band - 2 * MARGIN + GAP) // (BLOCK.cells + GAP)
            if fit < 1:
                break
            across = -(-most // -(-most // fit))
            floors = range(0, len(racks), beside)
            heights = [
                max(-(-number // across) for _, number in racks[at : at + beside]) * kind.lines + 2
                for at in floors
            ]
            choices.append((sum(heights) + bool(quorum), beside, band, across, heights))
        fitting = min((each for each in choices if each[0] <= rows), default=None)
        if fitting is not None:
            _, beside, band, across, heights = fitting
            return _placed(racks, quorum, heights, _Place(kind, MARGIN, band, across, beside, 0, True), cells)
    return None


class _Place(NamedTuple):
    """How racks lie: `across` tiles next to each other, `beside` racks, and `gap` lines between them. Frames,
    if there are any, are within the bands."""

    kind: Kind
    label: int
    band: int
    across: int
    beside: int
    gap: int
    is_boxed: bool = False


def _placed(
    racks: Sequence[tuple[str, int]], quorum: int, heights: Sequence[int], place: _Place, cells: int
) -> Arranged:
    edge, between = int(place.is_boxed), 0 if place.is_boxed else BETWEEN_RACKS
    across_cells = (place.band - place.label - edge + GAP) // place.across
    tile_cells = min(MOST_TILE, across_cells - GAP)
    tiles: list[Box] = []
    boxes: list[Box] = []
    y = 0
    for floor, height in enumerate(heights):
        for side, (_, number) in enumerate(racks[floor * place.beside : (floor + 1) * place.beside]):
            left = side * (place.band + between)
            begin = left + place.label
            for at in range(number):
                deep, across = divmod(at, place.across)
                x = begin + across * (tile_cells + GAP)
                top = y + edge + deep * place.kind.lines
                tiles.append(Box(len(tiles), x, top, tile_cells, place.kind.lines))
            lines = -(-number // place.across) * place.kind.lines
            whole = place.label + min(number, place.across) * (tile_cells + GAP) - GAP
            if place.is_boxed:
                is_last = side == place.beside - 1
                lines, whole = height, cells - left if is_last else place.band
            boxes.append(Box(len(boxes), left, y, whole, lines))
        y += height + place.gap
    y -= place.gap
    if quorum:
        begin = max(place.label, len(QUORUM_LABEL) + 1)
        wide = min(tile_cells, max(QUORUM_TILE, (cells - begin + GAP) // quorum - GAP))
        shown = quorum
        if begin + quorum * (wide + GAP) - GAP > cells:
            shown = max(1, (cells - LEFT_CELLS - begin + GAP) // (wide + GAP))
        for at in range(shown):
            tiles.append(Box(len(tiles), begin + at * (wide + GAP), y, wide, 1))
        y += 1
    return Arranged(place.kind, tuple(tiles), tuple(boxes), place.label, y, place.is_boxed)


def rack_name(name: str, label: int) -> str:
    """Return the name of a rack in the cells before its tiles."""
    return content(pad(line(f" {middle(name, label - 3)}"), label - 1)) if label > 1 else ""


class Unwell(Struct, frozen=True):
    """The brokers of the copies that are not in sync, one for each copy."""

    out: Ids
    dead: Ids
    """Those of partitions without a leader."""
    internal: bool
    """Whether copies of internal topics count."""


def unwell(view: View, internal: bool) -> Unwell:
    """Return the copies that are not in sync. In each tile they would be looked for in all partitions."""
    table = view.snapshot.partitions
    counted = (table.replicas >= 0) & (internal | ~table.internal)[:, np.newaxis]
    leaderless = view.partitions.having(PartitionStatus.NO_LEADER)[:, np.newaxis]
    out = counted & ~leaderless & ~view.partitions.in_isr
    return Unwell(table.replicas[out], table.replicas[counted & leaderless], internal)


def broker_tile(view: View, ill: Unwell, at: int, kind: Kind, cells: int, now_ms: int) -> list[Line]:
    """Return the lines of a broker's tile: its state and latency, its traffic, its partitions and copies."""
    table, figures = view.snapshot.brokers, view.brokers
    now = brokers.state(table, figures, at, now_ms)
    begin = line(Span(f" {int(table.id[at])} ", Role.BRIGHT))
    rate = words.at_least(words.si(float(figures.in_rate[at])), bool(figures.in_is_bound[at]))
    state, end = line(Span(f"{now.sign} {now.text}", ROLES[figures.severity[at]])), EMPTY
    if now.fine:
        latency = words.latency(int(table.latency_us[at])) if table.latency_us[at] != UNKNOWN else words.NONE
        sign = Span(f"{now.sign} ", Role.GOOD)
        state = line(sign, Span(latency, Role.DIM))
        if kind.lines == 1:
            end = line(Span(f"{rate} ", Role.TEXT))
        elif figures.is_controller[at]:
            end = line(Span("controller ", Role.DIM))
        if line_width((*begin, *state, *end)) >= cells:
            state, end = (line(sign), end) if kind.lines == 1 else (state, EMPTY)
    lines = [justified((*begin, *state), end, cells)]
    if kind.lines > 1:
        room = cells - len(rate) - 3
        spark = Span(f" {sparkline(figures.in_series[at], room)}", series=0)
        lines.append(justified(line(spark), line(Span(f"{rate} ", Role.TEXT)), cells))
    if kind.lines > 2:
        lines.append(_copies(view, ill, at, cells))
    return [_solid(pad(each, cells)) for each in lines] if is_solid(view, at) else lines


def is_solid(view: View, at: int) -> bool:
    """Return whether a broker's tile is solid, because something is at risk there now."""
    return bool(view.brokers.severity[at] == Severity.RISK)


def _solid(spans: Line) -> Line:
    return tuple(Span(span.text, Role.ALERT) for span in spans)


def _copies(view: View, ill: Unwell, at: int, cells: int) -> Line:
    """Return a sign for each partition that a broker leads and for each other copy, or their numbers.

    A copy of a partition without a leader is ✕, like what a silent broker leads.
    """
    figures, internal, broker = view.brokers, ill.internal, view.snapshot.brokers.id[at]
    leads = int(figures.leads[at]) + (int(figures.leads_internal[at]) if internal else 0)
    copies = int(figures.replicas[at]) + (int(figures.replicas_internal[at]) if internal else 0)
    if min(leads, copies) < 0:
        return line(Span(f" {words.NONE}", Role.DIM))
    dead, out = int((ill.dead == broker).sum()), int((ill.out == broker).sum())
    numbers = (
        (leads, glyphs.DEAD if is_solid(view, at) else glyphs.LEADER, Role.TEXT),
        (max(0, copies - leads - out - dead), glyphs.FOLLOWER, Role.DIM),
        (out, glyphs.OUT_OF_SYNC, Role.WARN),
        (dead, glyphs.DEAD, Role.RISK),
    )
    has_signs = copies + len(numbers) < cells and copies <= MOST_SIGNS
    return line(
        *(
            Span(f" {sign * number if has_signs else f'{number:,}{sign}'}", role)
            for number, sign, role in numbers
            if number
        )
    )


def controller_tile(other: Controller) -> Line:
    """Return the tile of a controller that is not a broker: what it is doing."""
    state = state_cell(controllers.state(other), ROLES[controllers.severity(other)])
    return line(Span(f" {other.node} ", Role.BRIGHT), *state)


def nearest(tiles: Sequence[Box], at: int, across: int, down: int) -> int:
    """Return the tile next to the one at `at`, to its side or above or below, itself if there is none."""
    here = tiles[at]
    middle_x = 2 * here.x + here.width
    if across:
        same = [box for box in tiles if box.y == here.y and (box.x - here.x) * across > 0]
        return min(same, key=lambda box: abs(box.x - here.x)).at if same else at
    beyond = [box for box in tiles if (box.y - here.y) * down > 0]
    return min(
        beyond, key=lambda box: (abs(box.y - here.y), abs(2 * box.x + box.width - middle_x)), default=here
    ).at
