"""Causes of failed connections and requests.

This is the only place that maps exceptions, by type and number, to causes.
"""

import errno
import logging
import ssl
from collections.abc import Mapping

import kafka.errors as kafka_errors

from kview.model.failures import Cause, FailureKind, refused
from kview.observe.loop import TooManyLookups, Unresolved
from kview.observe.tokens import ClientRefused, NoToken
from kview.wire.kafka_internals import (
    ConnectTimedOut,
    Disconnected,
    LoginFailed,
    NotABroker,
    SaslWanted,
    network_error,
)
from kview.wire.kafka_tls import HandshakeTimedOut

_log = logging.getLogger(__name__)


class Silence(Exception):
    """The reason for closing a connection from our end: the broker has owed an answer for too long."""


class LinkError(Exception):
    """Raised for a request that got no answer."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(cause)
        self.cause = cause


class Refused(Exception):
    """Raised for an answer that has an error, or nothing, instead of what was asked for."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(cause)
        self.cause = cause


_BY_ERRNO: Mapping[int, FailureKind] = {
    errno.ECONNREFUSED: FailureKind.REFUSED,
    errno.ECONNRESET: FailureKind.CLOSED,
    errno.ECONNABORTED: FailureKind.CLOSED,
    errno.EPIPE: FailureKind.CLOSED,
    errno.ETIMEDOUT: FailureKind.UNREACHABLE,
    errno.EHOSTUNREACH: FailureKind.UNREACHABLE,
    errno.ENETUNREACH: FailureKind.UNREACHABLE,
    errno.EHOSTDOWN: FailureKind.UNREACHABLE,
    errno.ENETDOWN: FailureKind.UNREACHABLE,
    errno.EADDRNOTAVAIL: FailureKind.UNREACHABLE,
    errno.EAFNOSUPPORT: FailureKind.UNREACHABLE,
    errno.EACCES: FailureKind.UNREACHABLE,
    errno.EPERM: FailureKind.UNREACHABLE,
}
"""Operating system's error number → failure. A firewall on this machine causes the last two."""

_HTTP = (b"HTTP", b"<!DO", b"<htm", b"<HTM")
_TLS = (b"\x15\x03", b"\x16\x03")


def is_silence(error: BaseException | None) -> bool:
    """Return whether nothing arrived in time, in which case an immediate retry would take just as long."""
    return isinstance(
        error,
        Silence
        | ConnectTimedOut
        | HandshakeTimedOut
        | kafka_errors.RequestTimedOutError
        | kafka_errors.KafkaTimeoutError,
    )


def cause_of(error: BaseException | None) -> Cause:
    """Return why a request or a connection failed.

    For a connection that ended without an error, `error` is None.
    """
    system_error = network_error(error)
    if isinstance(system_error, ssl.SSLError):
        return Cause(_of_tls(system_error))
    if system_error is not None:
        return Cause(_of_system(system_error))
    kind = _of_login(error)
    if kind:
        return Cause(kind)
    match error:
        case None:
            kind = FailureKind.CLOSED
        case LinkError():
            return error.cause
        case HandshakeTimedOut():
            kind = FailureKind.SILENT
        case NotABroker():
            kind = FailureKind.CONTROLLER
        case ConnectTimedOut():
            kind = FailureKind.UNREACHABLE
        case Silence() | kafka_errors.RequestTimedOutError() | kafka_errors.KafkaTimeoutError():
            kind = FailureKind.SILENT
        case Unresolved():
            kind = FailureKind.UNRESOLVED
        case kafka_errors.IncompatibleBrokerVersion():
            kind = FailureKind.UNSUPPORTED
        case kafka_errors.KafkaProtocolError():
            kind = FailureKind.NOT_KAFKA
        case kafka_errors.BrokerResponseError():
            return refused(error.errno)
        case TooManyLookups() | kafka_errors.KafkaConnectionError() | kafka_errors.Cancelled():
            kind = FailureKind.NOT_CONNECTED
        case _:
            kind = FailureKind.OTHER
            _log.warning("a request failed", exc_info=error)
    return Cause(kind)


