"""What must be in a record's bytes for a filter to describe it, so that other batches need not be read."""

import re

from kview.model.where import And, Condition, Literal, Not, Operator, Or, Subject, Where

MOST_DIGITS = 20
"""Limit of the digits of a number whose ways to be written are looked for."""
_PAYLOADS = frozenset({Subject.KEY, Subject.VALUE, Subject.HEADERS, Subject.ANYWHERE})
_IN_NUMBERS = frozenset("0123456789.eE+-")
_NOT_PLAIN = re.compile(r"[\\()|\[\]{}\ufffd]|[+?*][+?*]")
"""In expressions that are more than texts, dots, anchors and repeated characters."""
_ESCAPED = frozenset('"\\/')
_ESCAPES = (b"\\", b"\\u")


def needles(where: Where) -> tuple[bytes, ...]:
    """Return bytes of which at least one is in the stored bytes of every record that the filter may describe.

    It is () if nothing is known. It holds for keys, values and headers that are text or JSON, and not for
    those that are decoded with a schema. If `has_fields`, a key or a value that needs a schema must be judged
    nevertheless, because nobody knows its fields.
    """
    match where:
        case And():
            return max(map(needles, where.parts), key=_sharpness)
        case Or():
            all_parts = [needles(part) for part in where.parts]
            return tuple(dict.fromkeys(needle for part in all_parts for needle in part)) * all(all_parts)
        case Condition(field, Operator.EQUAL | Operator.CONTAINS as operator, literal):
            if field.subject in _PAYLOADS:
                return _of(literal, operator)
        case Condition(field, Operator.MATCHES, literal) if field.subject in _PAYLOADS:
            return _of(Literal(_in_every_match(literal.text)), Operator.CONTAINS)
    return ()


def needle_groups(where: Where) -> tuple[tuple[bytes, ...], ...]:
    """Return groups of bytes like `needles`, of each of which at least one is in every record described."""
    if isinstance(where, And):
        return tuple(dict.fromkeys(group for part in where.parts for group in needle_groups(part)))
    group = needles(where)
    return (group,) if group else ()


def has_fields(where: Where) -> bool:
    """Return whether a filter asks for fields within keys or values."""
    match where:
        case Not():
            return has_fields(where.part)
        case And() | Or():
            return any(map(has_fields, where.parts))
    return bool(where.field.path) and where.field.subject is not Subject.HEADERS


def wanted_keys(where: Where) -> tuple[bytes, ...]:
    """Return the keys of which a record must have one to be described, () if that is not known."""
    match where:
        case And():
            return next(filter(None, map(wanted_keys, where.parts)), ())
        case Or():
            all_parts = [wanted_keys(part) for part in where.parts]
            return tuple(dict.fromkeys(key for part in all_parts for key in part)) * all(all_parts)
        case Condition(field, Operator.EQUAL, literal):
            if field.subject is Subject.KEY and not field.path and not literal.null:
                return (_bytes(literal.text), *filter(None, (literal.data,)))
    return ()


def _sharpness(some: tuple[bytes, ...]) -> int:
    """Return how few bytes are likely to have one of these in them."""
    return min((len(needle) for needle in some if needle not in _ESCAPES), default=0)


def _of(literal: Literal, operator: Operator) -> tuple[bytes, ...]:
    text = literal.text
    if not text or literal.null:
        return ()
    if operator is Operator.CONTAINS and _IN_NUMBERS.issuperset(text):
        return ()  # 42 is in 4.2e1, and 00 in 1e5
    found = [_bytes(text)]
    if literal.data:
        found.append(literal.data)
    if literal.number is not None and operator is Operator.EQUAL:
        forms = _forms(str(literal.number))
        if not forms:
            return ()
        found += forms
    # In JSON, a character may be written as its number, and a few must be escaped.
    needs_escape = any(c in _ESCAPED or c < " " for c in text)
    found.append(_ESCAPES[0] if needs_escape else _ESCAPES[1])
    return tuple(dict.fromkeys(found))


def _in_every_match(pattern: str) -> str:
    """Return a text that is in all that an expression matches, '' if that takes more than a look."""
    if _NOT_PLAIN.search(pattern):
        return ""
    # What may be missing or repeated is not in every match as it stands, and ends a text.
    texts = re.split(r"(?s:.)[?*]|[.^$+]", pattern)
    return max(texts, key=lambda text: len(text) * (not _IN_NUMBERS.issuperset(text)))


def _forms(number: str) -> list[bytes]:
    """Return what is in every way to write a number in JSON: its digits, with or without a point."""
    digits = "".join(c for c in number.partition("E")[0] if c.isdigit()).strip("0")
    if not 0 < len(digits) <= MOST_DIGITS:
        return []
    return [
        digits.encode(),
        *(f"{digits[:place]}.{digits[place:]}".encode() for place in range(1, len(digits))),
    ]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
