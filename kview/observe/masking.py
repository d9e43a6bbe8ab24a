"""Hides what a topic's mask says, before records leave the observer: nothing beyond it has what is hidden.

What a mask may reach into is shown only if kview knows all of its fields: decoded with a schema, or as JSON.
Anything else of it (other bytes, damaged or cut ones, text without fields, fields of bytes) is hidden whole.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from kview.model.decoded import (
    HIDDEN,
    NOT_DECODED,
    NOTES,
    Decoded,
    DecodedRecord,
    DecodeFailure,
    Fields,
    Items,
    Node,
)
from kview.model.inspection import Header, Payload, Record
from kview.model.masking import MASKED, Mask, Part, State

MOST_JSON = 256 << 10
"""JSON of more bytes than this is hidden whole: to parse it takes too long."""
_SIGN = Payload(MASKED.encode(), len(MASKED), masked=True)
_LARGE = 1 << 20
_BEGINS = frozenset('{["')
"""What JSON begins with that may hold fields: an object, an array, and a text of another JSON."""
_MAY_HOLD_FIELDS = re.compile(r"[{\[<\x00-\x1f\x7f-\x9f]")
"""What stands somewhere in a text with fields that is not JSON: JSON in a log line, XML, lines, Protobuf."""
_UNKNOWN_FIELD = re.compile(r"#[0-9]+")
"""The name of a field that its schema does not know, so that it may be any field."""


def masked(record: Record, decoded: DecodedRecord, mask: Mask) -> tuple[Record, DecodedRecord]:
    """Return what is shown of a record, and of what was decoded of it."""
    masker = _Masker(mask)
    key, decoded_key = masker.part(record.key, decoded.key, mask.begin(Part.KEY))
    value, decoded_value = masker.part(record.value, decoded.value, mask.begin(Part.VALUE))
    headers = tuple(map(masker.header, record.headers))
    shown = replace(record, key=key, value=value, headers=headers)
    if shown.masked:
        shown = replace(shown, least_size=max(0, record.size - 1) // _LARGE * _LARGE)
    return shown, DecodedRecord(decoded_key, decoded_value)


def undecoded(records: Sequence[Record], mask: Mask) -> tuple[tuple[Record, ...], tuple[DecodedRecord, ...]]:
    """Return what is shown of records that could not be decoded."""
    pairs = [masked(record, NOT_DECODED, mask) for record in records]
    return tuple(record for record, _ in pairs), tuple(decoded for _, decoded in pairs)


class _Pairs(list[tuple[str, Any]]):
    """An object of JSON, whose names may occur twice."""


class _Literal(str):
    """A number of JSON as it was written."""


class _NotSure(Exception):
    """Raised where it is not known what a text holds. Has no text of its own."""


class _Masker:
    def __init__(self, mask: Mask) -> None:
        self._mask = mask

    def part(self, payload: Payload, decoded: Decoded | None, state: State) -> tuple[Payload, Decoded | None]:
        """Return what is shown of a key or a value, and of what was decoded of it."""
        if not state or payload.data is None or payload.masked:
            return payload, decoded
        if self._mask.is_hidden(state):
            return _SIGN, None
        if decoded is None:
            return self._json_payload(payload, state), None
        failure = DecodeFailure(decoded.failure.kind, cause=decoded.failure.cause)
        if decoded.json is not None:
            return _SIGN, replace(decoded, json=self._json_payload(decoded.json, state), failure=failure)
        is_whole = not failure or failure.kind in NOTES
        has_fields = is_whole and decoded.has_tree and isinstance(decoded.tree, Fields | Items)
        tree = self._tree(decoded.tree, state) if has_fields else HIDDEN
        has_tree = decoded.has_tree and is_whole
        return _SIGN, replace(decoded, tree=tree if has_tree else None, has_tree=has_tree, failure=failure)

    def header(self, header: Header) -> Header:
        """Return what is shown of a header."""
        state = self._mask.begin(Part.HEADERS)
        name, value = header.name.data, header.value
        if self._mask.is_all:
            return Header(_SIGN, value if value.data is None else _SIGN)
        if not state or value.data is None:
            return header
        try:
            if header.name.cut or name is None:
                raise _NotSure
            state = self._mask.step(state, name.decode())
            if self._mask.is_hidden_leaf(state):
                raise _NotSure
            if not state:
                return header
        except (_NotSure, UnicodeDecodeError):
            return Header(header.name, _SIGN)
        return Header(header.name, self._json_payload(value, state))

    # -- trees of schemas

    def _tree(self, node: Node, state: State) -> Node:
        if self._mask.is_hidden(state):
            return HIDDEN
        if not state:
            return node
        match node:
            case Fields():
                return Fields(
                    node.type,
                    [
                        (
                            name,
                            HIDDEN
                            if _UNKNOWN_FIELD.fullmatch(name)
                            else self._tree(child, self._mask.step(state, name)),
                        )
                        for name, child in node.fields
                    ],
                )
            case Items():
                return Items([self._tree(child, state) for child in node.items])
            case bytes():
                return HIDDEN  # whatever they hold
            case _ if self._mask.is_hidden_leaf(state):
                return HIDDEN
            case str():
                try:
                    return self._text(node, state)
                except (_NotSure, RecursionError):
                    return HIDDEN
        return node

    # -- JSON

    def _json_payload(self, payload: Payload, state: State) -> Payload:
        """Return what is shown of a payload if it is JSON with fields, else the sign."""
        data = payload.data
        if data is None or payload.cut or len(data) > MOST_JSON:
            return _SIGN
        try:
            node = _parsed(data.decode())
            if not isinstance(node, _Pairs | list):
                return _SIGN
            return _payload(self._json(node, state))
        except (_NotSure, UnicodeDecodeError, RecursionError):
            return _SIGN

    def _json(self, node: Any, state: State) -> str:
        """Return a node of JSON as text, without what is hidden."""
        if self._mask.is_hidden(state):
            return f'"{MASKED}"'
        match node:
            case _Pairs():
                fields = (
                    f"{_quoted(name)}: {self._json(child, self._mask.step(state, name))}"
                    for name, child in node
                )
                return f"{{{', '.join(fields)}}}"
            case list():
                return f"[{', '.join(self._json(child, state) for child in node)}]"
            case _ if self._mask.is_hidden_leaf(state):
                return f'"{MASKED}"'
            case _Literal():
                return str(node)
            case str():
                try:
                    return _quoted(self._text(node, state))
                except _NotSure:
                    return f'"{MASKED}"'
        return json.dumps(node)

    def _text(self, text: str, state: State) -> str:
        """Return what is shown of a text, which may be JSON with fields itself. Raises _NotSure."""
        stripped = text.lstrip("\ufeff \t\r\n")
        if not state:
            return text
        if stripped[:1] not in _BEGINS:
            if _MAY_HOLD_FIELDS.search(stripped):
                raise _NotSure
            return text
        if len(stripped) > MOST_JSON:
            raise _NotSure
        node = _parsed(stripped)
        shown = self._json(node, state)
        # A text in which nothing is hidden stays as it was written.
        return text if shown == _Masker(_NOTHING)._json(node, frozenset()) else shown


_NOTHING = Mask(())


def _parsed(text: str) -> Any:
    """Return JSON with all that was written: names that occur twice, and the digits of numbers.

    Raises _NotSure, which quotes nothing, or RecursionError.
    """
    try:
        return json.loads(
            text, object_pairs_hook=_Pairs, parse_int=_Literal, parse_float=_Literal, parse_constant=_Literal
        )
    except ValueError:
        raise _NotSure from None


def _quoted(text: str) -> str:
    quoted = json.dumps(text, ensure_ascii=False)
    try:
        quoted.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return json.dumps(text)
    return quoted


def _payload(text: str) -> Payload:
    data = text.encode()
    return Payload(data, len(data), masked=True)
