"""Protobuf's wire format (protobuf.dev, Encoding): from bytes to a tree, in the order of the bytes.

Fields that the schema does not know are kept under their numbers (`#15`): a newer producer wrote them, or the
schema is the wrong one.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from kview.decode.cursor import Cursor, Stopped, short_float
from kview.decode.descriptors import Message, ProtoField, Type, to_signed
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

_VARINT, _FIXED64, _BYTES, _GROUP, _END_GROUP, _FIXED32 = range(6)
"""The wire types."""
_NANO = 1_000_000_000
_TIMESTAMP = "google.protobuf.Timestamp"
_MOST_SECONDS = 10**12
"""Seconds of a timestamp beyond which no calendar has it."""
_UNKNOWN = Message("")
Put = Callable[[Node], None]
"""Puts a node in its place in the tree, before its own parts are read."""


@dataclass(slots=True)
class _Level:
    """A message that is being read. `places` are those of its fields by number, and `inner` are the messages
    of fields that are not repeated, which go on where such a field comes again."""

    fields: list[tuple[str, Node]] = field(default_factory=list)
    places: dict[int, int] = field(default_factory=dict)
    inner: dict[int, "_Level"] = field(default_factory=dict)

    def put(self, number: int, name: str, node: Node) -> None:
        """Put a field in its place, instead of what it was before."""
        if number in self.places:
            self.fields[self.places[number]] = (name, node)
        else:
            self.places[number] = len(self.fields)
            self.fields.append((name, node))


def read(message: Message, cursor: Cursor) -> tuple[bool, Node, DecodeFailure]:
    """Return whether anything was read, the tree as far as it was read, and why no further."""
    level = _Level()
    tree = Fields(message.name, level.fields)
    try:
        cursor.count_node()
        _fields(message, cursor, len(cursor.data), level)
    except Stopped as stopped:
        return bool(level.fields), tree, cursor.failure(stopped)
    return True, tree, cursor.note


def _fields(message: Message, cursor: Cursor, end: int, level: _Level, group: int | None = None) -> None:
    """Read fields up to `end`, or up to the end of a group with that number."""
    while cursor.at < end:
        at, tag = cursor.at, cursor.varint()
        number, wire = tag >> 3, tag & 7
        if wire == _END_GROUP and number == group:
            return
        if not number or wire > _FIXED32 or wire == _END_GROUP:
            raise cursor.wrong(at)
        known = message.fields.get(number)
        if known is not None and not _fits(known, wire):
            known = None
        cursor.path.append(known.name if known is not None else f"#{number}")
        _field(number, wire, known, cursor, end, level)
        if cursor.at > end:
            raise cursor.wrong(at)
        cursor.path.pop()
    if group is not None:
        raise cursor.wrong()


def _fits(known: ProtoField, wire: int) -> bool:
    """Return whether a field may have a wire type. Google's library, too, takes others for unknown fields.

    A type that is only named may be a message or an enum. A group may be a message of an edition.
    """
    if known.is_only_named or wire == _WIRES[known.kind]:
        return True
    if wire == _GROUP:
        return known.kind is Type.MESSAGE and not (known.message is not None and known.message.is_map_entry)
    return wire == _BYTES and known.repeated and known.kind is not Type.GROUP  # packed


def _field(number: int, wire: int, known: ProtoField | None, cursor: Cursor, end: int, level: _Level) -> None:
    """Read one field, and put it where it belongs: a repeated one to its others, else in place of another."""
    if known is None:
        cursor.count_node()
        level.fields.append((f"#{number}", _raw(number, wire, cursor)))
        return
    if known.repeated and known.message is not None and known.message.is_map_entry and wire == _BYTES:
        _entry(number, known, known.message, cursor, level)
        return
    if not known.repeated:
        inner = level.inner.setdefault(number, _Level()) if known.message is not None else None
        _value(number, wire, known, cursor, lambda node: level.put(number, known.name, node), inner)
        return
    if number not in level.places:
        cursor.count_node()
        level.put(number, known.name, Items([]))
    items = level.fields[level.places[number]][1]
    assert isinstance(items, Items)
    if wire == _BYTES and _WIRES[known.kind] != _BYTES:  # packed
        length = _length(cursor, end)
        until = cursor.at + length
        while cursor.at < until:
            cursor.path.append(len(items.items))
            _value(number, _WIRES[known.kind], known, cursor, items.items.append)
            cursor.path.pop()
        if cursor.at > until:
            raise cursor.wrong()
        return
    cursor.path.append(len(items.items))
    _value(number, wire, known, cursor, items.items.append)
    cursor.path.pop()


def _length(cursor: Cursor, end: int) -> int:
    """Return a length, which is read before what it is of. Raises Stopped if the bytes end before."""
    length = cursor.varint()
    if length > end - cursor.at:
        raise Stopped(DecodeFailureKind.ENDS, cursor.at)
    return length


def _entry(number: int, known: ProtoField, message: Message, cursor: Cursor, level: _Level) -> None:
    """Read an entry of a map. Without a key or a value it has the default of its type."""
    if number not in level.places:
        cursor.count_node()
        level.put(number, known.name, Fields("", []))
    entries = level.fields[level.places[number]][1]
    assert isinstance(entries, Fields)
    cursor.count_node()
    length = _length(cursor, len(cursor.data))
    until = cursor.at + length
    pair = _Level()
    cursor.deeper()
    _fields(message, cursor, until, pair)
    cursor.higher()
    key, value = (
        pair.fields[pair.places[part]][1] if part in pair.places else _default(message.fields.get(part))
        for part in (1, 2)
    )
    entries.fields.append((key if isinstance(key, str) else str(key), value))


def _default(of: ProtoField | None) -> Node:
    """Return what a field stands for that was not written."""
    if of is None or of.is_only_named:
        return None
    match of.kind:
        case Type.MESSAGE | Type.GROUP:
            message = of.message or _UNKNOWN
            return _timestamp(message, []) if message.name == _TIMESTAMP else Fields(message.name, [])
        case Type.ENUM:
            return next(map(Symbol, of.symbols.values()), 0)
        case Type.STRING:
            return ""
        case Type.BYTES:
            return b""
        case Type.BOOL:
            return False
        case Type.FLOAT | Type.DOUBLE:
            return 0.0
    return 0


def _value(
    number: int, wire: int, known: ProtoField, cursor: Cursor, put: Put, level: _Level | None = None
) -> None:
    """Read a value. A message is read into `level`."""
    cursor.count_node()
    if known.is_only_named:
        put(_raw(number, wire, cursor))
        return
    if wire == _GROUP:
        _nested(known.message or _UNKNOWN, cursor, len(cursor.data), put, level or _Level(), number)
        return
    if known.kind is Type.MESSAGE:
        length = _length(cursor, len(cursor.data))
        until = cursor.at + length
        if known.message is None:
            put(cursor.take(until - cursor.at))
        else:
            _nested(known.message, cursor, until, put, level or _Level())
        return
    if known.kind is Type.ENUM:
        value = to_signed(cursor.varint(), 32)
        name = known.symbols.get(value)
        put(value if name is None else Symbol(name))
        return
    put(_SCALARS[known.kind](cursor) if known.kind in _SCALARS else _text_or_bytes(known.kind, cursor))


def _nested(
    message: Message,
    cursor: Cursor,
    end: int,
    put: Put,
    level: _Level,
    group: int | None = None,
) -> None:
    is_timestamp = message.name == _TIMESTAMP
    if not is_timestamp:
        put(Fields(message.name, level.fields))
    cursor.deeper()
    _fields(message, cursor, end, level, group)
    cursor.higher()
    if is_timestamp:
        put(_timestamp(message, level.fields))


def _timestamp(message: Message, fields: list[tuple[str, Node]]) -> Node:
    held = dict(fields)
    seconds, nanos = held.get("seconds", 0), held.get("nanos", 0)
    if (
        isinstance(seconds, int)
        and isinstance(nanos, int)
        and abs(seconds) < _MOST_SECONDS
        and 0 <= nanos < _NANO
    ):
        return Moment(MomentKind.TIMESTAMP, seconds * _NANO + nanos, _NANO)
    return Fields(message.name, fields)


def _text_or_bytes(kind: Type, cursor: Cursor) -> Node:
    length = cursor.varint()
    return cursor.text(length) if kind is Type.STRING else cursor.take(length)


def _raw(number: int, wire: int, cursor: Cursor) -> Node:
    """Return a field of which only the wire type is known."""
    match wire:
        case 0:
            return cursor.varint()
        case 1:
            return cursor.take(8)
        case 2:
            return cursor.take(cursor.varint())
        case 3:
            made: list[Node] = []
            _nested(_UNKNOWN, cursor, len(cursor.data), made.append, _Level(), number)
            return made[0]
    return cursor.take(4)


def _unpacked(layout: str, size: int) -> Callable[[Cursor], Node]:
    def read_number(cursor: Cursor) -> Node:
        number: int | float = struct.unpack(layout, cursor.take(size))[0]
        return number

    return read_number


_SCALARS: Mapping[Type, Callable[[Cursor], Node]] = MappingProxyType({
    Type.DOUBLE: _unpacked("<d", 8),
    Type.FLOAT: lambda cursor: short_float(cursor.take(4)),
    Type.INT64: lambda cursor: to_signed(cursor.varint(), 64),
    Type.UINT64: lambda cursor: cursor.varint(),
    Type.INT32: lambda cursor: to_signed(cursor.varint(), 32),
    Type.FIXED64: _unpacked("<Q", 8),
    Type.FIXED32: _unpacked("<I", 4),
    Type.BOOL: lambda cursor: cursor.varint() != 0,
    Type.UINT32: lambda cursor: cursor.varint() & 0xFFFFFFFF,
    Type.SFIXED32: _unpacked("<i", 4),
    Type.SFIXED64: _unpacked("<q", 8),
    Type.SINT32: lambda cursor: to_signed(cursor.zigzag(), 32),
    Type.SINT64: lambda cursor: cursor.zigzag(),
})  # fmt: skip
_FIXED = {
    Type.DOUBLE: _FIXED64, Type.FIXED64: _FIXED64, Type.SFIXED64: _FIXED64, Type.FLOAT: _FIXED32,
    Type.FIXED32: _FIXED32, Type.SFIXED32: _FIXED32, Type.GROUP: _GROUP, Type.STRING: _BYTES,
    Type.BYTES: _BYTES, Type.MESSAGE: _BYTES,
}  # fmt: skip
_WIRES: Mapping[Type, int] = MappingProxyType({kind: _FIXED.get(kind, _VARINT) for kind in Type})
"""The wire type of each type."""