_BY_VERIFY_CODE: Mapping[int, FailureKind] = {
    7: FailureKind.UNTRUSTED,
    10: FailureKind.CERTIFICATE_EXPIRED,
    18: FailureKind.UNTRUSTED,
    19: FailureKind.UNTRUSTED,
    20: FailureKind.UNTRUSTED,
    21: FailureKind.UNTRUSTED,
    62: FailureKind.WRONG_HOST_NAME,
    64: FailureKind.WRONG_HOST_NAME,
}
"""OpenSSL's X509_V_ERR number → failure: signed by another authority of that name; has expired; self-signed;
self-signed in the chain; no local issuer; no issuer in the chain; host name; IP address."""

_REFUSED_ALERTS = ("CERTIFICATE_UNKNOWN", "CERTIFICATE_EXPIRED", "CERTIFICATE_REVOKED", "UNKNOWN_CA",
                   "UNSUPPORTED_CERTIFICATE", "ACCESS_DENIED", "DECRYPT_ERROR")  # fmt: skip
_MISSING_ALERTS = ("BAD_CERTIFICATE", "CERTIFICATE_REQUIRED")
"""Java's and OpenSSL's alert for a client without a certificate."""
_TLS_ALERTS = ("PROTOCOL_VERSION", "HANDSHAKE_FAILURE", "INSUFFICIENT_SECURITY")
_NOTHING_IN_COMMON = ("UNSUPPORTED_PROTOCOL", "NO_PROTOCOLS_AVAILABLE", "WRONG_SSL_VERSION")


def _of_tls(error: ssl.SSLError) -> FailureKind:
    """Return what an error of TLS says. OpenSSL names its reasons; alerts are those of the other side."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _BY_VERIFY_CODE.get(error.verify_code, FailureKind.CERTIFICATE_BAD)
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError | ssl.SSLSyscallError):
        return FailureKind.CLOSED
    reason = error.reason or ""
    _, alert, alerted = reason.rpartition("ALERT_")
    if alert and alerted in _MISSING_ALERTS:
        return FailureKind.CLIENT_CERTIFICATE_MISSING
    if alert and alerted in _REFUSED_ALERTS:
        return FailureKind.CLIENT_CERTIFICATE_REFUSED
    if (alert and alerted in _TLS_ALERTS) or reason in _NOTHING_IN_COMMON:
        return FailureKind.NO_COMMON_TLS
    if reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST", "UNEXPECTED_MESSAGE"):
        return FailureKind.NOT_KAFKA
    _log.warning("a connection over TLS failed", exc_info=error)
    return FailureKind.OTHER


def _of_login(error: BaseException | None) -> FailureKind:
    """Return why a login failed, NONE if `error` is about something else."""
    match error:
        case SaslWanted():
            return FailureKind.NEEDS_SASL
        case kafka_errors.IllegalSaslStateError():
            return FailureKind.NO_SASL
        case kafka_errors.UnsupportedSaslMechanismError():
            return FailureKind.MECHANISM
        case kafka_errors.SaslAuthenticationFailedError():
            return FailureKind.LOGIN_REFUSED
        case NoToken() | ClientRefused():
            _log.warning("there is no OAuth token: %s", error)
            refused_client = isinstance(error, ClientRefused)
            return FailureKind.TOKEN_CLIENT_REFUSED if refused_client else FailureKind.NO_TOKEN
        case LoginFailed():
            _log.warning("a login could not be prepared", exc_info=error)
            return FailureKind.LOGIN_FAILED
        case _:
            return FailureKind.NONE


def cause_of_end(error: BaseException | None, first_bytes: bytes) -> Cause:
    """Return why a connection ended. `first_bytes` are the first bytes that the other side sent."""
    if first_bytes.startswith(_HTTP):
        return Cause(FailureKind.HTTP)
    if first_bytes.startswith(_TLS):
        return Cause(FailureKind.TLS)
    cause = cause_of(error)
    if isinstance(error, kafka_errors.KafkaConnectionError) and cause.kind is FailureKind.NOT_CONNECTED:
        # kafka-python itself ended the connection, because an answer belongs to no request.
        return Cause(FailureKind.NOT_KAFKA)
    return cause


def _of_system(error: OSError) -> FailureKind:
    if isinstance(error, Disconnected):
        return FailureKind.CLOSED
    kind = _BY_ERRNO.get(error.errno or 0, FailureKind.OTHER)
    if kind is FailureKind.OTHER:
        _log.warning("a connection failed", exc_info=error)
    return kind
