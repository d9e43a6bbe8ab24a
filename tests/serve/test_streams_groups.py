"""Streams groups (KIP-1071) over sockets: both clusters answer alike to single requests, and write the same
records."""

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import confluent_kafka
import pytest
from kafka.protocol.admin import (
    DeleteGroupsRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from kafka.protocol.consumer import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
)
from kafka.protocol.metadata import FindCoordinatorRequest

from kview.serve.apis.consumer_groups import GroupKind, described_groups
from kview.serve.apis.streams_groups import DETAILS_MAX, TOPOLOGY_MAX
from kview.simulate.coordination.java_hashes import java_map_order
from kview.simulate.features import STREAMS_VERSION
from kview.simulate.groups.consumer_records import MemberState
from kview.simulate.groups.records import decode_key, decode_value, encode_key, encode_value
from kview.simulate.groups.streams_records import (
    Role,
    StreamsCurrentKey,
    StreamsCurrentValue,
    StreamsEpochKey,
    StreamsEpochValue,
    StreamsKey,
    StreamsMemberKey,
    StreamsMemberValue,
    StreamsTargetEpochKey,
    StreamsTargetEpochValue,
    StreamsTargetKey,
    StreamsTargetValue,
    Subtopology,
    TaskKey,
    TopicInfo,
    TopologyKey,
    TopologyValue,
)
from kview.simulate.groups.streams_results import DescribedStreamsGroup
from kview.simulate.groups.streams_topology import TASKS_MAX
from kview.wire.group_messages import ConsumerGroupDescribeRequest, StreamsGroupDescribeRequest
from kview.wire.member_messages import (
    ConsumerGroupHeartbeatRequest,
    ShareGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequest,
)
from tests.real_kafka.asking import Address, ask
from tests.serve import questions as q
from tests.serve.both import Cluster
from tests.served import Served
from tests.waiting import wait_until

NOT_YET = (14, 15, 16)
"""Errors of a coordinator that is not there yet."""
TWO = [[0, 1], [0, 1]]

MISSING_SOURCE_TOPICS = 1

Told = Any
"""Epoch, status, active and standby tasks, or an error and its message."""
Tasks = Mapping[str, Sequence[int]]
"""Subtopology → the numbers of its tasks."""
Topology = StreamsGroupHeartbeatRequest.Topology
Sub = Topology.Subtopology
KeyValue = StreamsGroupHeartbeatRequest.KeyValue


def info(name: str, partitions: int = 0, replication: int = 0, **configs: str) -> Any:
    """An internal topic in a heartbeat."""
    pairs = [
        Sub.TopicInfo.KeyValue(version=0, key=key.replace("_", "."), value=value)
        for key, value in configs.items()
    ]
    return Sub.TopicInfo(
        version=0, name=name, partitions=partitions, replication_factor=replication, topic_configs=pairs
    )


def subtopology(
    name: str,
    sources: Sequence[str] = (),
    changelogs: Sequence[Any] = (),
    sinks: Sequence[str] = (),
    repartition: Sequence[Any] = (),
    together: Sequence[tuple[Sequence[int], Sequence[int]]] = (),
    regexes: Sequence[str] = (),
) -> Any:
    """A subtopology in a heartbeat. `together` are the places of source and of repartition topics that must
    have equally many partitions."""
    groups = [
        Sub.CopartitionGroup(
            version=0, source_topics=list(s), source_topic_regex=[], repartition_source_topics=list(r)
        )
        for s, r in together
    ]
    return Sub(
        version=0,
        subtopology_id=name,
        source_topics=list(sources),
        source_topic_regex=list(regexes),
        state_changelog_topics=list(changelogs),
        repartition_sink_topics=list(sinks),
        repartition_source_topics=list(repartition),
        copartition_groups=groups,
    )


def topology(*subtopologies: Any, epoch: int = 0) -> Any:
    return Topology(version=0, epoch=epoch, subtopologies=list(subtopologies))


def tasks(of: Tasks) -> list[Any]:
    kind = StreamsGroupHeartbeatRequest.TaskIds
    return [kind(version=0, subtopology_id=name, partitions=list(numbers)) for name, numbers in of.items()]


def numbers(rows: Any) -> dict[str, list[int]] | None:
    return None if rows is None else {row.subtopology_id: list(row.partitions) for row in rows}


