"""Commits to the classic group coordinator, their retention, and the coordinator's move to another broker."""

from kview.simulate.codes import ErrorCode
from kview.simulate.coordination.placement import partition_of
from kview.simulate.coordination.shard import CLEAN_AFTER_BATCHES
from kview.simulate.groups.coordinator import GroupCoordinator
from kview.simulate.groups.records import OffsetKey, decode_batch
from kview.simulate.groups.results import (
    NO_OFFSET,
    CommitRequest,
    CommitResult,
    LeavingMember,
    OffsetDeleteResult,
    OffsetToCommit,
)
from tests.simulate.groups_host import Client, Offsets, pair


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
    outsider.commit(1)  # there is no group yet, as for a consumer that assigns partitions to itself
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
    assert coordinator.fetch_offsets("g", None).offsets == ()  # the log does not contain it either


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
    assert b.heartbeat() is ErrorCode.NONE  # its session began again after the move
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
    offsets.batches.pop()  # the leader died before a follower had the batch
    offsets.move(1)
    offsets.run(0.1)
    assert new.fetch_offsets("g", [("t", 0)]).offsets[0].offset == 41


def test_a_long_log_is_compacted_to_what_counts(offsets: Offsets) -> None:
    old, new = offsets.coordinator(0), offsets.coordinator(1)
    a, b = pair(offsets, old)
    for offset in range(CLEAN_AFTER_BATCHES + 100):
        a.commit(offset)
        b.heartbeat()
        offsets.run(0.1)
    assert len(list(old._host.batches(partition_of("g", 50)))) < 200
    offsets.move(1)
    offsets.run(0.1)
    assert new.fetch_offsets("g", [("t", 0)]).offsets[0].offset == CLEAN_AFTER_BATCHES + 99
    assert [m.assignment for m in new.describe("g").members] == [b"a", b"b"]


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


def test_a_deleted_topic_takes_its_committed_offsets_with_it(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    outsider = Client(coordinator)
    outsider.commit(7)
    offsets.run(1)
    offsets.topics["t"] = b"u" * 16
    coordinator.topics_changed()
    assert committed(coordinator) == NO_OFFSET
    offsets.run(1)
    assert decode_batch(offsets.batches[-1][1]) == [(OffsetKey("g", "t", 0), None)]


def test_a_commit_that_is_acknowledged_after_its_topic_was_deleted_does_not_count(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    offsets.frozen = True
    Client(coordinator).commit(7)
    offsets.topics["t"] = b"u" * 16
    coordinator.topics_changed()
    offsets.thaw()
    assert committed(coordinator) == NO_OFFSET


def test_a_new_coordinator_passes_over_the_offsets_of_a_deleted_topic(offsets: Offsets) -> None:
    Client(offsets.coordinator()).commit(7)
    offsets.run(1)
    offsets.topics["t"] = b"u" * 16
    other = offsets.coordinator(1)
    offsets.move(1)
    offsets.run(1)
    assert committed(other) == NO_OFFSET


def test_a_commit_with_the_id_of_another_topic_is_refused(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    answers: list[CommitResult] = []
    for topic_id in (b"u" * 16, b"t" * 16):
        offset = OffsetToCommit("t", 0, 7, topic_id=topic_id)
        coordinator.commit(CommitRequest("g", (offset,)), answers.append)
    offsets.run(1)
    assert [a.error_codes for a in answers] == [(ErrorCode.UNKNOWN_TOPIC_ID,), (ErrorCode.NONE,)]


def committed(coordinator: GroupCoordinator) -> int:
    return coordinator.fetch_offsets("g", [("t", 0)]).offsets[0].offset


def test_an_offset_named_twice_is_deleted_once(offsets: Offsets) -> None:
    coordinator = offsets.coordinator()
    outsider = Client(coordinator)
    outsider.commit(1)
    offsets.run(0.1)
    answers: list[OffsetDeleteResult] = []
    coordinator.delete_offsets("g", [("t", 0), ("t", 0)], answers.append)
    offsets.run(0.1)
    assert answers == [OffsetDeleteResult(ErrorCode.NONE, (ErrorCode.NONE, ErrorCode.NONE))]
    assert coordinator.fetch_offsets("g", [("t", 0)]).offsets[0].offset == -1
