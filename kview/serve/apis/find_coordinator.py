"""FindCoordinator (10), versions 0–6: returns the broker that coordinates a group.

v1 adds the type of key and an error message, v3 is flexible, v4 takes several keys, v5 and v6 only add errors
and types. Left out on purpose: coordinators of transactions and of share groups (COORDINATOR_NOT_AVAILABLE).
"""

from typing import Any

from kafka.protocol.metadata import FindCoordinatorRequest, FindCoordinatorResponse

from kview.serve.call import Api, Call
from kview.simulate.codes import ErrorCode

GROUP = 0
BATCHED_FROM = 4


def find_coordinator(call: Call) -> None:
    """Answer with the coordinator of each key, from this broker's metadata."""
    request, version = call.request, call.version
    if version < BATCHED_FROM:
        call.answer(FindCoordinatorResponse(version=version, **_found(call, request.key)))
        return
    coordinators = [
        FindCoordinatorResponse.Coordinator(version=version, key=key, **_found(call, key))
        for key in request.coordinator_keys
    ]
    call.answer(FindCoordinatorResponse(version=version, coordinators=coordinators))


def _found(call: Call, key: str) -> dict[str, Any]:
    node = -1
    if call.version < 1 or call.request.key_type == GROUP:
        node = call.cluster.groups(call.broker).find(key)
    host, port = call.wire.endpoint(node)
    error = ErrorCode.NONE if node >= 0 else ErrorCode.COORDINATOR_NOT_AVAILABLE
    return {"error_code": error, "node_id": node, "host": host, "port": port}


APIS = (Api(10, FindCoordinatorRequest, (0, 6), find_coordinator),)
