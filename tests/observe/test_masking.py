"""What a mask hides of records, whatever their format: nothing of it is left anywhere in what is returned."""

import itertools
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from kview.config.masks import masks
from kview.config.security import PLAINTEXT
from kview.model.decoded import (
    DECODED,
    HIDDEN,
    NOT_DECODED,
    DecodeAnswer,
    Decoded,
    DecodedRecord,
    DecodeFailure,
    DecodeFailureKind,
    DecodeRequest,
    Fields,
    Items,
    SchemaId,
    SchemaKind,
    Symbol,
)
from kview.model.inspection import NULL, Header, Payload, Record, TimeType
from kview.model.masking import EVERYTHING, MASKED, Mask
from kview.observe.access import access
from kview.observe.clock import system_clock_ms
from kview.observe.loop import Loop
from kview.observe.masking import MOST_JSON, masked
from kview.observe.record_answers import KEPT_ALL, Keeper
from kview.observe.registry import Registry
from kview.observe.renewal import Renewal

CANARY = "CANARY-7f3a"
SEVEN = SchemaId(7)


def mask(*texts: str) -> Mask:
    """The mask of a topic."""
    found = masks({"t": list(texts)}).of("t")
    assert found is not None
    return found


def payload(data: bytes | str | None) -> Payload:
    """A payload with all its bytes."""
    if data is None:
        return NULL
    held = data.encode() if isinstance(data, str) else data
    return Payload(held, len(held))


def record(
    value: bytes | str | None, key: bytes | str | None = None, **headers: bytes | str | None
) -> Record:
    """A record."""
    pairs = tuple(Header(payload(name), payload(held)) for name, held in headers.items())
    return Record(0, 0, TimeType.CREATE, payload(key), payload(value), pairs, len(pairs))


def value_of(value: bytes | str, *texts: str) -> str:
    """What is left of a value that is not decoded with a schema."""
    shown, _ = masked(record(value), NOT_DECODED, mask(*texts))
    assert shown.value.data is not None
    return shown.value.data.decode()


def tree_of(tree: Any, *texts: str, failure: DecodeFailure = DECODED) -> Decoded:
    """What is left of a value that was decoded with a schema. Its bytes are hidden whole."""
    decoded = Decoded(SEVEN, SchemaKind.AVRO, "Customer", tree, True, failure=failure)
    shown, made = masked(record(CANARY), DecodedRecord(value=decoded), mask(*texts))
    assert shown.value == Payload(MASKED.encode(), len(MASKED), masked=True)
    assert made.value is not None
    return made.value


def bytes_of(*parts: Any) -> bytes:
    """Everything in records and trees, as one haystack."""
    return msgspec.msgpack.encode(parts, enc_hook=repr)


@pytest.mark.parametrize(
    ("texts", "json_text"),
    [
        (["value.email"], f'{{"email": "{CANARY}"}}'),
        (["email"], f'{{"a": [{{"b": {{"eMail": "{CANARY}"}}}}]}}'),
        (["value.card.*"], f'{{"card": {{"number": "{CANARY}", "x": {{"y": "{CANARY}"}}}}}}'),
        (["value.card.*"], f'{{"card": "{CANARY}"}}'),
        (["value.card.*.*"], f'{{"card": [["{CANARY}"], {{"a": "{CANARY}"}}]}}'),
        (["value.card.*"], json.dumps({"card": json.dumps({"number": CANARY})})),
        (["value.card"], f'{{"card": [["{CANARY}"]]}}'),
        (["value.items[].card"], f'[{{"items": [{{"card": "{CANARY}"}}, {{"card": {{"n": "{CANARY}"}}}}]}}]'),
        (["value.**.email"], f'{{"email": "{CANARY}", "a": {{"email": "{CANARY}"}}}}'),
        (["value.*.email"], f'{{"a": {{"email": "{CANARY}"}}}}'),
        (["value.card*"], f'{{"card_number": "{CANARY}", "cardHolder": "{CANARY}"}}'),
        (["value.e-mail"], f'{{"EMAIL": "{CANARY}", "e_mail": "{CANARY}", "e mail": "{CANARY}"}}'),
        (["value.email"], f'{{"email": 1, "email": "{CANARY}"}}'),
        (["value.email"], f'{{"em\\u0061il": "{CANARY}"}}'),
        (["value.user.email"], f'{{"user.email": "{CANARY}", "user": {{"email": "{CANARY}"}}}}'),
        (["value.ｅmail"], f'{{"email": "{CANARY}"}}'),
        (["email"], json.dumps({"body": json.dumps({"email": CANARY})})),
        (["value.body.email"], json.dumps({"body": "  " + json.dumps([{"email": CANARY}])})),
        (["email"], json.dumps({"body": json.dumps(json.dumps({"email": CANARY}))})),
        (["email"], json.dumps({"body": "\ufeff" + json.dumps({"email": CANARY})})),
        (["email"], json.dumps({"body": json.dumps({"email": CANARY})[:-2]})),
        (["value.email"], f'{{"email": {{"a": [1, "{CANARY}"]}}}}'),
        (["value.email"], f'{{"email": "{CANARY}"'),
        (["value.email"], f'{{"email": "{CANARY}"}} {{"email": "{CANARY}"}}'),
        (["value.email"], f"\ufeff{{}}{CANARY}"),
        (["value.email"], CANARY),
        (["value.email"], f'"{CANARY}"'),
        (["value.email"], "4" * 5_000 + CANARY),
        (["email"], "[" * 100_000 + CANARY),
        (["email"], "[" * 3_000 + f'{{"email": "{CANARY}"}}' + "]" * 3_000),
        (["email"], json.dumps({"a": "x" * MOST_JSON, "email": CANARY})),
        (["value.*.card"], f'{{"joe@example.com": {{"card": "{CANARY}"}}}}'),
        (["value.*token"], f'{{"x.auth.token": "{CANARY}"}}'),
        (["email"], json.dumps({"log": "got " + json.dumps({"email": CANARY})})),
        (["email"], json.dumps({"log": f"items: [{CANARY}]"})),
        (["email"], json.dumps({"log": f"x <email>{CANARY}</email>"})),
        (["email"], json.dumps({"log": f"email: {CANARY}\nid: 3"})),
        (["email"], json.dumps({"log": f"\x0f{CANARY}"})),
        (["value"], CANARY),
        (["all"], f'{{"a": "{CANARY}"}}'),
        (["**"], CANARY),
        (["value.**"], f'{{"a": "{CANARY}"}}'),
    ],
    ids=itertools.count(),
)
def test_nothing_that_is_masked_is_left_of_json(texts: Sequence[str], json_text: str) -> None:
    assert CANARY in json_text
    assert CANARY not in value_of(json_text, *texts)
    assert CANARY.encode() not in value_of(json_text.encode("utf-16"), *texts).encode()


