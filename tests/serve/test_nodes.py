"""Nodes that leave for good: brokers that are unregistered, and controllers that vote no longer."""

import re
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest
from kafka.protocol.admin import DescribeClusterRequest, DescribeQuorumRequest

from kview.simulate.codes import ErrorCode
from kview.wire.admin_messages import AddRaftVoterRequest, RemoveRaftVoterRequest, UnregisterBrokerRequest
from tests.real_kafka.asking import metadata, partitions_in
from tests.serve import questions as q
from tests.serve.both import Cluster
from tests.served import Served
from tests.waiting import wait_until

ANY_DIRECTORY, NO_DIRECTORY = UUID(int=5), UUID(int=0)
METADATA = "__cluster_metadata"
KEY = r"ReplicaKey\(id=\d+, directoryId=[\w-]{22}\)"
VOTERS = rf"\[{KEY}(, {KEY})*\]"
QUORUM = DescribeQuorumRequest.TopicData


def quorum(at: q.At) -> Any:
    """Return the partition of the metadata in DescribeQuorum."""
    partition = QUORUM.PartitionData(version=2, partition_index=0)
    topic = QUORUM(version=2, topic_name=METADATA, partitions=[partition])
    return q.ask(at, DescribeQuorumRequest(version=2, topics=[topic])).topics[0].partitions[0]


def add(
    at: q.At,
    voter: int,
    directory: UUID = ANY_DIRECTORY,
    listeners: Sequence[str] = ("CONTROLLER",),
    cluster_id: str | None = None,
    version: int = 1,
) -> tuple[int, str | None]:
    """Return the error and message of AddRaftVoter."""
    kind = AddRaftVoterRequest.Listener
    request = AddRaftVoterRequest(
        version=version,
        cluster_id=cluster_id,
        timeout_ms=1_000,
        voter_id=voter,
        voter_directory_id=directory,
        listeners=[kind(version=version, name=name, host="127.0.0.1", port=65535) for name in listeners],
    )
    answer = q.ask(at, request, q.ANSWER_S)
    return answer.error_code, answer.error_message


def remove(
    at: q.At, voter: int, directory: UUID = ANY_DIRECTORY, cluster_id: str | None = None
) -> tuple[int, str | None]:
    """Return the error and message of RemoveRaftVoter."""
    request = RemoveRaftVoterRequest(
        version=0, cluster_id=cluster_id, voter_id=voter, voter_directory_id=directory
    )
    answer = q.ask(at, request, q.ANSWER_S)
    return answer.error_code, answer.error_message


def unregister(at: q.At, broker: int) -> tuple[int, str | None]:
    """Return the error and message of UnregisterBroker."""
    answer = q.ask(at, UnregisterBrokerRequest(version=0, broker_id=broker), q.ANSWER_S)
    return answer.error_code, answer.error_message


def test_wrong_changes_are_refused_in_kafkas_words(cluster: Cluster) -> None:
    at, voter = cluster.leader, quorum(cluster.leader).current_voters[0]
    cluster_id = q.ask(at, DescribeClusterRequest(version=2)).cluster_id
    assert unregister(at, 77) == (102, "Broker ID 77 is not currently registered")
    assert unregister(at, -1) == (102, "Broker ID -1 is not currently registered")
    wrong_cluster = 104, f'The given id "x" doesn\'t match the cluster id "{cluster_id}"'
    assert add(at, 77, cluster_id="x") == remove(at, 77, cluster_id="x") == wrong_cluster
    invalid = 42, "Add voter request didn't include a valid voter"
    assert add(at, -1) == add(at, 77, NO_DIRECTORY, version=0) == invalid
    assert remove(at, 77, NO_DIRECTORY) == (42, "Remove voter request didn't include a valid voter")
    assert add(at, 77, listeners=("B", "A")) == (
        42,
        "Add voter request didn't include the endpoint (Endpoints(endpoints={ListenerName(A)="
        "127.0.0.1/<unresolved>:65535, ListenerName(B)=127.0.0.1/<unresolved>:65535})) for the default "
        "listener ListenerName(CONTROLLER)",
    )
    assert add(at, 77, listeners=())[0] == 42
    assert add(at, 77)[0] == ErrorCode.REQUEST_TIMED_OUT
    error, message = add(at, voter.replica_id)
    assert error == 126 and message is not None
    assert re.fullmatch(rf"The voter id for {KEY} is already part of the set of voters {VOTERS}\.", message)
    for number in (77, voter.replica_id):
        error, message = remove(at, number, cluster_id=cluster_id)
        assert error == 127 and message is not None
        assert re.fullmatch(rf"Cannot remove voter {KEY} from the set of voters {VOTERS}", message)


