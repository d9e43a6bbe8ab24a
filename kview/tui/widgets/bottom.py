"""The two bottom lines, for status and keys, and the lines between panels."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from textual.binding import Binding
from textual.widgets import Input

from kview.language import glyphs
from kview.model.events import Severity
from kview.tui.canvas import canvas
from kview.tui.keys import KEY_LINE_NAMES, KEY_LINE_ORDER, KEY_LINE_ORDER_NOT_LIVE
from kview.tui.text import Line, Role, Span, cut, justified, line, line_width, width
from kview.tui.widgets.drawn import Lines
from kview.tui.widgets.prompt import Prompt, Question

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


MOST_STATUS_LINES = 2


def status_lines(message: StatusMessage, active: Sequence[str], cells: int) -> list[Line]:
    """Return the latest message with its tail, over as many lines as it needs, at most MOST_STATUS_LINES.

    If there is no message, return the faults in force.
    """
    if not message.text and active:
        faults = line(Span(" faults in force: ", Role.HEAD), Span("; ".join(active), Role.WARN))
        return [justified(cut(faults, cells - 12), line(Span("U undo all ", Role.DIM)), cells)]
    if not message.text:
        return [()]
    role = _ROLES[message.severity]
    tail = line(Span(f" {glyphs.DOT} {message.tail} ", Role.DIM)) if message.tail else ()
    whole = line(Span(f" {message.text}", role))
    if line_width(whole) + line_width(tail) <= cells:
        return [(*whole, *tail)]
    # Narrower by one cell than the line, because wide characters may stand on both of its ends.
    parts = wrap(message.text, max(cells - 2, 1)) or [""]
    first, rest = parts[0], " ".join(parts[1:])
    begin = cut(line(Span(f" {first}", role)), cells)
    if not rest:
        return [begin, cut(line(Span(f" {message.tail} ", Role.DIM)), cells)] if message.tail else [begin]
    room = cells - line_width(tail)
    return [begin, (*cut(line(Span(f" {rest}", role)), room), *tail)]


class StatusLine(Lines):
    """The line above the keys."""

    DEFAULT_CSS = "StatusLine { height: 1; }"

    def __init__(self) -> None:
        super().__init__(id="status")
        self.message = StatusMessage()
        self.active: tuple[str, ...] = ()
        self._needed = 1

    def show(self, message: StatusMessage, active: tuple[str, ...]) -> None:
        """Show a message, or the faults in force, and take as many lines as they need."""
        self.message, self.active = message, active
        self.attempt(self._fit)
        self.redraw()

    def _fit(self) -> None:
        needed = len(status_lines(self.message, self.active, self.app.size.width))
        if needed != self._needed:
            self._needed = needed
            self.styles.height = needed

    def lines(self, width: int, height: int) -> list[Line]:
        """Return the status line, or its two lines."""
        return status_lines(self.message, self.active, width)


def key_line(bindings: Sequence[Binding], cells: int, live: bool = True, back: str = "") -> Line:
    """Return as many keys as fit, in the order of `bindings`. The first of KEY_LINE_ORDER have priority.

    `back` says what `B` does now, '' if it does nothing.
    """
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
        name, description = _in_line(binding, back)
        size = width(name) + 1 + width(description) + 2
        if size <= room:
            kept.add(binding.key)
            room -= size
    spans: list[Span] = [Span(" ")]
    for binding in bindings:
        if binding.key in kept:
            name, description = _in_line(binding, back)
            spans += [Span(name, Role.KEY), Span(f" {description}  ", Role.DIM)]
    return cut(tuple(spans), cells)


def _in_line(binding: Binding, back: str) -> tuple[str, str]:
    """A key's name and description as they stand in the bottom line."""
    if back and binding.key == "B":
        return "B", back
    return KEY_LINE_NAMES.get(binding.key, (key_name(binding), binding.description))


def key_name(binding: Binding) -> str:
    """Return a key's name as shown on the screen."""
    return binding.key_display or _KEY_NAMES.get(binding.key, binding.key)


def shown_key(key: str, character: str | None) -> str:
    """Return the name of any key, bound or not. `character` is what it types, None if nothing."""
    if character is not None and character.isprintable() and not character.isspace():
        return character
    return _KEY_NAMES.get(key, key.replace("ctrl+", "^"))


_KEY_NAMES = {
    "delete": "Del",
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


def _typing(asked: Question | None) -> list[Binding]:
    """Return the keys that finish a line of text: the answer to a question, or the filter."""
    enter, escape = ("keep", "clear") if asked is None else (asked.enter, "cancel")
    return [Binding("enter", "submit", enter), Binding("escape", "back", escape)]


class KeyLine(Lines):
    """The line of keys that work on this screen."""

    DEFAULT_CSS = "KeyLine { height: 1; }"

    def __init__(self) -> None:
        super().__init__(id="keys")

    def lines(self, width: int, height: int) -> list[Line]:
        """Return the line, made from the bindings that are in force."""
        active = self.screen.active_bindings.values()
        shown = [entry.binding for entry in active if entry.binding.show and entry.enabled]
        line = self.screen.focused
        if isinstance(line, Input):  # Letters are typed there.
            asked = line.question if isinstance(line, Prompt) else None
            shown = [*_typing(asked), *(binding for binding in shown if binding.key.startswith("ctrl+"))]
        return [key_line(shown, width, canvas(self).live, canvas(self).back_name)]


class Rule(Lines):
    """A horizontal line between panels."""

    DEFAULT_CSS = "Rule { height: 1; }"

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)

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
