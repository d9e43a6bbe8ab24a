"""Real clients join consumer groups, rebalance, commit and resume."""

from typing import Any

import confluent_kafka
import pytest
from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.metadata import FindCoordinatorRequest

from tests.serve.clients import (
    KAFKA_PYTHON_POLL_MS,
    consumer,
    deliver,
    kafka_python_consumer,
    producer,
    values_of,
)
from tests.served import Served
from tests.waiting import wait_until

FOUR = [[0, 3, 1], [3, 1, 4], [1, 4, 2], [4, 2, 5]]


class Member:
    """A member of a group, from either library."""

    def __init__(self, library: str, cluster: Served, group: str, topic: str, **settings: Any) -> None:
        self.read: list[bytes] = []
        self._confluent = library == "confluent"
        if self._confluent:
            self.client: Any = consumer(cluster.bootstrap, group, **settings)
        else:
            self.client = kafka_python_consumer(cluster.bootstrap, group, **settings)
        self.client.subscribe([topic])

    def poll(self) -> list[bytes]:
        """Poll once, and return the values read."""
        if self._confluent:
            values = values_of(self.client)
        else:
            found = self.client.poll(KAFKA_PYTHON_POLL_MS)
            values = [record.value for batch in found.values() for record in batch]
        self.read += values
        return values

    def assigned(self) -> set[int]:
        """Return the partitions that the member owns now."""
        return {tp.partition for tp in self.client.assignment()}

    def commit(self) -> None:
        """Commit what the member has read, and wait for the answer."""
        if self._confluent:
            self.client.commit(asynchronous=False)
        else:
            self.client.commit()

    def close(self) -> None:
        """Leave the group."""
        self.client.close()


def coordinator(cluster: Served, group: str) -> int:
    found = cluster.ask(0, FindCoordinatorRequest(version=3, key=group, key_type=0))
    assert found.error_code == 0
    return int(found.node_id)


def described(cluster: Served, group: str) -> Any:
    return cluster.ask(coordinator(cluster, group), DescribeGroupsRequest(version=5, groups=[group])).groups[
        0
    ]


@pytest.mark.parametrize("library", ["confluent", "kafka-python"])
def test_members_join_share_commit_and_resume(simulated_cluster: Served, library: str) -> None:
    topic = group = f"shared-{library}"
    simulated_cluster.create(topic, FOUR)
    client = producer(simulated_cluster.bootstrap)
    for partition in range(4):
        deliver(client, topic, [b"%d-%d" % (partition, n) for n in range(50)], partition)

    first = Member(library, simulated_cluster, group, topic)
    wait_until(lambda: first.poll() is not None and len(first.read) >= 200, "the first reads everything")
    assert first.assigned() == {0, 1, 2, 3}
    first.commit()

    second = Member(library, simulated_cluster, group, topic)

    def shared() -> bool:
        first.poll(), second.poll()
        return len(first.assigned()) == len(second.assigned()) == 2

    wait_until(shared, "two members share four partitions")
    assert first.assigned() | second.assigned() == {0, 1, 2, 3}
    assert second.read == [], "what was committed is not read again"

    wait_until(lambda: described(simulated_cluster, group).group_state == "Stable", "a stable group")
    group_now = described(simulated_cluster, group)
    assert len(group_now.members) == 2 and group_now.protocol_type == "consumer"
    assert {m.client_host for m in group_now.members} == {"/127.0.0.1"}

    for partition in range(4):
        deliver(client, topic, [b"%d-late" % partition], partition)

    def read_late() -> bool:
        first.poll(), second.poll()
        return len(first.read) + len(second.read) >= 204

    wait_until(read_late, "the late records")
    assert len(second.read) == 2
    first.commit()
    second.commit()
    first.close()

    def taken_over() -> bool:
        second.poll()
        return second.assigned() == {0, 1, 2, 3}

    wait_until(taken_over, "the second takes over")
    second.close()
    wait_until(lambda: described(simulated_cluster, group).group_state == "Empty", "an empty group")
    listed = simulated_cluster.ask(coordinator(simulated_cluster, group), ListGroupsRequest(version=5))
    mine = next(g for g in listed.groups if g.group_id == group)
    assert (mine.group_state, mine.group_type) == ("Empty", "classic")

    third = Member(library, simulated_cluster, group, topic)
    wait_until(lambda: third.poll() is not None and third.assigned() == {0, 1, 2, 3}, "a new member")
    deliver(client, topic, [b"last"], 0)
    wait_until(lambda: third.poll() is not None and bool(third.read), "a new record")
    assert third.read == [b"last"], "it resumes where the group had committed"
    third.close()


def two_libraries(cluster: Served, name: str, **settings: Any) -> tuple[Member, Member]:
    """Create one member with kafka-python and one with librdkafka (with `settings`) that share the four
    partitions of a topic."""
    cluster.create(name, FOUR)
    one = Member("kafka-python", cluster, name, name)
    wait_until(lambda: one.poll() is not None and one.assigned() == {0, 1, 2, 3}, "the first has all")
    other = Member("confluent", cluster, name, name, partition_assignment_strategy="range", **settings)

    def shared() -> bool:
        one.poll(), other.poll()
        return len(one.assigned()) == len(other.assigned()) == 2

    wait_until(shared, "two libraries share four partitions")
    return one, other


def test_members_of_two_libraries_share_a_group(simulated_cluster: Served) -> None:
    one, other = two_libraries(simulated_cluster, "mixed")
    assert one.assigned() | other.assigned() == {0, 1, 2, 3}
    one.close()
    other.close()


def test_a_member_that_dies_loses_its_partitions_when_its_session_ends(simulated_cluster: Served) -> None:
    survivor, silent = two_libraries(simulated_cluster, "dies", max_poll_interval_ms=6000)

    def alone() -> bool:
        survivor.poll()
        return survivor.assigned() == {0, 1, 2, 3}

    wait_until(alone, "the survivor has everything")
    survivor.close()
    silent.close()


def test_committed_offsets_of_many_partitions_are_answered_by_the_coordinator(
    simulated_cluster: Served,
) -> None:
    simulated_cluster.create("committed", FOUR)
    client = consumer(simulated_cluster.bootstrap, "by-hand")
    wanted = [confluent_kafka.TopicPartition("committed", p, p * 10) for p in range(4)]
    client.commit(offsets=wanted, asynchronous=False)
    found = client.committed([confluent_kafka.TopicPartition("committed", p) for p in range(4)], timeout=10)
    assert [tp.offset for tp in found] == [0, 10, 20, 30]
    client.close()