class Streams:
    """A group and a topic of two partitions of their own, and a topology that reads it, writes to a
    repartition topic, and counts what is in that."""

    def __init__(self, cluster: Cluster, delay_ms: int = 0, interval_ms: int = 0) -> None:
        self.cluster = cluster
        self.topic = f"streams-{uuid.uuid4().hex[:8]}"
        self.group = f"group-{self.topic}"
        self.sink, self.log = f"{self.group}-by-key-repartition", f"{self.group}-counts-changelog"
        cluster.make(self.topic, TWO, {})
        request = FindCoordinatorRequest(version=3, key=self.group, key_type=0)
        wait_until(lambda: ask(cluster.leader, request).error_code == 0, "a coordinator")
        self.coordinator: Address = cluster.at(ask(cluster.leader, request).node_id)
        self.set("streams.initial.rebalance.delay.ms", delay_ms)
        self.set("streams.assignment.interval.ms", interval_ms)
        self.topology = topology(
            subtopology("0", [self.topic], sinks=[self.sink]),
            subtopology(
                "1", changelogs=[info(self.log, cleanup_policy="compact")], repartition=[info(self.sink)]
            ),
        )
        self.wait_for(self.topic)

    def wait_for(self, topic: str) -> None:
        """Wait until the coordinator, which has its own copy of the metadata, knows a topic."""
        wait_until(lambda: self.knows(topic), "the coordinator knows the topic")

    def knows(self, topic: str) -> bool:
        told = self.join("p", topology(subtopology("0", [topic])))
        self.beat("p", -1)
        ask(self.coordinator, DeleteGroupsRequest(version=2, groups_names=[self.group]))
        return len(told) == 4 and all(code != MISSING_SOURCE_TOPICS for code, _ in told[1])

    def set(self, name: str, value: object) -> None:
        """Set a configuration of the group, and wait until the leader and the coordinator know it."""
        q.set_for_group(self.group, name, str(value), self.cluster.leader, self.coordinator)

    def beat(self, member: str, epoch: int, *owned: Tasks, **fields: Any) -> Any:
        """Send a heartbeat, and return its answer. `owned` are the active and the standby tasks."""
        lists = {}
        if owned:
            active, standby = (*owned, {})[:2]
            lists = {"active_tasks": tasks(active), "standby_tasks": tasks(standby), "warmup_tasks": []}
        request = StreamsGroupHeartbeatRequest(
            version=0,
            member_id=member,
            member_epoch=epoch,
            **{"endpoint_information_epoch": -1, "group_id": self.group, **lists, **fields},
        )
        answers: list[Any] = []

        def asked() -> bool:
            answers.append(ask(self.coordinator, request))
            return answers[-1].error_code not in NOT_YET

        wait_until(asked, "an answer")
        return answers[-1]

    def told(self, member: str, epoch: int, *owned: Tasks, **fields: Any) -> Told:
        """Send a heartbeat, and return epoch, status, active and standby tasks, or the error and its
        message."""
        answer = self.beat(member, epoch, *owned, **fields)
        if answer.error_code:
            return answer.error_code, answer.error_message
        status = [(row.status_code, row.status_detail) for row in answer.status]
        return answer.member_epoch, status, numbers(answer.active_tasks), numbers(answer.standby_tasks)

    def join(self, member: str, of: Any = None, process: str = "", **fields: Any) -> Told:
        """Join with a topology, that of this group if none is given, as the only member of a process."""
        joins = {"rebalance_timeout_ms": 60_000, "process_id": process or f"process-{member}", **fields}
        return self.told(member, 0, {}, topology=of or self.topology, **joins)

    def settle(self, *members: str) -> dict[str, tuple[int, Any, Any]]:
        """Let members do what they are told, and return what each has when all have what they are to have."""
        state: dict[str, tuple[int, Any, Any]] = {}

        def settled() -> bool:
            for member in members:
                known = next(m for m in self.described().members if m.member_id == member)
                active = numbers(known.assignment.active_tasks)
                standby = numbers(known.assignment.standby_tasks)
                state[member] = known.member_epoch, active, standby
                self.told(member, known.member_epoch, active or {}, standby or {})
            return bool(self.described().group_state == "Stable")

        wait_until(settled, "a stable group")
        for member in self.described().members:
            assignment = member.assignment
            state[member.member_id] = (
                member.member_epoch,
                numbers(assignment.active_tasks),
                numbers(assignment.standby_tasks),
            )
        return state

    def made(self, member: str) -> Told:
        """Join, wait until the internal topics exist, and return what the member was told then."""
        told = [self.join(member)]

        def ready() -> bool:
            told.append(self.told(member, told[-1][0], {}, {}))
            return bool(told[-1][2])

        wait_until(ready, "tasks")
        return told[-1]

    def member(self, name: str) -> Any:
        """A member as it is described."""
        return next(member for member in self.described().members if member.member_id == name)

    def described(self, **fields: Any) -> Any:
        """The group as StreamsGroupDescribe has it."""
        request = StreamsGroupDescribeRequest(version=0, group_ids=[self.group], **fields)
        return ask(self.coordinator, request).groups[0]

    def commit(
        self, topic: str, partition: int, offset: int, member: str = "", epoch: int = -1, version: int = 9
    ) -> int:
        """Commit an offset, and return the error."""
        return self.commit_all(topic, {partition: offset}, member, epoch, version)[0]

    def commit_all(
        self, topic: str, offsets: Mapping[int, int], member: str, epoch: int, version: int = 9
    ) -> list[int]:
        """Commit offsets of a topic's partitions, and return the error of each."""
        per_topic = OffsetCommitRequest.OffsetCommitRequestTopic
        rows = [
            per_topic.OffsetCommitRequestPartition(
                version=version, partition_index=number, committed_offset=offset, committed_metadata=""
            )
            for number, offset in offsets.items()
        ]
        request = OffsetCommitRequest(
            version=version,
            group_id=self.group,
            generation_id_or_member_epoch=epoch,
            member_id=member,
            topics=[per_topic(version=version, name=topic, partitions=rows)],
        )
        return [row.error_code for row in ask(self.coordinator, request).topics[0].partitions]


@pytest.fixture
def streams(cluster: Cluster) -> Streams:
    return Streams(cluster)


def test_a_group_waits_for_its_internal_topics_which_the_coordinator_creates(streams: Streams) -> None:
    s = streams
    epoch, status, active, standby = s.join("a")
    assert (epoch, active, standby) == (2, {}, {})
    assert status == [(3, f"Internal topics are missing: {', '.join(java_map_order([s.sink, s.log]))}")]
    assert s.described().group_state == "NotReady"
    wait_until(lambda: not any(q.metadata(s.coordinator, name) for name in (s.sink, s.log)), "topics")
    told: list[Told] = []

    def ready() -> bool:
        told.append(s.told("a", 2 if not told else told[-1][0]))
        return bool(told[-1][0] == 3)

    wait_until(ready, "the new topics are noticed")
    assert told[-1] == (3, [], {"0": [0, 1], "1": [0, 1]}, {})
    assert s.told("a", 3, {"0": [0, 1], "1": [0, 1]}) == (3, [], None, None)
    configs = configs_of(s.cluster.leader, s.log)
    assert configs["cleanup.policy"] == "compact"
    group = s.described(include_authorized_operations=True)
    assert (group.group_state, group.group_epoch, group.assignment_epoch, group.authorized_operations) == (
        "Stable", 3, 3, 3400,
    )  # fmt: skip
    (member,) = group.members
    assert (member.member_id, member.member_epoch, member.topology_epoch, member.process_id) == (
        "a", 3, 0, "process-a",
    )  # fmt: skip
    assert (member.instance_id, member.rack_id, member.user_endpoint, member.is_classic) == (
        None,
        None,
        None,
        False,
    )
    assert (list(member.client_tags), list(member.task_offsets), member.client_host) == ([], [], "/127.0.0.1")
    assert numbers(member.target_assignment.active_tasks) == {"0": [0, 1], "1": [0, 1]}
    first, second = group.topology.subtopologies
    assert (first.subtopology_id, first.source_topics, first.repartition_sink_topics) == (
        "0",
        [s.topic],
        [s.sink],
    )
    assert [topic_of(t) for t in second.repartition_source_topics] == [(s.sink, 2, 0, {})]
    assert [topic_of(t) for t in second.state_changelog_topics] == [
        (s.log, 2, 0, {"cleanup.policy": "compact"})
    ]


