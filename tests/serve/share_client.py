"""A member of a share group, and questions to share coordinators, as single requests.

A member keeps its connections: a session ends with the connection on which it was opened.
"""

import socket
import time
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from struct import unpack
from typing import Any, Self
from uuid import UUID

from kafka.protocol.metadata import FindCoordinatorRequest
from kafka.protocol.producer import ProduceRequest

from kview.simulate.records import encode_batch, header
from kview.wire.group_messages import DescribeShareGroupOffsetsRequest, ShareGroupDescribeRequest
from kview.wire.member_messages import (
    ReadShareGroupStateRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupHeartbeatRequest,
)
from tests.real_kafka.asking import Address, ask
from tests.serve import questions as q
from tests.serve.both import Cluster
from tests.waiting import wait_until

SHARE = 2
NOT_YET = (14, 15, 16)
"""Errors of a coordinator that is not there yet."""
ANSWER_S = 20.0

Acks = Sequence[tuple[int, int, Sequence[int]]]
"""(first offset, last offset, acknowledge types)"""


class Shared:
    """A share group and a topic of their own, with two partitions at broker 0 and one at broker 1."""

    def __init__(
        self, cluster: Cluster, partitions: Sequence[Sequence[int]] = ((0, 1), (0, 1), (1, 0))
    ) -> None:
        self.cluster = cluster
        self.topic = f"share-{uuid.uuid4().hex[:8]}"
        self.group = f"group-{self.topic}"
        cluster.make(self.topic, partitions, {})
        self.topic_id = q.topic_id(cluster.leader, self.topic)
        self.count = len(partitions)
        self.coordinator = self.find(self.group, 0)
        self.set("share.auto.offset.reset", "earliest")

    def find(self, key: str, kind: int) -> Address:
        """Return the address of a coordinator."""
        request = FindCoordinatorRequest(version=6, key_type=kind, coordinator_keys=[key])

        def found() -> Any:
            return ask(self.cluster.leader, request).coordinators[0]

        wait_until(lambda: not found().error_code, "a coordinator")
        return self.cluster.at(found().node_id)

    def set(self, name: str, value: str) -> None:
        """Set a configuration of the group, and wait until the leader and the coordinator know it."""
        q.set_for_group(self.group, name, value, self.cluster.leader, self.coordinator)

    def beat(self, member: str, epoch: int, topics: Sequence[str] | None = None, **fields: Any) -> Any:
        """Send a heartbeat, and return its answer."""
        request = ShareGroupHeartbeatRequest(
            version=1,
            member_id=member,
            member_epoch=epoch,
            subscribed_topic_names=topics,
            **{"group_id": self.group, **fields},
        )
        answers: list[Any] = []

        def asked() -> bool:
            answers.append(ask(self.coordinator, request, ANSWER_S))
            return answers[-1].error_code not in NOT_YET

        wait_until(asked, "an answer")
        return answers[-1]

    def told(self, member: str, epoch: int, topics: Sequence[str] | None = None, **fields: Any) -> Any:
        """Send a heartbeat, and return the epoch and the partitions (None if not told), or the error and its
        message."""
        answer = self.beat(member, epoch, topics, **fields)
        if answer.error_code:
            return answer.error_code, answer.error_message
        return answer.member_epoch, numbers(answer.assignment)

    def join(self, member: str) -> int:
        """Join with the topic, wait for partitions, and return the member's epoch."""
        epoch = self.beat(member, 0, [self.topic]).member_epoch
        answers: list[Any] = []

        def assigned() -> bool:
            answers.append(self.beat(member, answers[-1].member_epoch if answers else epoch))
            return bool(numbers(answers[-1].assignment))

        wait_until(assigned, "partitions")
        return int(answers[-1].member_epoch)

    def described(self) -> Any:
        """The group as ShareGroupDescribe has it."""
        request = ShareGroupDescribeRequest(version=1, group_ids=[self.group])
        return ask(self.coordinator, request).groups[0]

    def produce(self, partition: int, count: int) -> int:
        """Write a batch to a partition at broker 0, and return its base offset."""
        batch = encode_batch([(None, b"v%d" % n, round(time.time() * 1000)) for n in range(count)])
        per_topic = ProduceRequest.TopicProduceData
        data = per_topic.PartitionProduceData(version=9, index=partition, records=batch)
        request = ProduceRequest(
            version=9,
            transactional_id=None,
            acks=-1,
            timeout_ms=5_000,
            topic_data=[per_topic(version=9, name=self.topic, partition_data=[data])],
        )
        row = ask(self.cluster.leader, request).responses[0].partition_responses[0]
        assert not row.error_code, row
        return int(row.base_offset)

    def state(self, partition: int = 0) -> Any:
        """Return what the share coordinator has of a partition: start offset and batches, or its error."""
        key = f"{self.group}:{urlsafe_b64encode(self.topic_id.bytes).decode().rstrip('=')}:{partition}"
        request = read_state(self.group, self.topic_id, partition, -1)
        row = ask(self.find(key, SHARE), request).results[0].partitions[0]
        if row.error_code:
            return row.error_code, row.error_message
        return row.start_offset, batches_of(row)

    def offsets(self) -> Mapping[int, tuple[int, int]]:
        """Return partition → (start offset, lag)."""
        per_group = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
        request = DescribeShareGroupOffsetsRequest(
            version=1, groups=[per_group(version=1, group_id=self.group, topics=None)]
        )
        (group,) = ask(self.coordinator, request).groups
        return {p.partition_index: (p.start_offset, p.lag) for t in group.topics for p in t.partitions}


