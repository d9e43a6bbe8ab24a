"""What a consumer group keeps: its records, through new coordinators, compaction and refused writes; its
offsets; and what the older APIs say about it."""

import pytest

from kview.simulate.codes import ErrorCode
from kview.simulate.coordination.shard import CLEAN_AFTER_BATCHES
from kview.simulate.groups.consumer_records import (
    ClassicMember,
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
    Change,
    decode_batch,
    decode_key,
    decode_value,
    encode_batch,
    encode_key,
    encode_value,
)
from kview.simulate.groups.results import (
    NO_MEMBER,
    CommitRequest,
    GroupProtocol,
    OffsetDeleteResult,
    OffsetToCommit,
)
from kview.simulate.groups.subscriptions import MetadataHashes
from kview.simulate.metadata import BrokerImage, MetadataImage, PartitionImage, TopicImage
from tests.simulate.consumer_client import ConsumerClient, T, group_of
from tests.simulate.groups_host import Client, Offsets

TOPIC_ID = bytes.fromhex("1bef68b734744eb3b973ed2e54034069")
FOUR = frozenset(range(4))

OF_KAFKA: list[tuple[Change, str, str]] = [
    (
        (
            MemberKey("g", "m1"),
            MemberMetadata(None, None, "kview-tests", "/127.0.0.1", ("foo",), "", 300_000, None),
        ),
        "00050001670002" + "6d31",
        "000000000c6b766965772d74657374730b2f3132372e302e302e310204666f6f01000493e00001000100",
    ),
    (
        (EpochKey("g"), EpochValue(2, 0x2224A33AFC1EF0D2)),
        "0003000167",
        "0000000000020100082224a33afc1ef0d2",
    ),
    ((EpochKey("g3"), EpochValue(2, 0)), "000300026733", "00000000000200"),
    (
        (TargetKey("g", "m1"), TargetValue({TOPIC_ID: FOUR})),
        "000700016700026d31",
        "0000021bef68b734744eb3b973ed2e5403406905000000000000000100000002000000030000",
    ),
    (
        (TargetEpochKey("g"), TargetEpochValue(2, 0x1A21ACC88AB)),
        "0006000167",
        "000000000002010008000001a21acc88ab",
    ),
    (
        (
            CurrentKey("g", "m1"),
            CurrentValue(2, 0, MemberState.STABLE, {TOPIC_ID: dict.fromkeys(FOUR, 2)}, {}),
        ),
        "000800016700026d31",
        "0000000000020000000000021bef68b734744eb3b973ed2e54034069050000000000000001000000020000000301001105"
        "000000020000000200000002000000020100",
    ),
    (
        (RegexKey("gr", "fo.*"), RegexValue(frozenset(("foo",)), 48, 0x1A21ACC8E02)),
        "00100002677200" + "04666f2e2a",
        "00000204666f6f0000000000000030000001a21acc8e0200",
    ),
]
"""Records of a Kafka 4.3.1: what they say, their key and their value."""


@pytest.mark.parametrize(("change", "key", "value"), OF_KAFKA)
def test_records_are_those_of_kafka(change: Change, key: str, value: str) -> None:
    assert change[1] is not None
    assert encode_key(change[0]).hex() == key
    assert encode_value(change[1]).hex() == value
    assert decode_key(bytes.fromhex(key)) == change[0]
    assert decode_value(change[0], bytes.fromhex(value)) == change[1]


def test_members_of_the_classic_protocol_are_kept_as_such() -> None:
    metadata = MemberMetadata("i", "rack", "c", "/h", ("t", "u"), "x.*", 1, "range",
                              ClassicMember(10_000, (GroupProtocol("range", b"sub" * 100),)))  # fmt: skip
    changes: list[Change] = [(MemberKey("g", "m"), metadata), (MemberKey("g", "gone"), None)]
    assert decode_batch(encode_batch(changes, 1)) == changes


