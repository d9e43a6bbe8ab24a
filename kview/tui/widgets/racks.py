"""The panel of brokers: tiles in their racks, as long as every broker has room for one, else a table."""

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.strip import Strip

from kview.language import glyphs
from kview.model.events import Severity
from kview.tui import edges
from kview.tui.app_of import app_of
from kview.tui.looks import Look, Spot
from kview.tui.palette import PLAIN
from kview.tui.rows.brokers import BrokerRows
from kview.tui.rows.tiles import (
    LEFT_CELLS,
    MARGIN,
    QUORUM_LABEL,
    Arranged,
    Box,
    Kind,
    arranged,
    boxed,
    rack_name,
)
from kview.tui.text import Line, Role, Span, Title, blank, line, line_width, middle, strip
from kview.tui.widgets.table import SELECTED
from kview.tui.widgets.tiled import Tiled

_LINES = {"in": 1, "out": 1, "spark": 1, "leads": 2, "replicas": 2}
"""The line of a tile that has a column's figure, if it is not the first."""

_ON_TILES = {"latency", "in", "spark", "leads", "replicas"}
"""The columns whose figures tiles have, too."""

_Piece = tuple[int, Strip]
"""What is painted from a cell on."""


class Racks(Tiled):
    """Racks with their brokers as tiles. Rows that the user has sorted, or that are too many, are a table."""

    _placed: tuple[object, Arranged | None] = (None, None)
    wants_boxes = False
    """Whether racks have frames of their own."""

    @property
    def arranged(self) -> Arranged | None:
        """Where the tiles lie, None if the rows are a table."""
        rows, size = self.rows, self.size
        if not isinstance(rows, BrokerRows) or not rows.racks:
            return None
        wanted = (rows.racks, rows.quorum, size.width - self._margin, size.height)
        if self._placed[0] != (wanted, self.wants_boxes):
            arrange = boxed if self.wants_boxes else arranged
            self._placed = ((wanted, self.wants_boxes), arrange(*wanted))
        return self._placed[1]

    @property
    def boxes(self) -> Sequence[Box] | None:
        """Where the tiles lie."""
        placed = self.arranged
        return None if placed is None else placed.tiles

    @property
    def has_racks(self) -> bool:
        """Whether it has racks to draw. Rows that the user has sorted are in none."""
        return isinstance(self.rows, BrokerRows) and bool(self.rows.racks)

    @property
    def _margin(self) -> int:
        return 0 if self.wants_boxes else MARGIN

    # -- keys and mouse

    def on_click(self, event: events.Click) -> None:
        """Select the tile under the mouse. A double click opens it. Rows are the table's own."""
        boxes = self.boxes
        if boxes is None:
            return
        event.prevent_default()
        for box in boxes:
            if box.holds(event.x - self._margin, event.y):
                if box.at == self.index and event.chain > 1:
                    self.action_open()
                else:
                    self.choose(box.at)

    def choose(self, index: int) -> None:
        """Select the row at an index, or the nearest one that has a tile."""
        boxes = self.boxes
        super().choose(index if boxes is None else max(0, min(index, len(boxes) - 1)))

    # -- how it is drawn

    def figures(self) -> list[str]:
        """Return the names of the figures that it can show: tiles have fewer than rows."""
        if self.arranged is None:
            return super().figures()
        return [column.title for column in self.rows.columns if column.title and column.key in _ON_TILES]

    @property
    def in_sight(self) -> list[object]:
        """The keys of the rows in sight: of all that have a tile."""
        boxes = self.boxes
        if boxes is None:
            return list(super().in_sight)
        return [self.rows.key(box.at) for box in boxes] if self.is_shown and self.is_drawn else []

    def painted(self, size: Size) -> list[Strip]:
        """Return the strips of the tiles, or those of a table."""
        placed, rows = self.arranged, self.rows
        if placed is None or not isinstance(rows, BrokerRows):
            return super().painted(size)
        self.title = None if placed.is_boxed else Title(rows.title, has_note=True)
        pieces: dict[int, list[_Piece]] = {}
        lost: dict[int, list[Box]] = {}
        for box in placed.racks:
            state = rows.rack_state(box.at)
            if placed.is_boxed:
                self._frame(pieces, box, rows)
            name = rack_name(rows.racks[box.at][0], placed.label)
            for y in range(box.y, box.y + box.height):
                if state is Role.ALERT:
                    lost.setdefault(y, []).append(box)
                if placed.is_boxed:
                    continue
                text = line(Span(name if y == box.y else " " * (placed.label - 1), state))
                self._put(pieces, box.x, y, text, placed.label - 1)
        for box in placed.tiles:
            self._paint_tile(pieces, box, placed.kind, rows)
        if rows.quorum:
            last, left = placed.tiles[-1], len(rows) - len(placed.tiles)
            self._put(pieces, 0, last.y, line(Span(QUORUM_LABEL, Role.HEAD)), len(QUORUM_LABEL))
            if left:
                is_wrong = bool(rows.in_trouble[-left:].any())
                more = line(Span(f" +{left}", Role.WARN if is_wrong else Role.DIM))
                self._put(pieces, last.x + last.width, last.y, more, LEFT_CELLS)
        return [self._joined(pieces.get(y, []), lost.get(y, []), size.width) for y in range(size.height)]

    def _joined(self, pieces: list[_Piece], lost: list[Box], cells: int) -> Strip:
        """Return a line of pieces. Between those of a lost rack it is solid."""
        palette = app_of(self).palette
        solid = palette.base + palette.style(Role.ALERT)
        margin = self._margin
        parts, end = [blank(margin, palette)] if margin else [], 0
        for x, piece in sorted(pieces, key=lambda pair: pair[0]):
            if x > end:
                is_solid = any(box.x <= end and x < box.x + box.width for box in lost)
                parts.append(
                    Strip([Segment(" " * (x - end), solid)]) if is_solid else blank(x - end, palette)
                )
            parts.append(piece)
            end = x + piece.cell_length
        if end + margin < cells:
            parts.append(blank(cells - end - margin, palette))
        return Strip.join(parts).crop(0, cells)

    def _frame(self, pieces: dict[int, list[_Piece]], box: Box, rows: BrokerRows) -> None:
        """Draw a rack's frame, with its name and how many of its brokers are up. A filter is named in the
        first one."""
        state, name = rows.rack_state(box.at), rows.racks[box.at][0]
        role = Role.KEY if self.has_focus else Role.RULE
        title = line(Span(f"RACK {name}", state)) if name else rows.title[:1]
        title = (*title, *rows.title[1:]) if not box.at else title
        room = edges.title_cells(box.width, True) - 2
        scope = rows.rack_counts(box.at, room - line_width(title))
        if state is Role.ALERT:
            role, scope = state, tuple(span._replace(role=state) for span in scope)
        last = box.y + box.height - 1
        title = (title[0]._replace(text=middle(title[0].text, room - line_width(scope))), *title[1:])
        self._put(pieces, box.x, box.y, edges.upper(title, scope, box.width, role), box.width)
        for y in range(box.y + 1, last):
            self._put(pieces, box.x, y, line(Span(glyphs.BAR, role)), 1)
            self._put(pieces, box.x + box.width - 1, y, line(Span(glyphs.BAR, role)), 1)
        self._put(pieces, box.x, last, edges.lower(box.width, role), box.width)

    def _put(
        self,
        pieces: dict[int, list[_Piece]],
        x: int,
        y: int,
        spans: Line,
        cells: int,
        over: Style | None = None,
    ) -> None:
        at = app_of(self)
        pieces.setdefault(y, []).append((x, strip(spans, cells, at.palette, at.ascii_only, over)))

    def _paint_tile(self, pieces: dict[int, list[_Piece]], box: Box, kind: Kind, rows: BrokerRows) -> None:
        at = app_of(self)
        is_selected = box.at == self.index
        is_broker = box.at < len(rows) - rows.quorum
        severity = rows.severities[box.at] if is_broker else None
        over = self._over(is_selected, severity)
        if rows.is_fresh(box.at, at.now_ms()) and severity != Severity.RISK:
            over = at.palette.fresh if over is None else over + at.palette.fresh
        for number, spans in enumerate(rows.tile(box.at, kind, box.width, at.now_ms())):
            if is_selected and not number:
                first, *rest = spans
                in_trouble = self.has_focus and severity in (Severity.RISK, Severity.WARN)
                mark = Span(SELECTED.text[0], Role.MOMENT if in_trouble else first.role)
                spans = (mark, first._replace(text=first.text[1:]), *rest)
            self._put(pieces, box.x, box.y + number, spans, box.width, over)

    def _over(self, is_selected: bool, severity: str | None) -> Style | None:
        """Return what is behind a tile: trouble, else the selection, and nothing for a controller, which has
        no `severity` here. A solid tile stays as it is: bold black is grey in 16 colours."""
        palette = app_of(self).palette
        if severity == Severity.RISK:
            return None
        if severity == Severity.WARN and palette.warned:
            return palette.warned
        if is_selected and self.has_focus and palette is not PLAIN:
            return Style(bgcolor=palette.selected.bgcolor, bold=palette.selected.bold)
        return palette.marked if severity is not None or is_selected else None

    def spots(self, look: Look) -> list[Spot]:
        """Return the cells that a mark is about: a tile, or the line of it with a figure."""
        placed, index = self.arranged, None if look.key is None else self.rows.find(look.key)
        if placed is None or look.key is None:
            return super().spots(look)
        if index is None or index >= len(placed.tiles):
            return []
        box = placed.tiles[index]
        y = min(_LINES.get(look.column, 0), box.height - 1)
        begin = self._margin + box.x
        return [Spot(box.y + y, begin, begin + box.width, begin)]
