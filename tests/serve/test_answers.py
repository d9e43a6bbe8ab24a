"""What answers say besides error numbers: the same from the simulated and from a real cluster.

Read from Apache Kafka 4.3.1.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import UUID

import pytest
from kafka.protocol.admin import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    DescribeGroupsRequest,
    DescribeQuorumRequest,
    ListGroupsRequest,
)
from kafka.protocol.consumer import OffsetCommitRequest
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest
from kafka.protocol.producer import InitProducerIdRequest

from tests.real_kafka.asking import Address, answer_frame, ask
from tests.serve import questions as q
from tests.serve.both import Cluster
from tests.waiting import wait_until

TOPIC = "answers"
LOADING = 14
"""The error of a broker that waits for a block of producer ids."""
TOPIC_OPERATIONS, CLUSTER_OPERATIONS = {3, 4, 5, 6, 7, 8, 10, 11}, {5, 7, 8, 9, 10, 11, 12}
MISMATCHED = (
    "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
)
GROUP_OPERATIONS = {3, 6, 8, 10, 11}


def metadata_operations(cluster: Cluster, version: int, asked: bool = True) -> Any:
    """Return the operations of a topic and of one that does not exist, and of the cluster."""
    named = [
        MetadataRequest.MetadataRequestTopic(version=version, name=name, topic_id=None)
        for name in (TOPIC, "nobodys-topic")
    ]
    request = MetadataRequest(
        version=version,
        topics=named,
        allow_auto_topic_creation=False,
        include_cluster_authorized_operations=asked,
        include_topic_authorized_operations=asked,
    )
    answer = ask(cluster.leader, request)
    of_topics = [topic.authorized_operations for topic in answer.topics]
    return of_topics, answer.authorized_operations if version <= 10 else None


def described_cluster(cluster: Cluster, endpoint_type: int = 1, asked: bool = True) -> Any:
    """Return DescribeCluster's error number and message, and the operations."""
    request = DescribeClusterRequest(
        version=2, endpoint_type=endpoint_type, include_cluster_authorized_operations=asked
    )
    answer = ask(cluster.leader, request)
    return answer.error_code, answer.error_message, answer.authorized_operations


def coordinator(cluster: Cluster, group: str) -> Address:
    """Return the address of a group's coordinator, once it answers for the group."""
    wait_until(lambda: q.find_coordinator(cluster.leader, group)[0] == 0, "there is a coordinator")
    address = cluster.at(q.find_coordinator(cluster.leader, group)[1])
    wait_until(lambda: described_group(address, group)[0] in (0, 69), "the coordinator has loaded")
    return address


def described_group(address: Address, group: str, version: int = 6, asked: bool = True) -> Any:
    """Return DescribeGroups' error number and message, the group's state, and the operations."""
    request = DescribeGroupsRequest(version=version, groups=[group], include_authorized_operations=asked)
    (answer,) = ask(address, request).groups
    message = answer.error_message if version >= 6 else None
    return answer.error_code, message, answer.group_state, answer.authorized_operations


def of_group(group: str, version: int, asked: bool = True) -> Callable[[Cluster], Any]:
    return lambda c: described_group(coordinator(c, group), group, version, asked)


def created(
    *topics: str,
    partitions: int = 1,
    replication: int = 1,
    assignment: Sequence[tuple[int, Sequence[int]]] = (),
    configs: Sequence[tuple[str, str | None]] = (),
) -> Callable[[Cluster], Any]:
    """Ask for topics, without creating them, and return the error number and message by name."""
    kind = CreateTopicsRequest.CreatableTopic
    request = [
        kind(
            name=name,
            num_partitions=partitions,
            replication_factor=replication,
            assignments=[
                kind.CreatableReplicaAssignment(partition_index=index, broker_ids=list(brokers))
                for index, brokers in assignment
            ],
            configs=[kind.CreatableTopicConfig(name=key, value=value) for key, value in configs],
        )
        for name in topics
    ]
    return lambda c: rows_of(
        ask(
            c.leader,
            CreateTopicsRequest(version=7, topics=request, timeout_ms=q.TIMEOUT_MS, validate_only=True),
            q.ANSWER_S,
        ).topics
    )


