"""Filters of records as people type them:

    value.customer.id = 42 and (headers.trace exists or not key ~ /^order-/)

A condition is a field, an operator and what it is compared with, or a text alone, which is looked for
anywhere. `not` binds more tightly than `and`, and `and` more than `or`.
"""

import re
from datetime import datetime, tzinfo
from decimal import Decimal
from functools import lru_cache

from kview.model.expressions import bad_pattern
from kview.model.units import UNKNOWN
from kview.model.where import (
    EVERY,
    NUMBERS,
    ORDERS,
    And,
    Condition,
    Field,
    Literal,
    Mistake,
    Not,
    Operator,
    Or,
    Problem,
    Step,
    Subject,
    Where,
)

MOST_CHARACTERS = 2_000
MOST_CONDITIONS = 50
"""Limit of the conditions of a filter. Each of them takes time for every record."""
MOST_DEPTH = 20
"""Limit of how deep brackets and `not` are nested, and half of the steps of a path."""
MOST_COLUMNS = 8
"""Limit of the columns. More do not fit on a screen."""
MOST_DIGITS = 1_000
"""Limit of the digits of a number."""

_BLANKS = re.compile(r"\s*")
_FIELD = re.compile(r"[^\s()\"'=<>!~/,.\[\]]+")
"""The first part of a field."""
_NAME = re.compile(r"[^\s()\"'=<>!~,.\[\]]+")
_HEADER = re.compile(r"[^\s()\"'=<>!~,]+")
_ITEM = re.compile(r"\[\s*(\*?|[0-9]{1,9})\s*\]")
_SIGN = re.compile(r"==|=~|=|!=|!~|<>|<=|<|>=|>|~")
_KEYWORD = re.compile(r"(and|or|not|contains|exists)(?=[\s()\"'/]|$)", re.IGNORECASE)
_WORD = re.compile(r"[^\s()\"']+")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"|\'((?:[^\'\\]|\\.)*)\'', re.DOTALL)
_PATTERN = re.compile(r"/((?:[^/\\]|\\.)*)/(?=[\s)]|$)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,4})?")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}.*")
_HEX = re.compile(r"0x((?:[0-9a-fA-F]{2})+)")

_SIGNS = {"==": Operator.EQUAL, "<>": Operator.NOT_EQUAL, "=~": Operator.MATCHES, "!~": Operator.MATCHES}
_NAMES = {subject.value: subject for subject in Subject if subject} | {"header": Subject.HEADERS}
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}


class _Wrong(Exception):
    def __init__(self, mistake: Mistake, at: int, wrong: str = "") -> None:
        super().__init__(mistake)
        self.problem = Problem(mistake, at, wrong)


@lru_cache(maxsize=64)
def parse(text: str, zone: tzinfo | None = None) -> Where | Problem:
    """Return what a text says, or what is wrong with it.

    A time without a zone, such as `timestamp >= 2026-11-27T10:00`, is in `zone` (None: the machine's own).
    """
    if len(text) > MOST_CHARACTERS:
        return Problem(Mistake.TOO_LONG, MOST_CHARACTERS, str(len(text)))
    try:
        return _Parser(text, zone).whole()
    except _Wrong as wrong:
        return wrong.problem


def parse_with_columns(
    text: str, zone: tzinfo | None = None
) -> tuple[Where | None, tuple[Field, ...]] | Problem:
    """Return what a text says, and the fields that it names as columns: `value.id > 4 | key.a, headers.b`.

    Without a filter before the bar, all records are meant: None.
    """
    before, bar, after = text.rpartition("|")
    columns = _columns(after) if bar else ()
    if not columns:
        before, columns = text, ()
    if columns and not before.strip():
        return None, columns
    where = parse(before, zone)
    return where if isinstance(where, Problem) else (where, columns)


def _columns(text: str) -> tuple[Field, ...]:
    """Return the fields within keys, values and headers that a text lists, () if it lists anything else."""
    fields: list[Field] = []
    for written in text.split(","):
        where = parse(f"{written.strip()} exists")
        if not isinstance(where, Condition) or where.operator is not Operator.EXISTS or not where.field.path:
            return ()
        fields.append(where.field)
    return tuple(fields[:MOST_COLUMNS])


