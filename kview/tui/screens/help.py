"""`?`: the signs, the words, what the figures of the screen below mean, and its keys, from its bindings."""

from collections.abc import Sequence
from itertools import zip_longest
from textwrap import wrap
from typing import ClassVar, NamedTuple

from msgspec.structs import replace
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from kview.language import glossary
from kview.tui.actions import Keys, Kind
from kview.tui.keys import PAUSE_ACTIONS
from kview.tui.layout import FRAMED_HEIGHT, edge_cells, edge_lines
from kview.tui.rows.columns import Column
from kview.tui.rows.common import Keyed
from kview.tui.rows.row import Row
from kview.tui.text import EMPTY, Line, Role, Span, line
from kview.tui.widgets.bottom import key_name
from kview.tui.widgets.key_line import KeyLine
from kview.tui.widgets.panel import Panel
from kview.tui.widgets.table import GUTTER, Table

KEY_CELLS = 11
TWO_COLUMNS = 100
"""From this width on, help has two columns."""
BETWEEN = 3
"""The number of cells between two columns."""
PAIR_CELLS = 28
"""The width of a key with its name if two of them can share a line."""


class Entry(NamedTuple):
    """A line of help: a key, a sign or a word, and what it means; or a section's name."""

    key: str
    text: str
    is_head: bool = False
    is_pair: bool = False
    """Whether `key` is the first of two keys with their names, and `text` the second."""


def meanings(figures: Sequence[tuple[str, str]]) -> tuple[list[Entry], list[Entry]]:
    """Return the signs and the words, and the figures of the screen."""
    general = [Entry("", "SIGNS", True), *(Entry(*each) for each in glossary.SIGNS)]
    general += [Entry("", "WORDS", True), *(Entry("", f"{word}: {text}") for word, text in glossary.WORDS)]
    of_screen = [Entry("", f"{name}: {text}") for name, text in figures]
    return general, [Entry("", "FIGURES on this screen", True), *of_screen] if figures else []


def entries(bindings: Sequence[Binding], keys: Keys, short: bool = False) -> list[Entry]:
    """Return help for these bindings: the screen's own keys, time, faults, and navigation.

    With `short`, two keys share a line, with their names only.
    """

    def kind(binding: Binding) -> Kind:
        action = keys.by_name(binding.id, binding.action)
        return action.kind if action is not None else Kind.MAIN if binding.show else Kind.MOVING

    listed: list[Entry] = []
    for name, of in (
        ("KEYS", Kind.MAIN),
        ("TIME", Kind.TIME),
        ("FAULTS on this simulated cluster", Kind.FAULT),
        ("NAVIGATION", Kind.MOVING),
    ):
        merged = _merged([binding for binding in bindings if kind(binding) is of], keys)
        if not merged:
            continue
        listed.append(Entry("", name, True))
        if short:
            listed += _paired([f"{key:<{KEY_CELLS}}{binding.description}" for key, binding in merged])
        else:
            listed += [Entry(key, explained(binding)) for key, binding in merged]
    return listed


def _paired(names: Sequence[str]) -> list[Entry]:
    """Return two keys with their names per line if both are short enough."""
    paired: list[Entry] = []
    for name in names:
        last = paired[-1] if paired else None
        if last and not last.text and max(len(name), len(last.key)) < PAIR_CELLS:
            paired[-1] = last._replace(text=name)
        else:
            paired.append(Entry(name, "", is_pair=True))
    return paired


def explained(binding: Binding) -> str:
    """Return what a key does, in words."""
    if not binding.tooltip:
        return binding.description
    return f"{binding.description}: {binding.tooltip}"


def _merged(bindings: Sequence[Binding], keys: Keys) -> list[tuple[str, Binding]]:
    """Return each action once, with the names of all its keys: `↑ k`."""
    by_action: dict[str, tuple[list[str], Binding]] = {}
    for binding in bindings:
        names, _ = by_action.setdefault(binding.action, ([], binding))
        action = keys.by_name(binding.id, binding.action)
        name = keys.name(action.name) if action is not None and action.shown else key_name(binding)
        if name not in names:
            names.append(name)
    return [(" ".join(names), binding) for names, binding in by_action.values()]


