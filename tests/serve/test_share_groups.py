"""Share groups (KIP-932) over sockets: both clusters answer alike to single requests."""

import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from typing import Any

import pytest
from kafka.protocol.admin import DeleteGroupsRequest, DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    SyncGroupRequest,
)
from kafka.protocol.metadata import FindCoordinatorRequest

from kview.wire.group_messages import ConsumerGroupDescribeRequest, DescribeShareGroupOffsetsRequest
from kview.wire.member_messages import (
    AlterShareGroupOffsetsRequest,
    ConsumerGroupHeartbeatRequest,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupStateRequest,
    InitializeShareGroupStateRequest,
    ReadShareGroupStateSummaryRequest,
    WriteShareGroupStateRequest,
)
from tests.real_kafka.asking import ask
from tests.serve import questions as q
from tests.serve.both import Cluster
from tests.serve.share_client import (
    NOT_YET,
    SHARE,
    Member,
    Shared,
    batches_of,
    numbers,
    read_state,
)
from tests.waiting import wait_until

ACCEPT, RELEASE, REJECT, RENEW, GAP = 1, 2, 3, 4, 0
NOT_HOSTED = "This server does not host this topic-partition."
STALE = "The offset cannot be acknowledged. The offset is not acquired."


# --- members


def test_members_share_partitions_and_get_them_once_they_are_initialized(cluster: Cluster) -> None:
    shared = Shared(cluster)
    assert shared.told("a", 0, [shared.topic]) == (2, [])
    found: list[Any] = [(2, [])]

    def assigned() -> bool:
        found.append(shared.told("a", found[-1][0]))
        return bool(found[-1][1] == [0, 1, 2])

    wait_until(assigned, "all partitions")
    assert found[-1][0] == 3, "the group has a new epoch once the partitions can be assigned"
    shared.set("share.assignment.interval.ms", "15000")
    assert shared.told("b", 0, [shared.topic]) == (3, [])
    group = shared.described()
    assert (group.group_state, group.group_epoch, group.assignment_epoch, group.assignor_name) == (
        "Stable", 4, 3, "simple",
    )  # fmt: skip
    shared.set("share.assignment.interval.ms", "0")
    for number, name in enumerate("cde", 5):
        assert shared.beat(name, 0, [shared.topic]).member_epoch == number
    for member in shared.described().members:
        shared.told(member.member_id, member.member_epoch)
    has = {m.member_id: numbers(m.assignment) for m in shared.described().members}
    assert sorted(len(numbers or ()) for numbers in has.values()) == [1, 1, 1, 1, 2]
    assert sorted(n for numbers in has.values() for n in numbers or ()) == [0, 0, 1, 1, 2, 2]
    assert shared.told("b", -1) == (-1, None)
    assert len(shared.described().members) == 4


@pytest.mark.parametrize(
    ("member", "epoch", "fields", "answer"),
    [
        ("x", 3, {}, (69, "Share group {} not found.")),
        ("x", -1, {}, (69, "Group {} not found.")),
        ("x", -2, {}, (42, "MemberEpoch is invalid.")),
        ("", 0, {"topics": ["t"]}, (42, None)),
        ("x" * 37, 0, {"topics": ["t"]}, (42, None)),
        (" ", 0, {"topics": ["t"]}, (42, "MemberId can't be empty.")),
        ("x", 0, {}, (42, "SubscribedTopicNames must be set in first request.")),
        ("x", 0, {"topics": []}, (42, "SubscribedTopicNames must be set in first request.")),
        ("x", 0, {"topics": ["t"], "rack_id": ""}, (42, "RackId can't be empty.")),
        ("x", 0, {"topics": ["t"], "group_id": " "}, (42, "GroupId can't be empty.")),
    ],
)
def test_refused_heartbeats(
    cluster: Cluster, member: str, epoch: int, fields: dict[str, Any], answer: tuple[int, str | None]
) -> None:
    shared = nobodys(cluster)
    message = None if answer[1] is None else answer[1].format(shared.group)
    assert shared.told(member, epoch, **fields) == (answer[0], message)


_SHARED: dict[str, Shared] = {}


def nobodys(cluster: Cluster) -> Shared:
    """A group that no test creates."""
    if cluster.bootstrap not in _SHARED:
        _SHARED[cluster.bootstrap] = Shared(cluster, [[0, 1]])
    return _SHARED[cluster.bootstrap]