class _Parser:
    def __init__(self, text: str, zone: tzinfo | None) -> None:
        self._text = text
        self._zone = zone
        self._at = 0
        self._conditions = 0

    def whole(self) -> Where:
        self._blanks()
        if self._at == len(self._text):
            raise _Wrong(Mistake.EMPTY, 0)
        where = self._alternatives(0)
        if self._at < len(self._text):
            mistake = Mistake.NO_BRACKET if self._text[self._at] == ")" else Mistake.NOT_JOINED
            raise self._wrong(mistake)
        return where

    def _alternatives(self, depth: int) -> Where:
        parts = [self._conjunction(depth)]
        while self._take_keyword("or"):
            parts.append(self._conjunction(depth))
        return Or(tuple(parts)) if len(parts) > 1 else parts[0]

    def _conjunction(self, depth: int) -> Where:
        parts = [self._negation(depth)]
        while self._take_keyword("and"):
            parts.append(self._negation(depth))
        return And(tuple(parts)) if len(parts) > 1 else parts[0]

    def _negation(self, depth: int) -> Where:
        if depth > MOST_DEPTH:
            raise self._wrong(Mistake.TOO_DEEP)
        if self._take_keyword("not"):
            return Not(self._negation(depth + 1))
        if not self._text.startswith("(", self._at):
            return self._condition()
        opened = self._at
        self._at += 1
        self._blanks()
        inner = self._alternatives(depth + 1)
        if not self._text.startswith(")", self._at):
            if self._at < len(self._text):
                raise self._wrong(Mistake.NOT_JOINED)
            raise _Wrong(Mistake.OPEN_BRACKET, opened, "(")
        self._at += 1
        self._blanks()
        return inner

    def _condition(self) -> Where:
        self._conditions += 1
        if self._conditions > MOST_CONDITIONS:
            raise self._wrong(Mistake.TOO_MANY)
        begin = self._at
        if begin == len(self._text) or self._text[begin] == ")" or self._keyword("and", "or"):
            raise self._wrong(Mistake.NO_CONDITION)
        if self._text[begin] not in "\"'/":
            name = _FIELD.match(self._text, begin)
            if name is not None:
                self._at = name.end()
                subject = _NAMES.get(name[0].casefold())
                path = self._path(subject) if subject is not None else self._path_of_nothing()
                after = self._at
                self._blanks()
                operator, negated = self._operator()
                if operator is not None:
                    if subject is None:
                        raise _Wrong(Mistake.UNKNOWN_FIELD, begin, self._text[begin:after])
                    condition = self._compared(Field(subject, path), operator, begin)
                    return Not(condition) if negated else condition
                if subject is not None and path:
                    raise _Wrong(Mistake.NO_VALUE, begin, self._text[begin:after])
                self._at = begin
            elif _SIGN.match(self._text, begin):
                raise self._wrong(Mistake.NO_CONDITION)
        field = Field(Subject.ANYWHERE)
        pattern = self._pattern()
        if pattern is not None:
            return Condition(field, Operator.MATCHES, Literal(pattern))
        return Condition(field, Operator.CONTAINS, Literal(self._literal().text))

    def _path(self, subject: Subject | None) -> tuple[Step, ...]:
        """Return the path after the first part of a field."""
        text, steps = self._text, list[Step]()
        if subject is Subject.HEADERS and text.startswith(".", self._at):
            self._at += 1
            return (self._name(_HEADER),)  # a header's name may have dots
        while True:
            begin = self._at
            if text.startswith(".", begin):
                self._at += 1
                steps.append(self._name(_NAME))
            elif text.startswith("[", begin):
                item = _ITEM.match(text, begin)
                if item is None:
                    raise self._wrong(Mistake.NO_PATH)
                self._at = item.end()
                steps.append(EVERY if item[1] in ("", "*") else int(item[1]))
            else:
                return tuple(steps)
            if subject not in (Subject.KEY, Subject.VALUE, None):
                raise _Wrong(Mistake.NO_PATH, begin, text[begin : self._at])
            if len(steps) > 2 * MOST_DEPTH:
                raise self._wrong(Mistake.TOO_DEEP)

    def _path_of_nothing(self) -> tuple[Step, ...]:
        """Return the path after what is not a field: a text may look like one, such as `order..17`."""
        begin = self._at
        try:
            return self._path(None)
        except _Wrong:
            self._at = begin
            return ()

    def _name(self, form: re.Pattern[str]) -> str:
        if self._text[self._at : self._at + 1] in ('"', "'"):
            return self._quoted()
        match = form.match(self._text, self._at)
        if match is None:
            raise self._wrong(Mistake.NO_PATH)
        self._at = match.end()
        return match[0]

    def _operator(self) -> tuple[Operator | None, bool]:
        """Return an operator, and whether it is negated."""
        sign = _SIGN.match(self._text, self._at)
        if sign is not None:
            self._at = sign.end()
            self._blanks()
            return _SIGNS.get(sign[0]) or Operator(sign[0]), sign[0] == "!~"
        for operator in (Operator.CONTAINS, Operator.EXISTS):
            if self._take_keyword(operator):
                return operator, False
        return None, False

    def _compared(self, field: Field, operator: Operator, begin: int) -> Condition:
        """Return a condition with what follows its operator."""
        subject = field.subject
        whole_headers = subject is Subject.HEADERS and not field.path
        texts = operator in (Operator.MATCHES, Operator.CONTAINS)
        if (subject in NUMBERS and (texts or operator is Operator.EXISTS)) or (
            whole_headers and not texts and operator is not Operator.EXISTS
        ):
            raise _Wrong(Mistake.NOT_FOR_FIELD, begin, f"{subject} {operator}")
        if operator is Operator.EXISTS:
            return Condition(field, operator)
        at = self._at
        if at == len(self._text) or self._text[at] == ")":
            raise _Wrong(Mistake.NO_VALUE, at, operator)
        if operator is Operator.MATCHES:
            pattern = self._pattern()
            if pattern is None:
                pattern = self._literal().text
                if why := bad_pattern(pattern):
                    raise _Wrong(Mistake.BAD_PATTERN, at, why)
            return Condition(field, operator, Literal(pattern))
        literal = self._literal()
        is_time = subject is Subject.TIMESTAMP and literal.time_ms != UNKNOWN
        if subject in NUMBERS and literal.number is None and not is_time:
            raise _Wrong(Mistake.NOT_A_NUMBER, at, f"{subject} {literal.text}")
        if operator in ORDERS and literal.number is None and literal.time_ms == UNKNOWN:
            raise _Wrong(Mistake.NOT_ORDERED, at, literal.text)
        return Condition(field, operator, literal)

    def _pattern(self) -> str | None:
        """Return an expression between slashes, None if there is none."""
        if not self._text.startswith("/", self._at):
            return None
        begin = self._at
        match = _PATTERN.match(self._text, begin)
        if match is None:
            return None
        self._at = match.end()
        self._blanks()
        pattern = match[1].replace("\\/", "/")
        if why := bad_pattern(pattern):
            raise _Wrong(Mistake.BAD_PATTERN, begin, why)
        return pattern

    def _literal(self) -> Literal:
        if self._text[self._at] in "\"'":
            text = self._quoted()
            self._blanks()
            return Literal(text)
        match = _WORD.match(self._text, self._at)
        if match is None:
            raise self._wrong(Mistake.NO_VALUE)
        self._at = match.end()
        self._blanks()
        return self._meanings(match[0])

    def _meanings(self, word: str) -> Literal:
        """Return what a word without quotes stands for."""
        number: int | Decimal | None = None
        if len(word) <= MOST_DIGITS and (form := _NUMBER.fullmatch(word)):
            number = Decimal(word) if form[1] or form[2] else int(word)
        time_ms = UNKNOWN
        if _TIME.fullmatch(word):
            try:
                when = datetime.fromisoformat(word)
                zoned = when if when.tzinfo is not None else when.replace(tzinfo=self._zone)
                time_ms = round(zoned.timestamp() * 1000)
            except (ValueError, OverflowError, OSError):
                pass
        data = _HEX.fullmatch(word)
        return Literal(
            word,
            number,
            {"true": True, "false": False}.get(word),
            word == "null",
            time_ms,
            bytes.fromhex(data[1]) if data else None,
        )

    def _quoted(self) -> str:
        match = _QUOTED.match(self._text, self._at)
        if match is None:
            raise _Wrong(Mistake.OPEN_QUOTE, self._at, self._text[self._at])
        self._at = match.end()
        written = match[1] if match[1] is not None else match[2]
        return _ESCAPE.sub(
            lambda e: chr(int(e[1][1:], 16)) if len(e[1]) > 1 else _ESCAPED.get(e[1], e[1]), written
        )

    def _keyword(self, *words: str) -> bool:
        match = _KEYWORD.match(self._text, self._at)
        return match is not None and match[1].casefold() in words

    def _take_keyword(self, word: str) -> bool:
        if not self._keyword(word):
            return False
        self._at += len(word)
        self._blanks()
        return True

    def _blanks(self) -> None:
        match = _BLANKS.match(self._text, self._at)
        assert match is not None
        self._at = match.end()

    def _wrong(self, mistake: Mistake) -> _Wrong:
        word = _WORD.match(self._text, self._at)
        return _Wrong(mistake, self._at, word[0] if word else self._text[self._at : self._at + 1])