def topic_of(row: Any) -> tuple[str, int, int, dict[str, str]]:
    return (
        row.name,
        row.partitions,
        row.replication_factor,
        {pair.key: pair.value for pair in row.topic_configs},
    )


def configs_of(address: Address, topic: str) -> dict[str, str]:
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        version=1, resource_type=2, resource_name=topic, configuration_keys=None
    )
    (result,) = ask(address, DescribeConfigsRequest(version=1, resources=[resource])).results
    return {entry.name: entry.value for entry in result.configs}


def test_tasks_move_to_a_second_process_once_the_first_has_revoked_them(streams: Streams) -> None:
    s = streams
    assert s.made("a")[2] == {"0": [0, 1], "1": [0, 1]}
    assert s.join("b") == (4, [], {}, {}), "all tasks are still the first one's"
    assert s.described().group_state == "Reconciling"
    epoch, status, active, _ = s.told("a", 3, {"0": [0, 1], "1": [0, 1]})
    assert (epoch, status) == (3, []) and sum(map(len, active.values())) == 2
    assert s.told("a", 3) == (3, [], None, None), "it has not said that it has revoked"
    assert s.told("a", 3, active) == (4, [], None, None)
    other = s.told("b", 4, {})
    assert other[0] == 4 and sum(map(len, other[2].values())) == 2
    both = {(name, n) for has in (active, other[2]) for name, found in has.items() for n in found}
    assert both == {("0", 0), ("0", 1), ("1", 0), ("1", 1)}
    assert s.described().group_state == "Stable"
    assert s.told("b", -1) == (-1, [], None, None)
    assert s.told("a", 4, active)[2] is None or s.told("a", 5, active)
    assert s.settle("a")["a"][1:] == ({"0": [0, 1], "1": [0, 1]}, {})


def test_copies_of_tasks_with_state_are_in_other_processes(streams: Streams) -> None:
    s = streams
    s.made("a")
    s.set("streams.num.standby.replicas", 1)
    wait_until(
        lambda: s.told("a", s.described().members[0].member_epoch, {"0": [0, 1], "1": [0, 1]})[0] == 4,
        "noticed",
    )
    s.join("b")
    has = s.settle("a", "b")
    (active_of_a, copies_of_a), (active_of_b, copies_of_b) = (map(flat, has[name][1:]) for name in "ab")
    assert sorted([*active_of_a, *active_of_b]) == [("0", 0), ("0", 1), ("1", 0), ("1", 1)]
    assert sorted([*copies_of_a, *copies_of_b]) == [("1", 0), ("1", 1)], "only tasks with state have copies"
    assert active_of_a.isdisjoint(copies_of_a) and active_of_b.isdisjoint(copies_of_b)


def flat(of: Tasks) -> set[tuple[str, int]]:
    return {(name, number) for name, found in of.items() for number in found}


