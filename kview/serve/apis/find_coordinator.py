"""FindCoordinator (10), versions 0–6: returns the broker that coordinates a group, a transactional id, or a
partition that a share group reads (`group:topic id:partition`).

v1 adds the type of key and an error message, v3 is flexible, v4 takes several keys, v5 only adds errors, and
v6 the partitions of share groups. As in Kafka, a missing topic of the coordinators is created, and the client
asks again. Kafka 3.9 has v6, but no share coordinators.
"""

import re
from typing import Any

from kafka.protocol.metadata import FindCoordinatorRequest, FindCoordinatorResponse

from kview.serve.call import Api, Call, Steps
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import MESSAGES, ErrorCode
from kview.simulate.features import SHARE_VERSION
from kview.simulate.world import OFFSETS_TOPIC, SHARE_TOPIC, TRANSACTIONS_TOPIC

GROUP, TRANSACTION, SHARE = 0, 1, 2
BATCHED_FROM = 4
SHARES_FROM = 6
TOPICS = {GROUP: OFFSETS_TOPIC, TRANSACTION: TRANSACTIONS_TOPIC, SHARE: SHARE_TOPIC}
RESOURCES = {GROUP: ResourceType.GROUP, TRANSACTION: ResourceType.TRANSACTIONAL_ID}
REFUSALS = {
    GROUP: ErrorCode.GROUP_AUTHORIZATION_FAILED,
    TRANSACTION: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
_SHARE_KEY = re.compile(r".*\S.*:[A-Za-z0-9_-]{22}:-?[0-9]{1,9}", re.DOTALL)
"""A group, a topic id in base64, and a partition."""


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
    has_shares = SHARE_VERSION in call.cluster.world.release.features
    is_share = kind == SHARE and call.version >= SHARES_FROM
    is_share = is_share and (not has_shares or _SHARE_KEY.fullmatch(key) is not None)
    if kind not in (GROUP, TRANSACTION) and not is_share:
        error = ErrorCode.INVALID_REQUEST
        message = "" if kind == SHARE else MESSAGES[error]
    elif is_share and not call.may(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER):
        error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    elif not is_share and not call.may(AclOperation.DESCRIBE, RESOURCES[kind], key):
        error = REFUSALS[kind]
    elif is_share and not has_shares:
        error = ErrorCode.COORDINATOR_NOT_AVAILABLE
    else:
        node = _find(call, kind, key)
        if node < 0:
            error = ErrorCode.COORDINATOR_NOT_AVAILABLE
            call.cluster.topics.create_internal_topic(call.broker, TOPICS[kind])
    if call.version < BATCHED_FROM:
        message = MESSAGES[error]
    host, port = call.wire.endpoint(node)
    return {"error_code": error, "error_message": message, "node_id": node, "host": host, "port": port}


def _find(call: Call, kind: int, key: str) -> int:
    """Return the broker that coordinates a key, or −1."""
    if kind == GROUP:
        return call.cluster.groups(call.broker).find(key)
    if kind == TRANSACTION:
        return call.cluster.transactions(call.broker).find(key)
    return call.cluster.shares(call.broker).find(key)


APIS = (Api(10, FindCoordinatorRequest, (0, 6), find_coordinator),)
