"""Fills big clusters over the wire: records in every partition, and groups by the thousand.

Requests go out many at a time, because one by one they would take minutes.
"""

import itertools
import socket
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from struct import unpack
from typing import Any

from kafka.protocol.consumer import (
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    SyncGroupRequest,
)
from kafka.protocol.consumer.metadata import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from kafka.protocol.metadata import FindCoordinatorRequest
from kafka.protocol.producer import ProduceRequest

from kview.simulate.records import encode_batch
from tests.real_kafka.asking import ask, metadata, partitions_in

Address = tuple[str, int]
Parts = Mapping[str, Sequence[int]]
"""Topic → partitions."""

IN_FLIGHT = 50
PARTITIONS_A_REQUEST = 1_000
KEYS_A_REQUEST = 500
ANSWER_S = 60.0
SESSION_MS = 1_800_000
"""The longest that Kafka allows: members that never send a heartbeat stay for half an hour."""
PROTOCOL = "consumer"


def ask_all(address: Address, requests: Iterable[Any]) -> Iterator[Any]:
    """Yield a broker's answers to requests in their order, IN_FLIGHT of them sent at a time."""
    with socket.create_connection(address, timeout=ANSWER_S) as connection:
        reader = connection.makefile("rb")
        for some in _some(requests):
            for request in some:
                request.with_header(correlation_id=1, client_id="bench")
            connection.sendall(b"".join(request.encode(header=True, framed=True) for request in some))
            for request in some:
                frame = reader.read(unpack(">i", reader.read(4))[0])
                yield request.header.get_response_class().decode(frame, header=True)


def _some(requests: Iterable[Any]) -> Iterator[Sequence[Any]]:
    left = iter(requests)
    while some := list(itertools.islice(left, IN_FLIGHT)):
        yield some


def leaders(address: Address) -> dict[Address, dict[str, list[int]]]:
    """Return the partitions of the user's topics by the address of their leader."""
    answer = metadata(address, None)
    at = {broker.node_id: (broker.host, broker.port) for broker in answer.brokers}
    led: dict[Address, dict[str, list[int]]] = defaultdict(dict)
    for topic, partitions in partitions_in(answer).items():
        if topic.startswith("__"):
            continue
        for partition, seen in partitions.items():
            led[at[seen.leader]].setdefault(topic, []).append(partition)
    return led


def produce(address: Address, parts: Parts, records: int) -> None:
    """Append a batch of so many records to each partition, all of which the broker leads."""
    batch = encode_batch([(None, b"x" * 20, int(time.time() * 1000))] * records)
    per_topic = ProduceRequest.TopicProduceData
    flat = [(topic, partition) for topic, partitions in parts.items() for partition in partitions]
    requests = []
    for begin in range(0, len(flat), PARTITIONS_A_REQUEST):
        by_topic: dict[str, list[Any]] = {}
        for topic, partition in flat[begin : begin + PARTITIONS_A_REQUEST]:
            data = per_topic.PartitionProduceData(version=9, index=partition, records=batch)
            by_topic.setdefault(topic, []).append(data)
        requests.append(
            ProduceRequest(
                version=9,
                transactional_id=None,
                acks=1,
                timeout_ms=30_000,
                topic_data=[per_topic(version=9, name=t, partition_data=d) for t, d in by_topic.items()],
            )
        )
    for answer in ask_all(address, requests):
        errors = {row.error_code for topic in answer.responses for row in topic.partition_responses}
        assert errors == {0}, errors


def coordinators(address: Address, groups: Sequence[str]) -> dict[Address, list[str]]:
    """Return the groups by the address of their coordinator."""
    found: dict[Address, list[str]] = defaultdict(list)
    for begin in range(0, len(groups), KEYS_A_REQUEST):
        keys = list(groups[begin : begin + KEYS_A_REQUEST])
        for _ in range(100):
            answer = ask(
                address, FindCoordinatorRequest(version=4, key_type=0, coordinator_keys=keys), ANSWER_S
            )
            if not any(row.error_code for row in answer.coordinators):
                break
            time.sleep(0.2)  # the first time, __consumer_offsets is created
        for row in answer.coordinators:
            assert not row.error_code, row
            found[(row.host, row.port)].append(row.key)
    return found


def commit(address: Address, commits: Mapping[str, Mapping[str, Mapping[int, int]]]) -> None:
    """Commit offsets as groups without members: group → topic → partition → offset."""
    for answer in ask_all(address, (_commit(group, of_group, -1, "") for group, of_group in commits.items())):
        errors = {row.error_code for topic in answer.topics for row in topic.partitions}
        assert errors == {0}, errors


def _commit(group: str, offsets: Mapping[str, Mapping[int, int]], generation: int, member: str) -> Any:
    per_topic = OffsetCommitRequest.OffsetCommitRequestTopic
    per_partition = per_topic.OffsetCommitRequestPartition
    topics = [
        per_topic(
            version=7,
            name=topic,
            partitions=[
                per_partition(
                    version=7,
                    partition_index=p,
                    committed_offset=offset,
                    committed_leader_epoch=-1,
                    committed_metadata="",
                )
                for p, offset in of_topic.items()
            ],
        )
        for topic, of_topic in offsets.items()
    ]
    return OffsetCommitRequest(
        version=7,
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member,
        group_instance_id=None,
        topics=topics,
    )


def join(address: Address, groups: Mapping[str, Parts]) -> dict[str, tuple[int, str]]:
    """Let one member join each group and own these partitions. Return its generation and member id."""
    protocol = JoinGroupRequest.JoinGroupRequestProtocol
    requests = [
        JoinGroupRequest(
            version=3,
            group_id=group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            member_id="",
            protocol_type=PROTOCOL,
            protocols=[
                protocol(
                    version=3,
                    name="range",
                    metadata=ConsumerProtocolSubscription(
                        version=0, topics=sorted(parts), user_data=None
                    ).encode(),
                )
            ],
        )
        for group, parts in groups.items()
    ]
    joined = {
        group: (answer.generation_id, answer.member_id)
        for group, answer in zip(groups, ask_all(address, requests), strict=True)
    }
    assignments = SyncGroupRequest.SyncGroupRequestAssignment
    of_topic = ConsumerProtocolAssignment.TopicPartition
    syncs = []
    for group, (generation, member) in joined.items():
        owned = ConsumerProtocolAssignment(
            version=0,
            assigned_partitions=[
                of_topic(version=0, topic=t, partitions=list(p)) for t, p in sorted(groups[group].items())
            ],
            user_data=None,
        ).encode()
        syncs.append(
            SyncGroupRequest(
                version=2,
                group_id=group,
                generation_id=generation,
                member_id=member,
                assignments=[assignments(version=2, member_id=member, assignment=owned)],
            )
        )
    for answer in ask_all(address, syncs):
        assert not answer.error_code, answer
    return joined


def commit_as(
    address: Address,
    members: Mapping[str, tuple[int, str]],
    commits: Mapping[str, Mapping[str, Mapping[int, int]]],
) -> None:
    """Commit offsets as these members."""
    requests = (_commit(group, of_group, *members[group]) for group, of_group in commits.items())
    for answer in ask_all(address, requests):
        errors = {row.error_code for topic in answer.topics for row in topic.partitions}
        assert errors == {0}, errors


def leave(address: Address, members: Mapping[str, tuple[int, str]]) -> None:
    """Let these members leave their groups, which then have none."""
    requests = [
        LeaveGroupRequest(version=2, group_id=group, member_id=member)
        for group, (_, member) in members.items()
    ]
    for answer in ask_all(address, requests):
        assert not answer.error_code, answer
