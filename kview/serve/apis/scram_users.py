"""DescribeUserScramCredentials (50) 0 and AlterUserScramCredentials (51) 0: the users of SCRAM.

A broker answers the first from its metadata, the second is carried out by the controller. Clients send salted
passwords, of which credentials are made; nobody can ask for those.
"""

from collections import Counter
from typing import Any

from kafka.protocol.admin.users import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

from kview.serve.apis.gather import forward
from kview.serve.call import Api, Call, Steps, shortened
from kview.serve.frames import Garbage
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import MESSAGES, ErrorCode
from kview.simulate.requests.admin import NO_CONTROLLER
from kview.simulate.requests.scram_users import Deletion, Upsertion
from kview.simulate.results import AdminResult

CHANGES_MAX = 2_000
"""Limit of the credentials in a request, each of which takes 12 µs. Kafka has none."""
TWICE = "Cannot describe SCRAM credentials for the same user twice in a single request: "
UNKNOWN = "Attempt to describe a user credential that does not exist: "


def describe_users(call: Call) -> Steps:
    """Answer with the mechanisms of each user, or of all users."""
    per_user = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
    if not call.may(AclOperation.DESCRIBE, ResourceType.CLUSTER):
        refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        rows = [
            per_user(
                version=call.version,
                user="",
                error_code=refused,
                error_message=None,
                credential_infos=[],
            )
            for _ in call.request.users or ()
        ]
        call.answer(
            DescribeUserScramCredentialsResponse(
                version=call.version, error_code=refused, error_message=None, results=rows
            )
        )
        return
    known: dict[str, list[tuple[int, int]]] = {}
    for (name, mechanism), credential in sorted(call.image.scram.items()):
        known.setdefault(name, []).append((mechanism, credential.iterations))
    times = Counter(user.name for user in call.request.users or ()) or dict.fromkeys(known, 1)
    results = []
    for name, number in times.items():
        yield
        error, message = ErrorCode.NONE, ""
        if number > 1:
            error, message = ErrorCode.DUPLICATE_RESOURCE, shortened(TWICE + name)
        elif name not in known:
            error, message = ErrorCode.RESOURCE_NOT_FOUND, shortened(UNKNOWN + name)
        infos = [
            per_user.CredentialInfo(version=call.version, mechanism=mechanism, iterations=iterations)
            for mechanism, iterations in (known.get(name, ()) if not error else ())
        ]
        results.append(
            per_user(
                version=call.version,
                user=name,
                error_code=error,
                error_message=message,
                credential_infos=infos,
            )
        )
    call.answer(
        DescribeUserScramCredentialsResponse(
            version=call.version, error_code=ErrorCode.NONE, error_message="", results=results
        )
    )


def alter_users(call: Call) -> None:
    """Change users' credentials, all in one step, but for those of users with an error.

    More than CHANGES_MAX end the connection.
    """
    request = call.request
    number = len(request.deletions) + len(request.upsertions)
    if number > CHANGES_MAX:
        raise Garbage(f"{number} changes of users")
    deletions = [Deletion(each.name, each.mechanism) for each in request.deletions]
    upsertions = [
        Upsertion(each.name, each.mechanism, each.iterations, bytes(each.salt), bytes(each.salted_password))
        for each in request.upsertions
    ]
    names = dict.fromkeys(
        [each.name for each in deletions] + [each.name for each in upsertions], NO_CONTROLLER
    )
    if not call.may(AclOperation.ALTER, ResourceType.CLUSTER):
        refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        call.answer(_altered(call.version, dict.fromkeys(names, AdminResult(refused, MESSAGES[refused]))))
        return
    forward(
        call,
        lambda: call.cluster.scram_users.alter(deletions, upsertions),
        names,
        lambda results: call.answer(_altered(call.version, results)),
    )


def _altered(version: int, results: dict[str, AdminResult]) -> Any:
    return AlterUserScramCredentialsResponse(
        version=version,
        results=[
            AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult(
                version=version,
                user=name,
                error_code=result.error_code,
                error_message=result.message,
            )
            for name, result in results.items()
        ],
    )


APIS = (
    Api(50, DescribeUserScramCredentialsRequest, (0, 0), describe_users),
    Api(51, AlterUserScramCredentialsRequest, (0, 0), alter_users),
)
