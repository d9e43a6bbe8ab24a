"""The key line: the keys that are most useful on the screen shown, as many as fit."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from textual.binding import Binding
from textual.events import Click
from textual.widgets import Input

from kview.tui.actions import Action, Keys, Kind, Where
from kview.tui.app_of import app_of
from kview.tui.faults import RESTORE
from kview.tui.keys import DEMO_ACTIONS, SCREEN_ACTIONS
from kview.tui.text import Line, Role, Span, cut, width
from kview.tui.widgets.bottom import key_name
from kview.tui.widgets.caption import key_names
from kview.tui.widgets.drawn import Lines
from kview.tui.widgets.prompt import Prompt, Question
from kview.tui.widgets.table import Table

PLAIN_RANK = 50
"""The rank on the key line of a key whose action is not in the table."""

OWN_RANK = 2
"""The rank of what only this screen can do: before everything but leaving and help."""

IDLE_RANK = 60
"""The rank of the keys that end faults while there is none."""

TOLD_RANK = 0.5
"""The rank of a key about which a demo says what it does now: before all others but leaving and help."""

ANSWER_RUNS = tuple(action.run for action in DEMO_ACTIONS if action.run.startswith("lesson('answer"))
"""What the keys do that choose an answer to a demo's question."""

_LAST = ("back", "quit", "help")
"""The actions at the right end."""

FILTER = "show('filter')"
"""What the key that filters does. Screens without a filtered list leave it out."""

UNDO = "undo-faults"
"""The action that ends all faults."""

Says = Callable[[Action], str | None]
"""What a demo says that a key does now, '' if the key is left out, None if it says nothing about it."""

_Candidates = dict[str, tuple[float, tuple[int, int], "KeyMark"]]
"""The keys that work here, by their Textual action: rank, place, and mark."""


class KeyMark(NamedTuple):
    """A key on the key line: its name, what it does, the Textual action, and the cells it takes."""

    name: str
    label: str
    run: str
    cells: range = range(0)


def _nothing(action: Action) -> None:
    """Say nothing: there is no demo."""


def key_marks(
    bindings: Sequence[Binding],
    keys: Keys,
    cells: int,
    live: bool = True,
    faults: Mapping[str, str] = MappingProxyType({}),
    says: Says = _nothing,
    named: Collection[str] = (),
) -> list[KeyMark]:
    """Return as many keys as fit: faults, what only this screen can do, the screens, and the rest.

    Those of the first ranks have priority; while the moment shown is not live, these are the keys of time.
    `faults` says what the keys of faults hit now, by the actions' names. Without `restore` there is no fault
    to end. Keys of which a demo `says` something come first, without those `named` in its caption.
    """
    candidates: _Candidates = {}
    for binding in bindings:
        action = keys.by_name(binding.id, binding.action)
        if action is None and binding.id is None:
            mark = KeyMark(key_name(binding), binding.description, binding.action)
            candidates.setdefault(binding.action, (PLAIN_RANK, (-1, len(candidates)), mark))
        elif action is not None and action.rank and (live or action.kind is not Kind.FAULT):
            if (demo_label := says(action)) == "":
                continue
            mark = _mark(action, keys, faults, demo_label)._replace(run=binding.action)
            rank = _rank(action, live, faults) if demo_label is None else TOLD_RANK
            candidates.setdefault(binding.action, (rank, _place(action, keys), mark))
    _join_answers(candidates, keys)
    candidates = {run: each for run, each in candidates.items() if each[2].name not in named}
    screens = {action.run for action in SCREEN_ACTIONS if action.run in candidates}
    kept = _fitting(candidates, cells)
    if not screens <= {mark.run for _, mark in kept}:
        _join_screens(candidates, keys)
        kept = _fitting(candidates, cells)
    placed, at = [], 1
    for _, mark in sorted(kept, key=lambda each: each[0]):
        end = at + width(mark.name) + 1 + width(mark.label)
        placed.append(mark._replace(cells=range(at, end)))
        at = end + 2
    return placed


def _fitting(candidates: _Candidates, cells: int) -> list[tuple[tuple[int, int], KeyMark]]:
    """Return the keys of the lowest ranks that fit into `cells`, with their places."""
    room, kept = cells - 1, []
    for _, place, mark in sorted(candidates.values(), key=lambda each: each[0]):
        size = width(mark.name) + 1 + width(mark.label) + 2
        if size <= room:
            kept.append((place, mark))
            room -= size
    return kept


def _join_answers(candidates: _Candidates, keys: Keys) -> None:
    """Make one mark of the keys that choose an answer: `1–3 answer`. A click on it does nothing."""
    here = [action for action in keys.actions if action.run in ANSWER_RUNS and action.run in candidates]
    if not here:
        return
    place = candidates[here[0].run][1]
    for action in here:
        del candidates[action.run]
    mark = KeyMark(keys.names([action.name for action in here]), "answer", "")
    candidates["answers"] = (TOLD_RANK, place, mark)


