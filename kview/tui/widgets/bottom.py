"""The two bottom lines, for status and keys."""

from collections.abc import Sequence
from textwrap import wrap

from msgspec import Struct
from textual.binding import Binding

from kview.language import glyphs
from kview.model.events import Severity
from kview.tui.app_of import app_of
from kview.tui.key_names import key_name as named
from kview.tui.layout import FRAMED_HEIGHT
from kview.tui.text import Line, Role, Span, cut, justified, line, line_width, middle
from kview.tui.widgets.drawn import Lines

_ROLES: dict[str, Role] = {
    Severity.RISK: Role.RISK,
    Severity.WARN: Role.WARN,
    Severity.GOOD: Role.TEXT,
    Severity.CALM: Role.TEXT,
}


class StatusMessage(Struct, frozen=True):
    """A message for the status line, such as a notice. `tail`, such as how to undo a fault, is not cut, but
    for a calm message below a caption on a low screen. `link` is an address that the terminal opens if the
    text is clicked."""

    text: str = ""
    tail: str = ""
    severity: str = Severity.CALM
    link: str = ""


SHOWN_MS = 10_000
"""How long the status line shows a message, so that there is time to read it and to try the undo it
mentions."""


class Status:
    """Which message the status line shows, and for how long: the latest one."""

    def __init__(self) -> None:
        self.message = StatusMessage()
        self._until_ms: int | None = None

    @property
    def is_kept(self) -> bool:
        """Whether the message stays until the next one."""
        return bool(self.message.text) and self._until_ms is None

    def say(self, message: StatusMessage, now_ms: int, keep: bool) -> None:
        """Show a message from `now_ms` on. With `keep`, the message stays until the next one."""
        self.message = message
        self._until_ms = None if keep else now_ms + SHOWN_MS

    def expire(self, now_ms: int) -> bool:
        """Forget a message that has been shown for long enough. Returns whether it did."""
        if not self.message.text or self._until_ms is None or now_ms <= self._until_ms:
            return False
        self.message, self._until_ms = StatusMessage(), None
        return True


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
    whole = line(Span(f" {message.text}", role, link=message.link))
    if line_width(whole) + line_width(tail) <= cells:
        return [(*whole, *tail)]
    # Narrower by one cell than the line, because wide characters may stand on both of its ends.
    parts = wrap(message.text, max(cells - 2, 1), break_on_hyphens=False) or [""]
    first, rest = parts[0], " ".join(parts[1:])
    begin = cut(line(Span(f" {first}", role, link=message.link)), cells)
    if not rest:
        return [begin, cut(line(Span(f" {message.tail} ", Role.DIM)), cells)] if message.tail else [begin]
    room = cells - line_width(tail)
    return [begin, (*cut(line(Span(f" {rest}", role, link=message.link)), room), *tail)]


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
    def _is_crowded(self) -> bool:
        """Whether a caption on a low screen says what happens, so that a calm message has one line."""
        host = app_of(self)
        is_low = self.app.size.height < FRAMED_HEIGHT
        return is_low and host.teaching.caption is not None and self.message.severity == Severity.CALM

    @property
    def _undo(self) -> str:
        return app_of(self).keys.name("undo-faults")

    def _fit(self) -> None:
        needed = len(self.lines(self.app.size.width, MOST_STATUS_LINES))
        if needed != self._needed:
            self._needed = needed
            self.styles.height = needed

    def lines(self, width: int, height: int) -> list[Line]:
        """Return the status line, or its two lines."""
        chip = cut(self.chip, width // 2)
        room = width - line_width(chip)
        lines = status_lines(self.message, self.active, room, self._undo)
        if len(lines) > 1 and self._is_crowded:
            lines = [cut((*lines[0], Span(glyphs.ELLIPSIS, Role.DIM)), room)]
        return [*lines[:-1], justified(lines[-1], chip, width)] if chip else lines


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


def key_name(binding: Binding) -> str:
    """Return a key's name as shown on the screen."""
    return binding.key_display or named(binding.key)


def shown_key(key: str, character: str | None) -> str:
    """Return the name of any key, bound or not. `character` is what it types, None if nothing."""
    if character is not None and character.isprintable() and not character.isspace():
        return character
    return named(key)


class TooSmall(Lines):
    """The sentence shown instead of the panels if the terminal is too small for them."""

    def lines(self, width: int, height: int) -> list[Line]:
        """Return one sentence, over as many lines as it needs."""
        text = f"{self.app.size.width}×{self.app.size.height} is too small: kview needs 60×15"
        return [line(Span(text[at : at + width], Role.WARN)) for at in range(0, len(text), max(1, width))]
