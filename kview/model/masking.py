"""Which fields of a topic's records nobody may see, and the sign that stands in their place.

A path is the names that lead to a field, the first of which is a part of the record: `("value", "card",
"number")`. Arrays are not part of a path. Names count without regard to case, `_` and `-`, so that a field
stays hidden however a format spells it. A name with dots stands for several ones, too.
"""

import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import lru_cache
from unicodedata import normalize

from msgspec import Struct

from kview.model.where import And, Condition, Not, Operator, Or, Subject, Where

MASKED = "<masked>"
"""Stands in place of what is hidden. It does not depend on what that is."""
ANY, ANY_DEPTH = "*", "**"
"""Segments of a pattern for one name, and for any number of names. `*` may also be part of a segment."""


class Part(StrEnum):
    """The parts of a record, with which paths begin."""

    KEY = "key"
    VALUE = "value"
    HEADERS = "headers"


State = frozenset[tuple[int, int]]
"""How far each pattern of a mask has been met on the way to a field, as (pattern, segments). Empty: nothing
here or below is hidden."""


class Mask(Struct, frozen=True):
    """What is hidden of a topic's records: the fields of these patterns, with everything below them.

    A pattern is a part and segments. `**` in place of the part is for every part.
    """

    patterns: tuple[tuple[str, ...], ...]

    @property
    def is_all(self) -> bool:
        """Whether nothing of a record is shown, names of headers included."""
        return (ANY_DEPTH,) in self.patterns

    def begin(self, part: Part) -> State:
        """Return the state at a part of a record."""
        found: set[tuple[int, int]] = set()
        for place, pattern in enumerate(self.patterns):
            if pattern[0] == ANY_DEPTH:
                self._add(found, place, 0)
            elif pattern[0] == part:
                self._add(found, place, 1)
        return frozenset(found)

    def step(self, state: State, name: str) -> State:
        """Return the state at a field that is called `name`. One below a hidden field is hidden.

        A name with dots is met as one name, and as several ones.
        """
        pieces = state
        for each in name.split("."):
            pieces = self._step(pieces, each)
        return pieces | self._step(state, name) if "." in name else pieces

    def _step(self, state: State, name: str) -> State:
        if not state or self.is_hidden(state):
            return state
        wanted, found = normal(name), set[tuple[int, int]]()
        for place, met in state:
            segment = self.patterns[place][met]
            if segment == ANY_DEPTH:
                self._add(found, place, met)
            elif fnmatchcase(wanted, segment):
                self._add(found, place, met + 1)
        return frozenset(found)

    def is_hidden(self, state: State) -> bool:
        """Return whether a field with this state is hidden."""
        return any(met == len(self.patterns[place]) for place, met in state)

    def is_hidden_leaf(self, state: State) -> bool:
        """Return whether a field without fields is hidden: also if all fields that it might have are."""
        rests = (self.patterns[place][met:] for place, met in state)
        return any(all(segment in (ANY, ANY_DEPTH) for segment in rest) for rest in rests)

    def hides(self, path: Sequence[str]) -> bool:
        """Return whether the field at a path is hidden, by itself or with something above it."""
        return self.is_hidden(self.state(Part(path[0]), *path[1:]))

    def state(self, part: Part, *names: str) -> State:
        """Return the state at the field of a part that these names lead to."""
        state = self.begin(part)
        for name in names:
            state = self.step(state, name)
        return state

    def _add(self, found: set[tuple[int, int]], place: int, met: int) -> None:
        found.add((place, met))
        if met < len(self.patterns[place]) and self.patterns[place][met] == ANY_DEPTH:
            self._add(found, place, met + 1)


EVERYTHING = Mask(((ANY_DEPTH,),))


class Masks(Struct, frozen=True):
    """Masks by pattern of topics' names (`payments.*`), in which `*` and `?` stand for any characters."""

    by_topic: tuple[tuple[str, Mask], ...] = ()

    def of(self, topic: str) -> Mask | None:
        """Return what is hidden of a topic's records: what any mask of it says. None if nothing is."""
        return _of(self, topic)


@lru_cache(maxsize=100)
def _of(masks: Masks, topic: str) -> Mask | None:
    patterns = [
        pattern for names, mask in masks.by_topic if fnmatchcase(topic, names) for pattern in mask.patterns
    ]
    return Mask(tuple(dict.fromkeys(patterns))) if patterns else None


_IGNORED = re.compile(r"[\s_-]")


def normal(name: str) -> str:
    """Return a name as it is compared: without regard to case, `_`, `-` and spaces."""
    folded = (name if name.isascii() else normalize("NFKC", name)).casefold()
    return _IGNORED.sub("", folded) or folded


def joined(masks: Iterable[Mask]) -> Mask:
    """Return a mask that hides what any of these hides."""
    return Mask(tuple(dict.fromkeys(pattern for mask in masks for pattern in mask.patterns)))


def refused(where: Where, mask: Mask) -> Condition | None:
    """Return a condition of a filter about what a mask hides, None if there is none.

    Filters judge records as they are shown, so that they tell nothing about what is hidden. A condition that
    could never hold for that reason is refused.
    """
    match where:
        case Not():
            return refused(where.part, mask)
        case And() | Or():
            return next((found for part in where.parts if (found := refused(part, mask)) is not None), None)
    return where if _is_about_hidden(where, mask) else None


def _is_about_hidden(condition: Condition, mask: Mask) -> bool:
    subject, path = condition.field.subject, condition.field.path
    if subject is Subject.SIZE:
        return True
    if subject not in (Subject.KEY, Subject.VALUE, Subject.HEADERS):
        return False
    part = Part(subject.value)
    names = [step for step in path if isinstance(step, str)]
    is_whole = not path or (subject is Subject.HEADERS and len(path) == 1)
    if is_whole and condition.operator in (Operator.EQUAL, Operator.NOT_EQUAL):
        # Of JSON, something may be hidden, and other texts are hidden whole.
        return bool(mask.state(part, *names))
    return mask.hides((part, *names))
