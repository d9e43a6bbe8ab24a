"""Whether records are those that a filter describes.

A condition holds, or not, or it is not known: the record's value could not be decoded, or only its beginning
was kept. `not` of what is not known is not known either, so that a record never matches for that reason.

What a condition says of a key, a value or a header:
- It is a text, by its bytes, and at the same time what it decodes to: with its schema, else as JSON.
- A field that is missing is not equal to anything; so only `!=` holds. null is there.
- A number is equal to a number, whatever its form (42 = 42.0 = 4.2e1), exactly, but floating-point fields
  are equal to the nearest number of their kind. A text is equal to the same text. Quotes say: only a text.
- What is not decoded is judged by its bytes, if it is a condition about the whole of it.
"""

import json
import math
import struct
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import Any

import msgspec

from kview.model.decoded import (
    HIDDEN,
    NOTES,
    Decoded,
    Fields,
    Items,
    Moment,
    MomentKind,
    Symbol,
)
from kview.model.expressions import matching
from kview.model.inspection import Payload, Record
from kview.model.masking import MASKED
from kview.model.units import UNKNOWN
from kview.model.where import (
    EVERY,
    NUMBERS,
    And,
    Candidate,
    Condition,
    Field,
    Literal,
    Not,
    Operator,
    Or,
    Step,
    Subject,
    Where,
)

JSON_MAX = 4 << 20
"""Limit of the bytes of JSON that is decoded, which takes about ten times as much memory."""
NODES_MAX = 200_000
"""Limit of the parts of a payload that a condition looks at."""
TEXTS_MAX = 10_000
"""After so many texts, an expression is looked for in them."""
_JSON = msgspec.json.Decoder(float_hook=Decimal)
_JSON_BEGINS = b'{["0123456789-tfn'
_ORDERS: dict[Operator, Callable[[Any, Any], bool]] = {
    Operator.LESS: lambda a, b: a < b,
    Operator.LESS_EQUAL: lambda a, b: a <= b,
    Operator.MORE: lambda a, b: a > b,
    Operator.MORE_EQUAL: lambda a, b: a >= b,
}

_MISSING = object()
"""Stands for what a payload decodes to if it does not, and for a tree that nobody has asked for yet."""

Answer = bool | None
"""None: it is not known."""


def matches(
    where: Where, candidates: Sequence[Candidate], cancelled: Callable[[], bool] = lambda: False
) -> list[Answer]:
    """Return of each candidate whether the filter describes it: None if that is not known.

    `cancelled` is asked before each one. Once it says so, nothing more is known.
    """
    judge = _Judge(candidates, cancelled)
    return [None if cancelled() else judge.holds(where, place) for place in range(len(candidates))]


def about_payloads(where: Where) -> bool:
    """Return whether a filter asks for keys, values or headers at all."""
    match where:
        case Not():
            return about_payloads(where.part)
        case And() | Or():
            return any(map(about_payloads, where.parts))
    return where.field.subject not in NUMBERS


def value_at(candidate: Candidate, field: Field) -> tuple[bool, Any]:
    """Return whether a record has a field, and the node there: decoded, or of JSON as Python has it.

    With EVERY in the path, it is the first one. That of a header is its payload.
    """
    if field.subject is Subject.HEADERS:
        name = str(field.path[0]).encode("utf-8", "surrogatepass")
        values = (h.value for h in candidate.record.headers if h.name.data == name)
        return next(((True, value) for value in values), (False, None))
    tree, _ = _decoded(*_parts(candidate, field.subject))
    return next(((True, node) for node in _nodes(tree, field.path)), (False, None))


