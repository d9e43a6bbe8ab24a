"""SaslHandshake (17) 0–1 and SaslAuthenticate (36) 0–2: log in, and renew a login.

SaslHandshake: after v0, tokens come as frames without headers; after v1, in SaslAuthenticate. Handshake
requests of a client that has logged in, or need not, are refused. SaslAuthenticate: v1 adds the lifetime of
the session, v2 is flexible. A refusal is answered after a delay, and then the connection ends.
"""

from typing import Any

from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from kview.serve.call import Api, Call
from kview.serve.login import ANONYMOUS, MECHANISMS, Stage
from kview.serve.sasl import Refused
from kview.simulate.codes import ErrorCode

ALREADY_IN = "SaslAuthenticate request received after successful authentication"
LIFETIME_FROM = 1


def sasl_handshake(call: Call) -> None:
    """Begin a login with the mechanism that the client names."""
    login = call.login
    wrong = SaslHandshakeResponse(
        version=call.version, error_code=ErrorCode.ILLEGAL_SASL_STATE, mechanisms=[]
    )
    if login is None or login.stage is Stage.IN:
        call.answer(wrong)
        return
    if login.stage is Stage.TOKENS:
        call.refuse_login(login, wrong)
        return
    renews = login.principal != ANONYMOUS
    enabled = login.begin(call.request.mechanism or "", call.version)
    error = ErrorCode.NONE if enabled else ErrorCode.UNSUPPORTED_SASL_MECHANISM
    answer = SaslHandshakeResponse(version=call.version, error_code=error, mechanisms=list(MECHANISMS))
    if enabled:
        call.answer(answer)
    elif renews:
        call.hang_up()
    else:
        call.refuse_login(login, answer)


def sasl_authenticate(call: Call) -> None:
    """Take a token of a login, and answer it."""
    login, version = call.login, call.version
    if login is None or login.stage is not Stage.TOKENS:
        call.answer(_failure(version, ErrorCode.ILLEGAL_SASL_STATE, ALREADY_IN))
        return
    try:
        token = login.take(bytes(call.request.auth_bytes or b""))
    except Refused as refused:
        call.refuse_login(login, _failure(version, ErrorCode.SASL_AUTHENTICATION_FAILED, str(refused)))
        return
    lifetime = {"session_lifetime_ms": login.lifetime_ms} if version >= LIFETIME_FROM else {}
    call.answer(
        SaslAuthenticateResponse(
            version=version, error_code=ErrorCode.NONE, error_message="", auth_bytes=token, **lifetime
        )
    )


def _failure(version: int, error: ErrorCode, message: str) -> Any:
    return SaslAuthenticateResponse(version=version, error_code=error, error_message=message, auth_bytes=b"")


APIS = (
    Api(17, SaslHandshakeRequest, (0, 1), sasl_handshake),
    Api(36, SaslAuthenticateRequest, (0, 2), sasl_authenticate),
)
