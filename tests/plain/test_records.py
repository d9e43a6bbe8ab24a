"""Records as documents: decoded values as JSON has them, whatever they hold."""

import json
from decimal import Decimal
from typing import Any

import pytest

from kview.language.payloads import Form
from kview.model.decoded import (
    Decoded,
    DecodedRecord,
    DecodeFailure,
    DecodeFailureKind,
    Fields,
    Hidden,
    Items,
    Moment,
    MomentKind,
    SchemaId,
    SchemaKind,
    Symbol,
)
from kview.model.inspection import Payload
from kview.plain.records import record_document, record_line
from tests.where.candidates import candidate, hidden

TREE = Fields(
    "Order",
    [
        ("id", 2**63),
        ("price", Decimal("12.50")),
        ("nan", float("nan")),
        ("state", Symbol("FAILED")),
        ("raw", b"\x01\xff"),
        ("at", Moment(MomentKind.TIMESTAMP, 1_764_237_600_000, 1_000)),
        ("tags", Items(["a\x1b", None, True])),
    ],
)


def value_of(data: bytes, **more: Any) -> dict[str, Any]:
    line = record_document("orders", candidate(b"k", data, **more))
    assert line.isprintable()
    value: dict[str, Any] = json.loads(line)["value"]
    return value


def test_lines_are_whole_in_hex_and_end_early_as_text() -> None:
    large = candidate(b"k", b"v" * 5_000, {"h": b"w" * 5_000})
    in_hex = record_line("orders", large, Form.HEX, None)
    assert in_hex.count("76") >= 5_000 and in_hex.count("77") >= 5_000 and "…" not in in_hex
    text = record_line("orders", large, Form.AUTO, None)
    assert text.count("v") == text.count("w") == 4_096 and text.count("…") == 2


def test_a_decoded_value() -> None:
    decoded = Decoded(SchemaId(7), SchemaKind.AVRO, "Order", TREE, has_tree=True)
    value = value_of(b"\0\0\0\0\7", decoded=DecodedRecord(None, decoded))
    assert value["kind"] == "avro" and value["schema"] == {
        "id": 7, "guid": None, "file": None, "name": "Order",
    }  # fmt: skip
    assert value["data"] == {
        "id": 2**63,
        "price": "12.50",
        "nan": "nan",
        "state": "FAILED",
        "raw": "0x01ff",
        "at": "2025-11-27T10:00:00.000Z",
        "tags": ["a\x1b", None, True],
    }
    assert "failure" not in value


def test_a_value_that_decodes_in_part_is_given_as_it_is() -> None:
    failure = DecodeFailure(DecodeFailureKind.ENDS, 3)
    decoded = Decoded(SchemaId(7), SchemaKind.AVRO, "Order", TREE, has_tree=True, failure=failure)
    value = value_of(b"\0\0\0\0\7", decoded=DecodedRecord(None, decoded))
    assert (value["kind"], value["data"]) == ("hex", "0x0000000007") and "it ends" in value["failure"]


@pytest.mark.parametrize(
    ("data", "kind", "shown"),
    [
        (b'{"a":\n [1.0,\t1e2], "a": 2}', "json", {"a": 2}),
        (b"[12345678901234567890123]", "json", [12345678901234567890123]),
        (b"42", "text", "42"),
        (b'{"a": 1', "text", '{"a": 1'),
        (b'{"a": NaN}', "text", '{"a": NaN}'),
        ('"\u2028"'.encode(), "hex", "0x22e280a822"),
        (b'{"a": "\\ud800"}', "text", '{"a": "\\ud800"}'),
        (b"[" * 5_000, "text", "[" * 5_000),
        (b"", "text", ""),
        (b"\xff", "hex", "0xff"),
    ],
)
def test_other_values(data: bytes, kind: str, shown: Any) -> None:
    value = value_of(data)
    assert (value["kind"], value["data"], value["size_bytes"]) == (kind, shown, len(data))


def test_a_json_schemas_value_may_be_a_scalar_and_a_cut_one_is_text() -> None:
    decoded = Decoded(SchemaId(7), SchemaKind.JSON, json=Payload(b"42", 2))
    assert value_of(b"\0\0\0\0\x0742", decoded=DecodedRecord(None, decoded))["data"] == 42
    cut = value_of(b'{"a": 1}', value_size=2_000_000)
    assert (cut["kind"], cut["cut"], cut["size_bytes"]) == ("text", True, 2_000_000)


def test_what_a_mask_hides_has_no_size() -> None:
    tree = Fields("Order", [("id", 1), ("email", Hidden()), ("card", Items([Hidden()]))])
    decoded = Decoded(SchemaId(7), SchemaKind.AVRO, "Order", tree, has_tree=True)
    record = hidden(candidate(b"k", b"x", decoded=DecodedRecord(None, decoded)))
    document = json.loads(record_document("orders", record))
    assert document["value"]["data"] == {"id": 1, "email": "<masked>", "card": ["<masked>"]}
    assert (document["value"]["masked"], document["value"]["size_bytes"], document["size_bytes"]) == (
        True,
        None,
        None,
    )
    assert "masked" not in document["key"]