def test_epochs_and_other_kinds_of_groups(cluster: Cluster) -> None:
    shared = Shared(cluster, [[0, 1]])
    epoch = shared.join("a")
    wrong = "member epoch ({}) than the one known by the group coordinator"
    rejoin = ". The member must abandon all its partitions and rejoin."
    assert shared.told("a", 99) == (
        110, f"The share group member has a greater {wrong.format(99)} ({epoch}){rejoin}",
    )  # fmt: skip
    previous = f", and it does not match the previous member epoch ({epoch - 1})"
    assert shared.told("a", epoch - 2) == (
        110, f"The share group member has a smaller {wrong.format(epoch - 2)} ({epoch}){previous}{rejoin}",
    )  # fmt: skip
    assert shared.told("a", epoch - 1)[0] == epoch, "the answer with the new epoch may have been lost"
    assert shared.told("b", 1) == (25, f"Member b is not a member of group {shared.group}.")
    at, group = shared.coordinator, shared.group
    described = ask(at, DescribeGroupsRequest(version=6, groups=[group], include_authorized_operations=False))
    assert described.groups[0].error_message == f"Group {group} is not a classic group."
    listed = ask(at, ListGroupsRequest(version=5, states_filter=["stable"], types_filter=["Share"])).groups
    assert [(g.protocol_type, g.group_type, g.group_state) for g in listed if g.group_id == group] == [
        ("share", "share", "Stable")
    ]
    asked = ConsumerGroupDescribeRequest(version=1, group_ids=[group], include_authorized_operations=False)
    assert ask(at, asked).groups[0].error_message == f"Group {group} is not a consumer group."
    joins = ConsumerGroupHeartbeatRequest(
        version=1, group_id=group, member_id="c", member_epoch=0, rebalance_timeout_ms=1_000,
        subscribed_topic_names=[shared.topic], topic_partitions=[],
    )  # fmt: skip
    answer = ask(at, joins)
    assert (answer.error_code, answer.error_message) == (69, f"Group {group} is not a consumer group.")
    assert [number for number in of_classic_members(shared)] == [23, 25, 25, 25, 69, 69, 69]
    delete = DeleteGroupsRequest(version=2, groups_names=[group])
    assert ask(at, delete).results[0].error_code == 68
    shared.beat("a", -1)
    assert ask(at, delete).results[0].error_code == 0
    assert shared.described().error_message == f"Group {group} not found."


def of_classic_members(shared: Shared) -> list[int]:
    """Return the errors of what members of other kinds of groups ask: to join, to sync, to stay, to leave, to
    commit (anonymously and not), to delete offsets."""
    at, group, topic = shared.coordinator, shared.group, shared.topic
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(version=6, name="range", metadata=b"")
    joins = JoinGroupRequest(
        version=6, group_id=group, session_timeout_ms=10_000, rebalance_timeout_ms=10_000, member_id="",
        group_instance_id=None, protocol_type="consumer", protocols=[protocol],
    )  # fmt: skip
    syncs = SyncGroupRequest(
        version=5, group_id=group, generation_id=1, member_id="a", group_instance_id=None,
        protocol_type="consumer", protocol_name="range", assignments=[],
    )  # fmt: skip
    stays = HeartbeatRequest(
        version=4, group_id=group, generation_id=2, member_id="a", group_instance_id=None
    )
    member = LeaveGroupRequest.MemberIdentity(version=5, member_id="a", group_instance_id=None, reason="")
    leaves = LeaveGroupRequest(version=5, group_id=group, members=[member])
    per_topic = OffsetCommitRequest.OffsetCommitRequestTopic
    row = per_topic.OffsetCommitRequestPartition(
        version=9, partition_index=0, committed_offset=1, committed_leader_epoch=-1, committed_metadata=""
    )
    of_topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
    deleted = of_topic.OffsetDeleteRequestPartition(version=0, partition_index=0)
    commits = [
        OffsetCommitRequest(
            version=9, group_id=group, generation_id_or_member_epoch=epoch, member_id=name,
            topics=[per_topic(version=9, name=topic, partitions=[row])],
        )
        for epoch, name in ((-1, ""), (2, "a"))
    ]  # fmt: skip
    deletes = OffsetDeleteRequest(
        version=0, group_id=group, topics=[of_topic(version=0, name=topic, partitions=[deleted])]
    )
    return [
        *(ask(at, request).error_code for request in (joins, syncs, stays)),
        ask(at, leaves).members[0].error_code,
        *(ask(at, request).topics[0].partitions[0].error_code for request in commits),
        ask(at, deletes).error_code,
    ]


