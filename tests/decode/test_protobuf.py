"""Protobuf's wire format: what Google's library wrote is read, and no bytes or schema of anybody hurt."""

import base64
from itertools import count
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, struct_pb2, timestamp_pb2
from hypothesis import given
from hypothesis import strategies as st

from kview.decode import descriptors, proto_text, protobuf
from kview.decode.cursor import Cursor
from kview.decode.errors import NotASchema
from kview.decode.framing import Framed
from kview.decode.schemas import decoded, schema_of
from kview.model.decoded import (
    Decoded,
    DecodeFailure,
    DecodeFailureKind,
    Fields,
    Items,
    Moment,
    MomentKind,
    Node,
    SchemaId,
    SchemaKind,
    Symbol,
)
from kview.model.inspection import Payload

Field = descriptor_pb2.FieldDescriptorProto
TYPES = {
    "a_double": Field.TYPE_DOUBLE, "a_float": Field.TYPE_FLOAT, "a_int64": Field.TYPE_INT64,
    "a_uint64": Field.TYPE_UINT64, "a_int32": Field.TYPE_INT32, "a_fixed64": Field.TYPE_FIXED64,
    "a_fixed32": Field.TYPE_FIXED32, "a_bool": Field.TYPE_BOOL, "a_string": Field.TYPE_STRING,
    "a_bytes": Field.TYPE_BYTES, "a_uint32": Field.TYPE_UINT32, "a_sfixed32": Field.TYPE_SFIXED32,
    "a_sfixed64": Field.TYPE_SFIXED64, "a_sint32": Field.TYPE_SINT32, "a_sint64": Field.TYPE_SINT64,
}  # fmt: skip


def add(
    to: Any, name: str, number: int, kind: int, type_name: str = "", label: int = Field.LABEL_OPTIONAL
) -> None:
    """Add a field to a message's descriptor."""
    named = {"type_name": type_name} if type_name else {}
    to.field.add(name=name, number=number, type=kind, label=label, **named)


def files() -> tuple[descriptor_pb2.FileDescriptorProto, descriptor_pb2.FileDescriptorProto]:
    """A file with every type, and the file that it imports."""
    line = descriptor_pb2.FileDescriptorProto(name="line.proto", package="a.b", syntax="proto3")
    message = line.message_type.add(name="Line")
    add(message, "qty", 1, Field.TYPE_INT32)
    file = descriptor_pb2.FileDescriptorProto(name="invoice.proto", package="com.acme", syntax="proto3")
    file.dependency.extend(["line.proto", "google/protobuf/timestamp.proto"])
    file.enum_type.add(name="State").value.add(name="OPEN", number=0)
    file.enum_type[0].value.add(name="VOID", number=-1)
    file.message_type.add(name="Other")
    invoice = file.message_type.add(name="Invoice")
    for number, (name, kind) in enumerate(TYPES.items(), 1):
        add(invoice, name, number, kind)
        add(invoice, f"{name}s", 100 + number, kind, label=Field.LABEL_REPEATED)
    add(invoice, "state", 30, Field.TYPE_ENUM, ".com.acme.State")
    add(invoice, "states", 31, Field.TYPE_ENUM, ".com.acme.State", Field.LABEL_REPEATED)
    add(invoice, "lines", 32, Field.TYPE_MESSAGE, ".a.b.Line", Field.LABEL_REPEATED)
    add(invoice, "made", 33, Field.TYPE_MESSAGE, ".google.protobuf.Timestamp")
    add(invoice, "corrects", 34, Field.TYPE_MESSAGE, ".com.acme.Invoice")
    add(invoice, "tags", 35, Field.TYPE_MESSAGE, ".com.acme.Invoice.TagsEntry", Field.LABEL_REPEATED)
    entry = invoice.nested_type.add(name="TagsEntry")
    entry.options.map_entry = True
    add(entry, "key", 1, Field.TYPE_STRING)
    add(entry, "value", 2, Field.TYPE_MESSAGE, ".a.b.Line")
    nested = invoice.nested_type.add(name="Note")
    add(nested, "text", 1, Field.TYPE_STRING)
    return line, file


LINE, FILE = files()
POOL = descriptor_pool.DescriptorPool()
TIMESTAMP = descriptor_pb2.FileDescriptorProto()
timestamp_pb2.DESCRIPTOR.CopyToProto(TIMESTAMP)
for file in (TIMESTAMP, LINE, FILE):
    POOL.Add(file)
Invoice: Any = message_factory.GetMessageClass(POOL.FindMessageTypeByName("com.acme.Invoice"))
TEXTS = [base64.b64encode(each.SerializeToString()).decode() for each in (LINE, FILE)]
SCHEMA = schema_of(SchemaKind.PROTOBUF, TEXTS[1], TEXTS[:1])
MESSAGE = descriptors.parsed(TEXTS[1], TEXTS[:1]).by_name["com.acme.Invoice"]


