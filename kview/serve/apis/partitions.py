"""CreatePartitions (37) 0–3 and ElectLeaders (43) 0–2: add partitions to topics, elect leaders.

CreatePartitions: v2 is flexible. ElectLeaders: v1 adds the type of election (before, the preferred one) and a
top-level error, v2 is flexible. The controller carries out both requests.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from kafka.protocol.admin.topics import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
)

from kview.serve.apis.gather import Gather, ask_in_parts, by_topic, forward, message_of
from kview.serve.apis.mutations import EXCEEDED, Mutations
from kview.serve.apis.topics import DUPLICATE_NAME
from kview.serve.call import Api, Call, Steps
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import MESSAGES, ErrorCode
from kview.simulate.metadata import TopicPartition
from kview.simulate.requests.admin import NO_CONTROLLER
from kview.simulate.results import AdminResult

PREFERRED, UNCLEAN = 0, 1
STRICT_FROM = 3
ELECTION_TYPE_FROM = 1

Election = tuple[TopicPartition, AdminResult]


def create_partitions(call: Call) -> Steps:
    """Add partitions to each topic, and answer once the controller has decided on all."""
    request, version, admin = call.request, call.version, call.cluster.admin
    mutations = Mutations(call, STRICT_FROM)
    gather = Gather(
        call,
        lambda rows: CreatePartitionsResponse(
            version=version, throttle_time_ms=mutations.throttle(), results=rows
        ),
    )
    times = Counter(entry.name for entry in request.topics)
    for entry in {entry.name: entry for entry in request.topics}.values():
        place = gather.place()

        def created(result: AdminResult, place: int = place, name: str = entry.name) -> None:
            row = CreatePartitionsResponse.CreatePartitionsTopicResult(
                version=version, name=name, error_code=result.error_code, error_message=message_of(result)
            )
            gather.put(place, row)

        if times[entry.name] > 1:
            created(AdminResult(ErrorCode.INVALID_REQUEST, DUPLICATE_NAME))
            yield
            continue
        if not call.may(AclOperation.ALTER, ResourceType.TOPIC, entry.name):
            created(AdminResult(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            yield
            continue
        known = call.image.topics.get(entry.name)
        if known is not None and not mutations.allows(max(0, entry.count - len(known.partitions))):
            created(AdminResult(EXCEEDED))
            yield
            continue
        assigned = entry.assignments
        assignment = None if assigned is None else [tuple(a.broker_ids) for a in assigned]

        def ask(
            name: str = entry.name, count: int = entry.count, assignment: Any = assignment
        ) -> AdminResult:
            return admin.create_partitions(name, count, assignment, request.validate_only)

        forward(call, ask, NO_CONTROLLER, created)
        yield
    gather.close()


def elect_leaders(call: Call) -> Steps:
    """Elect leaders of the requested partitions, or of all, and answer with each result."""
    request, version, admin = call.request, call.version, call.cluster.admin
    kind = request.election_type if version >= ELECTION_TYPE_FROM else PREFERRED
    asked = request.topic_partitions
    keys = None if asked is None else [(t.topic, p) for t in asked for p in t.partitions]

    def elect(part: Sequence[TopicPartition], done: Callable[[Sequence[Election]], None]) -> None:
        late = [(key, NO_CONTROLLER) for key in part]
        forward(call, lambda: admin.elect_leaders(part, kind == UNCLEAN), late, done)

    def elected(results: Sequence[Election] | None) -> None:
        late = results is None or any(result is NO_CONTROLLER for _, result in results)
        error = NO_CONTROLLER.error_code if late else ErrorCode.NONE
        call.run(_answer_elections(call, error, results or ()))

    if not call.may(AclOperation.ALTER, ResourceType.CLUSTER):
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        refused = AdminResult(code, MESSAGES[code])
        yield from _answer_elections(call, code, [(key, refused) for key in keys or ()])
    elif kind not in (PREFERRED, UNCLEAN):
        wrong = AdminResult(ErrorCode.INVALID_REQUEST, f"Unknown election type {kind}")
        yield from _answer_elections(call, wrong.error_code, [(key, wrong) for key in keys or ()])
    elif keys is None:
        forward(call, lambda: admin.elect_leaders(None, kind == UNCLEAN), None, elected)
    else:
        yield from ask_in_parts(keys, elect, elected)


def _answer_elections(call: Call, error: ErrorCode, results: Sequence[Election]) -> Steps:
    version, per_topic = call.version, ElectLeadersResponse.ReplicaElectionResult
    rows = []
    for (topic, partition), result in results:
        row = per_topic.PartitionResult(
            version=version,
            partition_id=partition,
            error_code=result.error_code,
            error_message=message_of(result),
        )
        rows.append((topic, row))
        yield
    topics = [
        per_topic(version=version, topic=topic, partition_result=of_topic)
        for topic, of_topic in by_topic(rows).items()
    ]
    call.answer(ElectLeadersResponse(version=version, error_code=error, replica_election_results=topics))


APIS = (
    Api(37, CreatePartitionsRequest, (0, 3), create_partitions),
    Api(43, ElectLeadersRequest, (0, 2), elect_leaders),
)