def deleted(*topics: tuple[str | None, UUID | None]) -> Callable[[Cluster], Any]:
    """Delete topics by name or id, and return the error number and message by name."""
    kind = DeleteTopicsRequest.DeleteTopicState
    asked = [kind(name=name, topic_id=topic_id) for name, topic_id in topics]
    request = DeleteTopicsRequest(version=6, topics=asked, timeout_ms=q.TIMEOUT_MS)
    return lambda c: rows_of(ask(c.leader, request, q.ANSWER_S).responses)


def rows_of(rows: Iterable[Any]) -> dict[str | None, tuple[int, str | None]]:
    """Return error numbers and messages by name. No name may come twice."""
    listed = [(row.name, (row.error_code, row.error_message)) for row in rows]
    assert len(dict(listed)) == len(listed), listed
    return dict(listed)


def reassigned(
    partition: int, replicas: Sequence[int] | None, may_change: bool = True, topic: str = TOPIC
) -> Callable[[Cluster], Any]:
    return lambda c: q.reassigned(c.leader, topic, partition, replicas, may_change)


def api_versions(name: str, software_version: str) -> Callable[[Cluster], int]:
    """Ask as this client, and return the error number, which kafka-python cannot read."""
    request = ApiVersionsRequest(
        version=4, client_software_name=name, client_software_version=software_version
    )
    return lambda c: int.from_bytes(answer_frame(c.leader, request)[4:6], "big")


def producer_id(number: int, epoch: int) -> Callable[[Cluster], int]:
    """Ask for an id as a producer that has an id and epoch, and return the error number."""
    request = InitProducerIdRequest(
        version=4,
        transactional_id=None,
        transaction_timeout_ms=q.TIMEOUT_MS,
        producer_id=number,
        producer_epoch=epoch,
    )

    def answered(cluster: Cluster) -> int:
        return wait_until(lambda: known(ask(cluster.leader, request).error_code), "a block of ids")[0]

    def known(error: int) -> tuple[int, ...]:
        return () if error == LOADING else (error,)

    return answered


def quorum(topic: str, partition: int, version: int = 2) -> Callable[[Cluster], Any]:
    """Ask about the quorum of a partition, and return error numbers and messages, and whether there are nodes
    in it."""
    kind = DescribeQuorumRequest.TopicData
    asked = kind(topic_name=topic, partitions=[kind.PartitionData(partition_index=partition)])
    request = DescribeQuorumRequest(version=version, topics=[asked])

    def answered(cluster: Cluster) -> Any:
        answer = ask(cluster.leader, request)
        row = answer.topics[0].partitions[0]
        replicas = [*row.current_voters, *row.observers]
        if version < 2:
            return answer.error_code, row.error_code, bool(replicas)
        assert {node.node_id for node in answer.nodes} == {voter.replica_id for voter in row.current_voters}
        ids = {replica.replica_directory_id for replica in replicas}
        assert all(ids) and len(ids) == len(replicas)
        return answer.error_code, answer.error_message, row.error_code, row.error_message, bool(ids)

    return answered


Row = tuple[str, Callable[[Cluster], Any], Any]

OPERATIONS: list[Row] = [
    ("Metadata v8", lambda c: metadata_operations(c, 8), ([TOPIC_OPERATIONS] * 2, CLUSTER_OPERATIONS)),
    ("Metadata v10", lambda c: metadata_operations(c, 10), ([TOPIC_OPERATIONS] * 2, CLUSTER_OPERATIONS)),
    ("Metadata v13", lambda c: metadata_operations(c, 13), ([TOPIC_OPERATIONS] * 2, None)),
    ("Metadata, not asked", lambda c: metadata_operations(c, 10, asked=False), ([None] * 2, None)),
    ("DescribeCluster", described_cluster, (0, None, CLUSTER_OPERATIONS)),
    ("DescribeCluster, not asked", lambda c: described_cluster(c, asked=False), (0, None, None)),
    (
        "DescribeCluster of controllers",
        lambda c: described_cluster(c, 2),
        (114, MISMATCHED, None),
    ),
    ("DescribeCluster of 3", lambda c: described_cluster(c, 3), (115, "Unsupported endpoint type 3", None)),
    ("DescribeGroups v5", of_group("nobodys-group", 5), (0, None, "Dead", GROUP_OPERATIONS)),
    (
        "DescribeGroups v6",
        of_group("nobodys-group", 6),
        (69, "Group nobodys-group not found.", "Dead", None),
    ),
    ("DescribeGroups, not asked", of_group("nobodys-group", 5, asked=False), (0, None, "Dead", None)),
]