def read(data: bytes) -> tuple[dict[str, Node], DecodeFailure]:
    """The fields of an invoice, and why no further."""
    _, tree, failure = protobuf.read(MESSAGE, Cursor(data))
    assert isinstance(tree, Fields) and tree.type == "com.acme.Invoice"
    return dict(tree.fields), failure


def test_every_type_that_googles_library_writes_is_read() -> None:
    made = Invoice(
        a_double=0.1, a_float=0.1, a_int64=-(2**63), a_uint64=2**64 - 1, a_int32=-1, a_fixed64=2**64 - 1,
        a_fixed32=2**32 - 1, a_bool=True, a_string="Grüner", a_bytes=b"\0\xff", a_uint32=2**32 - 1,
        a_sfixed32=-5, a_sfixed64=-6, a_sint32=-7, a_sint64=-(2**63), state=-1, states=[0, -1, 7],
    )  # fmt: skip
    made.lines.add(qty=2)
    made.lines.add()
    made.tags["a"].qty = 4
    made.made.seconds, made.made.nanos = 1_772_373_930, 123_000_000
    made.corrects.a_int32s.extend([1, -2, 3])
    made.corrects.a_strings.extend(["", "x"])
    fields, failure = read(made.SerializeToString())
    assert not failure
    numbers = {name: value for name, value in fields.items() if name in TYPES}
    assert numbers == {name: getattr(made, name) for name in TYPES} | {"a_float": 0.1}
    assert (fields["state"], fields["states"]) == (Symbol("VOID"), Items([Symbol("OPEN"), Symbol("VOID"), 7]))
    assert fields["lines"] == Items([Fields("a.b.Line", [("qty", 2)]), Fields("a.b.Line", [])])
    assert fields["tags"] == Fields("", [("a", Fields("a.b.Line", [("qty", 4)]))])
    assert fields["made"] == Moment(MomentKind.TIMESTAMP, 1_772_373_930_123_000_000, 10**9)
    corrected = [("a_int32s", Items([1, -2, 3])), ("a_strings", Items(["", "x"]))]
    assert fields["corrects"] == Fields("com.acme.Invoice", corrected)  # type: ignore[arg-type]


@given(st.binary(max_size=300))
def test_no_bytes_raise_and_what_the_library_takes_is_read(data: bytes) -> None:
    _, failure = read(data)
    try:
        Invoice.FromString(data)
    except Exception:
        return
    assert failure.kind in (DecodeFailureKind.NONE, DecodeFailureKind.TOO_DEEP)


LINE_TEXT = """
syntax = "proto3"; package a.b;
message Line { int32 qty = 1; }
"""
FILE_TEXT = """
// com.acme's invoices /* not a comment */
syntax = "proto3";
package com.acme;
import "line.proto"; import public 'google/protobuf/timestamp.proto';
option java_package = "com.acme"; option (my.option) = { a: "}", b: [1, 2] };
enum State { option allow_alias = true; reserved 5 to 9; OPEN = 0; VOID = -1 [deprecated = true]; }
message Other {}
message Invoice {
  reserved 90, 95 to 99; /* message Gone { */
  %s
  State state = 30;
  repeated State states = 31 [packed = true];
  repeated a.b.Line lines = 32;
  optional .google.protobuf.Timestamp made = 33;
  oneof more { Invoice corrects = 34 [(x) = {y: 1}]; }
  map<string, a.b.Line> tags = 35;
  message Note { string text = 1; }
  message message { }
}
service Invoices { rpc Get (Other) returns (stream Invoice) { option (a) = "b"; } }
"""


def test_the_text_of_a_file_says_the_same_as_its_descriptor() -> None:
    kinds = {number: name.removeprefix("TYPE_").lower() for name, number in Field.Type.items()}
    scalars = "".join(
        f"{kinds[kind]} {name} = {number}; repeated {kinds[kind]} {name}s = {100 + number};\n"
        for number, (name, kind) in enumerate(TYPES.items(), 1)
    )
    by_text = schema_of(SchemaKind.PROTOBUF, FILE_TEXT % scalars, [LINE_TEXT])
    assert by_text.file is not None and SCHEMA.file is not None

    def said(of: descriptors.ProtoFile) -> object:
        return {
            message.name: [
                (
                    number,
                    each.name,
                    each.kind,
                    each.repeated,
                    each.message and each.message.name,
                    each.symbols,
                )
                for number, each in sorted(message.fields.items())
            ]
            for name, message in of.by_name.items()
            if name != "com.acme.Invoice.message"
        }

    assert said(by_text.file) == said(SCHEMA.file)
    made = Invoice(state=-1, states=[0, -1], a_string="x")
    made.tags["a"].qty = 4
    for schema in (SCHEMA, by_text):
        data = b"\2\2" + made.SerializeToString()
        tree = decoded(Framed(Payload(data, len(data)), SchemaId(7), 0), schema).tree
        assert isinstance(tree, Fields) and dict(tree.fields)["state"] == Symbol("VOID")


