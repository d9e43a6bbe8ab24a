"""Causes of failed connections and requests.

This is the only place that maps exceptions, by type and number, to causes.
"""

import errno
import logging
from collections.abc import Mapping

import kafka.errors as kafka_errors

from kview.model.failures import Cause, FailureKind, refused
from kview.observe.loop import TooManyLookups, Unresolved
from kview.wire.kafka_internals import ConnectTimedOut, Disconnected, network_error

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
        Silence | ConnectTimedOut | kafka_errors.RequestTimedOutError | kafka_errors.KafkaTimeoutError,
    )


def cause_of(error: BaseException | None) -> Cause:
    """Return why a request or a connection failed.

    For a connection that ended without an error, `error` is None.
    """
    system_error = network_error(error)
    if system_error is not None:
        return Cause(_of_system(system_error))
    match error:
        case None:
            kind = FailureKind.CLOSED
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
