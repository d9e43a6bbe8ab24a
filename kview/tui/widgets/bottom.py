"""The two bottom lines, for status and keys, and the lines between panels."""

from collections.abc import Sequence
from dataclasses import dataclass

from textual.binding import Binding
from textual.widgets import Input

from kview.language import glyphs
from kview.model.events import Severity
from kview.tui.canvas import canvas
from kview.tui.keys import KEY_LINE_NAMES, KEY_LINE_ORDER, KEY_LINE_ORDER_NOT_LIVE
from kview.tui.text import Line, Role, Span, cut, justified, line, line_width, width
from kview.tui.widgets.drawn import Lines

_ROLES: dict[str, Role] = {
    Severity.RISK: Role.RISK,
    Severity.WARN: Role.WARN,
    Severity.GOOD: Role.TEXT,
    Severity.CALM: Role.TEXT,
}


@dataclass(frozen=True, slots=True)
class StatusMessage:
    """A message for the status line, such as a notice. `tail`, such as how to undo a fault, is never cut."""

    text: str = ""
    tail: str = ""
    severity: str = Severity.CALM


def status_line(message: StatusMessage, active: Sequence[str], cells: int) -> Line:
    """Return the latest message with its tail. If there is no message, return the faults in force."""
    if not message.text and active:
        faults = line(Span(" faults ", Role.HEAD), Span(", ".join(active), Role.WARN))
        return justified(cut(faults, cells - 12), line(Span("U undo all ", Role.DIM)), cells)
    if not message.text:
        return ()
    tail = line(Span(f" {glyphs.DOT} {message.tail} ", Role.DIM)) if message.tail else ()
    room = cells - line_width(tail)
    return (*cut(line(Span(f" {message.text}", _ROLES[message.severity])), room), *tail)


class StatusLine(Lines):
    """The line above the keys."""

    DEFAULT_CSS = "StatusLine { height: 1; }"

    def __init__(self) -> None:
        super().__init__(id="status")
        self.message = StatusMessage()
        self.active: tuple[str, ...] = ()

    def lines(self, width: int, height: int) -> list[Line]:
        """Return the status line."""
        return [status_line(self.message, self.active, width)]


def key_line(bindings: Sequence[Binding], cells: int, live: bool = True) -> Line:
    """Return as many keys as fit, in the order of `bindings`. The first of KEY_LINE_ORDER have priority."""
    order = KEY_LINE_ORDER if live else KEY_LINE_ORDER_NOT_LIVE
    rank = {key: position for position, key in enumerate(order)}
    wanted = sorted((b for b in bindings if b.key in rank), key=lambda binding: rank[binding.key])
    room = cells - 1
    kept: set[str] = set()
    actions: set[str] = set()
    for binding in wanted:
        if binding.action in actions:
            continue
        actions.add(binding.action)
        name, description = _in_line(binding)
        size = width(name) + 1 + width(description) + 2
        if size <= room:
            kept.add(binding.key)
            room -= size
    spans: list[Span] = [Span(" ")]
    for binding in bindings:
        if binding.key in kept:
            name, description = _in_line(binding)
            spans += [Span(name, Role.KEY), Span(f" {description}  ", Role.DIM)]
    return cut(tuple(spans), cells)


def _in_line(binding: Binding) -> tuple[str, str]:
    """A key's name and description as they stand in the bottom line."""
    return KEY_LINE_NAMES.get(binding.key, (key_name(binding), binding.description))


def key_name(binding: Binding) -> str:
    """Return a key's name as shown on the screen."""
    return binding.key_display or _KEY_NAMES.get(binding.key, binding.key)


_KEY_NAMES = {
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
    "pageup": "PgUp",
    "pagedown": "PgDn",
    "home": "Home",
    "end": "End",
    "enter": "Enter",
    "escape": "Esc",
    "tab": "Tab",
    "shift+tab": "Shift-Tab",
}


_TYPING = (Binding("enter", "submit", "done"), Binding("escape", "back", "back"))
"""The keys that finish a line of text, for every question."""


class KeyLine(Lines):
    """The line of keys that work on this screen."""

    DEFAULT_CSS = "KeyLine { height: 1; }"

    def __init__(self) -> None:
        super().__init__(id="keys")

    def lines(self, width: int, height: int) -> list[Line]:
        """Return the line, made from the bindings that are in force."""
        active = self.screen.active_bindings.values()
        shown = [entry.binding for entry in active if entry.binding.show and entry.enabled]
        if isinstance(self.screen.focused, Input):  # Letters are typed there.
            shown = [*_TYPING, *(binding for binding in shown if binding.key.startswith("ctrl+"))]
        return [key_line(shown, width, canvas(self).live)]


class Rule(Lines):
    """A horizontal line between panels."""

    DEFAULT_CSS = "Rule { height: 1; }"

    def lines(self, width: int, height: int) -> list[Line]:
        """Return the horizontal line."""
        return [line(Span(glyphs.RULE * width, Role.RULE))]


class Bar(Lines):
    """A vertical line between two panels."""

    DEFAULT_CSS = "Bar { width: 2; height: 1fr; }"

    def lines(self, width: int, height: int) -> list[Line]:
        """Return the vertical line, one cell from the left."""
        return [line(Span(f" {glyphs.BAR}", Role.RULE))] * height


class TooSmall(Lines):
    """The sentence shown instead of the panels if the terminal is too small for them."""

    def lines(self, width: int, height: int) -> list[Line]:
        """Return one sentence, over as many lines as it needs."""
        text = f"{self.app.size.width}×{self.app.size.height} is too small: kview needs 60×15"
        return [line(Span(text[at : at + width], Role.WARN)) for at in range(0, len(text), max(1, width))]
