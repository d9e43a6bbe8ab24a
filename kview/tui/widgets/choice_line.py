"""A line of choices, of which one is current: tabs, or what a list is narrowed to."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from textual import events
from textual.message import Message

from kview.language.glyphs import ELLIPSIS, MARK
from kview.tui.text import Line, Role, Span, cut, line, line_width
from kview.tui.widgets.drawn import Lines

GAP = 2
"""The number of cells between two choices, one of which holds the mark of the current choice."""

MARGIN = 2


class Choice(NamedTuple):
    """One choice: its name, and a figure that belongs to it, in the role that says how bad that is."""

    key: Hashable
    name: str
    figure: str = ""
    role: Role = Role.DIM
    optional: bool = False
    """Whether the choice may be left out where there is too little room, unless it is current."""


class ChoiceLine(Lines):
    """A line of choices. Clicking one of them selects it; keys belong to the screen."""

    DEFAULT_CSS = "ChoiceLine { height: 1; }"

    @dataclass
    class Chosen(Message):
        """The user clicked a choice."""

        line: "ChoiceLine"
        key: Hashable

        @property
        def control(self) -> "ChoiceLine":
            """The line, for handlers that name it."""
            return self.line

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self.choices: Sequence[Choice] = ()
        self.current: Hashable = None

    def fill(self, make: Callable[[], Sequence[Choice]], current: Hashable) -> None:
        """Show the choices that `make` returns. If `make` raises an exception, the line says so."""

        def take() -> None:
            self.choices, self.current = make(), current

        self.attempt(take)
        self.redraw()

    def after(self, by: int) -> Hashable:
        """Return the choice `by` places after the current one. The last is followed by the first."""
        keys = [choice.key for choice in self.choices]
        if not keys:
            return self.current
        at = keys.index(self.current) if self.current in keys else 0
        return keys[(at + by) % len(keys)]

    def lines(self, width: int, height: int) -> list[Line]:
        first, places = self._placed(width)
        spans = line(Span(f" {ELLIPSIS}" if first else " " * MARGIN, Role.DIM))
        for choice, _, _ in places:
            spans += (*self._drawn(choice), Span(" " * (GAP - 1)))
        if first + len(places) < len(self._offered(width)):
            spans = (*cut(spans[:-1], width - MARGIN), Span(f" {ELLIPSIS}", Role.DIM))
        return [cut(spans, width)]

    def _drawn(self, choice: Choice) -> Line:
        is_current = choice.key == self.current
        mark = Span(MARK if is_current else " ", Role.KEY)
        name = Span(choice.name, Role.BRIGHT if is_current else Role.DIM)
        if not choice.figure:
            return line(mark, name)
        return line(mark, name, " ", Span(choice.figure, choice.role))

    def _offered(self, width: int) -> Sequence[Choice]:
        """Return the choices that are drawn, without optional ones if not all of them fit."""
        needed = MARGIN + sum(line_width(self._drawn(choice)) + GAP - 1 for choice in self.choices)
        if needed <= width:
            return self.choices
        return [choice for choice in self.choices if not choice.optional or choice.key == self.current]

    def _placed(self, width: int) -> tuple[int, list[tuple[Choice, int, int]]]:
        """Return the first choice in sight, and all in sight, each with its first cell and the one after it.

        The current choice is always in sight.
        """
        offered = self._offered(width)
        keys = [choice.key for choice in offered]
        at = keys.index(self.current) if self.current in keys else 0
        for first in range(at + 1):
            places: list[tuple[Choice, int, int]] = []
            cell = MARGIN
            for choice in offered[first:]:
                end = cell + line_width(self._drawn(choice))
                if end > width - MARGIN and places:
                    break
                places.append((choice, cell, end))
                cell = end + GAP - 1
            if first + len(places) > at:
                return first, places
        return 0, []

    def on_click(self, event: events.Click) -> None:
        """Select the choice under the mouse."""
        _, places = self._placed(self.size.width)
        for choice, begin, end in places:
            if begin <= event.x < end:
                self.post_message(self.Chosen(self, choice.key))
