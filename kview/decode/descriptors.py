"""Protobuf's descriptors: from a serialized FileDescriptorProto to message types that refer to each other.

A descriptor is itself a message, of which the parts named here are read (google/protobuf/descriptor.proto).
"""

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from kview.decode.cursor import Cursor, Stopped
from kview.decode.errors import NotASchema, full_name

MOST_TYPES = 20_000
"""Limit of the messages, enums and fields of a schema."""
MOST_DEPTH = 60
"""Limit of how deep messages are nested in messages."""


class Type(IntEnum):
    """The types of fields, by the numbers of FieldDescriptorProto."""

    DOUBLE = 1
    FLOAT = 2
    INT64 = 3
    UINT64 = 4
    INT32 = 5
    FIXED64 = 6
    FIXED32 = 7
    BOOL = 8
    STRING = 9
    GROUP = 10
    MESSAGE = 11
    BYTES = 12
    UINT32 = 13
    ENUM = 14
    SFIXED32 = 15
    SFIXED64 = 16
    SINT32 = 17
    SINT64 = 18


_TYPES = frozenset(Type)


@dataclass(slots=True, eq=False)
class ProtoField:
    """A field of a message. `message` and `symbols` are set if its type is one of them and is known."""

    name: str
    kind: Type
    repeated: bool = False
    type_name: str = ""
    message: "Message | None" = None
    symbols: Mapping[int, str] = field(default_factory=dict)
    scope: str = ""
    """The name of the message in which `type_name` was written, '' if that is a full name."""

    @property
    def is_only_named(self) -> bool:
        """Whether the type may be a message or an enum: a .proto file names it, and no file has it."""
        return bool(self.scope) and self.kind is Type.MESSAGE and self.message is None


@dataclass(slots=True, eq=False)
class Message:
    """A message type. `fields` are by number. The entries of a map are messages, too."""

    name: str
    fields: dict[int, ProtoField] = field(default_factory=dict)
    nested: list["Message"] = field(default_factory=list)
    is_map_entry: bool = False


@dataclass(slots=True, eq=False)
class ProtoFile:
    """A file: its messages in their order, which payloads count, and everything in it by full name."""

    messages: list[Message] = field(default_factory=list)
    by_name: dict[str, Message] = field(default_factory=dict)
    enums: dict[str, dict[int, str]] = field(default_factory=dict)

    def message(self, indexes: Sequence[int]) -> Message | None:
        """Return the message that a payload's indexes lead to, None if there is none."""
        level, found = self.messages, None
        for index in indexes:
            if index >= len(level):
                return None
            found = level[index]
            level = found.nested
        return found


def parsed(text: str, references: Sequence[str] = ()) -> ProtoFile:
    """Return the file that base64 of a FileDescriptorProto describes, with what its imports describe.

    Raises NotASchema.
    """
    made = well_known()
    reader = _Reader(made)
    for each in (*references, text):
        made.messages = []  # of the last file, which is the one itself
        try:
            data = base64.b64decode(each, validate=True)
            reader.file(data)
        except (binascii.Error, ValueError, Stopped):
            raise NotASchema from None
    resolve(made)
    return made


def of_set(data: bytes) -> ProtoFile:
    """Return what a serialized FileDescriptorSet describes. Raises NotASchema."""
    made = well_known()
    reader = _Reader(made)
    try:
        for number, value in _parts(data):
            if number == 1:
                reader.file(_bytes(value))
    except Stopped:
        raise NotASchema from None
    resolve(made)
    return made


def resolve(file: ProtoFile) -> None:
    """Let the fields have the messages and enums that they name."""
    for message in file.by_name.values():
        for each in message.fields.values():
            for name in _candidates(each):
                if name in file.enums and each.scope:
                    each.kind = Type.ENUM
                if name in file.enums or name in file.by_name:
                    each.message = file.by_name.get(name)
                    each.symbols = file.enums.get(name, each.symbols)
                    break


def _candidates(of: ProtoField) -> Iterator[str]:
    """Yield the full names that a type's name may stand for, from the innermost scope on."""
    if of.type_name.startswith(".") or not of.scope:
        yield of.type_name.removeprefix(".")
        return
    scope = of.scope
    while scope:
        yield f"{scope}.{of.type_name}"
        scope = scope.rpartition(".")[0]
    yield of.type_name


