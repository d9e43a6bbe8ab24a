"""CreateDelegationToken (38) 1–3, RenewDelegationToken (39) 1–2, ExpireDelegationToken (40) 1–2 and
DescribeDelegationToken (41) 1–3: secrets with which clients log in by SCRAM as the user who got them.

v2 is flexible. v3 of 38 lets a client ask for another user's token, and names who asked for it, as does v3 of
41. A client without a login or a certificate, or one that has logged in with a token, is refused. All others
learn that tokens are disabled while the brokers have no `delegation.token.secret.key`.
"""

from collections.abc import Callable, Set
from typing import Any

from kview.config.security import Protocol
from kview.serve.apis.gather import forward
from kview.serve.call import Api, Call, Steps
from kview.serve.frames import Garbage
from kview.serve.login import ANONYMOUS
from kview.simulate.acls import AclOperation, ResourceType
from kview.simulate.codes import ErrorCode
from kview.simulate.requests.delegation_tokens import Changed, Created
from kview.simulate.tokens import USER, DelegationToken, Principal
from kview.wire.admin_messages import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)

REQUESTERS_FROM = 3
NO_TIME = -1
OWNERS_MAX = 1_000
"""Limit of the owners in a request. Kafka has none."""


def create(call: Call) -> None:
    """Create a token for the client, or for another user whose tokens it may create."""
    request = call.request
    requester = owner = Principal.of(call.principal)
    if call.version >= REQUESTERS_FROM and request.owner_principal_name:
        if request.owner_principal_type is None:
            unknown = Principal.of(ANONYMOUS)
            _answer_created(call, Created(ErrorCode.UNKNOWN_SERVER_ERROR), unknown, unknown)
            return
        owner = Principal(request.owner_principal_type, request.owner_principal_name)
    renewers = [Principal(each.principal_type, each.principal_name) for each in request.renewers]
    if not _may_ask(call):
        refused = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    elif owner != requester and not call.may(AclOperation.CREATE_TOKENS, ResourceType.USER, str(owner)):
        refused = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
    elif any(renewer.kind != USER for renewer in renewers):
        refused = ErrorCode.INVALID_PRINCIPAL_TYPE
    else:
        tokens, late = call.cluster.tokens, Created(ErrorCode.REQUEST_TIMED_OUT)
        forward(
            call,
            lambda: tokens.create(requester, owner, renewers, request.max_lifetime_ms),
            late,
            lambda created: _answer_created(call, created, owner, requester, 0),
        )
        return
    _answer_created(call, Created(refused), owner, requester)


def _answer_created(
    call: Call,
    created: Created,
    owner: Principal,
    requester: Principal,
    no_time: int = NO_TIME,
) -> None:
    """Answer with a token, or with an error and times that are none."""
    version, fields = call.version, dict[str, str]()
    if version >= REQUESTERS_FROM:
        fields = {
            "token_requester_principal_type": requester.kind,
            "token_requester_principal_name": requester.name,
        }
    token = created.token
    if token is not None:
        times = token.issued_ms, token.expires_ms, token.last_ms
        token_id, secret = token.id, call.cluster.tokens.hmac_of(token)
    else:
        times, token_id, secret = (no_time,) * 3, "", b""
    call.answer(
        CreateDelegationTokenResponse(
            version=version,
            error_code=created.error,
            principal_type=owner.kind,
            principal_name=owner.name,
            issue_timestamp_ms=times[0],
            expiry_timestamp_ms=times[1],
            max_timestamp_ms=times[2],
            token_id=token_id,
            hmac=secret,
            **fields,
        )
    )


def renew(call: Call) -> None:
    """Let a token expire later."""
    tokens, principal, request = call.cluster.tokens, Principal.of(call.principal), call.request
    _change(
        call,
        RenewDelegationTokenResponse,
        lambda: tokens.renew(principal, bytes(request.hmac), request.renew_period_ms),
    )


def expire(call: Call) -> None:
    """Let a token expire sooner, or remove it."""
    tokens, principal, request = call.cluster.tokens, Principal.of(call.principal), call.request
    _change(
        call,
        ExpireDelegationTokenResponse,
        lambda: tokens.expire(principal, bytes(request.hmac), request.expiry_time_period_ms),
    )


def _change(call: Call, response: Any, ask: Callable[[], Changed]) -> None:
    def done(changed: Changed) -> None:
        call.answer(
            response(version=call.version, error_code=changed.error, expiry_timestamp_ms=changed.expires_ms)
        )

    if not _may_ask(call):
        done(Changed(ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, NO_TIME))
        return
    forward(call, ask, Changed(ErrorCode.REQUEST_TIMED_OUT), done)


def describe(call: Call) -> Steps:
    """Answer with the tokens of the owners asked for that the client may see. More than OWNERS_MAX end the
    connection."""
    owners = None
    if call.request.owners is not None:
        if len(call.request.owners) > OWNERS_MAX:
            raise Garbage(f"{len(call.request.owners)} owners of tokens")
        owners = {Principal(each.principal_type, each.principal_name) for each in call.request.owners}
    error, rows = ErrorCode.NONE, []
    if not _may_ask(call):
        error = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    elif not call.cluster.tokens.enabled:
        error = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    else:
        for token in call.image.tokens.values():
            yield
            if _sees(call, token, owners):
                rows.append(_row(call, token))
    call.answer(DescribeDelegationTokenResponse(version=call.version, error_code=error, tokens=rows))


def _sees(call: Call, token: DelegationToken, owners: Set[Principal] | None) -> bool:
    if owners is not None and owners.isdisjoint(token.principals):
        return False
    return (
        Principal.of(call.principal) in token.principals
        or call.may(AclOperation.DESCRIBE, ResourceType.DELEGATION_TOKEN, token.id)
        or call.may(AclOperation.DESCRIBE_TOKENS, ResourceType.USER, str(token.owner))
    )


def _row(call: Call, token: DelegationToken) -> Any:
    per_token, version, fields = (
        DescribeDelegationTokenResponse.DescribedDelegationToken,
        call.version,
        dict[str, str](),
    )
    if version >= REQUESTERS_FROM:
        fields = {
            "token_requester_principal_type": token.requester.kind,
            "token_requester_principal_name": token.requester.name,
        }
    return per_token(
        version=version,
        principal_type=token.owner.kind,
        principal_name=token.owner.name,
        issue_timestamp=token.issued_ms,
        expiry_timestamp=token.expires_ms,
        max_timestamp=token.last_ms,
        token_id=token.id,
        hmac=call.cluster.tokens.hmac_of(token),
        renewers=[
            per_token.DescribedDelegationTokenRenewer(
                version=version, principal_type=renewer.kind, principal_name=renewer.name
            )
            for renewer in token.renewers
        ],
        **fields,
    )


def _may_ask(call: Call) -> bool:
    """Return whether Kafka lets the client ask for tokens: it has proved who it is, and not by a token."""
    if call.login is not None:
        return not call.login.by_token
    protocol = call.wire.security.protocol
    return protocol is not Protocol.PLAINTEXT and call.principal != ANONYMOUS


APIS = (
    Api(38, CreateDelegationTokenRequest, (1, 3), create),
    Api(39, RenewDelegationTokenRequest, (1, 2), renew),
    Api(40, ExpireDelegationTokenRequest, (1, 2), expire),
    Api(41, DescribeDelegationTokenRequest, (1, 3), describe),
)
