"""Requests of every API and version, made from kafka-python's schemas, with usual values and with extreme
ones."""

import random
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from crc32c import crc32c

from kview.serve.call import Api
from kview.simulate.groups.consumer_records import (
    ClassicMember,
    ConsumerKey,
    ConsumerValue,
    CurrentKey,
    CurrentValue,
    EpochKey,
    EpochValue,
    MemberKey,
    MemberMetadata,
    MemberState,
    RegexKey,
    RegexValue,
    TargetEpochKey,
    TargetEpochValue,
    TargetKey,
    TargetValue,
)
from kview.simulate.groups.records import (
    GroupKey,
    GroupValue,
    Key,
    MemberValue,
    OffsetKey,
    OffsetValue,
    encode_key,
    encode_value,
)
from kview.simulate.groups.results import GroupProtocol
from kview.simulate.groups.share_records import (
    NamedPartitions,
    ShareCurrentKey,
    ShareCurrentValue,
    ShareEpochKey,
    ShareEpochValue,
    ShareMemberKey,
    ShareMemberValue,
    ShareStatesKey,
    ShareStatesValue,
    ShareTargetEpochKey,
    ShareTargetEpochValue,
    ShareTargetKey,
    ShareTargetValue,
    ShareValue,
)
from kview.simulate.records import encode_batch
from kview.wire.compression import GZIP, ZSTD
from tests.simulate.client_batches import compressed

STRINGS = {
    "coordinator_keys": "g", "group_id": "g", "groups": "g", "key": "g", "member_id": "", "name": "t",
    "protocol_type": "consumer", "resource_name": "t", "states_filter": "Stable", "topic": "t",
    "subscribed_topic_names": "t", "subscribed_topic_regex": "t.*", "server_assignor": "range",
    "topic_name": "t", "topic_names": "t", "topics": "t", "types_filter": "classic",
}  # fmt: skip
"""Field → what a client usually sends, where it is not just any string."""

NUMBERS = {
    "acks": -1, "current_leader_epoch": -1, "endpoint_type": 1, "generation_id": -1,
    "generation_id_or_member_epoch": -1, "max_bytes": 1 << 20, "max_wait_ms": 200, "min_bytes": 1,
    "num_partitions": 1, "partition_max_bytes": 1 << 20, "rebalance_timeout_ms": 20_000, "replica_id": -1,
    "replication_factor": 1, "resource_type": 2, "response_partition_limit": 100, "session_epoch": -1,
    "session_timeout_ms": 10_000, "timeout_ms": 1_000, "timestamp": -1, "retention_time_ms": -1,
    "committed_leader_epoch": -1, "member_epoch": -1, "resource_type_filter": 1, "pattern_type_filter": 3,
    "operation": 1, "permission_type": 1,
    "resource_pattern_type": 3, "broker_id": 77,
}  # fmt: skip
BITS = {"int8": 8, "int16": 16, "uint16": 15, "int32": 32, "int64": 64}
EMPTY_AT_FIRST = {"assignments", "configs", "configuration_keys", "forgotten_topics_data"}
"""Arrays that a usual request leaves empty."""

JOINS = 68
"""ConsumerGroupHeartbeat: who joins has no partitions yet."""

NULL_AT_FIRST = ("cursor", "group_instance_id", "instance_id", "transactional_id")


