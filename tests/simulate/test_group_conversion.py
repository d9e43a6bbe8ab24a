"""Groups that change from the classic to the consumer protocol and back, and members of both in one group."""

import pytest

from kview.simulate.codes import ErrorCode
from kview.simulate.groups.consumer_group import ConsumerGroup
from kview.simulate.groups.consumer_protocol import (
    Subscription,
    decode_assignment,
    encode_assignment,
    encode_subscription,
)
from kview.simulate.groups.consumer_results import ConsumerHeartbeat
from kview.simulate.groups.coordinator import GroupCoordinator
from kview.simulate.groups.group import Group
from kview.simulate.groups.records import GroupValue, decode_batch
from kview.simulate.groups.results import GroupProtocol, LeavingMember
from kview.simulate.groups.settings import MigrationPolicy
from tests.simulate.consumer_client import ConsumerClient, group_of
from tests.simulate.group_invariants import owned_twice
from tests.simulate.groups_host import Client, Offsets

RANGE = (GroupProtocol("range", encode_subscription(Subscription(("t",), {}))),)


def classic(coordinator: GroupCoordinator, name: str, **fields: object) -> Client:
    return Client(coordinator, name=name, protocols=RANGE, **fields)  # type: ignore[arg-type]


def stable_pair(offsets: Offsets, coordinator: GroupCoordinator) -> tuple[Client, Client]:
    """Two classic members with five partitions each."""
    a, b = classic(coordinator, "a"), classic(coordinator, "b")
    a.join()
    b.join()
    offsets.run(10)
    parts = {a.result.member_id: range(5), b.result.member_id: range(5, 10)}
    assigned = tuple((m, encode_assignment({"t": list(of)})) for m, of in parts.items())
    for member in (a, b):
        member.sync(assigned if member.result.leader == member.member_id else ())
    offsets.run(0.1)
    return a, b


def rejoin(offsets: Offsets, member: Client, owned: list[int]) -> list[int]:
    """Join again with what the member has kept, and return what it has then."""
    subscription = Subscription(("t",), {"t": owned} if owned else {})
    member.protocols = (GroupProtocol("range", encode_subscription(subscription)),)
    member.join()
    offsets.run(0.1)
    member.sync()
    offsets.run(0.1)
    assert member.synced[-1].error_code is ErrorCode.NONE
    return [number for _, number in decode_assignment(member.synced[-1].assignment)]