# --- fetching and acknowledging


@pytest.fixture
def shared(cluster: Cluster) -> Shared:
    """A group that reads, and a log with the batches 0–4, 5–7 and 8–11 in partition 0."""
    shared = Shared(cluster)
    shared.join("a")
    assert [shared.produce(0, count) for count in (5, 3, 4)] == [0, 5, 8]
    return shared


def test_sessions(shared: Shared) -> None:
    with Member(shared, "a") as a:
        assert a.fetch((0, ()), epoch=1) == a.fetch(epoch=-1) == 122
        assert a.acknowledge(0, (0, 4, [ACCEPT]), epoch=0) == 123
        assert a.acknowledge(0, (0, 4, [ACCEPT]), epoch=1) == 122
        assert a.fetch((0, [(0, 1, [ACCEPT])]), epoch=0) == 42, "nothing to acknowledge yet"
        assert a.got((0, ())) == [(0, 11, 1)]
        assert a.fetch(epoch=7) == a.acknowledge(0, (0, 4, [ACCEPT]), epoch=7) == 123
        assert a.fetch() == {}, "nothing new of a partition that the session has"
        assert a.fetch((1, ())) == {1: (0, 0, [], [])}, "but of one that is new to it"
        assert a.fetch(forget=(0,)) == {}
        shared.produce(0, 1)
        assert a.fetch() == {}
        assert a.got((0, ())) == [(12, 12, 1)]
        assert a.fetch((9, ()))[9] == (3, 0, [], [])
        assert a.fetch(epoch=-1) == {}
        assert a.fetch(epoch=9) == 122
    with Member(shared, "null") as nobody:
        nobody.name = None  # type: ignore[assignment]
        assert nobody.fetch((0, ())) == nobody.acknowledge(0, (0, 1, [ACCEPT])) == 42


def test_a_broker_that_does_not_lead_names_the_leader(shared: Shared) -> None:
    with Member(shared, "a") as a:
        assert a.fetch((2, ()))[2] == (6, 0, [], [])
        assert a.acknowledge(2, (0, 1, [ACCEPT])) == a.acknowledge(1, (0, 1, [ACCEPT])) == (3, NOT_HOSTED)
        assert a.acknowledge(9, (0, 1, [ACCEPT])) == (3, None)
        assert a.acknowledge(0, (0, 1, [ACCEPT]), topic_id=uuid.uuid4()) == (100, None)


def test_two_members_acquire_release_and_acknowledge(shared: Shared) -> None:
    with Member(shared, "a") as a, Member(shared, "b") as b:
        first = a.fetch((0, ()), max_records=6, batch_size=2)
        assert first == {0: (0, 0, [(0, 4), (5, 7)], [(0, 4, 1), (5, 7, 1)])}, "whole batches of the log"
        assert b.fetch((0, ())) == {0: (0, 0, [(8, 11)], [(8, 11, 1)])}
        assert b.fetch() == {}, "everything is locked"
        assert b.acknowledge(0, (0, 4, [ACCEPT])) == (121, "Member is not the owner of batch record")
        assert a.acknowledge(0, (0, 4, [RELEASE])) == (0, None)
        assert b.got() == [(0, 4, 2)], "delivered again"
        assert b.acknowledge(0, (0, 4, [ACCEPT, RELEASE, REJECT, ACCEPT, GAP])) == (0, None)
        assert a.fetch() == {0: (0, 0, [(0, 4)], [(1, 1, 3)])}
        assert a.acknowledge(0, (0, 0, [ACCEPT])) == (0, None), "below the start offset"
        assert a.acknowledge(0, (3, 3, [ACCEPT])) == (121, STALE)
        assert shared.state() == (0, [(0, 0, 2, 2), (1, 1, 0, 2), (2, 2, 4, 2), (3, 3, 2, 2), (4, 4, 4, 2)])
        assert a.fetch((0, [(8, 11, [ACCEPT])]))[0] == (0, 121, [], [])
        assert a.fetch((0, [(1, 1, [ACCEPT]), (5, 7, [ACCEPT])]))[0] == (0, 0, [], [])
        assert b.fetch((0, [(8, 9, [ACCEPT])]), epoch=-1)[0] == (0, 0, [], [])
        wait_until(lambda: a.got() == [(10, 11, 2)], "what the session's end has released")
        assert shared.offsets()[0] == (10, 2)


