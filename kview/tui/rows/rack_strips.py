"""All brokers in a few lines: a sign for each of them, by rack."""

from collections import Counter

from kview.derive.brokers.controllers import ControllerState, controllers
from kview.derive.view import View
from kview.language import brokers, glyphs, words
from kview.model.events import severity_rank
from kview.tui.rows.common import ROLES
from kview.tui.rows.sorting import by_number
from kview.tui.text import EMPTY, Line, Role, Span, cut, justified, line, line_width, middle

MOST_NAME = 16
"""A longer name of a rack is cut in its middle."""

_BETWEEN = "  "


def strips(view: View, cells: int, most: int, now_ms: int) -> list[Line]:
    """Return at most `most` lines with a sign per broker, or with numbers if there are too many brokers.

    The first line ends with the number of brokers, how many of them are not OK, and how many controllers that
    are not brokers are down.
    """
    racks, total = _counted(view, now_ms)
    for make in (_signs, _numbers):
        lines = _wrapped([make(rack, signs) for rack, signs in racks.items()], total, cells)
        if len(lines) <= most:
            return lines
    return [*lines[: most - 1], cut((*lines[most - 1], Span(f" {glyphs.ELLIPSIS}")), cells)]


def one_line(view: View, cells: int, now_ms: int) -> Line:
    """Return a sign per broker, else the numbers of them, and how many are not OK if there is room."""
    racks, total = _counted(view, now_ms)
    for make in (_signs, _numbers):
        parts = [make(rack, signs) for rack, signs in racks.items()]
        shown = tuple(span for part in parts for span in (Span(_BETWEEN), *part))[1:]
        if line_width(shown) <= cells:
            has_room = line_width(shown) + len(_BETWEEN) + line_width(total) <= cells
            return justified(shown, total, cells) if has_room else shown
    return cut(shown, cells)


def _counted(view: View, now_ms: int) -> tuple[dict[str, list[tuple[int, str, Role]]], Line]:
    """Return the brokers by rack, each with its rank, sign and role, and how many there are and are not
    OK."""
    table, figures = view.snapshot.brokers, view.brokers
    racks: dict[str, list[tuple[int, str, Role]]] = {}
    rows = sorted(range(len(table)), key=lambda row: (by_number(str(table.rack[row])), int(table.id[row])))
    unwell = 0
    for row in rows:
        said = brokers.state(table, figures, row, now_ms)
        severity = figures.severity[row]
        unwell += not said.fine
        role = Role.GOOD if said.fine else ROLES[severity]
        racks.setdefault(str(table.rack[row]), []).append((severity_rank(severity), said.sign, role))
    down = sum(
        controller.state is ControllerState.LOST and not controller.is_broker
        for controller in controllers(view)
    )
    return racks, _total(len(table), unwell, down)


def _total(number: int, unwell: int, down: int) -> Line:
    well = Span("all OK", Role.DIM) if not unwell else Span(f"{unwell:,} not OK", Role.BRIGHT)
    more = (Span(f" {glyphs.DOT} {words.plural(down, 'controller')} down", Role.WARN),) if down else ()
    return line(Span(f"{words.plural(number, 'broker')}, ", Role.DIM), well, *more, " ")


def _name(rack: str) -> Line:
    return line(Span(f"{middle(rack, MOST_NAME)} ", Role.HEAD)) if rack else EMPTY


def _signs(rack: str, signs: list[tuple[int, str, Role]]) -> Line:
    """Return a rack's name and the sign of each of its brokers, in order of their ids."""
    return (*_name(rack), *(Span(sign, role) for _, sign, role in signs))


def _numbers(rack: str, signs: list[tuple[int, str, Role]]) -> Line:
    """Return a rack's name and the number of its brokers with each sign, the worst first."""
    counted = Counter(sorted(signs, key=lambda each: each[0]))
    spans: list[Span] = [*_name(rack)]
    for (_, sign, role), number in counted.items():
        spans.append(Span(f"{sign}{number:,} ", role))
    return tuple(spans)


def _wrapped(parts: list[Line], total: Line, cells: int) -> list[Line]:
    """Return the parts over as many lines as they need, and the total at the end of the first line."""
    lines: list[Line] = []
    room = cells - line_width(total) - len(_BETWEEN)
    for part in parts:
        for piece in _pieces(part, cells - len(_BETWEEN)):
            width = line_width(piece) + len(_BETWEEN)
            if lines and line_width(lines[-1]) + width <= (room if len(lines) == 1 else cells):
                lines[-1] = (*lines[-1], Span(_BETWEEN), *piece)
            else:
                if not lines and width > room:
                    lines.append(EMPTY)
                lines.append((Span(_BETWEEN), *piece))
    first = justified(lines[0], total, cells) if lines else total
    return [first, *lines[1:]]


def _pieces(part: Line, cells: int) -> list[Line]:
    """Return a part in pieces that fit a line each."""
    pieces: list[Line] = [EMPTY]
    for span in part:
        if line_width((*pieces[-1], span)) > cells and pieces[-1]:
            pieces.append(EMPTY)
        pieces[-1] = (*pieces[-1], span)
    return pieces