def test_json_keeps_everything_else_as_it_was_written() -> None:
    text = (
        '{"id": 1e400, "n": 12345678901234567890.10, "a": [true, null, -0.0], "x": "\\ud800é", "email": "é"}'
    )
    left = '{"id": 1e400, "n": 12345678901234567890.10, "a": [true, null, -0.0], "x": "\\ud800\\u00e9", '
    assert value_of(text, "email") == f'{left}"email": "{MASKED}"}}'
    inner = '{"b":  1}'
    assert value_of(json.dumps({"a": inner}), "email") == json.dumps({"a": inner})  # nothing in it is hidden


@pytest.mark.parametrize("hidden", ["", "x", "x" * 1_000, None, 3, {"a": 1}])
def test_the_sign_says_nothing_about_what_it_hides(hidden: Any) -> None:
    shown, _ = masked(record(json.dumps({"id": 1, "email": hidden})), NOT_DECODED, mask("value.email"))
    assert shown.value.data == f'{{"id": 1, "email": "{MASKED}"}}'.encode()
    assert shown.size == len(shown.value.data)
    assert shown.least_size == 0


def test_of_a_large_record_it_is_told_that_it_is_large() -> None:
    shown, _ = masked(record("x" * 3_000_000), NOT_DECODED, mask("value"))
    assert shown.size == 2 << 20


@pytest.mark.parametrize(
    ("texts", "tree", "left"),
    [
        (["value.email"], Fields("C", [("email", CANARY), ("id", 7)]), [("email", HIDDEN), ("id", 7)]),
        (
            ["email"],
            Fields("C", [("E_Mail", None), ("kind", Symbol("A"))]),
            [("E_Mail", HIDDEN), ("kind", Symbol("A"))],
        ),
        (
            ["value.a.n"],
            Fields("C", [("a", Items([Fields("", [("n", CANARY)])]))]),
            [("a", Items([Fields("", [("n", HIDDEN)])]))],
        ),
        (["value.a.*"], Fields("C", [("a", CANARY), ("b", 1.5)]), [("a", HIDDEN), ("b", 1.5)]),
        (["value.*"], Fields("C", [("a", CANARY), ("b", 1.5)]), [("a", HIDDEN), ("b", HIDDEN)]),
        # What has no fields that are known: bytes, a field that the schema lacks, damaged JSON in a text.
        (
            ["email"],
            Fields("C", [("raw", CANARY.encode()), ("#15", b"x"), ("#16", 41), ("n", 41)]),
            [("raw", HIDDEN), ("#15", HIDDEN), ("#16", HIDDEN), ("n", 41)],
        ),
        (
            ["email"],
            Fields("C", [("body", f'{{"email": "{CANARY}"}}')]),
            [("body", f'{{"email": "{MASKED}"}}')],
        ),
        (["email"], Fields("C", [("body", f'{{"email": "{CANARY}"')]), [("body", HIDDEN)]),
    ],
)
def test_trees_of_schemas_are_masked(texts: Sequence[str], tree: Fields, left: Any) -> None:
    made = tree_of(tree, *texts)
    assert made.tree == Fields("C", left)
    assert (made.schema, made.kind, made.name, made.has_tree) == (SEVEN, SchemaKind.AVRO, "Customer", True)


