"""The bytes of the group protocol equal those of kafka-python, and garbage does no harm."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.record import MemoryRecords

from kview.simulate.coordination.java_hashes import java_string_hash
from kview.simulate.coordination.placement import partition_of
from kview.simulate.groups.consumer_protocol import (
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from kview.simulate.groups.records import (
    Change,
    GroupKey,
    GroupValue,
    MemberValue,
    OffsetKey,
    OffsetValue,
    decode_batch,
    encode_batch,
)
from kview.wire.primitives import MalformedBytes, Reader

TOPIC_ID = bytes(range(16))
COMMIT = (OffsetKey("billing", "invoice", 3), OffsetValue(4711, 2, "note", 1_700_000_000_000, TOPIC_ID))
GROUP = (
    GroupKey("billing"),
    GroupValue(
        "consumer",
        7,
        "range",
        "a-1",
        1_700_000_000_000,
        (MemberValue("a-1", None, "a", "/127.0.0.1", 300_000, 45_000, b"sub" * 100, b"assigned"),),
    ),
)


def test_a_batch_reads_back() -> None:
    changes: list[Change] = [COMMIT, GROUP, (GroupKey("gone"), None), (OffsetKey("gone", "t", 0), None)]
    assert decode_batch(encode_batch(changes, 1_700_000_000_000)) == changes


def test_a_client_reads_the_records() -> None:
    batch = next(iter(MemoryRecords(encode_batch([COMMIT, (GroupKey("gone"), None)], 1_700_000_000_000))))
    assert batch.validate_crc()
    commit, gone = batch
    # OffsetCommitKey v1 and OffsetCommitValue v4, field by field
    assert commit.key == b"\0\1" + b"\0\7billing" + b"\0\7invoice" + (3).to_bytes(4, "big")
    time_ms = (1_700_000_000_000).to_bytes(8, "big")
    number, epoch = (4711).to_bytes(8, "big"), (2).to_bytes(4, "big")
    assert commit.value == b"\0\4" + number + epoch + b"\5note" + time_ms + b"\1\0\x10" + TOPIC_ID
    assert (gone.key, gone.value) == (b"\0\2\0\4gone", None)
    assert commit.timestamp == 1_700_000_000_000


def test_a_group_s_value_has_the_fields_of_version_3() -> None:
    record = next(iter(next(iter(MemoryRecords(encode_batch([GROUP], 0))))))
    reader = Reader(record.value)
    assert (reader.int16(), reader.string(), reader.int32()) == (3, "consumer", 7)
    assert (reader.nullable_string(), reader.nullable_string()) == ("range", "a-1")
    assert (reader.int64(), reader.int32()) == (1_700_000_000_000, 1)
    assert (reader.string(), reader.nullable_string(), reader.string()) == ("a-1", None, "a")
    assert (reader.string(), reader.int32(), reader.int32()) == ("/127.0.0.1", 300_000, 45_000)
    assert (reader.nullable_bytes(), reader.nullable_bytes(), reader.left) == (b"sub" * 100, b"assigned", 0)


def test_subscriptions_are_kafka_pythons() -> None:
    ours = encode_subscription(Subscription(("invoice", "payment"), {"invoice": [0, 1]}, 3))
    theirs = ConsumerProtocolSubscription.decode(ours)
    assert list(theirs.topics) == ["invoice", "payment"]
    assert [(o.topic, list(o.partitions)) for o in theirs.owned_partitions] == [("invoice", [0, 1])]
    assert decode_subscription(ours) == Subscription(("invoice", "payment"), {"invoice": (0, 1)}, 3)
    plain = ConsumerProtocolSubscription(0, ["invoice"], b"").encode()
    assert decode_subscription(plain) == Subscription(("invoice",), {}, -1)


def test_assignments_are_kafka_pythons() -> None:
    ours = encode_assignment({"invoice": [0, 3], "payment": [1]})
    theirs = ConsumerProtocolAssignment.decode(ours)
    assert [(a.topic, list(a.partitions)) for a in theirs.assigned_partitions] == [
        ("invoice", [0, 3]),
        ("payment", [1]),
    ]
    assert decode_assignment(ours) == [("invoice", 0), ("invoice", 3), ("payment", 1)]
    assert decode_assignment(b"") == []


@given(st.binary(max_size=60))
def test_garbage_is_malformed_and_nothing_else(data: bytes) -> None:
    for decode in (decode_subscription, decode_assignment):
        try:
            decode(data)
        except MalformedBytes:
            continue


@pytest.mark.parametrize(
    ("group", "partition"),
    [("my-group", 12), ("console-consumer", 40), ("test", 48), ("polygenelubricants", 0)],
)
def test_a_group_s_partition_is_kafkas(group: str, partition: int) -> None:
    assert partition_of(group, 50) == partition


def test_the_hash_is_javas() -> None:
    assert java_string_hash("polygenelubricants") == -(1 << 31)
    assert java_string_hash("😀") == 1772899  # two UTF-16 units: 0xD83D * 31 + 0xDE00


@pytest.mark.parametrize("length", [1, 255, 256, 257, 258, 32_767])
def test_the_hash_of_a_text_of_any_length_is_javas(length: int) -> None:
    text = ("group-é" * 5_000)[:length]
    expected = 0
    for unit in text:
        expected = (31 * expected + ord(unit)) % 2**32
    assert java_string_hash(text) % 2**32 == expected