@pytest.mark.parametrize(
    ("epoch", "fields", "answer"),
    [
        (3, {}, (69, "Streams group {} not found.")),
        (-1, {}, (69, "Group {} not found.")),
        (-2, {}, (42, "InstanceId can't be null.")),
        (-3, {}, (42, "MemberEpoch is -3, but must be greater than or equal to -2.")),
        (0, {"member_id": " "}, (42, "MemberId can't be empty.")),
        (0, {"group_id": ""}, (42, "GroupId can't be empty.")),
        (0, {"rack_id": ""}, (42, "RackId can't be empty.")),
        (0, {"instance_id": "i"}, (42, "Static membership is not yet supported.")),
        (0, {"rebalance_timeout_ms": -1}, (42, "RebalanceTimeoutMs must be provided in first request.")),
        (0, {"active_tasks": tasks({"0": [0]})}, (42, "ActiveTasks must be empty when (re-)joining.")),
        (0, {"standby_tasks": tasks({"0": [0]})}, (42, "StandbyTasks must be empty when (re-)joining.")),
        (0, {"warmup_tasks": tasks({"0": [0]})}, (42, "WarmupTasks are not supported yet.")),
        (0, {"topology": None}, (42, "Topology must be non-null when (re-)joining.")),
        (5, {"topology": topology()}, (42, "Topology can only be provided when (re-)joining.")),
        (5, {"standby_tasks": None}, (42, "If one task-type is non-null, all must be non-null.")),
        (5, {"task_offsets": []}, (42, "TaskOffsets are not supported yet.")),
        (5, {"task_end_offsets": []}, (42, "TaskEndOffsets are not supported yet.")),
        (
            0,
            {"topology": topology(subtopology("0", regexes=["a.*"]))},
            (42, "Regular expressions for source topics are not supported yet."),
        ),
        (
            0,
            {"topology": topology(subtopology("0", ["t"], changelogs=[info("c", 3)]))},
            (130, "Changelog topic c must have an undefined partition count, but it is set to 3."),
        ),
        (
            0,
            {"topology": topology(subtopology("0", ["__consumer_offsets"]))},
            (
                130,
                "Use of Kafka internal topics __consumer_offsets in a Kafka Streams topology is prohibited.",
            ),
        ),
        (
            0,
            {"topology": topology(subtopology("0", ["a!", "b"], sinks=["c?"]))},
            (130, "Topic names a!,c? are not valid topic names."),
        ),
        (0, {"topology": topology(subtopology("0"))}, (130, "No source topics found for subtopology 0")),
        (0, {"topology": topology(subtopology("0"), subtopology("0"))}, (-1, None)),
        (
            0,
            {"topology": topology(subtopology("0", repartition=[info("r")]))},
            (
                130,
                "Failed to compute number of partitions for all repartition topics, because a repartition "
                "source topic is never used as a sink topic.",
            ),
        ),
        (
            0,
            {"topology": topology(subtopology("0", repartition=[info("r")], sinks=["r"]))},
            (
                130,
                "Failed to compute number of partitions for all repartition topics. There may be loops in "
                "the topology that cannot be resolved.",
            ),
        ),
        (0, {"topology": topology(subtopology("0", repartition=[info("r", -1)]))}, (-1, None)),
        (
            0,
            {"topology": topology(subtopology("0", repartition=[info("r", 1)], together=[((), (7,))]))},
            (-1, None),
        ),
        (
            0,
            {"topology": topology(subtopology("0", repartition=[info("r", 1)], together=[((), (-1,))]))},
            (-1, None),
        ),
        (0, {"client_tags": [KeyValue(version=0, key="k", value=v) for v in "ab"]}, (-1, None)),
    ],
)
def test_refused_heartbeats(cluster: Cluster, epoch: int, fields: dict[str, Any], answer: Told) -> None:
    s = nobodys(cluster)
    usual = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": [], "rebalance_timeout_ms": 1}
    usual |= {"topology": topology(subtopology("0", ["t"])), "process_id": "p"} if epoch == 0 else {}
    member = fields.get("member_id", "x")
    asked = {**usual, **fields}
    asked.pop("member_id", None)
    message = None if answer[1] is None else answer[1].format(s.group)
    assert s.told(member, epoch, **asked) == (answer[0], message)


NOBODYS: dict[str, Streams] = {}


def nobodys(cluster: Cluster) -> Streams:
    """A group that nobody joins."""
    if cluster.bootstrap not in NOBODYS:
        NOBODYS[cluster.bootstrap] = Streams(cluster)
    return NOBODYS[cluster.bootstrap]


def test_a_group_that_is_not_ready_is_listed_as_such(streams: Streams) -> None:
    s = streams
    s.join("a", topology(subtopology("0", ["no-such-topic"])))
    assert listed(s) == [("streams", "streams", "NotReady")]
    assert [listed(s, name) for name in ("NotReady", "NOT_READY", "stable")] == [
        [], [("streams", "streams", "NotReady")], [],
    ]  # fmt: skip


def test_topics_that_are_missing_or_have_other_partitions_are_said(streams: Streams) -> None:
    s = streams
    missing = topology(subtopology("0", [s.topic, "no-such-b", "no-such-a", "no-such-c", "no-such-d"]))
    detail = "Source topics no-such-a, no-such-b, no-such-c and 1 additional topics are missing."
    assert s.join("a", missing) == (2, [(1, detail)], {}, {})
    described = s.described()
    assert (described.group_state, described.group_epoch, described.assignment_epoch) == ("NotReady", 2, 2)
    assert [sub.source_topics for sub in described.topology.subtopologies] == [
        sorted([s.topic, "no-such-b", "no-such-a", "no-such-c", "no-such-d"])
    ]
    assert s.join("b", s.topology) == (42, "Topology updates are not supported yet.")
    other = Streams(s.cluster)
    three = f"{other.topic}-three"
    s.cluster.make(three, [[0, 1]] * 3, {})
    other.wait_for(three)
    uneven = topology(subtopology("0", [other.topic, three], together=[((0, 1), ())]))
    detail = f"Following topics do not have the same number of partitions: [{{{other.topic}=2, {three}=3}}]"
    assert other.join("a", uneven) == (2, [(2, detail)], {}, {})
    fixed = Streams(s.cluster)
    name = f"{fixed.group}-r-repartition"
    apart = topology(
        subtopology("0", [fixed.topic], repartition=[info(name, 3)], sinks=[name], together=[((0,), (0,))])
    )
    detail = (
        f"Number of partitions [3] of repartition topic [{name}] doesn't match number of partitions [2] of "
        "the source topic."
    )
    assert fixed.join("a", apart) == (2, [(2, detail)], {}, {})
    found = Streams(s.cluster)
    s.cluster.make(found.log, [[0, 1]], {})
    found.wait_for(found.log)
    detail = f"Existing topic {found.log} has different number of partitions: expected 2, found 1"
    assert found.join("a") == (2, [(2, detail)], {}, {})


def test_a_topic_that_cannot_be_created_is_said_with_the_next_heartbeat(streams: Streams) -> None:
    s, name = streams, f"{streams.group}-r-repartition"
    wrong = topology(
        subtopology("0", [s.topic], sinks=[name]),
        subtopology("1", repartition=[info(name, 0, 9)]),
    )
    told = [s.join("a", wrong)]

    def failed() -> bool:
        told.append(s.told("a", 2))
        return "Creation failed" in told[-1][1][0][1]

    wait_until(failed, "the reason")
    assert told[-1][1] == [
        (
            3,
            f"Internal topics are missing: {name}; Creation failed: {name} (Unable to replicate the "
            "partition 9 time(s): The target replication factor of 9 cannot be reached because only 3 "
            "broker(s) are registered or some brokers have all their log directories cordoned.).",
        )
    ]