class _Judge:
    def __init__(self, candidates: Sequence[Candidate], cancelled: Callable[[], bool]) -> None:
        self._candidates = candidates
        self._cancelled = cancelled
        self._trees: dict[tuple[int, Subject], tuple[Any, bool]] = {}
        """(candidate, subject) → its tree, and whether that is all of it."""
        self._patterns: dict[Condition, list[Answer]] = {}

    def holds(self, where: Where, place: int) -> Answer:
        match where:
            case Not():
                answer = self.holds(where.part, place)
                return None if answer is None else not answer
            case And():
                return self._all(where.parts, place, stops_at=False)
            case Or():
                return self._all(where.parts, place, stops_at=True)
        return self._condition(where, place)

    def _all(self, parts: Sequence[Where], place: int, stops_at: bool) -> Answer:
        unknown = False
        for part in parts:
            answer = self.holds(part, place)
            if answer is stops_at:
                return stops_at
            unknown |= answer is None
        return None if unknown else not stops_at

    def _condition(self, condition: Condition, place: int) -> Answer:
        match condition.operator:
            case Operator.MATCHES:
                if condition not in self._patterns:
                    self._patterns[condition] = self._matched(condition)
                return self._patterns[condition][place]
            case Operator.NOT_EQUAL:
                answer = self._equal(condition, place)
                return None if answer is None else not answer
            case Operator.EQUAL:
                return self._equal(condition, place)
            case Operator.EXISTS:
                return self._exists(condition, place)
            case Operator.CONTAINS:
                return self._contains(condition, place)
        return self._ordered(condition, place)

    def _equal(self, condition: Condition, place: int) -> Answer:
        literal = condition.literal
        if condition.field.subject in NUMBERS:
            number = self._number(condition, place)
            return number is not None and number in _numbers(condition)
        wanted = literal.text.encode("utf-8", "surrogatepass")
        for payload in self._payloads(condition, place):
            if payload.data is None:
                if literal.null:
                    return True
            elif not payload.cut and (payload.data == wanted or payload.data == literal.data):
                return True
        return self._any(condition, place, lambda node: _is(node, literal))

    def _ordered(self, condition: Condition, place: int) -> Answer:
        order, literal = _ORDERS[condition.operator], condition.literal
        if condition.field.subject in NUMBERS:
            number = self._number(condition, place)
            return number is not None and any(order(number, each) for each in _numbers(condition))
        return self._any(condition, place, lambda node: _in_order(node, order, literal))

    def _exists(self, condition: Condition, place: int) -> Answer:
        field, record = condition.field, self._candidates[place].record
        if field.subject is Subject.HEADERS:
            if not field.path:
                return record.header_count > 0
            if any(self._headers(condition, record)):
                return True
            return None if record.header_count > len(record.headers) else False
        if not field.path:
            payload, _ = _parts(self._candidates[place], field.subject)
            return payload.data is not None
        return self._any(condition, place, lambda node: True)

    def _contains(self, condition: Condition, place: int) -> Answer:
        literal = condition.literal
        wanted = literal.text.encode("utf-8", "surrogatepass")
        for payload in self._payloads(condition, place):
            data = payload.data
            if data is not None and (wanted in data or (literal.data is not None and literal.data in data)):
                return True
        return self._any(
            condition, place, lambda node: any(literal.text in text for text in _texts(node)), is_text=True
        )

    def _matched(self, condition: Condition) -> list[Answer]:
        """Return of all candidates whether an expression matches. Asking for all together is faster."""
        texts: list[str] = []
        owners: list[int] = []
        answers: list[Answer] = []

        def note(node: Any, place: int) -> bool:
            for text in _texts(node):
                texts.append(text)
                owners.append(place)
            return False

        def judge() -> None:
            for place, found in zip(owners, matching(condition.literal.text, texts).tolist(), strict=True):
                if found:
                    answers[place] = True
            texts.clear()
            owners.clear()

        for place in range(len(self._candidates)):
            if self._cancelled():
                return [None] * len(self._candidates)
            for payload in self._payloads(condition, place):
                if payload.data is not None:
                    texts.append(payload.data.decode(errors="replace"))
                    owners.append(place)
            answers.append(
                self._any(condition, place, lambda node, place=place: note(node, place), is_text=True)  # type: ignore[misc]
            )
            if len(texts) >= TEXTS_MAX:
                judge()
        judge()
        return answers

    def _payloads(self, condition: Condition, place: int) -> Iterator[Payload]:
        """Yield the payloads that a condition is about as a whole."""
        field, candidate = condition.field, self._candidates[place]
        record = candidate.record
        match field.subject:
            case Subject.HEADERS if field.path:
                yield from self._headers(condition, record)
            case Subject.HEADERS:
                yield from (payload for header in record.headers for payload in (header.name, header.value))
            case Subject.ANYWHERE:
                yield record.key
                yield record.value
                yield from (payload for header in record.headers for payload in (header.name, header.value))
            case Subject.KEY | Subject.VALUE if not field.path:
                yield _parts(candidate, field.subject)[0]

    def _headers(self, condition: Condition, record: Record) -> Iterator[Payload]:
        name = str(condition.field.path[0]).encode("utf-8", "surrogatepass")
        return (header.value for header in record.headers if header.name.data == name)

    def _any(
        self, condition: Condition, place: int, holds: Callable[[Any], bool], is_text: bool = False
    ) -> Answer:
        """Return whether something holds for a node that a condition is about.

        It is not known if that node is missing in what is known only in part. `is_text`: the condition has
        been judged by the bytes, too, so that only what is cut off is missing.
        """
        field, candidate = condition.field, self._candidates[place]
        complete, of_cut = True, False
        match field.subject:
            case Subject.HEADERS:
                record = candidate.record
                if record.header_count > len(record.headers):
                    complete = False
                if field.path:
                    for payload in self._headers(condition, record):
                        tree, _ = _decoded(payload, None)
                        if tree is not _MISSING and holds(tree):
                            return True
                of_cut = any(header.value.cut for header in record.headers)
            case Subject.KEY | Subject.VALUE | Subject.ANYWHERE:
                subjects = (field.subject,) if field.subject else (Subject.KEY, Subject.VALUE)
                for subject in subjects:
                    tree, whole = self._tree(place, subject)
                    if any(holds(node) for node in _nodes(tree, field.path)):
                        return True
                    complete &= whole or not field.path
                    of_cut |= _parts(candidate, subject)[0].cut
                if not field.subject:
                    record = candidate.record
                    complete &= record.header_count <= len(record.headers)
                    of_cut |= any(header.value.cut for header in record.headers)
        return False if complete and not of_cut else None

    def _tree(self, place: int, subject: Subject) -> tuple[Any, bool]:
        key = place, subject
        if key not in self._trees:
            self._trees[key] = _decoded(*_parts(self._candidates[place], subject))
        return self._trees[key]

    def _number(self, condition: Condition, place: int) -> int | None:
        candidate = self._candidates[place]
        record = candidate.record
        match condition.field.subject:
            case Subject.OFFSET:
                return record.offset
            case Subject.PARTITION:
                return candidate.partition
            case Subject.SIZE:
                return record.size
        return record.timestamp_ms if record.timestamp_ms != UNKNOWN else None