def test_wrong_acknowledgements(shared: Shared) -> None:
    past = "Batch record not found. The {} offset in request is past acquired records."
    with Member(shared, "a") as a:
        assert a.got((0, ())) == [(0, 11, 1)]
        wrong: list[list[tuple[int, int, list[int]]]] = [
            [(1, 1, [7])], [(1, 1, [-1])], [(1, 1, [1, 1])], [(2, 1, [1])], [(1, 1, [])],
            [(3, 4, [1]), (1, 2, [1])], [(5, 7, [RENEW])],
        ]  # fmt: skip
        for acks in wrong:
            assert a.acknowledge(0, *acks) == (42, None), acks
        assert a.acknowledge(0, (100, 101, [1])) == (42, past.format("first"))
        assert a.acknowledge(0, (1, 101, [1])) == (42, past.format("last"))
        assert a.acknowledge(0, (1, 1, [1]), (1, 1, [1])) == (121, STALE), "all or nothing"
        assert a.acknowledge(0) == 0, "of nothing"
        assert shared.state() == (-1, []), "nothing was written"
        assert a.acknowledge(0, (0, 11, [ACCEPT])) == (0, None)


def test_at_the_delivery_limit_records_are_archived(shared: Shared) -> None:
    shared.set("share.delivery.count.limit", "2")
    with Member(shared, "a") as a:
        assert a.got((0, ()), max_records=5) == [(0, 4, 1)]
        assert a.acknowledge(0, (0, 4, [RELEASE])) == (0, None)
        assert a.got(max_records=5) == [(0, 4, 2)]
        assert a.acknowledge(0, (0, 4, [RELEASE])) == (0, None)
        assert shared.state() == (0, [(0, 4, 4, 2)])
        assert a.got() == [(5, 11, 1)]


def test_record_limit_mode(shared: Shared) -> None:
    with Member(shared, "a") as a:
        assert a.fetch((0, ()), max_records=3, share_acquire_mode=1)[0] == (0, 0, [(0, 4)], [(0, 2, 1)])
        assert a.got(max_records=3, share_acquire_mode=1) == [(3, 4, 1), (5, 5, 1)]
        assert a.got(max_records=1, share_acquire_mode=1) == [(6, 6, 1)]
        assert a.fetch(share_acquire_mode=5, epoch=a.epoch) == -1


def test_renewing(shared: Shared) -> None:
    nothing: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 0, "max_records": 0}
    with Member(shared, "a") as a:
        assert a.got((0, ())) == [(0, 11, 1)]
        assert a.acknowledge(0, (0, 11, [RENEW]), renews=True) == (0, None)
        assert a.acknowledge(0, (5, 7, [RENEW, ACCEPT, ACCEPT]), renews=True) == (0, None)
        assert a.fetch((0, [(5, 5, [RENEW])]), renews=True, epoch=a.epoch) == 42, "a fetch that renews"
        assert a.fetch((0, [(5, 5, [RENEW])]), renews=True, **nothing)[0] == (0, 0, [], [])
        shared.set("share.renew.acknowledge.enable", "false")
        refused = (121, "Renewing acquisition locks is not enabled for the group.")
        wait_until(lambda: a.acknowledge(0, (5, 5, [RENEW]), renews=True) == refused, "not enabled")


def test_a_closed_connection_releases_what_its_member_has(shared: Shared) -> None:
    with Member(shared, "b") as b:
        with Member(shared, "a", version=1) as a:
            assert a.got((0, ()), max_records=1) == [(0, 4, 1)]
            assert b.got((0, ()), max_records=1) == [(5, 7, 1)]
        wait_until(lambda: b.got(max_records=1) == [(0, 4, 2)], "the records of the other one")


