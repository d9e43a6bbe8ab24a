"""UnregisterBroker (64) 0, AddRaftVoter (80) 0–1 and RemoveRaftVoter (81) 0: nodes that leave, and who votes
among the controllers.

A broker that was unregistered is not listed any more. v1 of 80 lets a client have its answer before the
change is committed, which makes no difference here: it is committed at once.
"""

from collections.abc import Callable
from typing import Any

from kview.serve.apis.gather import forward, message_of
from kview.serve.call import Api, Call, id_bytes
from kview.serve.frames import Garbage
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import MESSAGES, ErrorCode
from kview.simulate.requests.admin import NO_CONTROLLER
from kview.simulate.requests.voters import Voter
from kview.simulate.results import AdminResult
from kview.wire.admin_messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)

LISTENERS_MAX = 100
"""Limit of the listeners of a controller. Kafka has none."""


def unregister_broker(call: Call) -> None:
    """Remove a broker from the metadata."""
    broker = call.request.broker_id

    def unregister() -> AdminResult:
        result = call.cluster.controller.unregister(broker)
        return result if call.cluster.world.release.tells_unregister_errors else result._replace(message="")

    _change(call, UnregisterBrokerResponse, "", unregister)


def add_voter(call: Call) -> None:
    """Let a controller vote. More than LISTENERS_MAX listeners end the connection."""
    request = call.request
    if len(request.listeners) > LISTENERS_MAX:
        raise Garbage(f"{len(request.listeners)} listeners of a controller")
    voter = Voter(request.voter_id, id_bytes(request.voter_directory_id))
    listeners = {each.name: (each.host, each.port) for each in request.listeners}
    _change(
        call,
        AddRaftVoterResponse,
        None,
        lambda: call.cluster.voters.add(request.cluster_id, voter, listeners),
    )


def remove_voter(call: Call) -> None:
    """Let a controller vote no longer."""
    request = call.request
    voter = Voter(request.voter_id, id_bytes(request.voter_directory_id))
    _change(
        call, RemoveRaftVoterResponse, None, lambda: call.cluster.voters.remove(request.cluster_id, voter)
    )


def _change(call: Call, response: Any, no_message: str | None, ask: Callable[[], AdminResult]) -> None:
    """Let the controller carry out a change, and answer what came of it."""

    def done(result: AdminResult) -> None:
        message = message_of(result) if result.error_code else no_message
        call.answer(response(version=call.version, error_code=result.error_code, error_message=message))

    if not call.may(AclOperation.ALTER, ResourceType.CLUSTER):
        refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        done(AdminResult(refused, MESSAGES[refused]))
        return
    forward(call, ask, NO_CONTROLLER, done)


APIS = (
    Api(64, UnregisterBrokerRequest, (0, 0), unregister_broker),
    Api(80, AddRaftVoterRequest, (0, 1), add_voter),
    Api(81, RemoveRaftVoterRequest, (0, 0), remove_voter),
)