def test_epochs_fence_members(streams: Streams) -> None:
    s = streams
    simple = topology(subtopology("0", [s.topic]))
    assert s.join("a", simple) == (2, [], {"0": [0, 1]}, {})
    greater = (
        "The streams group member has a greater member epoch (9) than the one known by the group coordinator "
        "(2). The member must abandon all its partitions and rejoin."
    )
    assert s.told("a", 9) == (110, greater)
    smaller = greater.replace("greater", "smaller").replace("(9)", "(1)")
    assert s.told("a", 1) == (110, smaller)
    assert s.told("a", 0, {}, topology=simple, rebalance_timeout_ms=60_000, process_id="process-a") == (
        2, [], {"0": [0, 1]}, {},
    ), "who joins again as before is told all"  # fmt: skip
    assert s.told("b", 2) == (25, f"Member b is not a member of group {s.group}.")
    assert s.told("b", -1) == (25, f"Member b is not a member of group {s.group}.")
    assert s.told("a", 2, {"0": [0, 1]}, rack_id="r1") == (3, [], None, None), "what it says has changed"
    assert s.told("a", 2, {"0": [1]}) == (3, [], None, None), "the answer may have been lost"
    assert s.told("a", 3, {"7": [0]}) == (42, "Subtopology 7 does not exist in the topology.")
    wrong = "Task 2 for subtopology 0 is invalid. Number of tasks for this subtopology: 2"
    assert s.told("a", 3, {"0": [2]}) == (42, wrong)
    stale = topology(subtopology("0", [s.topic]), epoch=0)
    newer = topology(subtopology("0", [s.topic]), epoch=1)
    assert s.join("c", newer) == (42, "Topology updates are not supported yet.")
    assert s.join("c", stale)[0] == 4


def test_tasks_that_are_named_twice_are_refused_while_they_matter(streams: Streams) -> None:
    s = streams
    simple = topology(subtopology("0", [s.topic]))
    s.join("a", simple)
    twice = {"active_tasks": tasks({"0": [0]}) + tasks({"0": [1]}), "standby_tasks": [], "warmup_tasks": []}
    assert s.told("a", 2, **twice) == (2, [], None, None), "it has what it is to have"
    s.join("b", simple)
    assert s.told("a", 2, **twice) == (-1, None)
    assert s.told("a", 2, {"0": [0, 1]})[0] == 2


def test_an_older_topology_is_stale(streams: Streams) -> None:
    s = streams
    newer = topology(subtopology("0", [s.topic]), epoch=3)
    assert s.join("a", newer) == (2, [], {"0": [0, 1]}, {})
    older = topology(subtopology("0", ["other"]), epoch=1)
    status = [(0, "The member's topology epoch 1 is behind the group's topology epoch 3.")]
    assert s.join("b", older) == (3, status, {}, {})
    assert s.described().topology.epoch == 3


def test_a_shutdown_is_told_to_all_until_the_group_is_empty(streams: Streams) -> None:
    s = streams
    simple = topology(subtopology("0", [s.topic]))
    s.join("a", simple)
    s.join("b", simple)
    detail = (
        "Streams group member b encountered a fatal error and requested a shutdown for the entire "
        "application."
    )
    assert s.told("b", 3, shutdown_application=True)[1] == [(4, detail)]
    assert s.told("a", 2)[1] == [(4, detail)]
    s.told("b", -1)
    assert s.told("a", 2)[1] == [(4, detail)]
    s.told("a", -1)
    assert s.join("c", simple)[1] == []


def test_endpoints_of_all_members_are_told_when_they_change(streams: Streams) -> None:
    s = streams
    simple = topology(subtopology("0", [s.topic]))
    first = s.beat("a", 0, {}, topology=simple, rebalance_timeout_ms=1000, process_id="p",
                   user_endpoint=endpoint("here", 1))  # fmt: skip
    assert (first.endpoint_information_epoch, endpoints(first)) == (
        0, [("here", 1, [(s.topic, [0, 1])], [])],
    )  # fmt: skip
    again = s.beat("a", 2, endpoint_information_epoch=0)
    assert (again.endpoint_information_epoch, endpoints(again)) == (0, None), "a new group begins again"
    other = s.beat("b", 0, {}, topology=simple, rebalance_timeout_ms=1000, process_id="q",
                   user_endpoint=endpoint("there", 2))  # fmt: skip
    assert other.endpoint_information_epoch == 1
    assert endpoints(other) == [("here", 1, [(s.topic, [0, 1])], []), ("there", 2, [], [])]
    again = s.beat("a", 2, endpoint_information_epoch=0)
    assert (again.endpoint_information_epoch, [row[:2] for row in endpoints(again) or ()]) == (
        2, [("there", 2), ("here", 1)],
    )  # fmt: skip
    missing = Streams(s.cluster)
    told = missing.join("a", topology(subtopology("0", ["no-such-topic"])), user_endpoint=endpoint("here", 1))
    assert told == (-1, None), "as in Kafka, which fails here"


def endpoint(host: str, port: int) -> Any:
    return StreamsGroupHeartbeatRequest.Endpoint(version=0, host=host, port=port)


def endpoints(answer: Any) -> list[Any] | None:
    if answer.partitions_by_user_endpoint is None:
        return None
    return [
        (
            row.user_endpoint.host,
            row.user_endpoint.port,
            [(t.topic, list(t.partitions)) for t in row.active_partitions],
            [(t.topic, list(t.partitions)) for t in row.standby_partitions],
        )
        for row in answer.partitions_by_user_endpoint
    ]


