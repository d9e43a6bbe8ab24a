"""`?`: every key of the screen below, from its bindings, and the meaning of the signs and words."""

from collections.abc import Sequence
from dataclasses import replace
from textwrap import wrap
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen

from kview.language import glyphs, words
from kview.tui.actions import Keys, Kind
from kview.tui.keys import PAUSE_ACTIONS
from kview.tui.rows.columns import GAP, Column
from kview.tui.rows.common import Keyed
from kview.tui.rows.row import Row
from kview.tui.text import EMPTY, Line, Role, Span, line
from kview.tui.widgets.bottom import KeyLine, key_name
from kview.tui.widgets.table import GUTTER, Table

SIGNS: tuple[tuple[str, str], ...] = (
    (glyphs.LEADER, "a leader, or healthy"),
    (glyphs.FOLLOWER, "a follower in the ISR"),
    (glyphs.OUT_OF_SYNC, "a follower that is not in the ISR, or too few in the ISR"),
    (glyphs.DEAD, "silent or offline; data or availability at risk"),
    (glyphs.FROZEN, "a high watermark that stands still although it should advance"),
    (glyphs.UP, "growing; a leader that is not the preferred leader; slow; one step from risk"),
    (glyphs.DOWN, "shrinking"),
    ("(P3)", "placement: the preferred leader, which is not leading now"),
    (glyphs.NONE, "not known; ≥ a lower bound; ≈ an estimate"),
    (words.UNSEEN, "kview cannot reach it, but the cluster can; or its state is not known"),
    (glyphs.ELLIPSIS, "not known yet: too little has been seen, or earlier minutes are being loaded"),
)

WORDS: tuple[str, ...] = (
    "latency: how long a broker takes to answer kview's own small requests, not produce or fetch requests",
    "partition-seconds: how long partitions were in a state, added up: 3 partitions for 4 s are 12",
    "hottest ÷ mean: the busiest partition's records per second, divided by the mean per partition",
    "direct rates: the difference between two observations, used while Spark has no figures",
)

KEY_CELLS = 9


class Entry(NamedTuple):
    """A line of help: a key (or a section's name) and what it does."""

    key: str
    text: str
    is_head: bool = False


def entries(bindings: Sequence[Binding], keys: Keys) -> list[Entry]:
    """Help for these bindings: the screen's own keys, time, faults, navigation, signs and words."""

    def kind(binding: Binding) -> Kind:
        action = keys.by_name(binding.id, binding.action)
        return action.kind if action is not None else Kind.MAIN if binding.show else Kind.MOVING

    made: list[Entry] = []
    for name, of in (
        ("KEYS", Kind.MAIN),
        ("TIME", Kind.TIME),
        ("FAULTS on this simulated cluster", Kind.FAULT),
        ("NAVIGATION", Kind.MOVING),
    ):
        if group := [binding for binding in bindings if kind(binding) is of]:
            made.append(Entry("", name, True))
            made += [Entry(key, explained(binding)) for key, binding in _merged(group, keys)]
    made.append(Entry("", "SIGNS", True))
    made += [Entry(sign, meaning) for sign, meaning in SIGNS]
    made.append(Entry("", "WORDS", True))
    made += [Entry("", text) for text in WORDS]
    return made


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


def wrapped(made: Sequence[Entry], cells: int) -> list[Entry]:
    """Break entries whose text is longer than `cells` over several lines."""
    lines: list[Entry] = []
    for entry in made:
        parts = wrap(entry.text, max(20, cells)) or [""]
        lines.append(entry._replace(text=parts[0]))
        lines += [Entry("", part) for part in parts[1:]]
    return lines


class HelpRows(Keyed[int]):
    """The rows of help. The key is the line's number."""

    empty = ""
    title: Line = EMPTY

    def __init__(self, made: list[Entry], name: str) -> None:
        super().__init__(range(len(made)))
        self._entries = made
        self.title = line(Span(f"HELP {name}", Role.HEAD))
        self.columns = (Column("key", "", KEY_CELLS), Column("text", "", 40, flex=1))

    def row(self, index: int, now_ms: int) -> Row:
        """Return a line of help."""
        entry = self._entries[index]
        if entry.is_head:
            return Row((EMPTY, line(Span(entry.text, Role.HEAD))))
        return Row((line(Span(entry.key, Role.KEY)), line(entry.text)))


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

    def __init__(self, bindings: Sequence[Binding], keys: Keys, name: str) -> None:
        super().__init__()
        self._keys = keys
        self._listed = bindings
        self._about = name

    def compose(self) -> ComposeResult:
        """Make the table of keys."""
        with Vertical():
            yield Table(id="help", opens=False)
            yield KeyLine()

    def on_mount(self) -> None:
        """Fill the table."""
        self._fill()

    def on_resize(self) -> None:
        """Wrap the text to the new width."""
        self._fill()

    def _fill(self) -> None:
        cells = self.app.size.width - GUTTER - KEY_CELLS - GAP
        self.query_one(Table).fill(
            lambda: HelpRows(wrapped(entries(self._listed, self._keys), cells), self._about)
        )
