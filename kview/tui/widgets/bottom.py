"""The two bottom lines, for status and keys, and the lines between panels."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import NamedTuple

from textual.binding import Binding
from textual.events import Click
from textual.widgets import Input

from kview.language import glyphs
from kview.model.events import Severity
from kview.tui.actions import Action, Keys, Kind
from kview.tui.canvas import canvas
from kview.tui.key_names import key_name as named
from kview.tui.text import Line, Role, Span, cut, justified, line, line_width, middle, width
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


def status_lines(message: StatusMessage, active: Sequence[str], cells: int, undo: str) -> list[Line]:
    """Return the latest message with its tail, over as many lines as it needs, at most MOST_STATUS_LINES.

    If there is no message, return the faults in force, and the key `undo` that ends them.
    """
    if not message.text and active:
        faults = line(Span(" faults in force: ", Role.HEAD), Span("; ".join(active), Role.WARN))
        return [
            justified(cut(faults, cells - len(undo) - 11), line(Span(f"{undo} undo all ", Role.DIM)), cells)
        ]
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
        self.chip: Line = ()
        self._needed = 1

    def show(self, message: StatusMessage, active: tuple[str, ...], chip: Line = ()) -> None:
        """Show a message, or the faults in force, and `chip` at the right end. They take as many lines as
        they need."""
        self.message, self.active, self.chip = message, active, chip
        self.attempt(self._fit)
        self.redraw()

    @property
    def _undo(self) -> str:
        return canvas(self).keys.name("undo-faults")

    def _fit(self) -> None:
        needed = len(self.lines(self.app.size.width, MOST_STATUS_LINES))
        if needed != self._needed:
            self._needed = needed
            self.styles.height = needed

    def lines(self, width: int, height: int) -> list[Line]:
        """Return the status line, or its two lines."""
        chip = cut(self.chip, width // 2)
        made = status_lines(self.message, self.active, width - line_width(chip), self._undo)
        return [*made[:-1], justified(made[-1], chip, width)] if chip else made


MOST_CHIP_CELLS = 40


def filter_chip(text: str, problem: str, clear: str) -> Line:
    """Return the chip that says what is filtered, and the key that clears it. A filter with a problem filters
    nothing."""
    if not text:
        return ()
    shown = middle(f"/{text}", MOST_CHIP_CELLS)
    if problem:
        return line(Span(f" {shown} ", Role.WARN))
    return line(Span(f" filter {shown} ", Role.MOMENT), Span(f" {clear} clears it ", Role.DIM))


PLAIN_RANK = 50
"""The rank on the key line of a key whose action is not in the table."""


class KeyMark(NamedTuple):
    """A key on the key line: its name, what it does, the Textual action, and the cells it takes."""

    name: str
    label: str
    run: str
    cells: range = range(0)


def key_marks(
    bindings: Sequence[Binding], keys: Keys, cells: int, live: bool = True, back: str = ""
) -> list[KeyMark]:
    """Return as many keys as fit, in the order of the table of actions. Those of the first ranks have
    priority; while the moment shown is not live, these are the keys of time.

    `back` says what the key that ends a fault does now, '' if it does nothing.
    """
    found: dict[str, tuple[int, int, KeyMark]] = {}
    for binding in bindings:
        action = keys.by_name(binding.id, binding.action)
        if action is None and binding.id is None:
            mark = KeyMark(key_name(binding), binding.description, binding.action)
            found.setdefault(binding.action, (PLAIN_RANK, len(found) - len(bindings), mark))
        elif action is not None and action.rank and (live or action.kind is not Kind.FAULT):
            rank = action.rank - 100 * (not live and action.kind is Kind.TIME)
            rank -= 200 * (action.name in ("help", "quit"))
            place = next(at for at, each in enumerate(keys.actions) if each is action)
            found.setdefault(
                binding.action, (rank, place, _mark(action, keys, back)._replace(run=binding.action))
            )
    room, kept = cells - 1, []
    for _, place, mark in sorted(found.values(), key=lambda each: each[0]):
        size = width(mark.name) + 1 + width(mark.label) + 2
        if size <= room:
            kept.append((place, mark))
            room -= size
    made, at = [], 1
    for _, mark in sorted(kept, key=lambda each: each[0]):
        end = at + width(mark.name) + 1 + width(mark.label)
        made.append(mark._replace(cells=range(at, end)))
        at = end + 2
    return made


def key_line(bindings: Sequence[Binding], keys: Keys, cells: int, live: bool = True, back: str = "") -> Line:
    """Return the key line: the keys of `key_marks`."""
    spans: list[Span] = [Span(" ")]
    for mark in key_marks(bindings, keys, cells, live, back):
        spans += [Span(mark.name, Role.KEY), Span(f" {mark.label}  ", Role.DIM)]
    return cut(tuple(spans), cells)


def _mark(action: Action, keys: Keys, back: str) -> KeyMark:
    """Return an action's key and label as they stand in the key line."""
    label = back if back and action.name == RESTORE else action.short or action.label
    name = keys.name(action.name)
    if action.pair:
        between = "" if name in "←→" else " "
        name = f"{name}{between}{keys.name(action.pair)}"
    return KeyMark(name, label, action.run)


RESTORE = "restore"
"""The action that ends a node's fault; the key line names the node."""


def key_name(binding: Binding) -> str:
    """Return a key's name as shown on the screen."""
    return binding.key_display or named(binding.key)


def shown_key(key: str, character: str | None) -> str:
    """Return the name of any key, bound or not. `character` is what it types, None if nothing."""
    if character is not None and character.isprintable() and not character.isspace():
        return character
    return named(key)


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
        at = canvas(self)
        return [key_line(self._shown(), at.keys, width, at.live, at.back_name)]

    def _shown(self) -> list[Binding]:
        if self.app.screen is not self.screen:  # The list of `:` lies over this screen.
            return [Binding("enter", "submit", "go there"), Binding("escape", "back", "cancel")]
        active = self.screen.active_bindings.values()
        shown = [entry.binding for entry in active if entry.binding.show and entry.enabled]
        line = self.screen.focused
        if isinstance(line, Input):  # Letters are typed there.
            asked = line.question if isinstance(line, Prompt) else None
            typed = (replace(each, id=None) for each in shown if each.key.startswith("ctrl+"))
            shown = [*_typing(asked), *typed]
        return shown

    async def on_click(self, event: Click) -> None:
        """Do what the key under the mouse does."""
        at = canvas(self)
        for mark in key_marks(self._shown(), at.keys, self.size.width, at.live, at.back_name):
            entry = next(
                (e for e in self.screen.active_bindings.values() if e.binding.action == mark.run), None
            )
            if event.x in mark.cells and entry is not None and entry.enabled:
                await self.app.run_action(entry.binding.action, entry.node)


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