def _numbers(condition: Condition) -> list[int | Decimal]:
    literal = condition.literal
    if condition.field.subject is Subject.TIMESTAMP and literal.time_ms != UNKNOWN:
        return [literal.time_ms]
    return [literal.number] if literal.number is not None else []


def _parts(candidate: Candidate, subject: Subject) -> tuple[Payload, Decoded | None]:
    record, decoded = candidate.record, candidate.decoded
    if subject is Subject.KEY:
        return record.key, decoded.key
    return record.value, decoded.value


def _decoded(payload: Payload, decoded: Decoded | None) -> tuple[Any, bool]:
    """Return what a payload decodes to, and whether that is known completely."""
    if payload.data is None:
        return None, True
    if decoded is None or decoded.json is not None:
        return _of_json(payload if decoded is None else decoded.json or payload)
    if not decoded.has_tree or decoded.tree == HIDDEN:
        return _MISSING, False
    return decoded.tree, not decoded.failure or decoded.failure.kind in NOTES


def _of_json(payload: Payload) -> tuple[Any, bool]:
    """Return JSON, and whether the payload was read: other bytes are not JSON, and have no fields.

    What begins as an object or an array, but is not one, is not known. Nor is what a mask hides whole.
    """
    if payload.masked and payload.data == MASKED.encode():
        return _MISSING, False
    data = (payload.data or b"").strip(b" \t\r\n")
    if not data or data[0] not in _JSON_BEGINS:
        return _MISSING, not payload.cut
    nested = data[:1] in (b"{", b"[")
    if payload.cut or len(data) > JSON_MAX:
        return _MISSING, not nested and not payload.cut
    try:
        return _JSON.decode(data), True
    except (msgspec.MsgspecError, RecursionError, UnicodeError, ArithmeticError):
        pass
    try:  # numbers beyond 64-bit floats, which msgspec refuses
        return json.loads(data.decode(), parse_float=Decimal, parse_constant=_no_constant), True
    except (ValueError, RecursionError, ArithmeticError):
        return _MISSING, not nested


