"""The two bottom lines: what was just done, and the keys."""

from collections.abc import Sequence
from dataclasses import dataclass

from textual.binding import Binding
from textual.widgets import Input

from kview.language import glyphs
from kview.model.events import Severity
from kview.tui.canvas import canvas
from kview.tui.keys import KEY_LINE_ORDER, KEY_LINE_ORDER_HELD, KEY_LINE_PAIRS
from kview.tui.text import Line, Role, Span, cut, justified, line, line_width, width
from kview.tui.widgets.drawn import Lines

_ROLES: dict[str, Role] = {
    Severity.RISK: Role.RISK,
    Severity.WARN: Role.WARN,
    Severity.GOOD: Role.TEXT,
    Severity.CALM: Role.TEXT,
}


@dataclass(frozen=True, slots=True)
class Said:
    """What kview has to say: a fault's reply, a notice. `tail` is how to undo it, and is never cut."""

    text: str = ""
    tail: str = ""
    severity: str = Severity.CALM


def status_line(said: Said, active: Sequence[str], cells: int) -> Line:
    """What was just done and how to undo it; where nothing was, the faults in force."""
    if not said.text and active:
        faults = line(Span(" faults ", Role.HEAD), Span(", ".join(active), Role.WARN))
        return justified(cut(faults, cells - 12), line(Span("U undo all ", Role.DIM)), cells)
    if not said.text:
        return ()
    tail = line(Span(f" {glyphs.DOT} {said.tail} ", Role.DIM)) if said.tail else ()
    room = cells - line_width(tail)
    return (*cut(line(Span(f" {said.text}", _ROLES[said.severity])), room), *tail)


class StatusLine(Lines):
    """The line above the keys."""

    DEFAULT_CSS = "StatusLine { height: 1; }"

    def __init__(self) -> None:
        super().__init__(id="status")
        self.said = Said()
        self.active: tuple[str, ...] = ()

    def lines(self, width: int, height: int) -> list[Line]:
        """The line."""
        return [status_line(self.said, self.active, width)]


def key_line(bindings: Sequence[Binding], cells: int, live: bool = True) -> Line:
    """As many keys as fit, in their own order, the most wanted ones kept."""
    order = KEY_LINE_ORDER if live else KEY_LINE_ORDER_HELD
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
    """A key's name and what it does, in the bottom line."""
    return KEY_LINE_PAIRS.get(binding.key, (key_name(binding), binding.description))


def key_name(binding: Binding) -> str:
    """How a key is written."""
    if binding.key_display:
        return binding.key_display
    return {"enter": "Enter", "escape": "Esc", "left": "←→"}.get(binding.key, binding.key)


_TYPING = (Binding("enter", "submit", "done"), Binding("escape", "back", "back"))
"""What ends a line of text, whatever is asked."""


class KeyLine(Lines):
    """The keys that work here."""

    DEFAULT_CSS = "KeyLine { height: 1; }"

    def __init__(self) -> None:
        super().__init__(id="keys")

    def lines(self, width: int, height: int) -> list[Line]:
        """The line, from the bindings that are in force."""
        active = self.screen.active_bindings.values()
        shown = [entry.binding for entry in active if entry.binding.show and entry.enabled]
        if isinstance(self.screen.focused, Input):  # letters are typed
            shown = [*_TYPING, *(binding for binding in shown if binding.key.startswith("ctrl+"))]
        return [key_line(shown, width, canvas(self).live)]


class Rule(Lines):
    """A line across."""

    DEFAULT_CSS = "Rule { height: 1; }"

    def lines(self, width: int, height: int) -> list[Line]:
        """The line."""
        return [line(Span(glyphs.RULE * width, Role.RULE))]


class Bar(Lines):
    """A line down, between two panels."""

    DEFAULT_CSS = "Bar { width: 2; height: 1fr; }"

    def lines(self, width: int, height: int) -> list[Line]:
        """The line, a cell in from the left."""
        return [line(Span(f" {glyphs.BAR}", Role.RULE))] * height


class TooSmall(Lines):
    """What is shown instead of panels where there is no room for them."""

    def lines(self, width: int, height: int) -> list[Line]:
        """One sentence, over as many lines as it needs."""
        text = f"{self.app.size.width}×{self.app.size.height} is too small: kview needs 60×15"
        return [line(Span(text[at : at + width], Role.WARN)) for at in range(0, len(text), max(1, width))]