def test_records_that_are_gone_are_skipped(shared: Shared) -> None:
    with Member(shared, "a") as a:
        assert a.got((0, ()), max_records=6) == [(0, 7, 1)]
        assert q.delete_records(shared.cluster.leader, shared.topic, 0, 9) == (0, 9)
        got: list[Any] = []

        def fetched() -> bool:
            got.extend(a.got() or ())
            return bool(got)

        wait_until(fetched, "what is left")
        assert got == [(8, 11, 1)]
        assert a.acknowledge(0, (0, 4, [ACCEPT])) == a.acknowledge(0, (5, 7, [ACCEPT])) == (0, None)
        assert shared.state() == (-1, [])
        assert a.acknowledge(0, (8, 11, [ACCEPT])) == (0, None)
        assert shared.state() == (9, [(9, 11, 2, 1)])


@pytest.mark.slow
def test_a_lock_ends(shared: Shared) -> None:
    shared.set("share.record.lock.duration.ms", "2000")
    with Member(shared, "a") as a, Member(shared, "b") as b:
        assert a.got((0, ())) == [(0, 11, 1)]
        began_s = time.monotonic()
        assert b.got((0, ()), max_wait_ms=28_000) == [(0, 11, 2)]
        assert time.monotonic() - began_s > 1.5
        assert a.acknowledge(0, (0, 11, [ACCEPT])) == (121, "Member is not the owner of batch record")


# --- configurations


def test_configurations_of_share_groups(cluster: Cluster) -> None:
    group = nobodys(cluster).group
    choices = "The value must be either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."

    def refused(name: str, value: str) -> str | None:
        error, message = q.incrementally_altered(
            cluster.leader, q.GROUP_RESOURCE, group, [(name, 0, value)], True
        )
        assert (error, message is None) in ((0, True), (40, False))
        return message

    reset = "share.auto.offset.reset"
    for value in ("by_duration:PT1H", "by_duration:P1DT2.5S", "latest", "earliest"):
        assert refused(reset, value) is None
    for value in (
        "none",
        "EARLIEST",
        "by_duration:",
        "by_duration:-PT1H",
        "by_duration:1h",
        "by_duration:PT",
    ):
        said = f"Invalid value `{value}` for configuration {reset}. {choices}"
        assert refused(reset, value) == f"Invalid value {value} for configuration {reset}: {said}"
    assert refused("share.isolation.level", "x") == (
        "Invalid value x for configuration share.isolation.level: "
        "String must be one of: read_committed, read_uncommitted"
    )
    lock, most = "share.record.lock.duration.ms", "group.share.max.record.lock.duration.ms"
    assert refused(lock, "999999") == f"{lock} must be less than or equal to {most}"
    assert refused(lock, "1") == f"Invalid value 1 for configuration {lock}: Value must be at least 1000"
    assert refused("share.renew.acknowledge.enable", "maybe") == (
        "Invalid value maybe for configuration share.renew.acknowledge.enable: "
        "Expected value to be either true or false"
    )
    rows = q.describe_configs(cluster.leader, q.GROUP_RESOURCE, f"no-{group}").configs
    values = {row.name: row.value for row in rows if row.name.startswith("share.")}
    del values["share.session.timeout.ms"]  # A cluster of tests has its own.
    assert values == {
        "share.assignment.interval.ms": "1000",
        reset: "latest",
        "share.delivery.count.limit": "5",
        "share.heartbeat.interval.ms": "5000",
        "share.isolation.level": "read_uncommitted",
        "share.partition.max.record.locks": "2000",
        lock: "30000",
        "share.renew.acknowledge.enable": "true",
    }


# --- the share coordinator


