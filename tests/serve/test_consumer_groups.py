"""Groups of the consumer protocol (KIP-848) over sockets: both clusters answer alike, to single requests and
to librdkafka."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import confluent_kafka
import pytest
from kafka.protocol.admin import (
    DeleteGroupsRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    ListGroupsRequest,
)
from kafka.protocol.consumer import OffsetCommitRequest, OffsetFetchRequest
from kafka.protocol.metadata import ApiVersionsRequest, FindCoordinatorRequest, MetadataRequest

from kview.wire.group_messages import ConsumerGroupDescribeRequest
from kview.wire.member_messages import ConsumerGroupHeartbeatRequest
from tests.real_kafka.asking import Address, ask
from tests.serve import questions as q
from tests.serve.both import Cluster
from tests.serve.clients import consumer, deliver, new_consumer, producer, values_of
from tests.served import Served
from tests.waiting import wait_until

FOUR = [[0, 1, 2]] * 4
NOT_YET = (14, 15, 16)
"""Errors of a coordinator that is not there yet."""
HEARTBEAT = "consumer.heartbeat.interval.ms"
CLASSIC, CONSUMER = 0, 1
"""The member types in ConsumerGroupDescribe."""


class Asker:
    """Asks about one group and one topic of four partitions, with its own names for both."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.topic = f"kip-{uuid.uuid4().hex[:8]}"
        self.group = f"group-{self.topic}"
        cluster.make(self.topic, FOUR, {})
        request = FindCoordinatorRequest(version=3, key=self.group, key_type=0)
        wait_until(lambda: ask(cluster.leader, request).error_code == 0, "a coordinator")
        self.coordinator: Address = cluster.at(ask(cluster.leader, request).node_id)
        self.topic_id = ask(cluster.leader, _metadata(self.topic)).topics[0].topic_id
        wait_until(self._knows_the_topic, "the coordinator knows the topic")

    def _knows_the_topic(self) -> bool:
        """Let a member join a group that is deleted again. A coordinator has its own copy of the metadata."""
        joined = self.join("probe")
        self.beat("probe", -1)
        ask(self.coordinator, DeleteGroupsRequest(version=2, groups_names=[self.group]))
        return bool(joined == (2, [0, 1, 2, 3]))

    def beat(self, member_id: str, epoch: int, owned: Sequence[int] | None = None, **fields: Any) -> Any:
        """Send a heartbeat, and return the answer's error, epoch and partitions (None if not told)."""
        version = fields.pop("version", 1)
        partitions = None
        if owned is not None:
            of_topic = ConsumerGroupHeartbeatRequest.TopicPartitions
            one = of_topic(version=version, topic_id=self.topic_id, partitions=list(owned))
            partitions = [one] if owned else []
        request = ConsumerGroupHeartbeatRequest(
            version=version,
            group_id=self.group,
            member_id=member_id,
            member_epoch=epoch,
            topic_partitions=partitions,
            **{"rebalance_timeout_ms": -1, **fields},
        )
        answer = self._until_it_is_there(request)
        if answer.error_code:
            return answer.error_code, answer.error_message
        told = answer.assignment
        got = None if told is None else sorted(n for t in told.topic_partitions for n in t.partitions)
        return answer.member_epoch, got

    def join(self, member_id: str, **fields: Any) -> Any:
        """Join with the topic."""
        subscription = {} if "subscribed_topic_regex" in fields else {"subscribed_topic_names": [self.topic]}
        return self.beat(member_id, 0, (), **{"rebalance_timeout_ms": 60_000, **subscription, **fields})

    def _until_it_is_there(self, request: Any) -> Any:
        answers: list[Any] = []

        def asked() -> bool:
            answers.append(ask(self.coordinator, request))
            return answers[-1].error_code not in NOT_YET

        wait_until(asked, "an answer")
        return answers[-1]

    def described(self) -> Any:
        """The group as ConsumerGroupDescribe has it."""
        request = ConsumerGroupDescribeRequest(
            version=1, group_ids=[self.group], include_authorized_operations=False
        )
        return ask(self.coordinator, request).groups[0]

    def summary(self) -> tuple[str, int, int, Mapping[str, Any]]:
        """State, epochs, and by member its epoch, what it has and what it is to have."""
        group = self.described()
        members = {
            m.member_id: (m.member_epoch, _numbers(m.assignment), _numbers(m.target_assignment))
            for m in group.members
        }
        return group.group_state, group.group_epoch, group.assignment_epoch, members

    def interval_ms(self) -> int:
        """Let a member join and leave, and return the interval that it is told."""
        answers = []
        for epoch in (0, -1):
            request = ConsumerGroupHeartbeatRequest(
                version=1, group_id=self.group, member_id="any", member_epoch=epoch,
                rebalance_timeout_ms=1_000, subscribed_topic_names=[self.topic], topic_partitions=[],
            )  # fmt: skip
            answers.append(self._until_it_is_there(request))
        return int(answers[0].heartbeat_interval_ms)

    def assign_every(self, interval_ms: int) -> None:
        """Set the least time between two assignments of the group."""
        name, leader = "consumer.assignment.interval.ms", self.cluster.leader
        q.set_for_group(self.group, name, str(interval_ms), leader, self.coordinator)

    def hurry(self) -> None:
        """Let members of the group send heartbeats twice a second."""
        assert alter(self.cluster.leader, self.group, "500") == (0, None)
        wait_until(lambda: self.interval_ms() == 500, "the coordinator knows it")

    def commit(self, member_id: str, epoch: int, partition: int, version: int = 9) -> int:
        """Commit an offset, and return the error."""
        per_topic = OffsetCommitRequest.OffsetCommitRequestTopic
        per_partition = per_topic.OffsetCommitRequestPartition
        row = per_partition(
            version=version, partition_index=partition, committed_offset=1, committed_leader_epoch=-1,
            committed_metadata="",
        )  # fmt: skip
        request = OffsetCommitRequest(
            version=version, group_id=self.group, generation_id_or_member_epoch=epoch, member_id=member_id,
            topics=[per_topic(version=version, name=self.topic, partitions=[row])],
        )  # fmt: skip
        return int(ask(self.coordinator, request).topics[0].partitions[0].error_code)

    def fetch(self, member_id: str | None, epoch: int) -> int:
        """Fetch an offset, and return the group's error."""
        per_group = OffsetFetchRequest.OffsetFetchRequestGroup
        topic = per_group.OffsetFetchRequestTopics(version=9, name=self.topic, partition_indexes=[0])
        group = per_group(
            version=9, group_id=self.group, member_id=member_id, member_epoch=epoch, topics=[topic]
        )
        answer = ask(self.coordinator, OffsetFetchRequest(version=9, groups=[group], require_stable=False))
        return int(answer.groups[0].error_code)


