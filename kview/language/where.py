"""What a filter of records may say, why one is wrong, and its fields as columns, in words."""

import json
from difflib import get_close_matches
from typing import Any

from kview.errors import ErrorFacts, ErrorKind, ErrorValue
from kview.language import trees
from kview.language.errors import sentence
from kview.language.glyphs import printable
from kview.model.decoded import Fields, Items, Moment, Symbol
from kview.model.where import EVERY, Condition, Field, Mistake, Problem, Subject
from kview.where.parse import MOST_CHARACTERS, MOST_CONDITIONS, MOST_DEPTH

FORMS = (
    "value.customer.id = 42   key = order-17   headers.trace exists   value ~ /re/   a text   and or not ( )"
)
"""Examples for help and for the line in which a filter is typed."""
_JSON = json.JSONEncoder(ensure_ascii=False, default=str)
_FIELDS = [subject.value for subject in Subject if subject]
_LONGEST_VALUE = 400
"""The characters of a value in a column."""
_LONGEST = 40
"""What is quoted of a filter."""


def problem(wrong: Problem) -> str:
    """Return where a filter is wrong, why, and what to do."""
    shown = wrong.wrong if len(wrong.wrong) <= _LONGEST else f"{wrong.wrong[: _LONGEST - 1]}…"
    return f"at character {wrong.at + 1}: {_why(wrong.mistake, shown)}"


def masked(condition: Condition, topic: str) -> str:
    """Return why a condition about something that a mask hides is refused."""
    values: dict[str, ErrorValue] = {"field": in_full(condition.field), "topic": topic}
    return sentence(ErrorFacts(ErrorKind.FILTER_MASKED, values))


def in_full(field: Field) -> str:
    """Return a field as a filter has it."""
    steps = (
        f".{step}" if isinstance(step, str) else "[]" if step == EVERY else f"[{step}]" for step in field.path
    )
    return f"{field.subject}{''.join(steps)}"


def _why(mistake: Mistake, wrong: str) -> str:
    match mistake:
        case Mistake.EMPTY:
            return "the filter is empty: write a text, or a condition such as value.status = FAILED"
        case Mistake.TOO_LONG:
            return f"the filter is longer than {MOST_CHARACTERS:,} characters: use fewer conditions"
        case Mistake.TOO_MANY:
            return f"the filter has more than {MOST_CONDITIONS} conditions: use a regular expression for some"
        case Mistake.TOO_DEEP:
            return f"brackets, not or a path are nested deeper than {MOST_DEPTH}: write it with fewer levels"
        case Mistake.UNKNOWN_FIELD:
            return f"{wrong!r} is not a field: {_meant(wrong)}, or put the text in quotes"
        case Mistake.NO_PATH:
            return "a name or a number is missing here: write value.name, value[0] or value.items[].name"
        case Mistake.NO_VALUE:
            return f"{wrong} is not followed by what to compare: write it as in value.status = FAILED"
        case Mistake.NOT_A_NUMBER:
            field, _, text = wrong.partition(" ")
            instead = " or a time such as 2026-11-27T10:00" if field == Subject.TIMESTAMP else ""
            return f"{text!r} is not a number: compare {field} with one{instead}"
        case Mistake.NOT_ORDERED:
            return f"{wrong!r} is neither a number nor a time: use = or contains for texts"
        case Mistake.NOT_FOR_FIELD:
            field, _, operator = wrong.partition(" ")
            if field == Subject.HEADERS:
                return f"{operator} needs one header: write headers.NAME {operator} …"
            return f"{operator} is not for {field}, which is a number: use =, !=, <, <=, > or >="
        case Mistake.BAD_PATTERN:
            return f"the regular expression is wrong ({wrong}): correct it, or put a text in quotes"
        case Mistake.OPEN_QUOTE:
            return f"the text has no closing {wrong}: add it, or write \\{wrong} for the character itself"
        case Mistake.OPEN_BRACKET:
            return "this bracket is not closed: add ), or put a text with brackets in quotes"
        case Mistake.NO_BRACKET:
            return "nothing opens this bracket: leave it out, or put a text with brackets in quotes"
        case Mistake.NO_CONDITION:
            return f"a condition is missing {f'before {wrong!r}' if wrong else 'at the end'}: add one"
        case Mistake.NOT_JOINED:
            return f"{wrong!r} follows a condition: join them with and, or with or, or put a text in quotes"


def _meant(wrong: str) -> str:
    first = wrong.partition(".")[0]
    near = get_close_matches(first, _FIELDS, 1)
    if near:
        return f"did you mean {near[0]}{wrong[len(first) :]}?"
    return f"did you mean value.{wrong}? The fields are {', '.join(_FIELDS)}"


def name(field: Field) -> str:
    """Return a field's name in a column's title, without `value.`, which most have."""
    return printable(in_full(field).removeprefix(f"{Subject.VALUE}."))


def value(node: Any) -> str:
    """Return what a column shows of a node, decoded or of JSON."""
    if isinstance(node, Fields | Items | Moment | Symbol | bytes | str):
        return printable(trees.one_line(node))
    if isinstance(node, dict | list):
        pieces, length = list[str](), 0
        for piece in _JSON.iterencode(node):  # no more of it is written than is shown
            pieces.append(piece)
            if (length := length + len(piece)) >= _LONGEST_VALUE:
                break
        return printable("".join(pieces)[:_LONGEST_VALUE])
    return trees.scalar(node)