def two(offsets: Offsets) -> tuple[ConsumerClient, ConsumerClient]:
    """Two members in the midst of a rebalance: the first must revoke what the second waits for."""
    offsets.coordinator()
    a, b = (ConsumerClient(offsets, offsets.coordinators[0], name) for name in "ab")
    a.join()
    b.join()
    offsets.run(1)
    b.beat()
    a.beat()
    return a, b


def test_a_new_coordinator_goes_on_where_the_old_one_was(offsets: Offsets) -> None:
    a, b = two(offsets)
    before = group_of(a.coordinator)
    new = offsets.coordinator(1)
    offsets.move(1)
    offsets.run(0.1)
    after = group_of(new)
    assert (after.epoch, after.target_epoch, after.members) == (3, 3, before.members)
    assert (after.targets, after.owners) == (before.targets, before.owners)
    assert (after.metadata_hash, after.target_calculated_ms) == (
        before.metadata_hash,
        before.target_calculated_ms,
    )
    a.coordinator = b.coordinator = new
    a.beat()
    b.beat()
    assert (a.epoch, b.epoch) == (3, 3), "nobody joins again"
    assert (a.numbers, b.numbers) == ([0, 1, 2, 3, 4], [5, 6, 7, 8, 9])


def test_a_new_coordinator_removes_who_does_not_revoke_or_is_gone(offsets: Offsets) -> None:
    a, b = two(offsets)
    new = offsets.coordinator(1)
    offsets.move(1)
    offsets.run(0.1)
    a.coordinator = b.coordinator = new
    for _ in range(13):
        offsets.run(4.9)
        a.ask(owned=None)
        b.beat()
    assert list(group_of(new).members) == ["b"], "its rebalance timeout of 60 s went on"
    offsets.run(46)
    assert not group_of(new).members


def test_regexes_and_static_members_are_loaded(offsets: Offsets) -> None:
    offsets.coordinator()
    a = ConsumerClient(offsets, offsets.coordinators[0], "a", instance="one")
    a.join(regex="t.*")
    a.beat()
    new = offsets.coordinator(1)
    offsets.move(1)
    offsets.run(0.1)
    group = group_of(new)
    assert group.regexes["t.*"].topics == {"t"} and group.static_members == {"one": "a"}
    a.coordinator = new
    assert a.beat().error_code is ErrorCode.NONE


def test_a_compacted_log_has_the_same_group(offsets: Offsets) -> None:
    a, b = two(offsets)
    a.beat()
    b.beat()
    before = group_of(a.coordinator)
    for _ in range(CLEAN_AFTER_BATCHES):
        assert b.commit(7) is ErrorCode.NONE
    offsets.run(1)
    assert len(list(offsets.coordinators[0]._host.batches(a.coordinator.partition_of("g")))) < 100
    new = offsets.coordinator(1)
    offsets.move(1)
    offsets.run(0.1)
    after = group_of(new)
    assert (after.members, after.targets, after.epoch) == (before.members, before.targets, before.epoch)
    assert after.offsets["t", 7].offset == 7


