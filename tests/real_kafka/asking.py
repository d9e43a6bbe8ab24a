"""Sends a single request on its own connection, so that no client library caches or retries anything."""

import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from struct import unpack
from typing import Any

from kafka.protocol.admin import (
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeClusterRequest,
    ElectLeadersRequest,
)
from kafka.protocol.metadata import MetadataRequest

from tests.waiting import wait_until

CORRELATION_ID = 1
ANSWER_TIMEOUT_S = 5.0
ADMIN_TIMEOUT_MS = 30_000
ADMIN_TIMEOUT_S = 40.0
METADATA_VERSION = 9
"""The oldest that has all that is read here, so that old brokers answer, too."""
CREATE_TOPICS_VERSION = 6
DELETE_TOPICS_VERSION = 5
ELECT_LEADERS_VERSION = 2
DESCRIBE_CLUSTER_VERSION = 1
CONTROLLERS = 2
PREFERRED = 0
TOPIC_ALREADY_EXISTS = 36

Address = tuple[str, int]
"""Host and port."""


@dataclass(frozen=True)
class PartitionSeen:
    """One partition in a Metadata answer. A leader of −1 means that there is none."""

    leader: int
    leader_epoch: int
    replicas: list[int]
    isr: list[int]


def ask(address: Address, request: Any, timeout_s: float = ANSWER_TIMEOUT_S) -> Any:
    """Send a kafka-python request (made with `version=`) and return the decoded answer.

    Raises OSError if the broker refuses, hangs or closes the connection.
    """
    frame = answer_frame(address, request, timeout_s)
    return request.header.get_response_class().decode(frame, header=True)


def answer_frame(address: Address, request: Any, timeout_s: float = ANSWER_TIMEOUT_S) -> bytes:
    """Do the same as `ask`, but return the bytes of the answer: its header and body."""
    request.with_header(correlation_id=CORRELATION_ID, client_id="kview-tests")
    with socket.create_connection(address, timeout=timeout_s) as connection:
        connection.sendall(request.encode(header=True, framed=True))
        size = unpack(">i", _read(connection, 4))[0]
        return _read(connection, size)


def _read(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise ConnectionResetError("the broker closed the connection")
        parts += part
    return bytes(parts)


def metadata(address: Address, topics: Sequence[str] | None) -> Any:
    """Return a broker's Metadata answer for these topics, or for all topics if `topics` is None."""
    by_name = MetadataRequest.MetadataRequestTopic
    wanted = None if topics is None else [by_name(name=name) for name in topics]
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False, version=METADATA_VERSION)
    return ask(address, request)


def controllers_registered(address: Address) -> set[int]:
    """Return the controllers that have registered, as far as the one at `address` has heard of it."""
    request = DescribeClusterRequest(endpoint_type=CONTROLLERS, version=DESCRIBE_CLUSTER_VERSION)
    return {seen.broker_id for seen in ask(address, request).brokers}


def partitions_in(answer: Any) -> dict[str, dict[int, PartitionSeen]]:
    """Return the partitions in a Metadata answer by topic."""
    return {
        topic.name: {
            seen.partition_index: PartitionSeen(
                seen.leader_id, seen.leader_epoch, list(seen.replica_nodes), list(seen.isr_nodes)
            )
            for seen in topic.partitions
        }
        for topic in answer.topics
    }


def create_topic(
    address: Address, name: str, assignments: Sequence[Sequence[int]], configs: Mapping[str, str]
) -> str:
    """Create a topic whose partition p has the replicas `assignments[p]`. Return why it failed, or ''.

    A topic of that name is deleted first: an earlier try of the same test may have left it.
    """
    topic = CreateTopicsRequest.CreatableTopic
    request = CreateTopicsRequest(
        topics=[
            topic(
                name=name,
                num_partitions=-1,
                replication_factor=-1,
                assignments=[
                    topic.CreatableReplicaAssignment(partition_index=partition, broker_ids=list(replicas))
                    for partition, replicas in enumerate(assignments)
                ],
                configs=[topic.CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
            )
        ],
        timeout_ms=ADMIN_TIMEOUT_MS,
        validate_only=False,
        version=CREATE_TOPICS_VERSION,
    )
    (result,) = ask(address, request, ADMIN_TIMEOUT_S).topics
    if result.error_code == TOPIC_ALREADY_EXISTS:
        delete_topic(address, name)
        (result,) = ask(address, request, ADMIN_TIMEOUT_S).topics
    return f"topic {name}: error {result.error_code} {result.error_message}" if result.error_code else ""


def delete_topic(address: Address, name: str) -> None:
    """Delete a topic, and wait until this broker no longer knows it."""
    request = DeleteTopicsRequest(
        topic_names=[name], timeout_ms=ADMIN_TIMEOUT_MS, version=DELETE_TOPICS_VERSION
    )
    ask(address, request, ADMIN_TIMEOUT_S)
    wait_until(lambda: not partitions_in(metadata(address, [name]))[name], f"topic {name} is gone")


def elect_preferred(address: Address) -> None:
    """Elect the preferred replica of every partition as its leader, where that is possible."""
    request = ElectLeadersRequest(
        election_type=PREFERRED,
        topic_partitions=None,
        timeout_ms=ADMIN_TIMEOUT_MS,
        version=ELECT_LEADERS_VERSION,
    )
    ask(address, request, ADMIN_TIMEOUT_S)
