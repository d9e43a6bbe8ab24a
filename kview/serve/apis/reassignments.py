"""AlterPartitionReassignments (45) 0–1 and ListPartitionReassignments (46) 0: move replicas to other brokers.

AlterPartitionReassignments v1 can forbid another number of replicas. The controller carries out both. The new
replicas copy the log over the simulated network, which takes its time.
"""

from collections.abc import Callable, Sequence
from typing import Any

from kafka.protocol.admin.topics import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

from kview.serve.apis.gather import ask_in_parts, by_topic, forward, message_of
from kview.serve.call import Api, Call, Steps
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import MESSAGES, ErrorCode
from kview.simulate.requests.admin import NO_CONTROLLER
from kview.simulate.results import AdminResult, Reassignment

Asked = tuple[str, int, Sequence[int] | None]
"""Topic, partition, and the new replicas or None."""


REFUSED = AdminResult(
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED, MESSAGES[ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
)


def alter_reassignments(call: Call) -> Steps:
    """Begin or cancel each reassignment, and answer with each result."""
    request, admin = call.request, call.cluster.admin
    asked = [(t.name, p.partition_index, p.replicas) for t in request.topics for p in t.partitions]
    may_change = call.version < 1 or request.allow_replication_factor_change
    if not call.may(AclOperation.ALTER, ResourceType.CLUSTER):
        yield from _answer_altered(call, True, asked, [REFUSED] * len(asked), REFUSED)
        return

    def reassign(part: Sequence[Asked], done: Callable[[Sequence[AdminResult]], None]) -> None:
        forward(
            call,
            lambda: [admin.reassign((topic, index), replicas, may_change) for topic, index, replicas in part],
            [NO_CONTROLLER] * len(part),
            done,
        )

    def altered(results: Sequence[AdminResult]) -> None:
        whole = NO_CONTROLLER if NO_CONTROLLER in results else AdminResult(ErrorCode.NONE)
        call.run(_answer_altered(call, may_change, asked, results, whole))

    yield from ask_in_parts(asked, reassign, altered)


def _answer_altered(
    call: Call,
    may_change: bool,
    asked: Sequence[Asked],
    results: Sequence[AdminResult],
    whole: AdminResult,
) -> Steps:
    version, per_topic = call.version, AlterPartitionReassignmentsResponse.ReassignableTopicResponse
    rows = []
    for (topic, index, _), result in zip(asked, results, strict=True):
        row = per_topic.ReassignablePartitionResponse(
            version=version,
            partition_index=index,
            error_code=result.error_code,
            error_message=message_of(result),
        )
        rows.append((topic, row))
        yield
    call.answer(
        AlterPartitionReassignmentsResponse(
            version=version,
            allow_replication_factor_change=may_change,
            error_code=whole.error_code,
            error_message=whole.message,
            responses=[
                per_topic(version=version, name=name, partitions=of_topic)
                for name, of_topic in by_topic(rows).items()
            ],
        )
    )


def list_reassignments(call: Call) -> None:
    """Answer with the reassignments in progress of the requested partitions, or of all."""
    request, version, admin = call.request, call.version, call.cluster.admin
    if not call.may(AclOperation.DESCRIBE, ResourceType.CLUSTER):
        topic, none = (
            ListPartitionReassignmentsResponse.OngoingTopicReassignment,
            Reassignment(("", 0), (), (), ()),
        )
        call.answer(
            ListPartitionReassignmentsResponse(
                version=version,
                error_code=REFUSED.error_code,
                error_message=REFUSED.message,
                topics=[
                    topic(
                        version=version,
                        name=asked.name,
                        partitions=[
                            _ongoing(version, none._replace(key=(asked.name, p)))
                            for p in asked.partition_indexes
                        ],
                    )
                    for asked in request.topics or ()
                ],
            )
        )
        return
    wanted = None
    if request.topics is not None:
        wanted = {(t.name, p) for t in request.topics for p in t.partition_indexes}

    def listed(ongoing: list[Reassignment] | None) -> None:
        rows = [(r.key[0], _ongoing(version, r)) for r in ongoing or () if wanted is None or r.key in wanted]
        topics = [
            ListPartitionReassignmentsResponse.OngoingTopicReassignment(
                version=version, name=name, partitions=of_topic
            )
            for name, of_topic in by_topic(rows).items()
        ]
        call.answer(
            ListPartitionReassignmentsResponse(
                version=version,
                error_code=ErrorCode.NONE if ongoing is not None else NO_CONTROLLER.error_code,
                error_message=None if ongoing is not None else NO_CONTROLLER.message,
                topics=topics,
            )
        )

    forward(call, admin.reassignments, None, listed)


def _ongoing(version: int, reassignment: Reassignment) -> Any:
    return ListPartitionReassignmentsResponse.OngoingTopicReassignment.OngoingPartitionReassignment(
        version=version,
        partition_index=reassignment.key[1],
        replicas=list(reassignment.replicas),
        adding_replicas=list(reassignment.adding),
        removing_replicas=list(reassignment.removing),
    )


APIS = (
    Api(45, AlterPartitionReassignmentsRequest, (0, 1), alter_reassignments),
    Api(46, ListPartitionReassignmentsRequest, (0, 0), list_reassignments),
)