def test_the_share_coordinators_answers(cluster: Cluster) -> None:
    """Epochs only rise, and a later state covers an earlier one."""
    shared = nobodys(cluster)
    group, topic_id = f"state-{shared.topic}", shared.topic_id
    key = f"{group}:{_base64(topic_id)}:0"
    at = shared.find(key, SHARE)

    def row(request: Any) -> Any:
        return ask(at, request).results[0].partitions[0]

    def first(kind: Any, names: Sequence[str], version: int = 0, **fields: Any) -> Any:
        per_topic = getattr(kind, names[0])
        partition = per_topic.PartitionData(version=version, **{"partition": 0, **fields})
        found = row(
            kind(
                version=version,
                group_id=group,
                topics=[per_topic(version=version, topic_id=topic_id, partitions=[partition])],
            )
        )
        return found.error_code, *(getattr(found, name) for name in names[1:])

    def begin(epoch: int, start: int, **fields: Any) -> int:
        fields = {"state_epoch": epoch, "start_offset": start, **fields}
        return int(first(InitializeShareGroupStateRequest, ["InitializeStateData"], **fields)[0])

    def read(leader_epoch: int) -> Any:
        found = row(read_state(group, topic_id, 0, leader_epoch))
        return found.error_code, found.state_epoch, found.start_offset, batches_of(found)

    def write(state_epoch: int, leader_epoch: int, start: int, *batches: tuple[int, int, int, int]) -> int:
        kind = WriteShareGroupStateRequest.WriteStateData.PartitionData.StateBatch
        rows = [
            kind(version=1, first_offset=b[0], last_offset=b[1], delivery_state=b[2], delivery_count=b[3])
            for b in batches
        ]
        return int(
            first(
                WriteShareGroupStateRequest, ["WriteStateData"], 1,
                state_epoch=state_epoch, leader_epoch=leader_epoch, start_offset=start,
                delivery_complete_count=len(batches), state_batches=rows,
            )[0]
        )  # fmt: skip

    def summary() -> Any:
        names = [
            "ReadStateSummaryData",
            "state_epoch",
            "leader_epoch",
            "start_offset",
            "delivery_complete_count",
        ]
        return first(ReadShareGroupStateSummaryRequest, names, 1, leader_epoch=-1)

    def delete() -> int:
        return int(first(DeleteShareGroupStateRequest, ["DeleteStateData"])[0])

    assert read(0)[0] == write(0, 0, 0) == 42, "not initialized"
    assert (summary(), delete()) == ((0, 0, 0, -1, -1), 0)
    assert [begin(1, 5), begin(1, 7), begin(0, 7)] == [0, 0, 124]
    assert begin(1, 5, partition=-1) == 42 and begin(1, 5, partition=99) == 3
    assert summary() == (0, 1, 0, 7, 0)
    assert read(3) == read(-1) == (0, 1, 7, [])
    assert (read(2)[0], summary()) == (74, (0, 1, 3, 7, 0))
    assert [write(0, 3, 5), write(1, 2, 5)] == [124, 74]
    assert write(1, 3, 5, (5, 9, 0, 1), (7, 7, 2, 1)) == 0
    assert read(3)[2:] == (5, [(5, 6, 0, 1), (7, 7, 2, 1), (8, 9, 0, 1)])
    assert write(1, 3, -1, (10, 12, 4, 2), (8, 9, 2, 1)) == 0
    assert read(3)[2:] == (5, [(5, 6, 0, 1), (7, 7, 2, 1), (8, 9, 2, 1), (10, 12, 4, 2)])
    assert write(1, 4, 8) == write(5, 4, 8) == write(1, -1, 8) == 0
    assert read(4) == (0, 1, 8, [(8, 9, 2, 1), (10, 12, 4, 2)])
    assert (begin(2, 3), read(4), read(0)[0]) == (0, (0, 2, 3, []), 74)
    assert (delete(), read(0)[0], begin(0, 3), read(0)) == (0, 42, 0, (0, 0, 3, []))


def _base64(topic_id: uuid.UUID) -> str:

    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def test_finding_share_coordinators(cluster: Cluster) -> None:
    shared = nobodys(cluster)
    key = _base64(shared.topic_id)
    wrong = ["x", "a:b:c", "g:zz:0", f"g:{key}:x", f":{key}:0"]
    right = [f"g:{key}:0", f"g:{key}:-1", f"a:b:{key}:0"]
    shared.find(right[0], SHARE)

    def errors(version: int) -> list[tuple[int, str]]:
        request = FindCoordinatorRequest(version=version, key_type=SHARE, coordinator_keys=[*wrong, *right])
        return [(c.error_code, c.error_message) for c in ask(cluster.leader, request).coordinators]

    assert errors(6) == [(42, "")] * len(wrong) + [(0, "")] * len(right)
    assert errors(5) == [(42, "")] * 8


# --- offsets