def test_a_new_group_waits_for_more_members(cluster: Cluster) -> None:
    s = Streams(cluster, delay_ms=1_500)
    simple = topology(subtopology("0", [s.topic]))
    delayed = [(5, "Assignment delayed due to the configured initial rebalance delay.")]
    assert s.join("a", simple) == (1, delayed, {}, {})
    assert s.join("b", simple) == (1, delayed, {}, {})
    assert s.described().group_state == "Assigning"
    wait_until(lambda: s.described().assignment_epoch == 3, "the delay is over")
    assert s.told("a", 1, {})[:2] == (3, [])
    assert s.told("b", 1, {})[:2] == (3, [])


def test_assignments_are_an_interval_apart(cluster: Cluster) -> None:
    s = Streams(cluster, interval_ms=1_500)
    simple = topology(subtopology("0", [s.topic]))
    assert s.join("a", simple) == (2, [], {"0": [0, 1]}, {})
    early = [(5, "Assignment delayed due to the configured assignment interval.")]
    assert s.join("b", simple) == (2, early, {}, {})
    wait_until(lambda: s.told("b", s.member("b").member_epoch, {})[0] == 3, "the interval is over")


def test_records_are_kafkas(streams: Streams) -> None:
    """Each record reads back to the same bytes, and says the same but for hashes and times."""
    s = streams
    s.made("a")
    tags = [KeyValue(version=0, key=key, value=value) for key, value in (("z", "1"), ("a", "2"))]
    s.join("b", rack_id="r", user_endpoint=endpoint("here", 65_535), client_tags=tags)
    kept = s.told("a", 3, {"0": [0, 1], "1": [0, 1]})[2]
    s.told("a", 3, kept)
    s.told("b", 4, {})
    s.told("b", -1)
    s.told("a", -1)
    ask(s.coordinator, DeleteGroupsRequest(version=2, groups_names=[s.group]))
    found = list(records(s))
    lives = [i for i, (key, value) in enumerate(found) if isinstance(key, TopologyKey) and value is None]
    # A real cluster may have compacted what was there before.
    written = found[lives[-2] + 1 if len(lives) > 1 else 0 :]
    moved = {name: sorted({0, 1}.difference(kept.get(name, []))) for name in "01"}
    moved = {name: numbers for name, numbers in moved.items() if numbers}
    assert [(key, brief(value)) for key, value in written] == expected_records(s, kept, moved)


def expected_records(s: Streams, kept: Tasks, moved: Tasks) -> list[tuple[Any, Any]]:
    """The records of a member `a`, of a member `b` to which tasks move from it, and of their leaving."""
    all_tasks = {name: [0, 1] for name in "01"}
    client, configs = ("kview-tests", "/127.0.0.1"), (("num.standby.replicas", "0"),)
    a, b, compact = (s.group, "a"), (s.group, "b"), (("cleanup.policy", "compact"),)
    reads = Subtopology("0", (s.topic,), (), (), (s.sink,), (), ())
    log, sink = TopicInfo(s.log, 0, 0, compact), TopicInfo(s.sink, 0, 0, ())
    counts = Subtopology("1", (), (), (log,), (), (sink,), ())
    of_b = (None, "r", *client, 60_000, 0, "process-b", ("here", 65_535), (("a", "2"), ("z", "1")))

    def epochs(epoch: int, validated: int = 0) -> tuple[Any, Any]:
        return StreamsEpochKey(s.group), StreamsEpochValue(epoch, 1, validated, configs)

    def target(epoch: int) -> tuple[Any, Any]:
        return StreamsTargetEpochKey(s.group), StreamsTargetEpochValue(epoch, 1)

    def goes(member: tuple[str, str]) -> list[tuple[Any, Any]]:
        return [(kind(*member), None) for kind in (StreamsCurrentKey, StreamsTargetKey, StreamsMemberKey)]

    unreleased, unrevoked = MemberState.UNRELEASED_PARTITIONS, MemberState.UNREVOKED_PARTITIONS
    return [
        (StreamsMemberKey(*a), StreamsMemberValue(None, None, *client, 60_000, 0, "process-a")),
        (TopologyKey(s.group), TopologyValue(0, (reads, counts))),
        epochs(2, validated=-1),
        (StreamsTargetKey(*a), StreamsTargetValue({})),
        target(2),
        (StreamsCurrentKey(*a), StreamsCurrentValue(2, 0)),
        epochs(3),
        (StreamsTargetKey(*a), StreamsTargetValue(active(all_tasks))),
        target(3),
        (StreamsCurrentKey(*a), StreamsCurrentValue(3, 2, assigned=since(3, all_tasks))),
        (StreamsMemberKey(*b), StreamsMemberValue(*of_b)),
        epochs(4),
        (StreamsTargetKey(*a), StreamsTargetValue(active(kept))),
        (StreamsTargetKey(*b), StreamsTargetValue(active(moved))),
        target(4),
        (StreamsCurrentKey(*b), StreamsCurrentValue(4, 0, unreleased)),
        (StreamsCurrentKey(*a), StreamsCurrentValue(3, 3, unrevoked, since(3, kept), since(3, moved))),
        (StreamsCurrentKey(*a), StreamsCurrentValue(4, 3, assigned=since(3, kept))),
        (StreamsCurrentKey(*b), StreamsCurrentValue(4, 4, assigned=since(4, moved))),
        *goes(b),
        epochs(5),
        *goes(a),
        epochs(6),
        *((kind(s.group), None) for kind in (StreamsTargetEpochKey, StreamsEpochKey, TopologyKey)),
    ]


def active(of: Tasks) -> dict[TaskKey, frozenset[int]]:
    return {TaskKey(Role.ACTIVE, name): frozenset(found) for name, found in of.items()}


def since(epoch: int, of: Tasks) -> dict[TaskKey, dict[int, int]]:
    return {TaskKey(Role.ACTIVE, name): dict.fromkeys(found, epoch) for name, found in of.items()}