def read_state(group: str, topic_id: UUID, partition: int, leader_epoch: int) -> Any:
    """Return a ReadShareGroupState request."""
    per_topic = ReadShareGroupStateRequest.ReadStateData
    row = per_topic.PartitionData(version=0, partition=partition, leader_epoch=leader_epoch)
    return ReadShareGroupStateRequest(
        version=0, group_id=group, topics=[per_topic(version=0, topic_id=topic_id, partitions=[row])]
    )


def batches_of(row: Any) -> list[tuple[int, int, int, int]]:
    """Return the (first, last offset, state, delivery count) of the batches in ReadShareGroupState."""
    return [(b.first_offset, b.last_offset, b.delivery_state, b.delivery_count) for b in row.state_batches]


def numbers(assignment: Any) -> list[int] | None:
    """Return the partitions of an assignment, None if there is none."""
    if assignment is None:
        return None
    return sorted(number for topic in assignment.topic_partitions for number in topic.partitions)


class Member:
    """A member that fetches from broker 0 on one connection."""

    def __init__(self, shared: Shared, name: str, version: int = 2) -> None:

        self.shared = shared
        self.name = name
        self.version = version
        self.epoch = 0
        self._socket = socket.create_connection(shared.cluster.leader, timeout=ANSWER_S)
        self._stream = self._socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection."""
        self._stream.close()
        self._socket.close()

    def ask(self, request: Any) -> Any:
        """Send a request on the member's connection, and return the answer."""
        request.with_header(1, "tests")
        self._socket.sendall(request.encode(header=True, framed=True))
        size = unpack(">i", self._stream.read(4))[0]
        return request.header.get_response_class().decode(self._stream.read(size), header=True)

    def _next(self, epoch: int | None, failed: int) -> None:
        if epoch is None and not failed:
            self.epoch += 1

    def fetch(
        self,
        *places: tuple[int, Acks],
        epoch: int | None = None,
        forget: Sequence[int] = (),
        **fields: Any,
    ) -> Any:
        """Fetch, and return partition → (error, acknowledge error, the log's batches, what was acquired), or
        the error of the whole request."""
        version, asked = self.version, ShareFetchRequest.FetchTopic
        per_partition = asked.FetchPartition
        topic_id = self.shared.topic_id
        topics = [
            asked(
                version=version,
                topic_id=topic_id,
                partitions=[
                    per_partition(
                        version=version,
                        partition_index=number,
                        acknowledgement_batches=_batches(per_partition.AcknowledgementBatch, version, acks),
                    )
                    for number, acks in places
                ],
            )
        ]
        forgotten = ShareFetchRequest.ForgottenTopic(
            version=version, topic_id=topic_id, partitions=list(forget)
        )
        renews = {"is_renew_ack": fields.pop("renews", False)} if version > 1 else {}
        request = ShareFetchRequest(
            version=version,
            group_id=self.shared.group,
            member_id=self.name,
            share_session_epoch=self.epoch if epoch is None else epoch,
            topics=topics if places else [],
            forgotten_topics_data=[forgotten] if forget else [],
            **renews,
            **{"max_wait_ms": 300, "min_bytes": 1, "max_records": 500, "batch_size": 500, **fields},
        )
        answer = self.ask(request)
        self._next(epoch, answer.error_code)
        if answer.error_code:
            return answer.error_code
        return {
            p.partition_index: (
                p.error_code,
                p.acknowledge_error_code,
                _bounds(p.records or b""),
                [(a.first_offset, a.last_offset, a.delivery_count) for a in p.acquired_records],
            )
            for t in answer.responses
            for p in t.partitions
        }

    def got(self, *places: tuple[int, Acks], partition: int = 0, **fields: Any) -> Any:
        """Fetch, and return what was acquired of one partition."""
        answer = self.fetch(*places, **fields)
        return answer[partition][3] if partition in answer else None

    def acknowledge(self, partition: int, *acks: tuple[int, int, Sequence[int]], **fields: Any) -> Any:
        """Acknowledge, and return the partition's error and message, or the error of the whole request."""
        version, asked = self.version, ShareAcknowledgeRequest.AcknowledgeTopic
        epoch = fields.pop("epoch", None)
        per_partition = asked.AcknowledgePartition
        row = per_partition(
            version=version,
            partition_index=partition,
            acknowledgement_batches=_batches(per_partition.AcknowledgementBatch, version, acks),
        )
        topic_id = fields.pop("topic_id", self.shared.topic_id)
        renews = {"is_renew_ack": fields.pop("renews", False)} if version > 1 else {}
        request = ShareAcknowledgeRequest(
            version=version,
            group_id=self.shared.group,
            member_id=self.name,
            share_session_epoch=self.epoch if epoch is None else epoch,
            topics=[asked(version=version, topic_id=topic_id, partitions=[row])],
            **renews,
        )
        answer = self.ask(request)
        self._next(epoch, answer.error_code)
        if answer.error_code or not answer.responses:
            return answer.error_code
        found = answer.responses[0].partitions[0]
        return found.error_code, found.error_message


def _batches(kind: Any, version: int, acks: Acks) -> list[Any]:
    return [
        kind(version=version, first_offset=first, last_offset=last, acknowledge_types=list(types))
        for first, last, types in acks
    ]


def _bounds(records: bytes) -> list[tuple[int, int]]:
    """Return (first, last) offset of the batches."""
    at, bounds = 0, []
    while at < len(records):
        head = header(records, at)
        bounds.append((head.base_offset, head.base_offset + head.last_offset_delta))
        at += head.size_bytes
    return bounds
