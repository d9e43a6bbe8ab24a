"""What keys do, as one table of actions by name. Bindings, key line, help and palette are made from it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property

from msgspec import Struct, field
from textual.binding import Binding

from kview.tui.key_names import key_name

_NAMED = re.compile(r"\{([a-z-]+)\}")


class Where(StrEnum):
    """What binds an action's keys. The first three are in force on every screen."""

    APP = "everywhere"
    SCREEN = "every screen"
    TABLE = "every table"
    RACKS = "the racks"
    PLACEMENT = "Placement"
    THROUGHPUT = "Throughput"
    TOPIC = "a topic"
    GROUP = "a group"
    PARTITIONS = "Partitions"
    PARTITION = "a partition"
    BROKER = "a broker"
    EVENTS = "Events and an incident"
    DETAIL = "a record or a setting"
    RECORDS = "the panel of records"
    SETTINGS = "the panel of settings"
    PRODUCERS = "the panel of producers"
    QUOTAS = "the panel of quotas"
    OVER_TIME = "the panel of plots over time"
    LAB = "the lab"

    def meets(self, other: "Where") -> bool:
        """Return whether a screen can have actions of both places."""
        shared = (Where.APP, Where.SCREEN, Where.TABLE)
        if self is other or self in shared or other in shared:
            return True
        both = {self, other}
        panels = {Where.RECORDS, Where.SETTINGS, Where.PRODUCERS, Where.OVER_TIME}
        return Where.TOPIC in both and bool(both & panels)


class Kind(StrEnum):
    """Where help lists an action."""

    MAIN = "keys"
    TIME = "time"
    FAULT = "faults"
    MOVING = "moving"


class Action(Struct, frozen=True):
    """What a key does.

    `name` is the action's name in key files, `keys` are its keys as Textual calls them, and `run` is the
    Textual action. Actions of the same name share their keys; only one of them works at a time. `label` is a
    word or two for the key line and the palette, and `help` says what the action does, with
    `{name}` for the key of another action. `rank` is its
    importance on the key line, where 1 is shown first and 0 never. `pair` names an action whose key is shown
    next to this one's, and `short` is the label that both have there. `priority` keys work while a line is
    typed.
    """

    name: str
    keys: tuple[str, ...]
    run: str
    label: str
    help: str = ""
    rank: int = 0
    where: Where = Where.APP
    kind: Kind = Kind.MAIN
    pair: str = ""
    short: str = ""
    shown: str = ""
    """How the keys are shown, if not one by one: `gg`."""
    priority: bool = False
    fixed: bool = False
    """Whether key files cannot give the action other keys."""

    def binding(self) -> Binding:
        """Return Textual's binding of the action."""
        return Binding(
            ",".join(self.keys),
            self.run,
            self.label,
            show=self.kind is not Kind.MOVING,
            tooltip=self.help,
            id=self.name,
            priority=self.priority,
        )


class Keys(Struct, frozen=True, dict=True):
    """The keys in force: those of the table, and those that a key file gives instead."""

    actions: Sequence[Action]
    chosen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def _by_name(self) -> dict[str, list[Action]]:
        by_name: dict[str, list[Action]] = {}
        for action in self.actions:  # The key line asks for most of them in every view.
            by_name.setdefault(action.name, []).append(action)
        return by_name

    @cached_property
    def _places(self) -> dict[int, int]:
        return {id(action): at for at, action in enumerate(self.actions)}

    def place(self, action: Action) -> int:
        """Return where an action stands in the table."""
        return self._places[id(action)]

    def of(self, name: str) -> tuple[str, ...]:
        """Return an action's keys as Textual calls them."""
        if name in self.chosen:
            return self.chosen[name]
        return next((action.keys for action in self._by_name.get(name, ())), ())

    def name(self, action: str) -> str:
        """Return what the screen calls an action's first key."""
        first_action = next(iter(self._by_name.get(action, ())), None)
        if first_action is not None and first_action.shown and action not in self.chosen:
            return first_action.shown
        return next((key_name(key) for key in self.of(action)), "")

    def names(self, actions: Sequence[str]) -> str:
        """Return what the screen calls the first keys of several actions: `1–4`, or `F1 F2` if those are not
        digits in a row."""
        names = [self.name(action) for action in actions]
        in_a_row = len(names) > 1 and "".join(names) in "123456789"
        return f"{names[0]}–{names[-1]}" if in_a_row else " ".join(names)

    def by_name(self, name: str | None, run: str = "") -> Action | None:
        """Return the action of a binding's id, the one that does `run` if several have that name."""
        namesakes = self._by_name.get(name or "", [])
        run = run.removeprefix("app.")
        if not namesakes:
            return None
        return next((action for action in namesakes if action.run == run), namesakes[0])

    def said(self, text: str) -> str:
        """Return a text in which `{name}` stands for the key of the action of that name."""
        return _NAMED.sub(lambda match: self.name(match[1]), text)

    def textual(self) -> dict[str, str]:
        """Return Textual's keymap: the chosen keys by action name."""
        return {name: ",".join(keys) for name, keys in self.chosen.items()}


def bindings(actions: Iterable[Action], where: Where) -> list[Binding]:
    """Return the bindings of the actions of a place."""
    return [action.binding() for action in actions if action.where is where]


def conflict(actions: Sequence[Action], chosen: Mapping[str, tuple[str, ...]]) -> tuple[str, str, str] | None:
    """Return the first key that has two actions on one screen, as (key, action, other action).

    One of `chosen` comes first. None if there is no such key.
    """
    keys = Keys(actions, chosen)
    for action in sorted(actions, key=lambda action: action.name not in chosen):
        for other in actions:
            if action.name == other.name or not action.where.meets(other.where):
                continue
            if both := set(keys.of(action.name)) & set(keys.of(other.name)):
                return min(both), action.name, other.name
    return None
