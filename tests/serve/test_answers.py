"""What answers say besides error numbers: the same from the simulated and from a real cluster.

Read from Apache Kafka 4.3.1.
"""

from collections.abc import Callable
from typing import Any

import pytest
from kafka.protocol.admin import DescribeClusterRequest, DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer import OffsetCommitRequest
from kafka.protocol.metadata import MetadataRequest

from tests.real_kafka.asking import Address, ask
from tests.serve import questions as q
from tests.serve.both import Cluster
from tests.waiting import wait_until

TOPIC = "answers"
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


@pytest.mark.parametrize(
    ("asked", "expected"), [row[1:] for row in OPERATIONS], ids=[row[0] for row in OPERATIONS]
)
def test_an_answer_says_what_kafkas_does(
    cluster: Cluster, asked: Callable[[Cluster], Any], expected: Any
) -> None:
    cluster.create(TOPIC, [[0, 1]])
    assert asked(cluster) == expected


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