def test_an_empty_group_changes_at_once_and_keeps_its_offsets(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a, b = stable_pair(offsets, coordinator)
    a.commit(5)
    coordinator.leave("g", [LeavingMember(a.member_id), LeavingMember(b.member_id)])
    offsets.run(0.1)
    new = ConsumerClient(offsets, coordinator, "n")
    assert new.beat(epoch=2).message == "Group g is not a consumer group."
    new.join()
    assert (new.epoch, new.numbers) == (2, list(range(10)))
    assert coordinator.fetch_offsets("g", [("t", 0)]).offsets[0].offset == 5
    new.leave()
    again = classic(coordinator, "c")
    again.join()
    ((_, first),) = decode_batch(offsets.batches[-1][1])
    assert isinstance(first, GroupValue) and first.generation == 0, "the log has it at once, as Kafka's"
    offsets.run(5)
    assert again.result.generation == 1
    (group,) = coordinator.groups()
    assert isinstance(group, Group) and group.offsets["t", 0].offset == 5
    later = offsets.coordinator(1)
    offsets.move(1)
    offsets.run(0.1)
    (loaded,) = later.groups()
    assert isinstance(loaded, Group) and loaded.offsets["t", 0].offset == 5


def test_a_refused_member_leaves_an_empty_group_as_it_is(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    ConsumerClient(offsets, coordinator, "n").join()
    coordinator.consumer_heartbeat(ConsumerHeartbeat("g", "n", -1, "", ""), lambda _: None)
    offsets.run(0.1)
    without_protocols = Client(coordinator, name="c", protocols=())
    without_protocols.join()
    offsets.run(5)
    assert without_protocols.result.error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    offsets.leader = 1  # what this coordinator does not know yet
    late = classic(coordinator, "d")
    late.join()
    offsets.run(5)
    assert [answer.error_code for answer in late.joined] == [ErrorCode.NOT_COORDINATOR]
    assert group_of(coordinator).empty


def test_of_two_protocols_in_the_log_the_last_one_counts(offsets: Offsets) -> None:
    """The tombstones of the first one are lost."""
    coordinator = offsets.coordinator()
    new = ConsumerClient(offsets, coordinator, "n")
    new.join()
    new.leave()
    kept = len(offsets.batches)
    member = classic(coordinator, "c")
    member.join()
    offsets.run(5)
    member.sync(((member.member_id, b""),))
    offsets.run(0.1)
    del offsets.batches[kept]
    later = offsets.coordinator(1)
    offsets.move(1)
    offsets.run(0.1)
    (loaded,) = later.groups()
    assert isinstance(loaded, Group) and list(loaded.members) == [member.member_id]


def test_members_of_both_protocols_share_and_the_last_change_is_back(offsets: Offsets) -> None:
    """A rolling upgrade that is given up: two classic members, a new one comes and leaves again."""
    coordinator = offsets.coordinator()
    a, b = stable_pair(offsets, coordinator)
    new = ConsumerClient(offsets, coordinator, "n")
    new.join()
    group = group_of(coordinator)
    assert (group.epoch, group.target_epoch) == (2, 2), "the generation is the epoch"
    assert [m.metadata.classic is not None for m in group.members.values()] == [True, True, False]
    assert (new.epoch, new.numbers) == (2, []), "what it is to have is not released yet"
    kept: dict[str, list[int]] = {}
    for member in (a, b):
        assert member.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        kept[member.name] = rejoin(offsets, member, list(range(5)) if member is a else list(range(5, 10)))
        assert owned_twice(group) is None
    assert sorted(map(len, kept.values())) == [3, 4]
    for member in (a, b):
        assert member.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS, "it has revoked, and joins again"
        assert rejoin(offsets, member, kept[member.name]) == kept[member.name]
        assert member.heartbeat() is ErrorCode.NONE
    new.beat()
    assert sorted([*kept["a"], *kept["b"], *new.numbers]) == list(range(10))
    assert coordinator.describe_consumer_group("g").state == "Stable"

    loaded = offsets.coordinator(1)
    offsets.move(1)
    offsets.run(0.1)
    assert group_of(loaded).members == group.members
    new.coordinator = a.coordinator = b.coordinator = loaded

    new.leave()
    (back,) = loaded.groups()
    assert isinstance(back, Group)
    assert (back.generation, back.state, back.protocol_type) == (2, "PreparingRebalance", "consumer")
    for member in (a, b):
        assert member.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        member.join()
    offsets.run(0.1)
    assert {member.result.generation for member in (a, b)} == {3}
    assert {member.result.protocol for member in (a, b)} == {"range"}


def test_a_classic_member_may_join_a_consumer_group(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    new = ConsumerClient(offsets, coordinator, "n")
    new.join()
    old = classic(coordinator, "c", session_timeout_ms=10_000)
    old.join()
    offsets.run(0.1)
    assert (old.result.error_code, old.result.generation, old.result.protocol) == (ErrorCode.NONE, 2, "range")
    assert old.result.leader == "" and old.result.members == ()
    old.sync()
    assert decode_assignment(old.synced[-1].assignment) == []
    assert old.heartbeat() is ErrorCode.NONE, "the target assignment waits for its second"
    offsets.run(1)
    new.beat()
    assert old.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    new.beat()
    assert rejoin(offsets, old, []) == [5, 6, 7, 8, 9]
    offsets.run(4)
    new.beat()
    offsets.run(4)
    new.beat()
    offsets.run(4)
    new.beat()
    assert list(group_of(coordinator).members) == ["n"], "its own session timeout counts"


def test_a_classic_member_is_told_when_something_is_released(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    new = ConsumerClient(offsets, coordinator, "n")
    new.join()
    old = classic(coordinator, "c")
    old.join()
    offsets.run(1.1)
    old.sync()
    new.beat()
    assert rejoin(offsets, old, []) == []
    assert old.result.generation == 3
    assert old.heartbeat() is ErrorCode.NONE, "all that it waits for is still with the other"
    new.beat()
    assert old.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert rejoin(offsets, old, []) == [5, 6, 7, 8, 9]


def test_a_classic_member_that_does_not_join_again_is_removed(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    new = ConsumerClient(offsets, coordinator, "n")
    new.join()
    old = classic(coordinator, "c", rebalance_timeout_ms=20_000)
    old.join()
    offsets.run(1.1)
    old.sync()
    new.beat()
    new.beat()
    for _ in range(9):
        assert old.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        offsets.run(2)
        new.beat()
    offsets.run(3)
    assert old.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_requests_of_the_classic_protocol_need_a_classic_member(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    new = ConsumerClient(offsets, coordinator, "n")
    new.join()
    assert coordinator.heartbeat("g", 2, "n") is ErrorCode.UNKNOWN_MEMBER_ID
    other = Client(coordinator, name="x", protocols=(GroupProtocol("range", b"?"),))
    other.join()
    assert other.result.error_code is ErrorCode.UNKNOWN_SERVER_ERROR
    left = coordinator.leave("g", [LeavingMember("n"), LeavingMember("nobody")])
    assert [m.error_code for m in left.members] == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    offsets.run(0.1)
    assert coordinator.describe_consumer_group("g").state == "Empty"


def test_a_static_member_goes_back_to_the_classic_protocol(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    old = classic(coordinator, "c")
    new = ConsumerClient(offsets, coordinator, "n", instance="one")
    new.join()
    old.join()
    offsets.run(1.1)
    old.sync()
    new.beat()
    new.beat()
    back = classic(coordinator, "b", instance="one")
    back.join()
    offsets.run(0.1)
    assert (back.result.error_code, back.result.generation) == (ErrorCode.NONE, 3)
    (group,) = coordinator.groups()
    assert isinstance(group, Group) and group.static_members == {"one": back.member_id}
    assert (group.state, group.generation) == ("Stable", 3)
    back.sync()
    offsets.run(0.1)
    assert back.synced[-1].protocol == "range"
    assert len(decode_assignment(back.synced[-1].assignment)) == 5


def test_an_expression_that_is_being_resolved_does_not_bring_a_group_back(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    new = ConsumerClient(offsets, coordinator, "n")
    new.join()
    classic(coordinator, "c").join()
    offsets.run(0.1)
    new.send(regex="t.*")
    new.send(-1)
    offsets.run(0.1)
    (group,) = coordinator.groups()
    assert isinstance(group, Group)


@pytest.mark.parametrize(
    ("policy", "upgrades", "downgrades"),
    [
        (MigrationPolicy.BIDIRECTIONAL, True, True),
        (MigrationPolicy.UPGRADE, True, False),
        (MigrationPolicy.DOWNGRADE, False, True),
        (MigrationPolicy.DISABLED, False, False),
    ],
)
def test_the_policy_decides(
    offsets: Offsets, policy: MigrationPolicy, upgrades: bool, downgrades: bool
) -> None:
    coordinator = offsets.coordinator(consumer_migration_policy=policy)
    stable_pair(offsets, coordinator)
    result = ConsumerClient(offsets, coordinator, "n").join()
    if not upgrades:
        why = "Cannot upgrade classic group g to consumer group because online upgrade is disabled."
        assert (result.error_code, result.message) == (ErrorCode.GROUP_ID_NOT_FOUND, why)
    new = ConsumerClient(offsets, coordinator, "n", group="other")
    new.join()
    old = classic(coordinator, "c", group="other")
    old.join()
    offsets.run(0.1)
    if policy is MigrationPolicy.DISABLED:
        assert old.result.error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return
    new.leave()
    kinds = {group.name: isinstance(group, ConsumerGroup) for group in coordinator.groups()}
    assert kinds == {"g": upgrades, "other": not downgrades}


@pytest.mark.parametrize(
    ("protocol", "assignment", "why"),
    [
        (b"\0", b"", "the embedded consumer protocol is malformed"),
        (RANGE[0].metadata, b"\0\1\0\0\0\0\0\0\0\2xy", "an unsupported custom assignor is in use"),
    ],
)
def test_a_group_that_is_not_understood_stays_classic(
    offsets: Offsets, protocol: bytes, assignment: bytes, why: str
) -> None:
    coordinator = offsets.coordinator()
    member = Client(coordinator, name="c", protocols=(GroupProtocol("range", protocol),))
    member.join()
    offsets.run(5)
    member.sync(((member.result.member_id, assignment),))
    offsets.run(0.1)
    result = ConsumerClient(offsets, coordinator, "n").join()
    assert result.error_code is ErrorCode.GROUP_ID_NOT_FOUND
    assert result.message is not None and why in result.message
    assert member.heartbeat() is ErrorCode.NONE


def test_an_upgrade_in_the_midst_of_a_rebalance_answers_who_waits(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a, b = stable_pair(offsets, coordinator)
    a.join()
    assert coordinator.describe("g").state == "PreparingRebalance"
    new = ConsumerClient(offsets, coordinator, "n")
    new.join()
    assert a.joined[-1].error_code is ErrorCode.REBALANCE_IN_PROGRESS
    assert b.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    for _ in range(40):
        offsets.run(4.9)
        new.beat()
    assert list(group_of(coordinator).members) == ["n"], "no timer of the classic group is left"
    assert new.numbers == list(range(10))