def _join_screens(candidates: _Candidates, keys: Keys) -> None:
    """Make one mark of the keys of the screens, `1–7 screens`, if they are digits in a row.

    A click on it offers the screens by name.
    """
    here = [action for action in SCREEN_ACTIONS if action.run in candidates]
    name, runs = keys.names([action.name for action in here]), [action.run for action in here]
    if "–" not in name:
        return
    rank, place, _ = candidates[runs[0]]
    for run in runs:
        del candidates[run]
    mark = KeyMark(name, "screens", "find")
    candidates["screens"] = (rank, place, mark)


def _rank(action: Action, live: bool, faults: Mapping[str, str]) -> float:
    """Return how early a key gets its place on the key line: the lowest first."""
    if action.name in ("quit", "help"):
        return -200.0
    if not live and action.kind is Kind.TIME:
        return action.rank - 100.0
    if action.name in (RESTORE, UNDO) and RESTORE not in faults:
        return IDLE_RANK
    return action.rank / 100 + OWN_RANK if _is_own(action) else action.rank


def _place(action: Action, keys: Keys) -> tuple[int, int]:
    """Return where a key stands on the key line, from the left."""
    if action.name in _LAST:
        return 9, _LAST.index(action.name)
    group = 0 if action.kind is Kind.FAULT else 1 if _is_own(action) else 2 if action.name == "open" else 3
    return group, keys.place(action)


def _is_own(action: Action) -> bool:
    """Return whether only some screens have the action."""
    return action.where not in (Where.APP, Where.SCREEN, Where.TABLE)


def key_line(
    bindings: Sequence[Binding],
    keys: Keys,
    cells: int,
    live: bool = True,
    faults: Mapping[str, str] = MappingProxyType({}),
    says: Says = _nothing,
    named: Collection[str] = (),
) -> Line:
    """Return the key line: the keys of `key_marks`."""
    spans: list[Span] = [Span(" ")]
    for mark in key_marks(bindings, keys, cells, live, faults, says, named):
        spans += [Span(mark.name, Role.KEY), Span(f" {mark.label}  ", Role.DIM)]
    return cut(tuple(spans), cells)


def _mark(action: Action, keys: Keys, faults: Mapping[str, str], demo_label: str | None) -> KeyMark:
    """Return an action's key and label as they stand in the key line."""
    label = faults.get(action.name) or demo_label or action.short or action.label
    name = keys.name(action.name)
    if action.pair:
        between = "" if name in "←→" else " "
        name = f"{name}{between}{keys.name(action.pair)}"
    return KeyMark(name, label, action.run)


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
        at = app_of(self)
        says, named = at.teaching.label, self._named()
        return [key_line(self._shown(), at.keys, width, at.live, at.faults.labels, says, named)]

    def _named(self) -> list[str]:
        """Return the names of the keys that a caption above says."""
        caption = app_of(self).teaching.caption
        if caption is None or self.app.screen is not self.screen or isinstance(self.screen.focused, Input):
            return []  # keys mean something else in a list above, and in a line that is typed
        return key_names(caption, self.size.width)

    def _shown(self) -> list[Binding]:
        over = self.app.screen
        if over is not self.screen:  # The list of `:` or of themes lies over this screen.
            choose = getattr(over, "CHOOSES", "go there")
            leave = getattr(over, "LEAVES", "cancel")
            return [Binding("enter", "submit", choose), Binding("escape", "back", leave)]
        active = self.screen.active_bindings.values()
        is_above = len(self.app.screen_stack) > 1
        shown = [
            entry.binding
            for entry in active
            if entry.enabled and (entry.binding.show or (is_above and entry.binding.action == "back"))
        ]
        line = self.screen.focused
        if isinstance(line, Table) and line.selected in line.rows.closed:
            shown = [each for each in shown if each.action != "open"]
        if not getattr(self.screen, "is_filtered", True):
            shown = [each for each in shown if each.action != FILTER]
        if isinstance(line, Input):  # Letters are typed there.
            asked = line.question if isinstance(line, Prompt) else None
            typed = (replace(each, id=None) for each in shown if each.key.startswith("ctrl+"))
            shown = [*_typing(asked), *typed]
        return shown

    async def on_click(self, event: Click) -> None:
        """Do what the key under the mouse does."""
        at = app_of(self)
        says, named = at.teaching.label, self._named()
        cells, faults = self.size.width, at.faults.labels
        shown = key_marks(self._shown(), at.keys, cells, at.live, faults, says, named)
        for mark in shown:
            entry = next(
                (e for e in self.screen.active_bindings.values() if e.binding.action == mark.run), None
            )
            if event.x in mark.cells and entry is not None and entry.enabled:
                await self.app.run_action(entry.binding.action, entry.node)
