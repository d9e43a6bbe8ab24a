"""Rebalances and sessions of the classic group coordinator."""

from dataclasses import replace

import pytest

from kview.simulate.codes import ErrorCode
from kview.simulate.groups.records import GroupKey, GroupValue, decode_batch
from kview.simulate.groups.results import (
    GroupProtocol,
    JoinRequest,
    JoinResult,
    LeavingMember,
    SyncRequest,
)
from tests.simulate.groups_host import Client, Offsets, pair, stable


def test_a_new_member_is_given_its_id_first(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    answers: list[JoinResult] = []
    request = JoinRequest("g", "", "c", "/h", "consumer", (GroupProtocol("range", b""),), 10_000, 60_000)
    coordinator.join(request, answers.append)
    assert answers[0].error_code is ErrorCode.MEMBER_ID_REQUIRED
    assert answers[0].member_id.startswith("c-")
    changes = [change for _, batch in offsets.batches for change in decode_batch(batch)]
    empty = GroupValue("", 0, None, None, offsets.kernel.now_us // 1000, ())
    assert changes == [(GroupKey("g"), empty)], "as Kafka's coordinator writes when a group begins"
    offsets.run(11)
    coordinator.join(replace(request, member_id="unknown"), answers.append)
    assert answers[1].error_code is ErrorCode.UNKNOWN_MEMBER_ID
    states = [(group.group, group.state) for group in coordinator.list_groups().groups]
    assert states == [("g", "Empty")], "a group that the log has stays, as in Kafka"


def test_an_empty_group_waits_three_seconds_for_more_members(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a, b = Client(coordinator, name="a"), Client(coordinator, name="b")
    a.join()
    offsets.run(2.9)
    assert coordinator.describe("g").state == "PreparingRebalance"
    b.join()  # another new member prolongs the delay
    offsets.run(2.9)
    assert not a.joined
    offsets.run(0.2)
    assert a.result.generation == b.result.generation == 1
    assert a.result.leader == a.member_id
    assert [member.member_id for member in a.result.members] == [a.member_id, b.member_id]
    assert b.result.members == ()
    assert coordinator.describe("g").state == "CompletingRebalance"


def test_the_leaders_assignment_reaches_everyone(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a, b = pair(offsets, coordinator)
    described = coordinator.describe("g")
    assert (described.protocol_type, described.protocol) == ("consumer", "range")
    assert [(m.member_id, m.assignment) for m in described.members] == [
        (a.member_id, b"a"),
        (b.member_id, b"b"),
    ]
    assert a.heartbeat() is ErrorCode.NONE
    assert [(g.group, g.state) for g in coordinator.list_groups().groups] == [("g", "Stable")]
    assert coordinator.list_groups(["empty"]).groups == ()
    assert coordinator.list_groups(types=["consumer"]).groups == ()


def test_members_vote_for_the_protocol(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    both = (GroupProtocol("range", b""), GroupProtocol("sticky", b""))
    clients = [
        Client(coordinator, protocols=protocols)
        for protocols in (both, tuple(reversed(both)), tuple(reversed(both)))
    ]
    for client in clients:
        client.join()
    offsets.run(10)
    assert {client.result.protocol for client in clients} == {"sticky"}


def test_a_member_without_a_common_protocol_is_refused(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    pair(offsets, coordinator)
    other = Client(coordinator, protocols=(GroupProtocol("sticky", b""),))
    other.join()
    assert other.result.error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_newcomer_makes_the_others_rejoin(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a, b = pair(offsets, coordinator)
    c = Client(coordinator, name="c")
    c.join()
    assert a.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    a.join()
    offsets.run(1)
    assert len(a.joined) == 1  # b has not rejoined yet
    b.join()
    assert {client.result.generation for client in (a, b, c)} == {2}
    assert a.heartbeat() is ErrorCode.NONE
    b.joined[-1] = b.joined[0]
    assert b.heartbeat() is ErrorCode.ILLEGAL_GENERATION


def test_who_does_not_rejoin_in_time_is_out(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a, b = pair(offsets, coordinator)
    a.join()  # the leader rejoins, which starts a rebalance
    for _ in range(20):
        assert b.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
        offsets.run(2.9)
    offsets.run(3)
    assert a.result.generation == 2
    assert b.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_does_not_ask_for_its_assignment_is_out(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a, b = Client(coordinator, name="a"), Client(coordinator, name="b")
    a.join()
    b.join()
    offsets.run(7)
    a.sync(((a.result.member_id, b"a"),))
    for _ in range(30):
        a.heartbeat()
        coordinator.heartbeat("g", 1, b.result.member_id)
        offsets.run(2)
    assert b.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID
    assert a.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_repeated_join_of_an_unchanged_member_changes_nothing(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    _, b = pair(offsets, coordinator)
    b.join()
    assert b.result.generation == 1
    assert coordinator.describe("g").state == "Stable"


def test_a_silent_member_s_session_ends(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a, b = pair(offsets, coordinator)
    for _ in range(14):
        offsets.run(3)
        assert a.heartbeat() is ErrorCode.NONE
    offsets.run(3.5)
    assert a.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    a.join()
    assert a.result.generation == 2
    assert b.heartbeat() is ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("timeout_ms", [5_999, 1_800_001])
def test_session_timeouts_have_bounds(offsets: Offsets, timeout_ms: int) -> None:
    client = Client(offsets.coordinator(), session_timeout_ms=timeout_ms)
    client.join()
    assert client.result.error_code is ErrorCode.INVALID_SESSION_TIMEOUT


def test_leaving_makes_the_others_rebalance_and_the_last_one_empties_the_group(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a, b = pair(offsets, coordinator)
    left = coordinator.leave("g", [LeavingMember(b.member_id), LeavingMember("nobody")])
    assert [member.error_code for member in left.members] == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert a.heartbeat() is ErrorCode.REBALANCE_IN_PROGRESS
    coordinator.leave("g", [LeavingMember(a.member_id)])
    described = coordinator.describe("g")
    assert (described.state, described.members) == ("Empty", ())


def test_an_unknown_group_is_dead(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    described = coordinator.describe("nobody")
    assert (described.state, described.error_code) == ("Dead", ErrorCode.GROUP_ID_NOT_FOUND)
    assert coordinator.heartbeat("nobody", 1, "m") is ErrorCode.UNKNOWN_MEMBER_ID
    assert coordinator.heartbeat("", 1, "m") is ErrorCode.INVALID_GROUP_ID


def test_a_hung_broker_ends_no_session_until_it_goes_on(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    pair(offsets, coordinator)
    offsets.hung.add(0)
    offsets.run(60)
    assert coordinator.describe("g").state == "Stable"
    offsets.hung.clear()
    offsets.run(1)
    assert coordinator.describe("g").state == "Empty"


def test_a_static_member_comes_back_without_a_rebalance(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a, b = Client(coordinator, name="a", instance="one"), Client(coordinator, name="b", instance="two")
    stable(offsets, coordinator, a, b)
    old_id = b.member_id
    back = Client(coordinator, name="b", instance="two")
    back.join()
    offsets.run(0.1)
    assert back.result.generation == 1
    assert back.member_id != old_id
    assert back.member_id.startswith("two-")
    assert b.heartbeat() is ErrorCode.FENCED_INSTANCE_ID
    back.sync()
    assert back.synced[-1].assignment == b"b"
    assert coordinator.describe("g").state == "Stable"


@pytest.mark.parametrize("skips", [True, False])
def test_a_static_leader_that_comes_back_does_not_assign_anew(offsets: Offsets, skips: bool) -> None:
    coordinator = offsets.coordinator()
    a, b = Client(coordinator, name="a", instance="one"), Client(coordinator, name="b", instance="two")
    stable(offsets, coordinator, a, b)
    back = Client(coordinator, name="a", instance="one", supports_skipping_assignment=skips)
    back.join()
    offsets.run(0.1)
    assert back.result.skip_assignment is skips
    assert (back.result.leader == back.member_id) is skips
    assert bool(back.result.members) is skips


def test_a_static_member_leaves_by_its_instance_id(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a = Client(coordinator, name="a", instance="one")
    stable(offsets, coordinator, a)
    fenced = coordinator.leave("g", [LeavingMember("another", "one")]).members[0]
    assert fenced.error_code is ErrorCode.FENCED_INSTANCE_ID
    assert coordinator.leave("g", [LeavingMember("", "one")]).members[0].error_code is ErrorCode.NONE
    assert coordinator.describe("g").state == "Empty"


def test_a_static_member_that_is_away_keeps_its_place_in_a_rebalance(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a = Client(coordinator, name="a", instance="one", session_timeout_ms=200_000)
    b = Client(coordinator, name="b")
    stable(offsets, coordinator, a, b)
    b.protocols = (GroupProtocol("range", b"changed"),)
    b.join()
    for _ in range(30):
        offsets.run(2.1)
    assert b.result.generation == 2
    assert a.member_id in [m.member_id for m in coordinator.describe("g").members]


def test_an_assignment_for_another_protocol_is_refused(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a, _ = pair(offsets, coordinator)
    request = SyncRequest("g", 1, a.member_id, None, "consumer", "sticky")
    coordinator.sync(request, a.synced.append)
    assert a.synced[-1].error_code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_member_that_does_not_follow_the_coordinator_is_out_in_the_end(offsets: Offsets) -> None:
    old, new = offsets.coordinator(0), offsets.coordinator(1)
    pair(offsets, old)
    offsets.move(1)
    offsets.run(44)
    assert new.describe("g").state == "Stable"
    offsets.run(2)
    assert new.describe("g").state == "Empty"
