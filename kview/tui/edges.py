"""The edges of panels and of boxes: lines with a title at the left and what is in sight at the right."""

from kview.language import glyphs
from kview.tui.text import EMPTY, Line, Role, Span, cut, line, line_width

FRAMED, UNFRAMED = glyphs.CORNERS[0] + glyphs.RULE, glyphs.RULE
"""What an upper edge begins with, in front of the title, with and without a frame."""


def upper(title: Line, scope: Line, cells: int, role: Role, framed: bool = True) -> Line:
    """Return an upper edge. The title is cut if there is too little room for it."""
    begin = FRAMED if framed else UNFRAMED
    end = f"{glyphs.RULE}{glyphs.CORNERS[1]}" if framed else UNFRAMED
    space = Span(" ", role)
    scope = (space, *scope, space) if scope else EMPTY
    title = cut(title, title_cells(cells, framed) - line_width(scope))
    title = (space, *title, space) if title else EMPTY
    rest = cells - len(begin) - line_width(title) - line_width(scope) - len(end)
    return (Span(begin, role), *title, Span(glyphs.RULE * rest, role), *scope, Span(end, role))


def title_cells(cells: int, framed: bool) -> int:
    """Return the cells that a title has at most in an edge of so many `cells`."""
    return max(0, cells - 2 * len(FRAMED if framed else UNFRAMED) - 2)


def lower(cells: int, role: Role) -> Line:
    """Return the lower edge of a frame."""
    return line(Span(f"{glyphs.CORNERS[2]}{glyphs.RULE * (cells - 2)}{glyphs.CORNERS[3]}", role))