DUPLICATE = (42, "Duplicate topic name.")
BY_HAND = "A manual partition assignment was specified, but {} was not set to -1."
CREATION: list[Row] = [
    ("CreateTopics twice", created("new", "new", "other"), {"new": DUPLICATE, "other": (0, None)}),
    ("CreateTopics twice what exists", created(TOPIC, TOPIC), {TOPIC: DUPLICATE}),
    ("CreateTopics too many twice", created("new", "new", partitions=20_000), {"new": DUPLICATE}),
    (
        "CreateTopics of the controllers",
        created("__cluster_metadata"),
        {"__cluster_metadata": (42, "Creation of internal topic __cluster_metadata is prohibited.")},
    ),
    (
        "CreateTopics without partitions",
        created("new", partitions=0),
        {"new": (37, "Number of partitions was set to an invalid non-positive value.")},
    ),
    (
        "CreateTopics, partitions and assignment",
        created("new", replication=-1, assignment=[(0, [0])]),
        {"new": (42, BY_HAND.format("numPartitions"))},
    ),
    (
        "CreateTopics, replicas and assignment",
        created("new", partitions=-1, assignment=[(0, [0])]),
        {"new": (42, BY_HAND.format("replication factor"))},
    ),
    (
        "CreateTopics with a gap",
        created("new", partitions=-1, replication=-1, assignment=[(0, [0]), (2, [1])]),
        {"new": (39, "partitions should be a consecutive 0-based integer sequence")},
    ),
    (
        "CreateTopics, a partition twice",
        created("new", partitions=-1, replication=-1, assignment=[(0, [0]), (0, [1])]),
        {"new": (39, "Found multiple manual partition assignments for partition 0")},
    ),
    (
        "CreateTopics, name before value",
        created(TOPIC, configs=[("retention.ms", None)]),
        {TOPIC: (36, f"Topic '{TOPIC}' already exists.")},
    ),
]

NO_NAME, NO_ID = "This server does not host this topic-partition.", "This server does not host this topic ID."
SOME_ID = UUID(int=7)
DELETION: list[Row] = [
    ("DeleteTopics unknown", deleted(("none", None)), {"none": (3, NO_NAME)}),
    ("DeleteTopics unknown id", deleted((None, SOME_ID)), {None: (100, NO_ID)}),
    ("DeleteTopics twice", deleted(*[("none", None)] * 2), {"none": DUPLICATE}),
    ("DeleteTopics an id twice", deleted(*[(None, SOME_ID)] * 2), {None: (42, "Duplicate topic id.")}),
    (
        "DeleteTopics by name and id",
        deleted(("none", SOME_ID)),
        {"none": (42, "You may not specify both topic name and topic id.")},
    ),
    (
        "DeleteTopics nothing",
        deleted((None, None)),
        {None: (42, "Neither topic name nor id were specified.")},
    ),
    (
        "DeleteTopics a name and its id",
        lambda c: deleted((TOPIC, None), (None, q.topic_id(c.leader, TOPIC)))(c),
        {TOPIC: (42, "The provided topic name maps to an ID that was already supplied.")},
    ),
]

MOVING: list[Row] = [
    ("Cancel nothing", reassigned(0, None), (85, None)),
    ("Reassign unknown partition", reassigned(9, [0]), (3, f"Unable to find partition {TOPIC}:9.")),
    ("Reassign in no topic", reassigned(9, [0], topic="none"), (3, "Unable to find a topic named none.")),
    (
        "Reassign to more",
        reassigned(0, [0, 1, 2], may_change=False),
        (38, "The replication factor is changed from 2 to 3"),
    ),
]

