"""Members of groups for which there is no client to hand: they speak the protocol themselves.

A member of a streams group (KIP-1071), and a worker of Kafka Connect, which to a coordinator is a member of a
classic group.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Any

from kafka.protocol.consumer import JoinGroupRequest, LeaveGroupRequest, OffsetCommitRequest, SyncGroupRequest

from kview.wire.member_messages import StreamsGroupHeartbeatRequest
from kview.wire.primitives import Writer
from tests.real_kafka.asking import Address, ask
from tests.real_kafka.cluster import RealKafka
from tests.served import Served
from tests.waiting import wait_until

LEAVES = -1
"""The epoch with which a member leaves."""

NOT_YET = (14, 15, 16)
"""COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR."""


def _addresses(kafka: RealKafka | Served) -> Sequence[Address]:
    if isinstance(kafka, Served):
        return kafka.addresses
    return [kafka.address(broker) for broker in kafka.broker_ids]


def asked_of_coordinator(
    kafka: RealKafka | Served, request: Any, error_of: Callable[[Any], int] = attrgetter("error_code")
) -> Any:
    """Return the answer of the broker that coordinates the group, whose error number is 0."""

    def answer() -> Any:
        for address in _addresses(kafka):
            with suppress(OSError):  # a broker that is down or hangs does not coordinate it for long
                found = ask(address, request)
                if error_of(found) not in NOT_YET:
                    return found
        return None

    found = wait_until(answer, "a coordinator")
    assert not error_of(found), found
    return found


class StreamsMember:
    """An application with one subtopology that reads a topic."""

    def __init__(self, kafka: RealKafka | Served, group: str, topic: str) -> None:
        self._kafka, self._group, self._topic = kafka, group, topic
        self.id, self.epoch = str(uuid.uuid4()), 0
        self.tasks: list[Any] = []

    def leave(self) -> None:
        """Leave the group."""
        self.epoch = LEAVES
        self.beat()

    def commit(self, offsets: Mapping[int, int]) -> None:
        """Commit these offsets by partition of the topic."""
        topic = OffsetCommitRequest.OffsetCommitRequestTopic
        one = topic.OffsetCommitRequestPartition
        partitions = [
            one(
                partition_index=number,
                committed_offset=offset,
                committed_leader_epoch=-1,
                committed_metadata="",
            )
            for number, offset in offsets.items()
        ]
        request = OffsetCommitRequest[9](
            group_id=self._group, generation_id_or_member_epoch=self.epoch, member_id=self.id,
            group_instance_id=None, topics=[topic(name=self._topic, partitions=partitions)],
        )  # fmt: skip
        asked_of_coordinator(
            self._kafka,
            request,
            lambda answer: max(p.error_code for t in answer.topics for p in t.partitions),
        )

    def beat(self) -> int:
        """Send a heartbeat with the tasks that it has, take what it is given, and return how many tasks."""
        whole = StreamsGroupHeartbeatRequest.Topology
        part = whole.Subtopology(
            subtopology_id="0", source_topics=[self._topic], source_topic_regex=[], state_changelog_topics=[],
            repartition_sink_topics=[], repartition_source_topics=[], copartition_groups=[],
        )  # fmt: skip
        request = StreamsGroupHeartbeatRequest[0](
            group_id=self._group, member_id=self.id, member_epoch=self.epoch, endpoint_information_epoch=-1,
            instance_id=None, rack_id="R1", rebalance_timeout_ms=30_000,
            topology=whole(epoch=0, subtopologies=[part]) if not self.epoch else None,
            active_tasks=self.tasks, standby_tasks=[], warmup_tasks=[], process_id="p", client_tags=[],
        )  # fmt: skip
        answer = asked_of_coordinator(self._kafka, request)
        self.epoch = answer.member_epoch
        if answer.active_tasks is not None:
            task = StreamsGroupHeartbeatRequest.TaskIds
            self.tasks = [
                task(subtopology_id=one.subtopology_id, partitions=list(one.partitions))
                for one in answer.active_tasks
            ]
        return sum(len(one.partitions) for one in self.tasks)


WORKER_HAD_NOTHING = Writer().int16(2).string("http://worker:8083/").int64(7).nullable_bytes(None).done()
"""The metadata of a worker that joins for the first time: its URL, an offset, and no assignment."""


def join_as_worker(kafka: RealKafka, group: str, runs: Mapping[str, Sequence[int]]) -> str:
    """Join as the only worker, whose leader (itself) has given it these tasks by connector. Return its id.

    It sends no heartbeat: its session is longer than a test.
    """
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="sessioned", metadata=WORKER_HAD_NOTHING)
    request = JoinGroupRequest[3](
        group_id=group, session_timeout_ms=1_200_000, rebalance_timeout_ms=60_000, member_id="",
        protocol_type="connect", protocols=[protocol],
    )  # fmt: skip
    joined = asked_of_coordinator(kafka, request)
    writer = Writer().int16(2).int16(0).string(joined.member_id).string("http://worker:8083/").int64(7)
    writer.int32(len(runs))
    for connector, tasks in runs.items():
        writer.string(connector).int32s(tasks)
    writer.int32(0).int32(0)  # nothing is revoked, and nothing is delayed
    given = SyncGroupRequest.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=writer.done())
    request = SyncGroupRequest[3](
        group_id=group, generation_id=joined.generation_id, member_id=joined.member_id, assignments=[given]
    )
    asked_of_coordinator(kafka, request)
    return str(joined.member_id)


def leave_as_worker(kafka: RealKafka, group: str, member: str) -> None:
    """Leave the workers."""
    asked_of_coordinator(kafka, LeaveGroupRequest[2](group_id=group, member_id=member))