def records(s: Streams) -> Iterator[tuple[Any, Any]]:
    """Yield the group's records as they are in `__consumer_offsets`, decoded."""
    client = confluent_kafka.Consumer({"bootstrap.servers": s.cluster.bootstrap, "group.id": "none"})
    topic = "__consumer_offsets"
    count = len(client.list_topics(topic, timeout=10).topics[topic].partitions)
    ends = {
        n: client.get_watermark_offsets(confluent_kafka.TopicPartition(topic, n))[1] for n in range(count)
    }
    client.assign([confluent_kafka.TopicPartition(topic, n, 0) for n in ends if ends[n]])
    left = {n for n in ends if ends[n]}
    deadline = time.monotonic() + 30
    while left and time.monotonic() < deadline:
        for message in client.consume(500, timeout=0.5):
            number, raw, value = message.partition(), message.key(), message.value()
            assert number is not None
            if (message.offset() or 0) >= ends[number] - 1:
                left.discard(number)
            if raw is None or not raw.startswith(bytes((0,))) or not 17 <= raw[1] <= 23:
                continue
            key = decode_key(raw)
            assert isinstance(key, StreamsKey) and encode_key(key) == raw
            if key.group != s.group:
                continue
            decoded = None if value is None else decode_value(key, value)
            if decoded is not None:
                assert encode_value(decoded) == value, (key, value)
            yield key, decoded
    client.close()
    assert not left


def brief(value: Any) -> Any:
    """A value without hashes and times."""
    if isinstance(value, StreamsEpochValue):
        return value._replace(metadata_hash=1 if value.metadata_hash else 0)
    if isinstance(value, StreamsTargetEpochValue):
        return value._replace(calculated_ms=1 if value.calculated_ms else 0)
    return value


# --- other requests about streams groups


def test_a_group_is_of_one_kind(streams: Streams) -> None:
    """A streams group with members is nothing to the APIs of other groups, and theirs nothing to its own."""
    s = streams
    simple = topology(subtopology("0", [s.topic]))
    s.join("a", simple)
    consumer = ConsumerGroupHeartbeatRequest(
        version=1, group_id=s.group, member_id="c", member_epoch=0, rebalance_timeout_ms=1_000,
        subscribed_topic_names=[s.topic], topic_partitions=[],
    )  # fmt: skip
    answer = ask(s.coordinator, consumer)
    answer_to_a_consumer = f"Group {s.group} is not a consumer group."
    assert (answer.error_code, answer.error_message) == (69, answer_to_a_consumer)
    share = ShareGroupHeartbeatRequest(
        version=1, group_id=s.group, member_id="c", member_epoch=0, subscribed_topic_names=[s.topic]
    )
    answer = ask(s.coordinator, share)
    assert (answer.error_code, answer.error_message) == (69, f"Group {s.group} is not a share group.")
    described = ask(s.coordinator, ConsumerGroupDescribeRequest(version=1, group_ids=[s.group])).groups[0]
    assert (described.error_code, described.error_message) == (
        69,
        f"Group {s.group} is not a consumer group.",
    )
    classic = ask(s.coordinator, DescribeGroupsRequest(version=6, groups=[s.group])).groups[0]
    assert (classic.error_code, classic.group_state, classic.error_message) == (
        69, "Dead", f"Group {s.group} is not a classic group.",
    )  # fmt: skip
    assert join_classic(s) == 23
    beat = HeartbeatRequest(version=4, group_id=s.group, generation_id=2, member_id="a")
    assert ask(s.coordinator, beat).error_code == 25
    leaving = LeaveGroupRequest.MemberIdentity(version=3, member_id="a")
    left = ask(s.coordinator, LeaveGroupRequest(version=3, group_id=s.group, members=[leaving]))
    assert left.error_code == 25 or [row.error_code for row in left.members] == [25]
    assert listed(s) == [("streams", "streams", "Stable")]
    assert deleted(s) == 68
    s.told("a", -1)
    assert listed(s) == [("streams", "streams", "Empty")]
    assert s.described().group_state == "Empty"
    assert join_classic(s) == 79, "without members it becomes a classic group"
    wait_until(lambda: s.described().error_code == 69, "that is committed")
    other = Streams(s.cluster)
    assert join_classic(other) == 79
    assert other.join("a", topology(subtopology("0", [other.topic])))[0] == 2


def join_classic(s: Streams) -> int:
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(version=5, name="range", metadata=b"")
    request = JoinGroupRequest(
        version=5, group_id=s.group, session_timeout_ms=10_000, rebalance_timeout_ms=10_000, member_id="",
        protocol_type="consumer", protocols=[protocol],
    )  # fmt: skip
    return int(ask(s.coordinator, request).error_code)


def listed(s: Streams, *states: str) -> list[tuple[str, str, str]]:
    request = ListGroupsRequest(version=5, types_filter=["Streams"], states_filter=list(states))
    groups = ask(s.coordinator, request).groups
    return [(g.group_type, g.protocol_type, g.group_state) for g in groups if g.group_id == s.group]


def deleted(s: Streams) -> int:
    (result,) = ask(s.coordinator, DeleteGroupsRequest(version=2, groups_names=[s.group])).results
    return int(result.error_code)