class Examples:
    """Makes requests. With `wildness` 0, every request is a usual one; with 1, every value is extreme."""

    def __init__(
        self,
        source: random.Random,
        now_ms: int,
        topics: Sequence[tuple[str, bytes]],
        groups: Sequence[str] = ("g",),
        wildness: float = 0.0,
        usual: Mapping[str, str | int] | None = None,
    ) -> None:
        self.now_ms = now_ms
        self.wildness = wildness
        self._usual = {**STRINGS, **NUMBERS, **(usual or {})}
        self._random = source
        self._topics = topics
        self._groups = groups
        self._empty = EMPTY_AT_FIRST

    def request(self, api: Api, version: int) -> Any:
        """Return a request of an API."""
        self._empty = EMPTY_AT_FIRST | ({"topic_partitions"} if api.key == JOINS else set())
        return api.request(version=version, **self._values(api.request._struct, version))

    def frame(self, api: Api, version: int, client_id: str | None = "tests") -> bytes:
        """Return a request as the bytes of its frame, without the size."""
        request = self.request(api, version)
        request.with_header(self._random.randrange(1 << 31), client_id)
        return bytes(request.encode(header=True))

    def _wild(self) -> bool:
        return self._random.random() < self.wildness

    def _values(self, struct: Any, version: int) -> dict[str, Any]:
        fields = (f for f in struct.fields.values() if f.for_version_q(version) and f.tag is None)
        return {field.name: self._value(field, version) for field in fields}

    def _value(self, field: Any, version: int) -> Any:
        if self._wild() and field.nullable_for_version_q(version):
            return None
        if field.is_struct_array():
            if field.name in self._empty and not self._wild():
                return []
            count = self._random.choice((0, 2, 5)) if self._wild() else 1
            return [field.data_class(**self._values(field.array_of, version)) for _ in range(count)]
        if field.is_array():
            if field.name in self._empty and not self._wild():
                return None if field.nullable_for_version_q(version) else []
            count = self._random.choice((0, 2, 9)) if self._wild() else 1
            return [self._scalar(field.name, field.array_of.type_str) for _ in range(count)]
        if field.is_struct():
            nothing = field.name in NULL_AT_FIRST and not self._wild()
            return None if nothing else field.data_class(**self._values(field, version))
        if field.name in NULL_AT_FIRST and field.nullable_for_version_q(version) and not self._wild():
            return None
        return self._scalar(field.name, field.type_str)

    def _scalar(self, name: str, kind: str) -> Any:
        source = self._random
        if kind == "string":
            return self._string(name)
        if kind == "bool":
            return self._wild()
        if kind == "uuid":
            return UUID(bytes=source.randbytes(16) if self._wild() else source.choice(self._topics)[1])
        if kind == "records":
            return self.batch()
        if kind == "bytes":
            return source.randbytes(source.choice((0, 7, 300))) if self._wild() else b"\0\1\0\0\0\0"
        if kind == "float64":
            return source.choice((float("nan"), float("inf"), -0.0))
        return self._number(name, BITS[kind])

    def _number(self, name: str, bits: int) -> int:
        if self._wild():
            high = 2 ** (bits - 1) - 1
            low = -high - 1 if bits != 15 else 0
            return self._random.choice((low, high, max(low, -1), max(low, -2), 0, 1, 7, high // 1000))
        return int(self._usual.get(name, 0))

    def _string(self, name: str) -> str:
        source = self._random
        if self._wild():
            length = source.choice((0, 1, 37, 249, 250, 8_000, 32_730, 32_767))
            unit = source.choice(("x", "é", "\0", "../"))
            return unit * (length // len(unit.encode()))
        usual = str(self._usual.get(name, "some"))
        if usual == "t":
            return source.choice(self._topics)[0]
        return source.choice(self._groups) if usual == "g" else usual

    def batch(self) -> bytes:
        """Return a client's batch, whose header may be extreme, always with the right checksum."""
        source = self._random
        count = source.choice((1, 2, 40)) if self._wild() else 1
        records = [(b"k", b"v" * 20, self.now_ms + n) for n in range(count)]
        if self._wild():
            records = [self._of_a_coordinator()]
        batch = bytearray(encode_batch(records, *((7, 3, 5, 1, 9) if self._wild() else ())))
        if self._wild():
            batch[61:] = source.randbytes(source.choice((0, 1, 9, 60)))
        if source.random() < 0.25:
            batch[22] = source.randint(GZIP, ZSTD)
            body = compressed(batch[22], bytes(batch[61:]))
            batch[61:] = body[: source.randrange(len(body))] + source.randbytes(9) if self._wild() else body
        batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
        if self._wild():
            at, size = source.choice(((21, 2), (23, 4), (27, 8), (35, 8), (43, 8), (51, 2), (53, 4), (57, 4)))
            high = 2 ** (8 * size - 1) - 1
            value = source.choice((high, -high - 1, -1, 0, 1, self.now_ms * 1_000_000 & high))
            batch[at : at + size] = value.to_bytes(size, "big", signed=True)
        return with_checksum(bytes(batch))

    def _of_a_coordinator(self) -> tuple[bytes, bytes, int]:
        """Return a record of `__consumer_offsets` with extreme numbers, and now and then with other bytes."""
        source, group = self._random, self._random.choice(self._groups)
        ints = [self._number("", 32) for _ in range(4)]
        member = MemberValue("m", source.choice((None, "i")), "c", "/h", ints[0], ints[1], b"", b"\0\1")
        group_value = GroupValue(
            "consumer", ints[2], "range", source.choice((None, "m", "x")), self._number("", 64), (member,)
        )
        offset = OffsetValue(self._number("", 64), ints[3], "", self._number("", 64), self._topics[0][1])
        kind = source.random()
        if kind < 0.5:
            changes: list[tuple[Key, ConsumerValue | ShareValue]] = [
                *self._of_consumers(group, ints),
                *self._of_shares(group, ints),
            ]
            group_key, of_group = source.choice(changes)
            key, value = encode_key(group_key), encode_value(of_group)
        elif kind < 0.75:
            key, value = encode_key(GroupKey(group)), encode_value(group_value)
        else:
            key, value = encode_key(OffsetKey(group, self._topics[0][0], ints[0])), encode_value(offset)
        if source.random() < 0.5:
            at = source.randrange(len(value))
            value = value[:at] + source.randbytes(3) + value[at + source.randrange(4) :]
        return key, value, self.now_ms

    def _of_consumers(self, group: str, ints: Sequence[int]) -> list[tuple[ConsumerKey, ConsumerValue]]:
        """Return records of a consumer group. Some say what no coordinator would."""
        source, (topic, topic_id) = self._random, self._topics[0]
        member_id = source.choice(("m", "x", ""))
        protocols = (GroupProtocol(source.choice(("range", "")), b"\0\1"),)
        state = source.choice(list(MemberState))
        metadata = MemberMetadata(
            source.choice((None, "i", "")),
            None,
            "c",
            "/h",
            (topic, "missing"),
            source.choice(("", "t.*", "a(b", "\\Qt")),
            ints[2],
            source.choice((None, "range", "x")),
            source.choice((None, ClassicMember(ints[3], protocols))),
        )
        has = {topic_id: {ints[0]: ints[1], 0: ints[2]}}
        return [
            (EpochKey(group), EpochValue(ints[0], ints[1])),
            (MemberKey(group, member_id), metadata),
            (TargetEpochKey(group), TargetEpochValue(ints[2], self._number("", 64))),
            (TargetKey(group, member_id), TargetValue({topic_id: frozenset(ints)})),
            (CurrentKey(group, member_id), CurrentValue(ints[3], ints[0], state, has, has)),
            (RegexKey(group, "t.*"), RegexValue(frozenset((topic, "missing")), ints[1], self.now_ms)),
        ]

    def _of_shares(self, group: str, ints: Sequence[int]) -> list[tuple[Key, ShareValue]]:
        """Return records of a share group. Some say what no coordinator would."""
        source, (topic, topic_id) = self._random, self._topics[0]
        member_id = source.choice(("m0", "x", ""))
        has = {topic_id: frozenset(ints[:2])}
        states = {topic_id: NamedPartitions(topic, frozenset(ints[1:]))}
        return [
            (ShareMemberKey(group, member_id), ShareMemberValue(None, "c", "/h", (topic, "missing"))),
            (ShareEpochKey(group), ShareEpochValue(ints[0], ints[1])),
            (ShareTargetEpochKey(group), ShareTargetEpochValue(ints[2], self._number("", 64))),
            (ShareTargetKey(group, member_id), ShareTargetValue(has)),
            (ShareCurrentKey(group, member_id), ShareCurrentValue(ints[3], ints[0], has)),
            (ShareStatesKey(group), ShareStatesValue(states, states, {topic_id: topic})),
        ]


def with_checksum(batch: bytes) -> bytes:
    """Return a batch with the checksum that belongs to its bytes."""
    return batch[:17] + crc32c(batch[21:]).to_bytes(4, "big") + batch[21:]