def wrapped(unwrapped: Sequence[Entry], cells: int) -> list[Entry]:
    """Break entries whose text is longer than `cells` over several lines.

    An entry without a key begins at the margin of the keys, and its further lines are indented.
    """
    lines: list[Entry] = []
    for entry in unwrapped:
        if entry.is_head or entry.is_pair:
            lines.append(entry)
        elif entry.key:
            first, *rest = wrap(entry.text, max(20, cells - KEY_CELLS)) or [""]
            lines += [entry._replace(text=first), *(Entry("", " " * KEY_CELLS + part) for part in rest)]
        else:
            parts = wrap(entry.text, max(20, cells), subsequent_indent="  ") or [""]
            lines += [Entry("", part) for part in parts]
    return lines


def arranged(
    bindings: Sequence[Binding], keys: Keys, figures: Sequence[tuple[str, str]], cells: int, rows: int
) -> list[tuple[Line, Line]]:
    """Return the lines of help in two columns, or in the first one if there is no room for two.

    If the keys do not fit into `rows` with their explanations, they are listed by their names.
    """
    general, of_screen = meanings(figures)
    if cells < TWO_COLUMNS:
        return [
            (_drawn(entry), EMPTY)
            for entry in wrapped([*general, *of_screen, *entries(bindings, keys)], cells)
        ]
    column = (cells - BETWEEN) // 2
    left = wrapped(general, column)
    right = wrapped([*of_screen, *entries(bindings, keys)], column)
    if len(right) > rows:
        every = wrapped([*general, *of_screen, *entries(bindings, keys, short=True)], column)
        middle = max(min(rows, len(every)), -(-len(every) // 2))
        left, right = every[:middle], every[middle:]
    nothing = Entry("", "")
    return [
        (_drawn(at_left), _drawn(at_right))
        for at_left, at_right in zip_longest(left, right, fillvalue=nothing)
    ]


def _drawn(entry: Entry) -> Line:
    """Return a line of help with its roles."""
    if entry.is_head:
        return line(Span(entry.text, Role.HEAD))
    if entry.is_pair:
        spans: list[Span] = []
        for each in (f"{entry.key:<{PAIR_CELLS - 1}}", entry.text):
            spans += [Span(f" {each[: KEY_CELLS - 1]}", Role.KEY), Span(each[KEY_CELLS - 1 :])]
        return tuple(spans)
    if entry.key:
        return line(Span(f" {entry.key:<{KEY_CELLS - 1}}", Role.KEY), entry.text)
    word, colon, rest = entry.text.partition(": ")
    if colon and not entry.text.startswith(" "):
        return line(Span(f" {word}", Role.KEY), f"  {rest}")
    return line(f" {entry.text}")


class HelpRows(Keyed[int]):
    """The rows of help. The key is the line's number."""

    def __init__(self, lines: list[tuple[Line, Line]], name: str) -> None:
        super().__init__(range(len(lines)))
        self._lines = lines
        self.title = line(Span(f"HELP {name}".rstrip(), Role.HEAD))
        has_two = any(right for _, right in lines)
        columns = (Column("left", "", 40, flex=1), Column("right", "", 40, flex=1))
        self.columns: Sequence[Column] = columns if has_two else columns[:1]

    def row(self, index: int, now_ms: int) -> Row:
        return Row(self._lines[index][: len(self.columns)])


class HelpScreen(ModalScreen[None], inherit_bindings=False):
    """Help for the screen it covers: its keys, signs and words."""

    CSS = """
    HelpScreen { align: center middle; background: $background 100%; }
    HelpScreen > Vertical { width: 100%; height: 100%; }
    """
    AUTO_FOCUS = "#help"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q", "dismiss", "return to the screen", key_display="Esc"),
        *(replace(each, run=f"app.{each.run}").binding() for each in PAUSE_ACTIONS),
    ]

    def __init__(
        self, bindings: Sequence[Binding], keys: Keys, name: str, figures: Sequence[tuple[str, str]] = ()
    ) -> None:
        super().__init__()
        self._keys = keys
        self._listed = bindings
        self._about = name
        self._figures = figures

    def compose(self) -> ComposeResult:
        with Vertical():
            with Panel():
                yield Table(id="help", opens=False)
            yield KeyLine()

    def on_mount(self) -> None:
        self._fill()

    def on_resize(self) -> None:
        """Wrap the text to the new width."""
        self._fill()

    def _fill(self) -> None:
        size, framed = self.app.size, self.app.size.height >= FRAMED_HEIGHT
        self.query_one(Panel).fit(framed)
        room = size.width - edge_cells(framed) - GUTTER - 1, size.height - edge_lines(framed) - 1
        self.query_one(Table).fill(
            lambda: HelpRows(arranged(self._listed, self._keys, self._figures, *room), self._about)
        )