def _no_constant(name: str) -> None:
    """Refuse NaN and Infinity, which are not JSON, so that a text in NaN is only looked for in its bytes."""
    raise ValueError(name)


def _nodes(tree: Any, path: tuple[Step, ...]) -> Iterator[Any]:
    """Yield the nodes at a path, of which there are several only if EVERY is in it."""
    if tree is _MISSING:
        return
    for depth, step in enumerate(path):
        if isinstance(step, str):
            if isinstance(tree, dict):
                if step not in tree:
                    return
                tree = tree[step]
            elif isinstance(tree, Fields):
                last = [node for name, node in tree.fields if name == step]
                if not last:
                    return
                tree = last[-1]
            else:
                return
            continue
        items = tree.items if isinstance(tree, Items) else tree if isinstance(tree, list) else ()
        if step == EVERY:
            for item in items[:NODES_MAX]:
                yield from _nodes(item, path[depth + 1 :])
            return
        if step >= len(items):
            return
        tree = items[step]
    yield tree


def _is(node: Any, literal: Literal) -> bool:
    """Return whether a node is what a literal stands for."""
    match node:
        case None:
            return literal.null
        case bool():
            return node is literal.boolean
        case str():
            return node == literal.text
        case int() | Decimal():
            return literal.number is not None and node == literal.number
        case float():
            return literal.number is not None and _same_float(node, literal.number)
        case bytes():
            return literal.data is not None and node == literal.data
        case Symbol():
            return node.name == literal.text
        case Moment():
            if literal.time_ms != UNKNOWN and (ms := _ms(node)) is not None:
                return ms == literal.time_ms
            return literal.number is not None and node.value == literal.number
    return False


def _same_float(node: float, number: int | Decimal) -> bool:
    """Return whether a number is this one, in 64 bits or in 32, which a field may have had."""
    try:
        wanted = float(number)
        if node == wanted:
            return math.isfinite(node)
        nearest: float = struct.unpack("f", struct.pack("f", wanted))[0]
        return node == nearest
    except (OverflowError, struct.error):
        return False


def _in_order(node: Any, order: Callable[[Any, Any], bool], literal: Literal) -> bool:
    if isinstance(node, Moment):
        if literal.time_ms != UNKNOWN:
            ms = _ms(node)
            return ms is not None and order(ms, literal.time_ms)
        node = node.value
    if isinstance(node, bool) or not isinstance(node, int | float | Decimal) or literal.number is None:
        return False
    if isinstance(node, float) and math.isnan(node):
        return False
    return bool(order(node, literal.number))


def _ms(moment: Moment) -> int | Decimal | None:
    """Return a moment as epoch ms, None if it is a time of day."""
    match moment.kind:
        case MomentKind.DATE:
            return moment.value * 86_400_000
        case MomentKind.TIMESTAMP | MomentKind.LOCAL:
            return Decimal(moment.value) * 1000 / moment.per_second
    return None


def _texts(tree: Any) -> Iterator[str]:
    """Yield the texts of a node and of what is below it: those of numbers, too, but not the names."""
    pending, seen = [tree], 0
    while pending and seen < NODES_MAX:
        node = pending.pop()
        seen += 1
        match node:
            case dict():
                pending += node.values()
            case list():
                pending += node
            case Fields():
                pending += (child for _, child in node.fields)
            case Items():
                pending += node.items
            case str():
                yield node
            case bool():
                yield "true" if node else "false"
            case int():
                yield str(Decimal(node))  # Python's own text of an int has a limit of digits
            case float():
                yield str(node)
            case Decimal():
                yield f"{node:f}" if abs(node.adjusted()) < 100 else str(node)
            case bytes():
                yield f"0x{node.hex()}"
                yield node.decode(errors="replace")
            case Symbol():
                yield node.name
