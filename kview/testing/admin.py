"""What a cluster is asked through Kafka's protocol: topics and groups, made and deleted, and who leads.

Each question has a connection of its own, so that nothing of an earlier one is believed.
"""

import socket
import warnings
from collections.abc import Mapping, Sequence
from struct import unpack
from typing import Any

from kview.model.address import Address
from kview.model.lab import OWN_CLIENT_ID
from kview.testing.cluster import Partition

with warnings.catch_warnings():  # of kafka-python's own, which would be those of the test that is running
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.protocol.admin import CreateTopicsRequest, DeleteGroupsRequest, DeleteTopicsRequest
    from kafka.protocol.metadata import MetadataRequest

ANSWERED_WITHIN_S = 10.0
CREATE_TOPICS, DELETE_TOPICS, DELETE_GROUPS, METADATA = 7, 5, 2, 12
"""The versions that are spoken."""

REQUEST_TIMED_OUT, UNKNOWN_TOPIC_OR_PARTITION, GROUP_ID_NOT_FOUND = 7, 3, 69


def ask(address: Address, request: Any) -> Any:
    """Return a broker's answer. Raises OSError if it refuses the connection, closes it or does not answer."""
    request.with_header(correlation_id=1, client_id=OWN_CLIENT_ID)
    with socket.create_connection((address.host, address.port), ANSWERED_WITHIN_S) as connection:
        connection.sendall(request.encode(header=True, framed=True))
        with connection.makefile("rb") as stream:
            size = stream.read(4)
            answer = stream.read(unpack(">i", size)[0]) if len(size) == 4 else b""
        if not answer:
            raise ConnectionResetError(f"the broker at {address} closed the connection")
    return request.header.get_response_class().decode(answer, header=True)


def create_topic(
    address: Address,
    name: str,
    partitions: int,
    replication_factor: int,
    assignment: Sequence[Sequence[int]],
    settings: Mapping[str, str],
) -> str:
    """Create a topic, with these replicas a partition if there are any. Return why not, "" if it was made."""
    topic = CreateTopicsRequest.CreatableTopic
    wanted = topic(
        name=name,
        num_partitions=-1 if assignment else partitions,
        replication_factor=-1 if assignment else replication_factor,
        assignments=[
            topic.CreatableReplicaAssignment(partition_index=number, broker_ids=list(replicas))
            for number, replicas in enumerate(assignment)
        ],
        configs=[topic.CreatableTopicConfig(name=key, value=value) for key, value in settings.items()],
    )
    limit_ms = round(ANSWERED_WITHIN_S * 1000) // 2
    request = CreateTopicsRequest(
        version=CREATE_TOPICS, topics=[wanted], timeout_ms=limit_ms, validate_only=False
    )
    (result,) = ask(address, request).topics
    return (
        f"error {result.error_code}: {result.error_message or 'no reason given'}" if result.error_code else ""
    )


def delete_topics(address: Address, names: Sequence[str]) -> None:
    """Delete topics, as far as they are there."""
    limit_ms = round(ANSWERED_WITHIN_S * 1000) // 2
    ask(address, DeleteTopicsRequest(version=DELETE_TOPICS, topic_names=list(names), timeout_ms=limit_ms))


def delete_groups(address: Address, names: Sequence[str]) -> None:
    """Delete groups that a broker coordinates and that have no members."""
    ask(address, DeleteGroupsRequest(version=DELETE_GROUPS, groups_names=list(names)))


def partitions(address: Address, topic: str) -> list[Partition]:
    """Return a topic's partitions in order, as a broker knows them; none if it does not know the topic."""
    named = MetadataRequest.MetadataRequestTopic(version=METADATA, name=topic, topic_id=None)
    request = MetadataRequest(version=METADATA, topics=[named], allow_auto_topic_creation=False)
    (found,) = ask(address, request).topics
    rows = sorted(found.partitions, key=lambda row: row.partition_index)
    return [Partition(row.leader_id, tuple(row.replica_nodes), tuple(row.isr_nodes)) for row in rows]
