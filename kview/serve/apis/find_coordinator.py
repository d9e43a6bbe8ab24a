"""FindCoordinator (10), versions 0–6: returns the broker that coordinates a group or a transactional id.

v1 adds the type of key and an error message, v3 is flexible, v4 takes several keys, v5 and v6 only add errors
and types. As in Kafka, a missing topic of the coordinators is created, and the client asks again. Left out on
purpose: coordinators of share groups (INVALID_REQUEST, with a message).
"""

from typing import Any

from kafka.protocol.metadata import FindCoordinatorRequest, FindCoordinatorResponse

from kview.serve.call import Api, Call, Steps
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import MESSAGES, ErrorCode
from kview.simulate.world import OFFSETS_TOPIC, TRANSACTIONS_TOPIC

GROUP, TRANSACTION = 0, 1
BATCHED_FROM = 4
TOPICS = {GROUP: OFFSETS_TOPIC, TRANSACTION: TRANSACTIONS_TOPIC}
RESOURCES = {GROUP: ResourceType.GROUP, TRANSACTION: ResourceType.TRANSACTIONAL_ID}
REFUSALS = {
    GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    TRANSACTION: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
NOT_SUPPORTED = {2: "The simulated cluster does not support share groups."}


def find_coordinator(call: Call) -> Steps:
    """Answer with the coordinator of each key, from this broker's metadata."""
    request, version = call.request, call.version
    if version < BATCHED_FROM:
        call.answer(FindCoordinatorResponse(version=version, **_found(call, request.key)))
        return
    coordinators = []
    for key in request.coordinator_keys:
        coordinators.append(
            FindCoordinatorResponse.Coordinator(version=version, key=key, **_found(call, key))
        )
        yield
    call.answer(FindCoordinatorResponse(version=version, coordinators=coordinators))


def _found(call: Call, key: str) -> dict[str, Any]:
    kind = call.request.key_type if call.version >= 1 else GROUP
    node, error, message = -1, ErrorCode.NONE, ""
    if kind not in TOPICS:
        error = ErrorCode.INVALID_REQUEST
        message = NOT_SUPPORTED.get(kind, MESSAGES[error])
    elif not call.may(AclOperation.DESCRIBE, RESOURCES[kind], key):
        error = REFUSALS[kind]
        message = MESSAGES[error] if call.version < BATCHED_FROM else ""
    else:
        cluster = call.cluster
        coordinator = cluster.groups(call.broker) if kind == GROUP else cluster.transactions(call.broker)
        node = coordinator.find(key)
        if node < 0:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
            cluster.topics.create_internal_topic(call.broker, TOPICS[kind])
        if call.version < BATCHED_FROM:
            message = MESSAGES[error]
    host, port = call.wire.endpoint(node)
    return {"error_code": error, "error_message": message, "node_id": node, "host": host, "port": port}


APIS = (Api(10, FindCoordinatorRequest, (0, 6), find_coordinator),)