def _metadata(topic: str) -> Any:
    return MetadataRequest(
        version=12,
        topics=[MetadataRequest.MetadataRequestTopic(version=12, topic_id=None, name=topic)],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=False,
    )


def _numbers(assignment: Any) -> list[int]:
    return sorted(number for topic in assignment.topic_partitions for number in topic.partitions)


def alter(leader: Address, group: str, interval_ms: str) -> tuple[int, str | None]:
    """Set a group's heartbeat interval, and return the error and its message."""
    return q.incrementally_altered(leader, q.GROUP_RESOURCE, group, [(HEARTBEAT, 0, interval_ms)])


# --- single requests


def test_the_feature_is_offered(cluster: Cluster) -> None:
    client = {"client_software_name": "kview", "client_software_version": "1"}
    answer = ask(cluster.leader, ApiVersionsRequest(version=4, **client))
    finalized = {f.name: (f.min_version_level, f.max_version_level) for f in answer.finalized_features}
    supported = {f.name: (f.min_version, f.max_version) for f in answer.supported_features}
    assert finalized["group.version"] == (1, 1) and supported["group.version"] == (0, 1)
    apis = {api.api_key: (api.min_version, api.max_version) for api in answer.api_keys}
    assert apis[68] == apis[69] == (0, 1)