CLIENTS: list[Row] = [
    ("ApiVersions of a client", api_versions("a.client-2", "1.0-SNAPSHOT"), 0),
    ("ApiVersions without a name", api_versions("", "1"), 42),
    ("ApiVersions of a name with a blank", api_versions("a client", "1"), 42),
    ("ApiVersions of a name with a letter more", api_versions("é", "1"), 42),
    ("ApiVersions of a version with an end", api_versions("client", "1-"), 42),
    ("InitProducerId again", producer_id(5, 0), 0),
    ("InitProducerId without an epoch", producer_id(5, -1), 42),
    ("InitProducerId without an id", producer_id(-1, 3), 42),
]

QUORUM: list[Row] = [
    ("DescribeQuorum", quorum("__cluster_metadata", 0), (0, "", 0, "", True)),
    ("DescribeQuorum v0", quorum("__cluster_metadata", 0, version=0), (0, 0, True)),
    ("DescribeQuorum v1", quorum("__cluster_metadata", 0, version=1), (0, 0, True)),
    ("DescribeQuorum partition 5", quorum("__cluster_metadata", 5), (0, "", 3, NO_NAME, False)),
    ("DescribeQuorum of a topic", quorum(TOPIC, 0), (0, "", 3, NO_NAME, False)),
]

ROWS = [*CLIENTS, *QUORUM, *OPERATIONS, *CREATION, *DELETION, *MOVING]


@pytest.mark.parametrize(("asked", "expected"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_an_answer_says_what_kafkas_does(
    cluster: Cluster, asked: Callable[[Cluster], Any], expected: Any
) -> None:
    cluster.create(TOPIC, [[0, 1]])
    assert asked(cluster) == expected


def test_a_move_can_be_listed_until_the_new_replica_has_fetched(cluster: Cluster) -> None:
    """Even without any data to copy: the new replica's first fetch comes after the one that waits for other
    partitions, for up to 0.5 s."""
    cluster.create("busy", [[0, 1], [0, 2]])
    cluster.create("to-move", [[0, 1]])
    key, seen = ("to-move", 0), False
    for move in range(10):
        new, old = (2, 1) if move % 2 == 0 else (1, 2)
        assert q.reassign(cluster.leader, *key, [0, new]) == 0
        listed = q.reassignments(cluster.leader)
        wait_until(lambda: key not in q.reassignments(cluster.leader), "it has moved")
        if key in listed:
            assert (set(listed[key][0]), *listed[key][1:]) == ({0, 1, 2}, [new], [old])
            seen = True
            break
    assert seen


def test_a_group_with_an_empty_name_is_committed_described_and_deleted(cluster: Cluster) -> None:
    cluster.create(TOPIC, [[0, 1]])
    address = coordinator(cluster, "")
    q.delete_groups(address, [""])
    per_topic = OffsetCommitRequest.OffsetCommitRequestTopic
    committed = per_topic.OffsetCommitRequestPartition(
        version=7, partition_index=0, committed_offset=3, committed_leader_epoch=-1, committed_metadata=""
    )
    commit = OffsetCommitRequest(
        version=7,
        group_id="",
        generation_id_or_member_epoch=-1,
        member_id="",
        group_instance_id=None,
        topics=[per_topic(version=7, name=TOPIC, partitions=[committed])],
    )
    assert described_group(address, "")[:3] == (69, "Group  not found.", "Dead")
    assert ask(address, commit).topics[0].partitions[0].error_code == 0
    assert described_group(address, "") == (0, None, "Empty", GROUP_OPERATIONS)
    groups = ask(address, ListGroupsRequest(version=4, states_filter=[])).groups
    assert [group.group_state for group in groups if not group.group_id] == ["Empty"]
    assert q.delete_groups(address, [""]) == [0]
    assert described_group(address, "")[0] == 69
