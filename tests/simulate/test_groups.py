"""The classic group coordinator: rebalances, sessions, commits, and its move to another broker."""

import pytest

from kview.simulate.codes import ErrorCode
from kview.simulate.groups.coordinator import GroupCoordinator
from kview.simulate.groups.placement import offsets_partition
from kview.simulate.groups.results import (
    CommitRequest,
    CommitResult,
    GroupProtocol,
    JoinRequest,
    JoinResult,
    LeavingMember,
    OffsetToCommit,
    SyncRequest,
)
from kview.simulate.groups.shard import COMPACT_AFTER_BATCHES
from tests.simulate.groups_host import Client, Offsets, stable


@pytest.fixture
def offsets() -> Offsets:
    return Offsets()


def pair(offsets: Offsets, coordinator: GroupCoordinator) -> tuple[Client, Client]:
    a, b = Client(coordinator, name="a"), Client(coordinator, name="b")
    stable(offsets, coordinator, a, b)
    return a, b


# --- joining


def test_a_new_member_is_given_its_id_first(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    answers: list[JoinResult] = []
    request = JoinRequest("g", "", "c", "/h", "consumer", (GroupProtocol("range", b""),), 10_000, 60_000)
    coordinator.join(request, answers.append)
    assert answers[0].error_code is ErrorCode.MEMBER_ID_REQUIRED
    assert answers[0].member_id.startswith("c-")


def test_an_empty_group_waits_three_seconds_for_more_members(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a, b = Client(coordinator, name="a"), Client(coordinator, name="b")
    a.join()
    offsets.run(2.9)
    assert coordinator.describe("g").state == "PreparingRebalance"
    b.join()  # a newcomer makes it wait again
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
    assert len(a.joined) == 1  # b has not come yet
    b.join()
    assert {client.result.generation for client in (a, b, c)} == {2}
    assert a.heartbeat() is ErrorCode.NONE
    b.joined[-1] = b.joined[0]
    assert b.heartbeat() is ErrorCode.ILLEGAL_GENERATION


def test_who_does_not_rejoin_in_time_is_out(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a, b = pair(offsets, coordinator)
    a.join()  # the leader rejoins: a rebalance
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


# --- sessions and leaving


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


# --- static members


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


# --- offsets


def test_commits_are_answered_when_they_are_committed(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a, _ = pair(offsets, coordinator)
    offsets.frozen = True
    a.commit(42)
    offsets.run(1)
    assert not a.committed
    assert coordinator.fetch_offsets("g", [("t", 0)]).offsets[0].offset == -1
    offsets.thaw()
    assert a.committed[0].error_codes == (ErrorCode.NONE,)
    assert [o.offset for o in coordinator.fetch_offsets("g", None).offsets] == [42]


def test_a_commit_that_waits_too_long_counts_when_it_is_committed_after_all(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a, _ = pair(offsets, coordinator)
    offsets.frozen = True
    a.commit(42)
    offsets.run(5.1)
    assert a.committed[0].error_codes == (ErrorCode.COORDINATOR_NOT_AVAILABLE,)
    offsets.thaw()
    assert len(a.committed) == 1
    assert coordinator.fetch_offsets("g", [("t", 0)]).offsets[0].offset == 42


def test_who_may_commit(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    outsider = Client(coordinator)
    outsider.commit(1)  # no group yet: a consumer that assigns itself
    offsets.run(0.1)
    assert outsider.committed[-1].error_codes == (ErrorCode.NONE,)
    outsider.commit(1, generation=3)
    assert outsider.committed[-1].error_codes == (ErrorCode.UNKNOWN_MEMBER_ID,)
    a, _ = pair(offsets, coordinator)
    outsider.commit(1)
    assert outsider.committed[-1].error_codes == (ErrorCode.UNKNOWN_MEMBER_ID,)
    a.commit(1, generation=9)
    assert a.committed[-1].error_codes == (ErrorCode.ILLEGAL_GENERATION,)


def test_offsets_of_unknown_partitions_are_refused_one_by_one(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    answers: list[CommitResult] = []
    wanted = (
        OffsetToCommit("t", 0, 1),
        OffsetToCommit("t", 10, 1),
        OffsetToCommit("t", 1, 1, metadata="x" * 4097),
    )
    coordinator.commit(CommitRequest("g", wanted), answers.append)
    offsets.run(0.1)
    assert answers[0].error_codes == (
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
    )


def test_offsets_of_an_empty_group_are_forgotten_after_their_retention(offsets: Offsets) -> None:
    coordinator = offsets.coordinator(offsets_retention_minutes=60)
    Client(coordinator).commit(1)
    offsets.run(3500)
    assert coordinator.fetch_offsets("g", None).offsets
    offsets.run(800)
    assert coordinator.describe("g").state == "Dead"
    offsets.move(0)
    offsets.run(1)
    assert coordinator.fetch_offsets("g", None).offsets == ()  # nor is it in the log


def test_only_an_empty_group_can_be_deleted(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a, b = pair(offsets, coordinator)
    answers: list[ErrorCode] = []
    coordinator.delete("g", answers.append)
    coordinator.leave("g", [LeavingMember(a.member_id), LeavingMember(b.member_id)])
    coordinator.delete("g", answers.append)
    offsets.run(0.1)
    assert answers == [ErrorCode.NON_EMPTY_GROUP, ErrorCode.NONE]
    assert coordinator.describe("g").state == "Dead"


# --- the coordinator moves


def test_a_group_goes_on_at_its_new_coordinator(offsets: Offsets) -> None:
    old, new = offsets.coordinator(0), offsets.coordinator(1)
    a, b = pair(offsets, old)
    a.commit(42)
    offsets.run(0.1)
    offsets.move(1)
    assert a.heartbeat() is ErrorCode.NOT_COORDINATOR
    assert old.find("g") == 1
    a.coordinator = b.coordinator = new
    assert a.heartbeat() is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert new.list_groups().error_code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    offsets.run(0.1)
    assert a.heartbeat() is ErrorCode.NONE
    assert new.fetch_offsets("g", [("t", 0)]).offsets[0].offset == 42
    for _ in range(14):
        offsets.run(3)
        a.heartbeat()
    assert b.heartbeat() is ErrorCode.NONE  # its session began anew with the move
    assert [m.assignment for m in new.describe("g").members] == [b"a", b"b"]


def test_who_waits_at_the_old_coordinator_is_sent_away(offsets: Offsets) -> None:
    old = offsets.coordinator(0)
    offsets.coordinator(1)
    a, b = pair(offsets, old)
    offsets.frozen = True
    b.commit(7)
    a.join()
    offsets.move(1)
    assert a.result.error_code is ErrorCode.NOT_COORDINATOR
    assert b.committed[0].error_codes == (ErrorCode.NOT_COORDINATOR,)
    offsets.thaw()
    assert len(b.committed) == 1


def test_who_waits_at_a_coordinator_that_dies_hears_nothing(offsets: Offsets) -> None:
    old = offsets.coordinator(0)
    a, b = pair(offsets, old)
    a.join()
    b.commit(7)
    old.process_ended()
    offsets.run(100)
    assert len(a.joined) == 1
    assert not b.committed


def test_what_is_not_in_the_new_leaders_log_was_never_committed(offsets: Offsets) -> None:
    old, new = offsets.coordinator(0), offsets.coordinator(1)
    a, _ = pair(offsets, old)
    a.commit(41)
    offsets.run(0.1)
    a.commit(42)
    offsets.batches.pop()  # the leader died before a follower had it
    offsets.move(1)
    offsets.run(0.1)
    assert new.fetch_offsets("g", [("t", 0)]).offsets[0].offset == 41


def test_a_long_log_is_compacted_to_what_counts(offsets: Offsets) -> None:
    old, new = offsets.coordinator(0), offsets.coordinator(1)
    a, b = pair(offsets, old)
    for offset in range(COMPACT_AFTER_BATCHES + 100):
        a.commit(offset)
        b.heartbeat()
        offsets.run(0.1)
    assert offsets.start[offsets_partition("g", 50)] >= COMPACT_AFTER_BATCHES
    offsets.move(1)
    offsets.run(0.1)
    assert new.fetch_offsets("g", [("t", 0)]).offsets[0].offset == COMPACT_AFTER_BATCHES + 99
    assert [m.assignment for m in new.describe("g").members] == [b"a", b"b"]


def test_a_log_is_not_compacted_while_a_write_is_under_way(offsets: Offsets) -> None:
    old, new = offsets.coordinator(0), offsets.coordinator(1)
    a, b = pair(offsets, old)
    for offset in range(COMPACT_AFTER_BATCHES + 100):
        a.commit(offset)  # the next one before the last one is committed
        b.heartbeat()
        offsets.run(0.0005)
    assert not offsets.start
    a.commit(1)
    offsets.run(1)
    assert offsets.start
    offsets.move(1)
    offsets.run(0.1)
    assert new.fetch_offsets("g", [("t", 0)]).offsets[0].offset == 1


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


def test_nobody_commits_between_joining_and_its_assignment(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a = Client(coordinator)
    a.join()
    offsets.run(4)
    a.member_id = a.result.member_id
    a.commit(1)
    assert a.committed[-1].error_codes == (ErrorCode.REBALANCE_IN_PROGRESS,)


def test_retention_begins_when_the_last_member_left(offsets: Offsets) -> None:
    coordinator = offsets.coordinator(offsets_retention_minutes=60)
    a, b = pair(offsets, coordinator)
    a.commit(1)
    for _ in range(200):
        offsets.run(36)
        a.heartbeat()
        b.heartbeat()
    coordinator.leave("g", [LeavingMember(a.member_id), LeavingMember(b.member_id)])
    offsets.run(1500)
    assert [o.offset for o in coordinator.fetch_offsets("g", None).offsets] == [1]
    offsets.run(3000)
    assert coordinator.describe("g").state == "Dead"


def test_a_log_is_not_compacted_in_a_rebalance(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    a, b = pair(offsets, coordinator)
    b.protocols = (GroupProtocol("range", b"changed"),)
    b.join()
    for offset in range(COMPACT_AFTER_BATCHES + 10):
        a.commit(offset)
        offsets.run(0.01)
    assert coordinator.describe("g").state == "PreparingRebalance"
    assert not offsets.start


def test_a_member_that_does_not_follow_the_coordinator_is_out_in_the_end(offsets: Offsets) -> None:
    old, new = offsets.coordinator(0), offsets.coordinator(1)
    pair(offsets, old)
    offsets.move(1)
    offsets.run(44)
    assert new.describe("g").state == "Stable"
    offsets.run(2)
    assert new.describe("g").state == "Empty"