def test_offsets_are_committed_by_members_in_their_epochs(streams: Streams) -> None:
    s = streams
    simple = topology(subtopology("0", [s.topic]))
    s.join("a", simple)
    s.told("a", 2, {"0": [0, 1]}, rack_id="r")
    assert s.commit(s.topic, 0, 5, "a", 3) == 0
    assert s.commit(s.topic, 1, 6, "a", 2) == 0, "it has had that since epoch 2"
    assert s.commit(s.topic, 0, 7, "a", 1) == 113
    assert s.commit(s.topic, 0, 7, "a", 4) == 113
    assert s.commit(s.topic, 0, 7, "a", 3, version=8) == 35
    assert s.commit(s.topic, 0, 7, "b", 3) == 25
    assert s.commit(s.topic, 0, 7) == 25, "who is no member cannot commit while there are some"
    assert [fetched(s, *who) for who in ((None, -1), ("a", 3), ("a", 2), ("b", 3))] == [
        (0, [5, 6]), (0, [5, 6]), (113, []), (25, []),
    ]  # fmt: skip
    per_topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
    row = per_topic.OffsetDeleteRequestPartition(version=0, partition_index=0)
    request = OffsetDeleteRequest(
        version=0, group_id=s.group, topics=[per_topic(version=0, name=s.topic, partitions=[row])]
    )
    answer = ask(s.coordinator, request)
    assert (answer.error_code, answer.topics[0].partitions[0].error_code) == (0, 86)
    s.told("a", -1)
    assert s.commit(s.topic, 0, 8) == 0
    assert ask(s.coordinator, request).topics[0].partitions[0].error_code == 0
    assert fetched(s, None, -1) == (0, [-1, 6])
    assert deleted(s) == 0
    assert fetched(s, None, -1) == (0, [-1, -1]) and s.described().error_code == 69


def test_one_offset_that_is_not_a_members_refuses_all_in_the_request(streams: Streams) -> None:
    s = streams
    simple = topology(subtopology("0", [s.topic]))
    s.join("a", simple)
    s.join("b", simple)
    (kept,) = s.told("a", 2, {"0": [0, 1]})[2]["0"]
    s.told("a", 2, {"0": [kept]})
    assert s.commit_all(s.topic, {kept: 5, 1 - kept: 6}, "a", 2) == [113, 113]
    assert fetched(s, None, -1) == (0, [-1, -1])
    assert s.commit_all(s.topic, {kept: 5}, "a", 2) == [0]


def fetched(s: Streams, member: str | None, epoch: int) -> tuple[int, list[int]]:
    per_group = OffsetFetchRequest.OffsetFetchRequestGroup
    of_topic = per_group.OffsetFetchRequestTopics(version=9, name=s.topic, partition_indexes=[0, 1])
    asked = per_group(version=9, group_id=s.group, member_id=member, member_epoch=epoch, topics=[of_topic])
    group = ask(s.coordinator, OffsetFetchRequest(version=9, groups=[asked])).groups[0]
    return group.error_code, [row.committed_offset for topic in group.topics for row in topic.partitions]


def test_configurations_of_a_group(streams: Streams) -> None:
    s = streams
    kind = DescribeConfigsRequest.DescribeConfigsResource
    resource = kind(version=4, resource_type=q.GROUP_RESOURCE, resource_name=s.group, configuration_keys=None)
    request = DescribeConfigsRequest(version=4, resources=[resource], include_synonyms=True)
    (result,) = ask(s.coordinator, request).results
    rows = {
        entry.name: (entry.value, entry.config_source, [synonym.name for synonym in entry.synonyms])
        for entry in result.configs
        if entry.name.startswith("streams.")
    }
    own, default = 8, 5
    broker = "group.streams"
    assert rows == {
        "streams.assignment.interval.ms": (
            "0", own, ["streams.assignment.interval.ms", f"{broker}.assignment.interval.ms"],
        ),
        "streams.heartbeat.interval.ms": ("5000", default, [f"{broker}.heartbeat.interval.ms"]),
        "streams.initial.rebalance.delay.ms": (
            "0", own, ["streams.initial.rebalance.delay.ms", f"{broker}.initial.rebalance.delay.ms"],
        ),
        "streams.num.standby.replicas": ("0", default, [f"{broker}.num.standby.replicas"]),
        "streams.session.timeout.ms": ("45000", default, [f"{broker}.session.timeout.ms"]),
    }  # fmt: skip
    for name, value, error in (
        ("num.standby.replicas", "3", 40),
        ("num.standby.replicas", "-1", 40),
        ("heartbeat.interval.ms", "1", 40),
        ("session.timeout.ms", "1000", 40),
        ("initial.rebalance.delay.ms", "900000", 0),
    ):
        asked = [(f"streams.{name}", 0, value)]
        assert q.incremental_alter(s.cluster.leader, q.GROUP_RESOURCE, s.group, asked) == error, name


def test_a_huge_topology_or_assignment_is_refused(shared_simulated: Served) -> None:
    """In the simulated cluster, whose other clients do not wait for it."""
    huge = topology(subtopology("0", [f"t{n}" for n in range(TOPOLOGY_MAX)]))
    places = topology(subtopology("0", ["t"], together=[([0] * (DETAILS_MAX + 1), ())]))
    configured = info("c")
    configured.topic_configs = [Sub.TopicInfo.KeyValue(version=0, key="k", value="v")] * (DETAILS_MAX + 1)
    for fields in (
        {"topology": huge},
        {"topology": places},
        {"topology": topology(subtopology("0", ["t"], changelogs=[configured]))},
        {"client_tags": [KeyValue(version=0, key=key, value="") for key in "k" * (DETAILS_MAX + 1)]},
        {"active_tasks": tasks({"0": range(TASKS_MAX)})},
    ):
        request = StreamsGroupHeartbeatRequest(
            version=0, group_id="huge", member_id="m", rebalance_timeout_ms=1, process_id="p",
            standby_tasks=[], warmup_tasks=[], **{"active_tasks": [], **fields},
        )  # fmt: skip
        answer = ask(shared_simulated.addresses[0], request)
        assert answer.error_code == -1 and " has more than " in answer.error_message


def test_a_group_that_is_not_described_is_a_step_as_others_are() -> None:
    """So other clients do not wait for a list of a million names."""
    call: Any = SimpleNamespace(
        request=SimpleNamespace(group_ids=["a", "b", "c"]), image=SimpleNamespace(features={})
    )
    kind = GroupKind(
        STREAMS_VERSION,
        DescribedStreamsGroup,
        lambda call, group: (),
        lambda call, group, member: None,
        lambda call, group, members: group.error_code,
    )
    assert len(list(described_groups(call, kind, lambda name: None))) == 3
