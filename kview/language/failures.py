"""Failures as words: why a broker, or a part of an observation, did not answer."""

from collections.abc import Mapping
from http import HTTPStatus

from kview.language import kafka_errors
from kview.model.failures import NOT_AUTHORIZED, FailureKind
from kview.model.units import NO_BROKER, UNKNOWN_ID

WORDS: Mapping[FailureKind, str] = {
    FailureKind.NONE: "",
    FailureKind.NOT_CONNECTED: "not connected yet",
    FailureKind.UNRESOLVED: "its host name is unknown",
    FailureKind.REFUSED: "connection refused",
    FailureKind.UNREACHABLE: "cannot connect",
    FailureKind.SILENT: "accepts connections but does not answer",
    FailureKind.CLOSED: "closes connections without answering",
    FailureKind.HTTP: "speaks HTTP, not Kafka's protocol",
    FailureKind.TLS: "speaks TLS, not plaintext",
    FailureKind.NOT_TLS: "speaks plaintext, not TLS",
    FailureKind.UNTRUSTED: "its certificate is not signed by an authority that kview trusts",
    FailureKind.WRONG_HOST_NAME: "its certificate is for another host name",
    FailureKind.CERTIFICATE_EXPIRED: "its certificate has expired",
    FailureKind.CERTIFICATE_BAD: "its certificate is not valid; see kview.log",
    FailureKind.CLIENT_CERTIFICATE_MISSING: "asks for a client certificate",
    FailureKind.CLIENT_CERTIFICATE_REFUSED: "does not accept kview's certificate",
    FailureKind.NO_COMMON_TLS: "does not support a TLS version or cipher that kview supports",
    FailureKind.NEEDS_SASL: "asks for a login (SASL)",
    FailureKind.NO_SASL: "does not support logins (SASL)",
    FailureKind.MECHANISM: "does not offer kview's SASL mechanism",
    FailureKind.LOGIN_REFUSED: "does not accept the user name and password",
    FailureKind.TOKEN_REFUSED: "does not accept the OAuth token",
    FailureKind.NO_TOKEN: "the token endpoint gives no token; see kview.log",
    FailureKind.TOKEN_CLIENT_REFUSED: "the token endpoint does not accept the client id and secret",
    FailureKind.LOGIN_FAILED: "the login could not be prepared; see kview.log",
    FailureKind.CONTROLLER: "is a controller's port, not a broker's",
    FailureKind.NOT_KAFKA: "does not speak Kafka's protocol",
    FailureKind.UNSUPPORTED: "does not support this request",
    FailureKind.KAFKA_ERROR: "answered with an error",
    FailureKind.HTTP_STATUS: "answered with another status than 200",
    FailureKind.OVERDUE: "has not answered yet",
    FailureKind.INCOMPLETE: "sent an incomplete answer",
    FailureKind.MALFORMED: "sent an answer that cannot be read",
    FailureKind.TOO_LARGE: "sent an answer larger than kview reads",
    FailureKind.OUTDATED: "describes an older state of the cluster than another broker",
    FailureKind.COORDINATOR_SILENT: "its coordinator does not answer",
    FailureKind.COORDINATOR_GONE: "the cluster no longer lists its coordinator",
    FailureKind.OTHER: "failed; see kview.log",
}
"""The words for each kind. For KAFKA_ERROR, Kafka's own name of the error is used instead, if known."""

_PHRASES: Mapping[int, str] = {status.value: status.phrase for status in HTTPStatus}

LOADING = 14
UNAVAILABLE = 15
RESIGNED = 16
"""Kafka's error numbers COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE and NOT_COORDINATOR."""

ONLY_KVIEW = (
    "kview cannot reach it, but the cluster still hears from it: check the network between kview and the"
    " broker"
)
"""Added for a broker that is silent only to kview."""


def of(kind: str, code: int = UNKNOWN_ID) -> str:
    """Return a FailureKind's value as words, '' for no failure. `code` is that of the cause."""
    if kind == FailureKind.HTTP_STATUS and code in _PHRASES:
        return f"answered {code} {_PHRASES[code]}"
    if kind == FailureKind.KAFKA_ERROR and code not in (0, UNKNOWN_ID):
        return kafka_errors.name(code)
    return WORDS[FailureKind(kind)]


def of_broker(kind: str, unreached: bool) -> str:
    """Return why a broker does not answer. `unreached`: it lives, and only kview cannot reach it."""
    return "; ".join(filter(None, (of(kind), ONLY_KVIEW if unreached else "")))


def of_group(kind: str, code: int, coordinator: int) -> str:
    """Return why a group's figures are old."""
    match kind:
        case FailureKind.COORDINATOR_SILENT:
            return f"coordinator {coordinator} silent"
        case FailureKind.COORDINATOR_GONE:
            return f"the cluster no longer lists coordinator {coordinator}"
        case FailureKind.OVERDUE:
            return f"coordinator {coordinator} has not answered yet"
        case FailureKind.KAFKA_ERROR if code == LOADING:
            return f"coordinator {coordinator} is loading its groups"
        case FailureKind.KAFKA_ERROR if code == UNAVAILABLE and coordinator == NO_BROKER:
            return "a partition of __consumer_offsets has no leader"
        case FailureKind.KAFKA_ERROR if code == RESIGNED:
            return f"broker {coordinator} no longer coordinates it; the new coordinator is not known yet"
        case FailureKind.KAFKA_ERROR if code in NOT_AUTHORIZED:
            return f"kview is not authorized to read it ({kafka_errors.name(code)})"
        case _:
            return of(kind, code)


def of_partition(code: int) -> str:
    """Return Kafka's name of a partition's error, '' if it has none."""
    return kafka_errors.name(code) if code else ""