@pytest.mark.parametrize(
    "text",
    [
        "", "message", "message A", "message A {", "message A { int32 }", "message A { int32 a = x; }",
        "}", "{", "message A { int32 a = 1", "enum E { A = ; }", 'message A { string a = 1 [x = "',
        "message A {" * 5_000, "message A { oneof o {" + "oneof o {" * 5_000,
        "message A { map<string int32> a = 1; }", "/*a " * 300_000,
        "\"" + "\\a" * 500_000, "\"" + "\\\"" * 500_000, f"package {'a' * 1_000}; message A {{}}",
        f"message A {{ {'a' * 1_001} a = 1; }}", f"enum {'E' * 1_001} {{}}",
    ],
    ids=count(),
)  # fmt: skip
def test_what_is_not_a_file_is_refused(text: str) -> None:
    if not text:
        assert not proto_text.parsed(text).messages
        return
    with pytest.raises(NotASchema):
        proto_text.parsed(text)


def test_a_package_longer_than_any_name_is_refused() -> None:
    for part in (4, 5):  # messages and enums
        file = descriptor_pb2.FileDescriptorProto(package="a" * 1_000)
        (file.message_type if part == 4 else file.enum_type).add(name="A")
        with pytest.raises(NotASchema):
            descriptors.parsed(base64.b64encode(file.SerializeToString()).decode())


def test_a_schema_with_names_of_googles_types_changes_no_other_one() -> None:
    wrapped = schema_of(SchemaKind.PROTOBUF, "message M { google.protobuf.Struct of = 1; }")
    schema_of(SchemaKind.PROTOBUF, "package google.protobuf; message Value { int32 changed = 3; }")
    schema_of(SchemaKind.PROTOBUF, "message N {}")
    data = struct_pb2.Struct(fields={"a": struct_pb2.Value(string_value="x")}).SerializeToString()
    data = b"\0\x0a" + bytes([len(data)]) + data
    tree = decoded(Framed(Payload(data, len(data)), SchemaId(7), 0), wrapped).tree
    value = Fields("google.protobuf.Value", [("string_value", "x")])
    fields = Fields("google.protobuf.Struct", [("fields", Fields("", [("a", value)]))])
    assert tree == Fields("M", [("of", fields)])


def test_indexes_lead_to_nested_messages() -> None:
    def of(data: bytes, indexes: tuple[int, ...] | None = None) -> Any:
        return decoded(Framed(Payload(data, len(data)), SchemaId(7), 0, indexes), SCHEMA)

    note = b"\x0a\2hi"
    # As Confluent's serializer writes them: how many, then each, as zigzag varints; 0 is the first message.
    assert of(b"\4\2\2" + note).tree == Fields("com.acme.Invoice.Note", [("text", "hi")])
    assert of(note, (1, 1)).tree == Fields("com.acme.Invoice.Note", [("text", "hi")])
    assert of(b"\0").name == "com.acme.Other" and of(b"\2\2").name == "com.acme.Invoice"
    for wrong in (b"\2\x0c", b"\4\2\x0c", b"\1", b"\xff", b"\xfe\xff\xff\xff\x0f"):
        assert of(wrong).failure.kind in (DecodeFailureKind.WRONG, DecodeFailureKind.ENDS)


def test_unknown_fields_are_kept_under_their_numbers() -> None:
    fields, failure = read(b"\xc8\x3e\x07" + b"\xd2\x3e\2hi" + b"\xd3\x3e\x08\1\xd4\x3e")
    assert not failure
    assert fields == {"#1001": 7, "#1002": Fields("", [("#1", 1)])}


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"\x48\1", {"#9": 1}),  # a string as a number, which Google's library keeps as an unknown field
        (b"\x2d\1\0\0\0", {"#5": b"\1\0\0\0"}),
        (b"\x9b\2\x9c\2", {"#35": Fields("", [])}),  # an entry of a map as a group
        (b"\x9a\2\0", {"tags": Fields("", [("", Fields("a.b.Line", []))])}),
    ],
    ids=count(),
)
def test_fields_are_what_googles_library_takes_them_for(data: bytes, shown: dict[str, Node]) -> None:
    fields, failure = read(data)
    assert (fields, failure.kind) == (shown, DecodeFailureKind.NONE)
    Invoice.FromString(data)


