"""Filters as people type them: `invoice !dlq broker:4 state:frozen /^a.*b$/`. All terms must hold."""

import re
from collections.abc import Iterable
from enum import StrEnum
from functools import lru_cache

from msgspec import Struct

from kview.derive.statuses import PartitionStatus, Verdict
from kview.model.expressions import bad_pattern
from kview.model.states import BrokerState, GroupState

MOST_TERMS = 20
"""The most terms of a filter. Nobody types more, and each of them takes time for every row."""

TROUBLE = "trouble"
"""The state of everything that needs attention."""


class Field(StrEnum):
    """What a term is about. ANY is the name of a topic or a group."""

    ANY = ""
    TOPIC = "topic"
    GROUP = "group"
    BROKER = "broker"
    RACK = "rack"
    STATE = "state"


class Problem(StrEnum):
    """Why a filter cannot be used."""

    UNKNOWN_FIELD = "unknown field"
    EMPTY = "empty"
    NOT_A_BROKER = "not a broker"
    UNKNOWN_STATE = "unknown state"
    BAD_PATTERN = "bad pattern"
    TOO_MANY = "too many"


class Term(Struct, frozen=True):
    """One condition. `texts` are alternatives, in lower case unless it `is_pattern`: then it is one regular
    expression. A `negated` term holds where the condition does not."""

    field: Field
    texts: tuple[str, ...]
    negated: bool = False
    is_pattern: bool = False


class Filter(Struct, frozen=True):
    """The terms of a filter, none of them if it cannot be used: then `problem` says why, about `wrong`."""

    terms: tuple[Term, ...] = ()
    problem: Problem | None = None
    wrong: str = ""

    def __bool__(self) -> bool:
        return bool(self.terms)


def plain(word: str) -> str:
    """Return a state's name without what people write differently: `under-min-ISR` is `underminisr`."""
    return re.sub(r"[\s_-]", "", word).casefold()


STATES = frozenset(
    plain(state) for state in (*PartitionStatus, *Verdict, *GroupState, *BrokerState, TROUBLE, "slow")
)
"""The states that a filter knows."""


def names(written: str, states: Iterable[str]) -> bool:
    """Return whether what was written is, or begins, one of the states: `fro` is frozen."""
    return bool(plain(written)) and any(state.startswith(plain(written)) for state in states)


_TERM = re.compile(
    r"""(?P<not>!?)
        (?:(?P<field>[A-Za-z]+):)?
        (?:/(?P<pattern>(?:\\.|[^/\\])*)(?:/(?=\s|$)|$)
          |"(?P<quoted>[^"]*)"?
          |(?P<word>\S*))""",
    re.VERBOSE,
)


@lru_cache(maxsize=64)
def parse(text: str) -> Filter:
    """Return the filter that `text` says. Any text gives a filter; a wrong one has a problem and no terms."""
    terms: list[Term] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        match = _TERM.match(text, at)
        if match is None or match.end() == at:
            return Filter(problem=Problem.EMPTY, wrong=text[at:])
        term = _term(match)
        if isinstance(term, Filter):
            return term
        terms.append(term)
        at = match.end()
    if len(terms) > MOST_TERMS:
        return Filter(problem=Problem.TOO_MANY, wrong=str(len(terms)))
    return Filter(tuple(terms))


def _term(found: re.Match[str]) -> Term | Filter:
    name, negated = (found["field"] or "").casefold(), bool(found["not"])
    if name not in list(Field):
        return Filter(problem=Problem.UNKNOWN_FIELD, wrong=name)
    field = Field(name)
    pattern = found["pattern"]
    if pattern is not None and field in (Field.ANY, Field.TOPIC, Field.GROUP):
        if why := bad_pattern(pattern):
            return Filter(problem=Problem.BAD_PATTERN, wrong=why)
        return Term(field, (pattern,), negated, is_pattern=True)
    text = found["quoted"] if found["quoted"] is not None else found["word"] or pattern or ""
    listed = field in (Field.BROKER, Field.RACK, Field.STATE)
    parts = tuple(part for part in text.split(",") if part) if listed else (text,)
    if not any(parts):
        return Filter(problem=Problem.EMPTY, wrong=found[0].strip())
    match field:
        case Field.BROKER:
            wrong = next((part for part in parts if not re.fullmatch(r"[0-9]{1,9}", part)), None)
            return Filter(problem=Problem.NOT_A_BROKER, wrong=wrong) if wrong else Term(field, parts, negated)
        case Field.STATE:
            known = tuple(map(plain, parts))
            strange = next((part for part in parts if not names(part, STATES)), None)
            if strange is not None:
                return Filter(problem=Problem.UNKNOWN_STATE, wrong=strange)
            return Term(field, known, negated)
        case _:
            return Term(field, tuple(part.casefold() for part in parts), negated)