def test_two_members_reconcile_step_by_step(cluster: Cluster) -> None:
    asker = Asker(cluster)
    asker.assign_every(15_000)
    assert asker.join("a") == (2, [0, 1, 2, 3])
    assert asker.join("b") == (2, [])
    everything = {"a": (2, [0, 1, 2, 3], [0, 1, 2, 3])}
    assert asker.summary() == ("Assigning", 3, 2, {**everything, "b": (2, [], [])})
    asker.assign_every(0)
    assert asker.beat("b", 2) == (3, None)
    state, epoch, target_epoch, members = asker.summary()
    assert (state, epoch, target_epoch) == ("Reconciling", 3, 3)
    stays, goes = members["a"][2], members["b"][2]
    assert (len(stays), sorted(stays + goes)) == (2, [0, 1, 2, 3])
    assert asker.beat("a", 2) == (2, stays)
    assert asker.summary()[3]["a"] == (2, [0, 1, 2, 3], stays), "what it must revoke is still its own"
    assert asker.commit("a", 2, goes[0]) == 0
    assert asker.beat("a", 2, stays) == (3, None)
    assert asker.commit("a", 2, goes[0]) == 113
    assert asker.commit("a", 2, stays[0]) == 0, "an older epoch, in which it had the partition"
    assert asker.beat("b", 3) == (3, goes)
    assert asker.summary() == ("Stable", 3, 3, {"a": (3, stays, stays), "b": (3, goes, goes)})
    assert asker.beat("a", 1)[0] == asker.beat("a", 9)[0] == 110
    assert [asker.commit("a", epoch, 0) for epoch in (1, 4, -1)] == [113, 113, 113]
    assert asker.commit("a", 3, 0, version=8) == 35
    assert [asker.fetch(*who) for who in (("a", 3), ("a", 2), ("x", 3), (None, -1), ("", -1))] == [
        0, 113, 25, 0, 25,
    ]  # fmt: skip
    assert asker.beat("a", -1) == (-1, None)
    assert asker.beat("b", 3) == (4, [0, 1, 2, 3])
    asker.assign_every(15_000)
    assert asker.beat("b", -1) == (-1, None)
    assert asker.summary() == ("Empty", 5, 4, {})


def test_static_members(cluster: Cluster) -> None:
    asker = Asker(cluster)
    assert asker.join("a", instance_id="i") == (2, [0, 1, 2, 3])
    unreleased = "cannot join the group because the instance id is owned by a member."
    assert asker.join("b", instance_id="i") == (111, f"Static member b with instance id i {unreleased}")
    assert asker.beat("a", -2, instance_id="i") == (-2, None)
    assert asker.join("b", instance_id="i") == (2, [0, 1, 2, 3])
    fenced = "Static member a with instance id i was fenced by member b."
    assert asker.beat("a", 2, instance_id="i") == (82, fenced)
    assert asker.beat("b", -1, instance_id="i") == (-1, None)
    assert asker.described().group_state == "Empty"


def test_regular_expressions(cluster: Cluster) -> None:
    asker = Asker(cluster)
    assert asker.join("a", subscribed_topic_regex=f"{asker.topic[:-1]}[0-9a-f]") == (1, [])
    wait_until(lambda: asker.described().group_epoch == 2, "the topics of the expression")
    assert asker.beat("a", 1) == (2, [0, 1, 2, 3])
    error, message = asker.join("b", subscribed_topic_regex="a(?=b)")
    assert error == 128
    assert message.endswith("`a(?=b)` is not a valid regular expression: invalid or unsupported Perl syntax.")


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"epoch": 0}, 42, "RebalanceTimeoutMs must be provided in first request."),
        ({"epoch": -3}, 42, "MemberEpoch is invalid."),
        ({"epoch": -2}, 42, "InstanceId can't be null."),
        ({"epoch": 1, "member_id": ""}, 42, "MemberId can't be empty."),
        ({"epoch": 1, "instance_id": ""}, 42, "InstanceId can't be empty."),
        ({"epoch": 1, "rack_id": " "}, 42, "RackId can't be empty."),
        (
            {"epoch": 1, "server_assignor": "sticky"},
            112,
            "ServerAssignor sticky is not supported. Supported assignors: uniform, range.",
        ),
        ({"epoch": 1}, 69, "Consumer group {} not found."),
        ({"epoch": -1}, 69, "Group {} not found."),
    ],
)
def test_refusals(cluster: Cluster, fields: dict[str, Any], error: int, message: str) -> None:
    asker = shared_asker(cluster)
    answer = asker.beat(**{"member_id": "a", **fields})
    assert answer == (error, message.format(asker.group))


_ASKERS: dict[str, Asker] = {}