def test_a_message_that_comes_again_goes_on() -> None:
    def part(seconds: int = 0, nanos: int = 0, **facts: Any) -> bytes:
        made = Invoice(corrects=Invoice(**facts))
        made.corrects.made.seconds, made.corrects.made.nanos = seconds, nanos
        data: bytes = made.SerializeToString()
        return data

    inner = part(5, a_int32=1), part(0, 7, a_string="x"), part(a_int32=2)
    fields, failure = read(b"".join(inner))
    moment = Moment(MomentKind.TIMESTAMP, 5 * 10**9 + 7, 10**9)
    whole = Fields("com.acme.Invoice", [("a_int32", 2), ("made", moment), ("a_string", "x")])
    assert (fields, failure.kind) == ({"corrects": whole}, DecodeFailureKind.NONE)
    merged = Invoice.FromString(b"".join(inner)).corrects
    assert (merged.a_int32, merged.a_string, merged.made.nanos, merged.made.seconds) == (2, "x", 7, 5)


def of_text(text: str, data: bytes, size: int = 0) -> Decoded:
    """What the first message of a .proto file makes of a payload, of which `data` may be the beginning."""
    framed = Framed(Payload(data, size or len(data)), SchemaId(7), 0, ())
    return decoded(framed, schema_of(SchemaKind.PROTOBUF, text))


def test_a_type_that_no_file_has_may_be_a_message_or_an_enum() -> None:
    text = "message M { google.type.DayOfWeek day = 1; repeated google.type.Date dates = 2; string s = 3; }"
    made = of_text(text, b"\x08\1\x12\2\x08\1\x1a\1x")
    assert (
        made.tree == Fields("M", [("day", 1), ("dates", Items([b"\x08\1"])), ("s", "x")]) and not made.failure
    )


def test_a_map_has_the_defaults_of_its_types() -> None:
    text = "message M { map<int32, E> a = 1; map<bool, double> b = 2; } enum E { ZERO = 0; }"
    tree = Fields("M", [("a", Fields("", [("0", Symbol("ZERO"))])), ("b", Fields("", [("False", 0.0)]))])
    assert of_text(text, b"\x0a\0\x12\0").tree == tree


@pytest.mark.parametrize("data", [b"\x0a\1x", b"\x0a\1x\x0a", b"\x13\x0a\1x", b"\x0a\1\xff"])
def test_a_payload_that_is_cut_is_never_whole_or_wrong(data: bytes) -> None:
    text = "message M { repeated string a = 1; optional group G = 2 { optional string a = 1; } }"
    assert of_text(text, data, 900).failure.kind is DecodeFailureKind.CUT


@pytest.mark.parametrize(
    ("data", "kind", "path"),
    [
        (b"\x92\2\x05abc", DecodeFailureKind.ENDS, "corrects"),
        (b"\x82\2\1\x08\5", DecodeFailureKind.WRONG, "lines"),
        (b"\x4a\2\xff\xfe", DecodeFailureKind.NOT_UTF8, "a_string"),
        (b"\x9a\2\0" * 30_000, DecodeFailureKind.TOO_MANY, "tags"),
        (b"\x0c", DecodeFailureKind.WRONG, ""),
        (b"\0", DecodeFailureKind.WRONG, ""),
        (b"\xf3\x3e" * 100_000, DecodeFailureKind.TOO_DEEP, None),
        (b"\x9a\7\xa0\x8d\x06" + b"\1" * 100_000, DecodeFailureKind.TOO_MANY, None),
    ],
    ids=count(),
)
def test_bombs_and_wrong_bytes_end_where_they_are(
    data: bytes, kind: DecodeFailureKind, path: str | None
) -> None:
    _, failure = read(data)
    assert failure.kind is kind, failure
    assert path is None or failure.path.startswith(path)


@pytest.mark.parametrize(
    "text",
    ["", "syntax", "%%%", base64.b64encode(b"\xff" * 50).decode(), base64.b64encode(b"\x20\1").decode()],
)
def test_what_is_not_a_descriptor_is_refused(text: str) -> None:
    if not text:
        assert not descriptors.parsed(text).messages
        return
    with pytest.raises(NotASchema):
        descriptors.parsed(text)


def test_a_descriptor_that_is_nested_without_end_is_refused() -> None:
    data = b""
    for _ in range(5_000):
        size = len(data)
        length = b""
        while size > 127:
            length += bytes([size & 127 | 128])
            size >>= 7
        data = b"\x1a" + length + bytes([size]) + data
    with pytest.raises(NotASchema):
        descriptors.parsed(base64.b64encode(b"\x22" + data[1:]).decode())
