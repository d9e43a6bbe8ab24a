"""Records with a canary in everything that a mask hides, and a look for it in whatever may have got it."""

import base64
import json
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Producer

from kview.model.masking import MASKED
from tests.decode.test_avro import written
from tests.decode.test_protobuf import Invoice

CANARY = "CANARY-7f3a91"
MASK = ["value.email", "value.card.*", "a_string", "**.secret", "key", "headers.token"]
"""What is masked, as a profile has it."""
SHOWN = "shown-5c1e"
"""What is not masked."""
CUSTOMER: dict[str, Any] = {
    "type": "record",
    "name": "Customer",
    "fields": [
        {"name": "note", "type": "string"},
        {"name": "email", "type": ["null", "string"]},
        {"name": "cards", "type": {"type": "array", "items": {
            "type": "record", "name": "Card", "fields": [{"name": "secret", "type": "string"}],
        }}},
        {"name": "by_name", "type": {"type": "map", "values": "Card"}},
        {"name": "raw", "type": "bytes"},
    ],
}  # fmt: skip
AVRO, JSON_SCHEMA, PROTOBUF = 7, 9, 5


def prefixed(number: int, data: bytes) -> bytes:
    """Data behind the magic byte and the number of its schema."""
    return b"\0" + number.to_bytes(4, "big") + data


def values() -> list[bytes]:
    """Values of all kinds, each with a canary in what is masked. Damaged ones are hidden whole."""
    card = {"secret": CANARY}
    avro = written(CUSTOMER, {
        "note": SHOWN, "email": CANARY, "cards": [card, card], "by_name": {"a": card}, "raw": CANARY.encode(),
    })  # fmt: skip
    document = {
        "note": SHOWN, "email": CANARY, "card": {"number": CANARY, "deep": {"x": [CANARY]}},
        "cards": [card, {"SECRET": CANARY}], "body": json.dumps({"secret": CANARY}),
    }  # fmt: skip
    text = json.dumps(document)
    return [
        text.encode(),
        text.replace('"note"', f'"email": "{CANARY}", "note"').encode(),
        text.encode()[:-1],
        text.encode("utf-16"),
        CANARY.encode(),
        b"\xff\xfe\x00" + CANARY.encode(),
        prefixed(AVRO, avro),
        prefixed(AVRO, avro[:-4]),
        prefixed(404, CANARY.encode()),
        prefixed(JSON_SCHEMA, text.encode()),
        prefixed(PROTOBUF, b"\0" + Invoice(a_string=CANARY).SerializeToString()),
        json.dumps({"email": CANARY, "x": "x" * 300_000}).encode(),
    ]


def write(bootstrap: str, topic: str) -> int:
    """Write such records, and return how many there are."""
    client = Producer({"bootstrap.servers": bootstrap})
    headers: list[tuple[str, str | bytes | None]] = [
        ("token", CANARY), ("trace", SHOWN), ("ctx", json.dumps({"secret": CANARY})),
    ]  # fmt: skip
    for value in values():
        client.produce(topic, key=f"key-{CANARY}", value=value, headers=headers, partition=0)
    assert client.flush(20) == 0
    return len(values())


def found_in(data: bytes) -> bytes | None:
    """The first place in bytes with a canary, as it is or encoded, and what stands around it."""
    raw = CANARY.encode()
    needles = [
        raw, raw.lower(), raw.hex().encode(), raw.hex(" ").encode(), CANARY.encode("utf-16-le"),
        *(base64.b64encode(b"x" * pad + raw)[4:-4] for pad in range(3)),
    ]  # fmt: skip
    for needle in needles:
        if (at := data.find(needle)) >= 0:
            return data[max(0, at - 80) : at + 80]
    return None


def clean(parts: Iterable[tuple[str, bytes]]) -> None:
    """Assert that nothing has a canary."""
    for name, data in parts:
        assert found_in(data) is None, f"{name}: {found_in(data)!r}"


def is_masked(data: bytes) -> bool:
    """Whether something shows the sign, and what is not masked."""
    return MASKED.encode() in data and SHOWN.encode() in data