def shared_asker(cluster: Cluster) -> Asker:
    """One asker for a cluster, for tests that create no group."""
    if cluster.bootstrap not in _ASKERS:
        _ASKERS[cluster.bootstrap] = Asker(cluster)
    return _ASKERS[cluster.bootstrap]


def test_the_older_apis(cluster: Cluster) -> None:
    asker = Asker(cluster)
    asker.join("a")

    def described(version: int) -> tuple[int, str | None, str]:
        request = DescribeGroupsRequest(
            version=version, groups=[asker.group], include_authorized_operations=False
        )
        (group,) = ask(asker.coordinator, request).groups
        return group.error_code, group.error_message if version >= 6 else None, group.group_state

    def listed(**filters: list[str]) -> list[tuple[str, str, str]]:
        request = ListGroupsRequest(version=5, **{"states_filter": [], "types_filter": [], **filters})
        groups = ask(asker.coordinator, request).groups
        return [(g.group_type, g.group_state, g.protocol_type) for g in groups if g.group_id == asker.group]

    assert described(5) == (0, None, "Dead")
    assert described(6) == (69, f"Group {asker.group} is not a classic group.", "Dead")
    assert listed(types_filter=["consumer"], states_filter=["stable"]) == [("consumer", "Stable", "consumer")]
    assert listed(types_filter=["classic"]) == listed(states_filter=["Empty"]) == []
    delete = DeleteGroupsRequest(version=2, groups_names=[asker.group])
    assert ask(asker.coordinator, delete).results[0].error_code == 68
    asker.beat("a", -1)
    assert ask(asker.coordinator, delete).results[0].error_code == 0
    assert asker.described().error_message == f"Group {asker.group} not found."


def test_a_groups_own_configurations(cluster: Cluster) -> None:
    asker = Asker(cluster)
    name = HEARTBEAT

    def described() -> tuple[str, int, list[tuple[str, str, int]]]:
        resource = DescribeConfigsRequest.DescribeConfigsResource(
            version=4, resource_type=q.GROUP_RESOURCE, resource_name=asker.group, configuration_keys=[name]
        )
        request = DescribeConfigsRequest(
            version=4, resources=[resource], include_synonyms=True, include_documentation=False
        )
        (config,) = ask(cluster.leader, request).results[0].configs
        return config.value, config.config_source, [(s.name, s.value, s.source) for s in config.synonyms]

    of_brokers = (f"group.{name}", "5000", 5)
    assert described() == ("5000", 5, [of_brokers])
    too_long = f"{name} must be less than or equal to group.consumer.max.heartbeat.interval.ms"
    assert alter(asker.cluster.leader, asker.group, "50000") == (40, too_long)
    assert alter(asker.cluster.leader, asker.group, "7000") == (0, None)
    wait_until(lambda: described() == ("7000", 8, [(name, "7000", 8), of_brokers]), "the group's own")

    wait_until(lambda: asker.interval_ms() == 7_000, "the coordinator knows it")


# --- librdkafka


def assigned(client: confluent_kafka.Consumer) -> list[int]:
    return sorted(place.partition for place in client.assignment())


def test_librdkafka_shares_commits_and_resumes(cluster: Cluster) -> None:
    asker = Asker(cluster)
    asker.hurry()
    writer = producer(cluster.bootstrap)
    for partition in range(4):
        deliver(writer, asker.topic, [b"%d-%d" % (partition, n) for n in range(50)], partition)
    first = new_consumer(cluster.bootstrap, asker.group, client_id="first")
    first.subscribe([asker.topic])
    read: list[bytes] = []

    def read_all() -> bool:
        read.extend(values_of(first))
        return len(read) == 200

    wait_until(read_all, "the first reads everything")
    first.commit(asynchronous=False)
    second = new_consumer(cluster.bootstrap, asker.group, client_id="second")
    second.subscribe([asker.topic])

    def shared() -> bool:
        values_of(first), values_of(second)
        return len(assigned(first)) == len(assigned(second)) == 2

    wait_until(shared, "two members share four partitions")
    assert sorted(assigned(first) + assigned(second)) == [0, 1, 2, 3]
    group = asker.described()
    assert {m.client_id: _numbers(m.assignment) for m in group.members} == {
        "first": assigned(first),
        "second": assigned(second),
    }
    assert {m.member_type for m in group.members} == {CONSUMER}
    first.close()

    def taken_over() -> bool:
        values_of(second)
        return assigned(second) == [0, 1, 2, 3]

    wait_until(taken_over, "the second takes over")
    second.close()
    wait_until(lambda: asker.described().group_state == "Empty", "an empty group")
    deliver(writer, asker.topic, [b"last"], 0)
    third = new_consumer(cluster.bootstrap, asker.group)
    third.subscribe([f"^{asker.topic[:-1]}.$"])
    found: list[bytes] = []

    def read_last() -> bool:
        found.extend(values_of(third))
        return bool(found)

    wait_until(read_last, "the new record")
    assert found == [b"last"], "it resumes where the group had committed"
    third.close()


