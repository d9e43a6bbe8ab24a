"""Avro's binary encoding (Avro's specification 1.12, Binary Encoding): from bytes to a tree.

This is a reader of its own because of what bytes from anybody can do to one without limits: seven bytes can
stand for 10¹² nulls, and one megabyte for a list that is nested a million times.
"""

import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from types import MappingProxyType
from typing import Any

from kview.decode.avro_schema import AvroType
from kview.decode.cursor import Cursor, Stopped, short_float, uuid_text
from kview.model.decoded import (
    DecodeFailure,
    DecodeFailureKind,
    Fields,
    Items,
    Moment,
    MomentKind,
    Node,
    Symbol,
)

Put = Callable[[Node], None]
"""Puts a node in its place in the tree, before its own parts are read."""

_MILLI, _MICRO, _NANO = 1_000, 1_000_000, 1_000_000_000
_MOMENTS: Mapping[str, tuple[MomentKind, int]] = MappingProxyType({
    "date": (MomentKind.DATE, 1),
    "time-millis": (MomentKind.TIME, _MILLI),
    "time-micros": (MomentKind.TIME, _MICRO),
    "timestamp-millis": (MomentKind.TIMESTAMP, _MILLI),
    "timestamp-micros": (MomentKind.TIMESTAMP, _MICRO),
    "timestamp-nanos": (MomentKind.TIMESTAMP, _NANO),
    "local-timestamp-millis": (MomentKind.LOCAL, _MILLI),
    "local-timestamp-micros": (MomentKind.LOCAL, _MICRO),
    "local-timestamp-nanos": (MomentKind.LOCAL, _NANO),
})  # fmt: skip
_MOST_DECIMAL_BYTES = 1_000
"""A longer decimal is shown as the bytes it is: to write it in digits takes too long."""
_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1


def read(schema: AvroType, cursor: Cursor) -> tuple[bool, Node, DecodeFailure]:
    """Return whether anything was read, the tree as far as it was read, and why no further."""
    made: list[Node] = []
    try:
        _read(schema, cursor, made.append)
    except Stopped as stopped:
        return bool(made), made[0] if made else None, cursor.failure(stopped)
    if cursor.at < len(cursor.data):
        return True, made[0], DecodeFailure(DecodeFailureKind.LEFT_OVER, cursor.at)
    return True, made[0], cursor.note


def _read(kind: AvroType, cursor: Cursor, put: Put) -> None:
    match kind.kind:
        case "record":
            _record(kind, cursor, put)
        case "union":
            branch = _choice(len(kind.fields), cursor)
            _read(kind.fields[branch][1], cursor, put)
        case "array" | "map":
            _blocks(kind, cursor, put)
        case "enum":
            cursor.count_node()
            put(Symbol(kind.symbols[_choice(len(kind.symbols), cursor)]))
        case "fixed":
            cursor.count_node()
            put(_bytes(kind, cursor.take(kind.size)))
        case _:
            cursor.count_node()
            put(_PRIMITIVES[kind.kind](kind, cursor))


def _choice(choices: int, cursor: Cursor) -> int:
    at, chosen = cursor.at, cursor.zigzag()
    if not 0 <= chosen < choices:
        raise cursor.wrong(at)
    return chosen


def _record(kind: AvroType, cursor: Cursor, put: Put) -> None:
    cursor.count_node()
    cursor.deeper()
    fields: list[tuple[str, Node]] = []
    put(Fields(kind.name, fields))
    for name, of in kind.fields:
        cursor.path.append(name)
        _read(of, cursor, lambda node, name=name: fields.append((name, node)))  # type: ignore[misc]
        cursor.path.pop()
    cursor.higher()


def _blocks(kind: AvroType, cursor: Cursor, put: Put) -> None:
    """Read an array or a map: a series of blocks. A negative count has the block's size behind it."""
    cursor.count_node()
    cursor.deeper()
    of, number = kind.fields[0][1], 0
    items: list[Node] = []
    fields: list[tuple[str, Node]] = []
    is_map = kind.kind == "map"
    put(Fields("", fields) if is_map else Items(items))
    while count := cursor.zigzag():
        if count < 0:
            count = -count
            cursor.zigzag()
        for _ in range(count):
            if is_map:
                name = cursor.text(cursor.zigzag())
                cursor.path.append(name)
                _read(of, cursor, lambda node, name=name: fields.append((name, node)))  # type: ignore[misc]
            else:
                cursor.path.append(number)
                _read(of, cursor, items.append)
            cursor.path.pop()
            number += 1
    cursor.higher()


def _null(kind: AvroType, cursor: Cursor) -> Node:
    return None


def _boolean(kind: AvroType, cursor: Cursor) -> Node:
    at = cursor.at
    byte = cursor.take(1)[0]
    if byte > 1:
        raise cursor.wrong(at)
    return byte == 1


def _int(kind: AvroType, cursor: Cursor) -> Node:
    at, number = cursor.at, cursor.zigzag()
    if not _INT_MIN <= number <= _INT_MAX:
        raise cursor.wrong(at)
    return _moment(kind, number)


def _long(kind: AvroType, cursor: Cursor) -> Node:
    return _moment(kind, cursor.zigzag())


def _moment(kind: AvroType, number: int) -> Node:
    return Moment(_MOMENTS[kind.logical][0], number, _MOMENTS[kind.logical][1]) if kind.logical else number


def _float(kind: AvroType, cursor: Cursor) -> Node:
    return short_float(cursor.take(4))


def _double(kind: AvroType, cursor: Cursor) -> Node:
    number: float = struct.unpack("<d", cursor.take(8))[0]
    return number


def _string(kind: AvroType, cursor: Cursor) -> Node:
    return cursor.text(cursor.zigzag())


def _of_bytes(kind: AvroType, cursor: Cursor) -> Node:
    return _bytes(kind, cursor.take(cursor.zigzag()))


def _bytes(kind: AvroType, data: bytes) -> Node:
    if kind.logical == "decimal" and len(data) <= _MOST_DECIMAL_BYTES:
        digits = int.from_bytes(data, "big", signed=True)
        sign, text = (1, str(-digits)) if digits < 0 else (0, str(digits))
        return Decimal((sign, tuple(map(int, text)), -kind.scale))
    if kind.logical == "uuid":
        return uuid_text(data)
    return data


_PRIMITIVES: Mapping[str, Callable[[AvroType, Cursor], Any]] = MappingProxyType({
    "null": _null, "boolean": _boolean, "int": _int, "long": _long, "float": _float, "double": _double,
    "bytes": _of_bytes, "string": _string,
})  # fmt: skip