class _Reader:
    def __init__(self, file: ProtoFile) -> None:
        self._file = file
        self._left = MOST_TYPES

    def file(self, data: bytes) -> None:
        """Add what a FileDescriptorProto describes."""
        package = "".join(_text(value) for number, value in _parts(data) if number == 2)
        prefix = f"{package}." if package else ""
        for number, value in _parts(data):
            if number == 4:
                self._file.messages.append(self._message(_bytes(value), prefix, 0))
            elif number == 5:
                self._enum(_bytes(value), prefix)

    def _count(self, depth: int = 0) -> None:
        self._left -= 1
        if self._left < 0 or depth > MOST_DEPTH:
            raise NotASchema

    def _message(self, data: bytes, prefix: str, depth: int) -> Message:
        self._count(depth)
        name = "".join(_text(value) for number, value in _parts(data) if number == 1)
        made = Message(full_name(prefix + name))
        self._file.by_name[made.name] = made
        for number, value in _parts(data):
            if number == 2:
                self._count()
                self._field(made, _bytes(value))
            elif number == 3:
                made.nested.append(self._message(_bytes(value), f"{made.name}.", depth + 1))
            elif number == 4:
                self._enum(_bytes(value), f"{made.name}.")
            elif number == 7:
                made.is_map_entry = any(option == (7, 1) for option in _parts(_bytes(value)))
        return made

    def _field(self, message: Message, data: bytes) -> None:
        facts = dict(_parts(data))
        number, kind = facts.get(3, 0), facts.get(5, 0)
        if not isinstance(number, int) or not isinstance(kind, int) or kind not in _TYPES:
            raise NotASchema
        message.fields[number] = ProtoField(
            _text(facts.get(1, b"")), Type(kind), facts.get(4) == 3, _text(facts.get(6, b""))
        )

    def _enum(self, data: bytes, prefix: str) -> None:
        self._count()
        name, symbols = "", dict[int, str]()
        for number, value in _parts(data):
            if number == 1:
                name = _text(value)
            elif number == 2:
                self._count()
                facts = dict(_parts(_bytes(value)))
                signed = facts.get(2, 0)
                if not isinstance(signed, int):
                    raise NotASchema
                symbols.setdefault(to_signed(signed, 64), _text(facts.get(1, b"")))
        self._file.enums[full_name(prefix + name)] = symbols


def to_signed(number: int, bits: int) -> int:
    """Return an unsigned number of so many bits as the signed one that it stands for."""
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


def _parts(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a message by number. Raises Stopped."""
    cursor = Cursor(data)
    while cursor.at < len(data):
        tag = cursor.varint()
        match tag & 7:
            case 0:
                yield tag >> 3, cursor.varint()
            case 1:
                yield tag >> 3, cursor.take(8)
            case 2:
                yield tag >> 3, cursor.take(cursor.varint())
            case 5:
                yield tag >> 3, cursor.take(4)
            case _:
                raise cursor.wrong()


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise NotASchema
    return value


def _text(value: int | bytes) -> str:
    return _bytes(value).decode("utf-8", "replace")


def well_known() -> ProtoFile:
    """Return the types of google/protobuf that every compiler has, so that no registry keeps them.

    They are new each time, because a file may have types of the same names.
    """
    file = ProtoFile()

    def add(name: str, *fields: ProtoField, is_map_entry: bool = False) -> None:
        full = f"google.protobuf.{name}"
        file.by_name[full] = Message(full, dict(enumerate(fields, 1)), is_map_entry=is_map_entry)

    def one(name: str, kind: Type, type_name: str = "", repeated: bool = False) -> ProtoField:
        return ProtoField(name, kind, repeated, f".google.protobuf.{type_name}" if type_name else "")

    for name in ("Timestamp", "Duration"):
        add(name, one("seconds", Type.INT64), one("nanos", Type.INT32))
    wrapped = {
        "DoubleValue": Type.DOUBLE, "FloatValue": Type.FLOAT, "Int64Value": Type.INT64,
        "UInt64Value": Type.UINT64, "Int32Value": Type.INT32, "UInt32Value": Type.UINT32,
        "BoolValue": Type.BOOL, "StringValue": Type.STRING, "BytesValue": Type.BYTES,
    }  # fmt: skip
    for name, kind in wrapped.items():
        add(name, one("value", kind))
    add("Empty")
    add("Any", one("type_url", Type.STRING), one("value", Type.BYTES))
    add("FieldMask", one("paths", Type.STRING, repeated=True))
    add("Struct", one("fields", Type.MESSAGE, "Struct.FieldsEntry", repeated=True))
    add("Struct.FieldsEntry", one("key", Type.STRING), one("value", Type.MESSAGE, "Value"), is_map_entry=True)
    add(
        "Value",
        one("null_value", Type.ENUM, "NullValue"),
        one("number_value", Type.DOUBLE),
        one("string_value", Type.STRING),
        one("bool_value", Type.BOOL),
        one("struct_value", Type.MESSAGE, "Struct"),
        one("list_value", Type.MESSAGE, "ListValue"),
    )
    add("ListValue", one("values", Type.MESSAGE, "Value", repeated=True))
    file.enums["google.protobuf.NullValue"] = {0: "NULL_VALUE"}
    return file