def test_a_rolling_upgrade_with_librdkafka(cluster: Cluster) -> None:
    """A classic member, then one of each protocol, then the new one alone."""
    asker = Asker(cluster)
    asker.hurry()
    settings = {"client_id": "old", "partition_assignment_strategy": "cooperative-sticky"}
    old = consumer(cluster.bootstrap, asker.group, **settings)
    old.subscribe([asker.topic])

    def alone(client: confluent_kafka.Consumer) -> bool:
        values_of(client)
        return assigned(client) == [0, 1, 2, 3]

    wait_until(lambda: alone(old), "the old member has everything")
    new = new_consumer(cluster.bootstrap, asker.group, client_id="new")
    new.subscribe([asker.topic])

    def shared() -> bool:
        values_of(old), values_of(new)
        return len(assigned(old)) == len(assigned(new)) == 2

    wait_until(shared, "members of both protocols share the partitions")
    types = {member.client_id: member.member_type for member in asker.described().members}
    assert types == {"old": CLASSIC, "new": CONSUMER}
    old.close()
    wait_until(lambda: alone(new), "the new member has everything")
    new.close()


def test_no_member_joins_again_when_the_coordinator_crashes(simulated_cluster: Served) -> None:
    """A new coordinator loads the group with its epochs, and the members keep what they have."""
    served, name = simulated_cluster, "coordinator-crash"
    served.create(name, [[3, 4], [3, 4]])
    find = FindCoordinatorRequest(version=3, key=name, key_type=0)
    groups = (name, *(f"{name}-{number}" for number in range(30)))

    def coordinator_of(group: str) -> int:
        find.key = group
        return int(served.ask(3, find).node_id)

    group = next(group for group in groups if coordinator_of(group) not in (3, 4))
    before = coordinator_of(group)
    assert alter(served.addresses[3], group, "500") == (0, None)

    def described(broker: int) -> tuple[int, list[tuple[int, str, list[int]]]]:
        request = ConsumerGroupDescribeRequest(
            version=1, group_ids=[group], include_authorized_operations=False
        )
        (answer,) = served.ask(broker, request).groups
        members = [(m.member_epoch, m.member_id, _numbers(m.assignment)) for m in answer.members]
        return answer.group_epoch, sorted(members)

    members = [new_consumer(served.bootstrap, group) for _ in range(2)]
    changes: list[str] = []
    for member in members:
        member.subscribe(
            [name],
            on_assign=lambda _, places: changes.append(f"assigned {len(places)}"),
            on_revoke=lambda _, places: changes.append(f"revoked {len(places)}"),
            on_lost=lambda _, places: changes.append(f"lost {len(places)}"),
        )

    def poll() -> None:
        for member in members:
            values_of(member)

    def shared() -> bool:
        poll()
        told = [len(partitions) for _, _, partitions in described(before)[1]]
        return told == [len(assigned(member)) for member in members] == [1, 1]

    wait_until(shared, "two members share two partitions")
    state = described(before)
    seen = list(changes)
    served.do(f"crash {before}")

    def goes_on() -> bool:
        poll()
        after = coordinator_of(group)
        return after not in (-1, before) and described(after) == state

    wait_until(goes_on, "another coordinator has the group as it was")
    deliver(producer(served.bootstrap), name, [b"one"], 0)
    deliver(producer(served.bootstrap), name, [b"two"], 1)
    read: list[bytes] = []

    def read_both() -> bool:
        for member in members:
            read.extend(values_of(member))
        return sorted(read) == [b"one", b"two"]

    wait_until(read_both, "the members read on")
    for member in members:
        member.commit(asynchronous=False)
    assert changes == seen
    for member in members:
        member.close()
    served.heal()