def test_offsets_are_described_altered_and_deleted(cluster: Cluster) -> None:
    shared = Shared(cluster, [[0, 1], [0, 1]])
    group, topic, at = shared.group, shared.topic, shared.coordinator

    def described(name: str, topics: Sequence[tuple[str, Sequence[int]]] | None = None) -> Any:
        per_group = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
        per_topic = per_group.DescribeShareGroupOffsetsRequestTopic
        asked = None
        if topics is not None:
            asked = [per_topic(version=1, topic_name=t, partitions=list(numbers)) for t, numbers in topics]
        request = DescribeShareGroupOffsetsRequest(
            version=1, groups=[per_group(version=1, group_id=name, topics=asked)]
        )
        (found,) = ask(at, request).groups
        return found.error_code, {
            t.topic_name: sorted(
                (p.partition_index, p.start_offset, p.lag, p.error_code) for p in t.partitions
            )
            for t in found.topics
        }

    def altered(*topics: tuple[str, Sequence[tuple[int, int]]]) -> Any:
        per_topic = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
        row = per_topic.AlterShareGroupOffsetsRequestPartition
        request = AlterShareGroupOffsetsRequest(
            version=0,
            group_id=group,
            topics=[
                per_topic(
                    version=0,
                    topic_name=name,
                    partitions=[row(version=0, partition_index=n, start_offset=o) for n, o in partitions],
                )
                for name, partitions in topics
            ],
        )
        answer = ask(at, request, 20.0)
        return (
            answer.error_code,
            answer.error_message,
            {
                t.topic_name: [(p.partition_index, p.error_code) for p in t.partitions]
                for t in answer.responses
            },
        )

    def deleted(*topics: str) -> Any:
        per_topic = DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic
        request = DeleteShareGroupOffsetsRequest(
            version=0, group_id=group, topics=[per_topic(version=0, topic_name=name) for name in topics]
        )
        answer = ask(at, request, 20.0)
        return (
            answer.error_code,
            answer.error_message,
            {t.topic_name: (t.error_code, t.error_message) for t in answer.responses},
        )

    nothing = "There is no offset information to delete."
    wait_until(lambda: described(group)[0] not in NOT_YET, "the coordinator has loaded")
    assert described(group) == (0, {}), "of a group that does not exist"
    assert described(group, [(topic, [0])]) == (0, {topic: [(0, -1, -1, 0)]})
    shared.join("a")
    shared.produce(0, 5)
    shared.produce(0, 3)
    assert described(group) == (0, {topic: [(0, -1, -1, 0), (1, -1, -1, 0)]}), "nobody has read yet"
    assert described(group, [("missing", [0])]) == (0, {"missing": [(0, -1, -1, 0)]})
    assert described(group, []) == (0, {}) and described(group, [(topic, [])])[0] == -1
    with Member(shared, "a") as a:
        assert a.got((0, ())) == [(0, 7, 1)]
        assert a.acknowledge(0, (0, 1, [ACCEPT]), (3, 3, [ACCEPT])) == (0, None)
        assert described(group) == (0, {topic: [(0, 0, 5, 0), (1, -1, -1, 0)]})
        assert altered((topic, [(0, 2)])) == deleted(topic) == (68, "The group is not empty.", {})
    shared.beat("a", -1)
    assert altered((topic, [(0, 2), (1, 0), (9, 0)]), ("missing", [(0, 1)])) == (
        0, None, {topic: [(0, 0), (1, 0), (9, 3)], "missing": [(0, 3)]},
    )  # fmt: skip
    assert described(group) == (0, {topic: [(0, 2, 6, 0), (1, 0, 0, 0)]})
    assert deleted("missing", topic) == (0, None, {"missing": (3, NOT_HOSTED), topic: (0, None)})
    assert described(group) == (0, {})
    assert deleted(topic) == (0, None, {topic: (3, nothing)})
    assert shared.state()[0] == 42


def test_a_group_that_begins_elsewhere(cluster: Cluster) -> None:
    """With `latest`, from what comes then on; after AlterShareGroupOffsets, from there on."""
    shared = Shared(cluster, [[0, 1]])
    shared.set("share.auto.offset.reset", "latest")
    shared.join("a")
    shared.produce(0, 5)
    with Member(shared, "a") as a:
        assert a.got((0, ())) in ([], None)
        shared.produce(0, 3)
        assert a.got(max_wait_ms=5_000) == [(5, 7, 1)]
        assert a.acknowledge(0, (5, 7, [ACCEPT])) == (0, None)
        assert shared.offsets() == {0: (5, 0)}