def test_what_is_not_decoded_to_its_end_is_hidden_whole() -> None:
    tree = Fields("C", [("id", 7)])
    for kind in DecodeFailureKind:
        made = tree_of(tree, "email", failure=DecodeFailure(kind, 12, f"a.{CANARY}"))
        is_whole = kind in (DecodeFailureKind.NONE, DecodeFailureKind.LEFT_OVER, DecodeFailureKind.NOT_UTF8)
        assert made.has_tree is is_whole
        assert made.tree == (tree if is_whole else None)
        assert made.failure == DecodeFailure(kind)  # which quotes no name of a map, and no position
    assert tree_of(CANARY, "email").tree == HIDDEN  # a text without fields might be the address itself


def test_the_json_of_a_json_schema_is_masked() -> None:
    text = f'{{"email": "{CANARY}", "id": 1}}'
    held = DecodedRecord(value=Decoded(SEVEN, SchemaKind.JSON, json=payload(text)))
    shown, made = masked(record(b"\0\0\0\0\7" + text.encode()), held, mask("email"))
    assert made.value is not None and made.value.json is not None
    assert made.value.json.data == f'{{"email": "{MASKED}", "id": 1}}'.encode()
    assert CANARY.encode() not in bytes_of(shown, made)


def test_keys_and_headers_are_masked() -> None:
    held = record(
        "{}", CANARY, trace="t-1", email=CANARY, body=f'{{"email": "{CANARY}"}}', raw=b"\xff\0", none=None
    )
    shown, _ = masked(held, NOT_DECODED, mask("key", "headers.raw"))
    assert shown.key.data == MASKED.encode()
    assert (shown.value, shown.headers[0], shown.headers[1]) == (held.value, held.headers[0], held.headers[1])
    assert shown.headers[3].value.data == MASKED.encode()
    shown, _ = masked(held, NOT_DECODED, mask("email"))
    assert shown.key.data == MASKED.encode()  # a text without fields, so it may be the address itself
    assert [header.value.data for header in shown.headers] == [  # a text may be one in an unknown format
        MASKED.encode(), MASKED.encode(), f'{{"email": "{MASKED}"}}'.encode(), MASKED.encode(), None,
    ]  # fmt: skip
    assert CANARY.encode() not in bytes_of(shown)
    shown, _ = masked(held, NOT_DECODED, mask("value.**.email"))
    assert (shown.key, shown.headers) == (held.key, held.headers)
    shown, _ = masked(held, NOT_DECODED, mask("headers"))
    assert [header.value.data for header in shown.headers] == [MASKED.encode()] * 4 + [None]


def test_with_everything_hidden_only_what_is_null_is_told() -> None:
    held = record(None, CANARY, **{CANARY: CANARY})
    assert bytes_of(held).count(CANARY.encode()) == 3
    shown, made = masked(held, DecodedRecord(key=Decoded(SEVEN, tree=CANARY, has_tree=True)), EVERYTHING)
    assert shown.value is NULL and made == NOT_DECODED
    assert CANARY.encode() not in bytes_of(shown, made)


def test_cut_payloads_are_hidden_whole() -> None:
    cut = Payload(f'{{"email": "{CANARY}"}}'.encode(), 10_000_000)
    held = Record(0, 0, TimeType.CREATE, NULL, cut, (Header(payload("h"), cut),), 1)
    shown, _ = masked(held, NOT_DECODED, mask("email"))
    assert shown.value.data == shown.headers[0].value.data == MASKED.encode()


def test_what_a_mask_leaves_counts_for_what_is_kept() -> None:
    shown, _ = masked(record(json.dumps({"a": "x" * 200_000})), NOT_DECODED, mask("email"))
    keeper = Keeper()
    for _ in range(1 + KEPT_ALL // 200_000):
        keeper.cut(shown)
    assert keeper.is_full


def test_a_bug_hides_everything() -> None:
    class Broken(Registry):
        def _all(self, *arguments: Any) -> list[DecodedRecord]:
            raise RuntimeError(CANARY)

    answer = answer_of(Broken(Loop(system_clock_ms, time.monotonic)))
    assert answer.request.records[0].masked and CANARY.encode() not in bytes_of(answer)


def test_what_nobody_waits_for_is_hidden_without_a_look() -> None:
    assert CANARY.encode() in bytes_of(answer_of(Registry(Loop(system_clock_ms, time.monotonic))))
    for more in ({"cancelled": lambda: True}, {"until_s": time.monotonic() - 1}):
        answer = answer_of(Registry(Loop(system_clock_ms, time.monotonic)), **more)
        assert answer.request.records[0].masked and CANARY.encode() not in bytes_of(answer)


def answer_of(registry: Registry, cancelled: Callable[[], bool] = lambda: False, **more: Any) -> DecodeAnswer:
    """What is left of a record, of which the mask hides something else."""
    registry.loop.renewal = Renewal(access(replace(PLAINTEXT, masks=masks({"t": "other"}))))
    registry.loop.start()
    try:
        text = f'{{"a": "{CANARY}"}}'
        question = DecodeRequest("t", (record(text, text, **{CANARY: text}),))
        answer: DecodeAnswer = registry.loop.run(lambda: registry.answer(question, cancelled, **more))
        return answer
    finally:
        registry.loop.stop()