def test_what_the_log_does_not_take_does_not_count(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a = ConsumerClient(offsets, coordinator, "a")
    offsets.leader = 7
    assert a.join().error_code is ErrorCode.NOT_COORDINATOR
    assert coordinator.groups() == []
    offsets.leader = 0
    a.join()
    offsets.leader = 7
    assert a.beat(topics=("u",)).error_code is ErrorCode.NOT_COORDINATOR
    assert group_of(coordinator).members["a"].metadata.topics == ("t",)


def test_what_the_log_does_not_take_is_tried_again(offsets: Offsets) -> None:
    """A topic that has grown, and a member whose session has ended."""
    coordinator = offsets.coordinator()
    a = ConsumerClient(offsets, coordinator, "a")
    a.join()
    offsets.set_topic("t", 12)
    offsets.leader = 7
    assert a.beat().error_code is ErrorCode.NOT_COORDINATOR
    offsets.leader = 0
    a.beat()
    assert group_of(coordinator).epoch == 3
    offsets.leader = 7
    offsets.run(60)
    assert list(group_of(coordinator).members) == ["a"]
    offsets.leader = 0
    offsets.run(1)
    assert not group_of(coordinator).members


def test_a_subscription_too_large_for_the_log_is_refused(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a = ConsumerClient(offsets, coordinator, "a")
    names = tuple(f"{n:05}".ljust(249, "x") for n in range(5_000))
    assert a.join(*names).error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert a.join(*map(str, range(20_001))).error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert coordinator.groups() == []


def test_an_answer_waits_until_its_changes_are_committed(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a = ConsumerClient(offsets, coordinator, "a")
    offsets.frozen = True
    a.send(0, topics=("t",), rebalance_timeout_ms=1_000, owned={})
    offsets.run(1)
    assert not a.answers
    offsets.thaw()
    offsets.run(0.1)
    assert a.answers[0].member_epoch == 2


def test_the_hash_of_topics_changes_with_what_an_assignment_depends_on() -> None:
    def image(racks: str, *replicas: tuple[int, ...], topic_id: bytes = T, leader: int = 0) -> MetadataImage:
        brokers = {b: BrokerImage(b, rack, False, 0) for b, rack in enumerate(racks)}
        partitions = tuple(PartitionImage(leader, 0, 0, of, of) for of in replicas)
        return MetadataImage("", 0, brokers, {"t": TopicImage("t", topic_id, partitions)}, {topic_id: "t"})

    hashes = MetadataHashes()
    assert hashes.of(["u"], image("AB", (0,))) == 0
    first = hashes.of(["t", "u"], image("AB", (0,)))
    assert hashes.of(["t"], image("AB", (0,), leader=1)) == first
    others = [
        image("AB", (1,)),
        image("AB", (0,), (0,)),
        image("AB", (0, 1)),
        image("AB", (0,), topic_id=bytes(16)),
    ]
    assert len({first, *(hashes.of(["t"], other) for other in others)}) == 5
    assert hashes.of(["t"], image("AA", (1,))) == hashes.of(["t"], image("AB", (0,))) == first


@pytest.mark.parametrize("regex", ["a(b", r"\Qt"])
def test_an_expression_in_a_clients_own_record_ends_nothing(offsets: Offsets, regex: str) -> None:
    coordinator = offsets.coordinator()
    partition = coordinator.partition_of("g")
    record = MemberKey("g", "m"), MemberMetadata(topics=("t",), regex=regex)
    offsets.batches.append((partition, encode_batch([record], 1)))
    coordinator.elected(partition, load_ms=0)
    a = ConsumerClient(offsets, coordinator, "a")
    a.join()
    offsets.run(1.1)
    a.beat()
    matched = frozenset() if regex == "a(b" else {"t"}
    assert group_of(coordinator).regexes[regex].topics == matched


# --- offsets


def test_members_commit_with_their_epoch(offsets: Offsets) -> None:
    """A member may commit in an older epoch what it has had since then (KIP-1251)."""
    a, b = two(offsets)
    assert a.commit(9) is ErrorCode.NONE, "it has not revoked it yet"
    a.beat()
    assert a.epoch == 3
    assert a.commit(0, 3) is a.commit(0, 2) is ErrorCode.NONE
    assert a.commit(9, 2) is ErrorCode.STALE_MEMBER_EPOCH
    assert a.commit(0, 1) is a.commit(0, 4) is a.commit(0, -1) is ErrorCode.STALE_MEMBER_EPOCH
    b.beat()
    assert b.commit(9, 2) is ErrorCode.STALE_MEMBER_EPOCH
    assert b.commit(0, 3) is ErrorCode.NONE
    assert a.commit(knows_epochs=False) is ErrorCode.UNSUPPORTED_VERSION
    stranger = ConsumerClient(offsets, a.coordinator, "x")
    assert stranger.commit(epoch=3) is ErrorCode.UNKNOWN_MEMBER_ID
    stranger.group = "other"
    assert stranger.commit(epoch=3) is ErrorCode.GROUP_ID_NOT_FOUND
    assert stranger.commit(epoch=3, knows_epochs=False) is ErrorCode.ILLEGAL_GENERATION


def test_transactions_commit_with_the_members_epoch(offsets: Offsets) -> None:
    a, _ = two(offsets)
    producer = (9, 0)
    assert a.commit(producer=producer) is ErrorCode.NONE
    assert a.commit(epoch=9, producer=producer) is ErrorCode.ILLEGAL_GENERATION
    nobody = ConsumerClient(offsets, a.coordinator, "")
    assert nobody.commit(epoch=-1, producer=producer) is ErrorCode.NONE, "the transactional id fences"


@pytest.mark.parametrize(
    ("member", "code"),
    [
        (NO_MEMBER, ErrorCode.NONE),
        (("b", 3), ErrorCode.NONE),
        (("b", 2), ErrorCode.STALE_MEMBER_EPOCH),
        (("b", -1), ErrorCode.STALE_MEMBER_EPOCH),
        (("x", 3), ErrorCode.UNKNOWN_MEMBER_ID),
        (("", -1), ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_members_fetch_with_their_epoch(
    offsets: Offsets, member: tuple[str | None, int], code: ErrorCode
) -> None:
    a, _ = two(offsets)
    assert a.coordinator.fetch_offsets("g", [("t", 0)], member=member).error_code is code
    assert a.coordinator.fetch_offsets("other", [("t", 0)], member=member).error_code is ErrorCode.NONE


def test_offsets_of_subscribed_topics_stay(offsets: Offsets) -> None:
    offsets.set_topic("u", 1)
    a, _ = two(offsets)
    a.commit(0)
    deleted: list[OffsetDeleteResult] = []
    a.coordinator.delete_offsets("g", [("t", 0), ("u", 0)], deleted.append)
    assert deleted[0].error_codes == (ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, ErrorCode.NONE)


def test_old_offsets_go_when_nobody_subscribes_and_then_the_group(offsets: Offsets) -> None:
    coordinator = offsets.coordinator(offsets_retention_minutes=1, offsets_retention_check_interval_ms=10_000)
    offsets.set_topic("u", 1)
    a = ConsumerClient(offsets, coordinator, "a")
    a.join()
    a.commit(0)
    request = CommitRequest("g", (OffsetToCommit("u", 0, 7),), a.epoch, "a")
    coordinator.commit(request, lambda result: None)
    for _ in range(15):
        offsets.run(5)
        a.beat()
    assert list(group_of(coordinator).offsets) == [("t", 0)]
    a.leave()
    offsets.run(20)
    assert coordinator.groups() == []
    new = offsets.coordinator(1)
    offsets.move(1)
    offsets.run(0.1)
    assert new.groups() == []


# --- what the older APIs say


def test_the_older_apis_know_its_type(offsets: Offsets) -> None:
    a, b = two(offsets)
    coordinator = a.coordinator
    described = coordinator.describe("g")
    assert (described.error_code, described.state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")
    assert described.message == "Group g is not a classic group."
    listed = coordinator.list_groups(types=["Consumer"], states=["reconciling"]).groups
    assert [(g.group, g.group_type, g.state, g.protocol_type) for g in listed] == [
        ("g", "consumer", "Reconciling", "consumer")
    ]
    assert coordinator.list_groups(types=["classic"]).groups == ()
    codes: list[ErrorCode] = []
    coordinator.delete("g", codes.append)
    a.leave()
    b.leave()
    coordinator.delete("g", codes.append)
    offsets.run(0.1)
    assert codes == [ErrorCode.NON_EMPTY_GROUP, ErrorCode.NONE]
    assert coordinator.groups() == []
    assert coordinator.describe_consumer_group("g").message == "Group g not found."


def test_a_classic_group_is_described_as_such(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    Client(coordinator).commit(1)
    assert coordinator.describe_consumer_group("g").message == "Group g is not a consumer group."