@pytest.fixture(scope="module")
def served() -> Any:
    with Served("--no-traffic", "--brokers", "3", "--racks", "1", "--topic", "t:3:3") as cluster:
        yield cluster


def listed(served: Served) -> tuple[list[int], list[int]]:
    """Return the brokers that are registered, and those that live."""
    request = DescribeClusterRequest(version=2, include_fenced_brokers=True)
    registered = [broker.broker_id for broker in q.ask(served.addresses[0], request).brokers]
    return registered, [broker.node_id for broker in metadata(served.addresses[0], []).brokers]


def in_sync(served: Served) -> list[tuple[int, list[int]]]:
    """Return the leader and the ISR of each partition."""
    partitions = partitions_in(metadata(served.addresses[0], ["t"]))["t"]
    return [(partitions[n].leader, sorted(partitions[n].isr)) for n in sorted(partitions)]


def test_a_broker_that_was_unregistered_is_gone_until_it_starts_again(served: Served) -> None:
    at = served.addresses[0]
    served.do("crash 2")
    served.do("fence-now 2")
    wait_until(lambda: listed(served) == ([0, 1, 2], [0, 1]), "fenced")
    assert unregister(at, 2) == (0, "")
    assert listed(served) == ([0, 1], [0, 1])
    assert unregister(at, 2)[0] == ErrorCode.BROKER_ID_NOT_REGISTERED
    served.do("start 2")
    wait_until(lambda: listed(served) == ([0, 1, 2], [0, 1, 2]), "registered")
    wait_until(lambda: all(isr == [0, 1, 2] for _, isr in in_sync(served)), "in sync")


def test_a_broker_that_runs_goes_on_outside_the_cluster(served: Served) -> None:
    """As measured on a real 4.3.1: it answers, leads nothing, and is in no ISR until it starts again."""
    at = served.addresses[0]
    assert unregister(at, 1) == (0, "")
    assert listed(served) == ([0, 2], [0, 2])
    assert all(1 not in isr and leader != 1 for leader, isr in in_sync(served))
    assert [broker.node_id for broker in metadata(served.addresses[1], []).brokers] == [0, 2]
    served.do("crash 1")
    served.do("start 1")
    wait_until(lambda: all(isr == [0, 1, 2] for _, isr in in_sync(served)), "in sync")


def test_controllers_leave_the_quorum_and_come_back(served: Served) -> None:
    at = served.addresses[0]
    before = quorum(at)
    directories = {voter.replica_id: voter.replica_directory_id for voter in before.current_voters}
    leader = before.leader_id
    other, third = (voter for voter in directories if voter != leader)

    def voters() -> set[int]:
        return {voter.replica_id for voter in quorum(at).current_voters}

    assert remove(at, other, directories[other]) == (0, None)
    after = quorum(at)
    assert (after.leader_id, voters()) == (leader, {leader, third})
    assert other in {observer.replica_id for observer in after.observers}
    assert remove(at, leader, directories[leader]) == (0, None), "it resigns"
    assert quorum(at).leader_id == third
    assert remove(at, third, directories[third])[0] == ErrorCode.VOTER_NOT_FOUND, "somebody must vote"
    assert add(at, leader, directories[third])[0] == ErrorCode.REQUEST_TIMED_OUT, "another directory"
    served.do(f"crash {leader}")
    assert add(at, leader, directories[leader])[0] == ErrorCode.REQUEST_TIMED_OUT, "it does not run"
    served.do(f"start {leader}")
    for voter in (leader, other):
        assert add(at, voter, directories[voter]) == (0, None)
    assert voters() == set(directories)
