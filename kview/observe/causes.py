"""Why a connection or a request failed: exceptions by their type and number, in this one place."""

import errno
import logging
from collections.abc import Mapping

import kafka.errors as kafka_errors

from kview.model.failures import Cause, FailureKind, refused
from kview.observe.loop import TooManyLookups, Unresolved
from kview.wire.kafka_internals import ConnectTimedOut, Disconnected, network_error

_log = logging.getLogger(__name__)


class Silence(Exception):
    """A broker owes an answer for too long: our own end of the connection."""


class LinkError(Exception):
    """A request that was not answered."""

    def __init__(self, cause: Cause) -> None:
        super().__init__(cause)
        self.cause = cause


class Refused(Exception):
    """An answer that holds an error, or nothing, in place of what was asked for."""

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
"""The last two are a firewall's on this machine."""

_HTTP = (b"HTTP", b"<!DO", b"<htm", b"<HTM")
_TLS = (b"\x15\x03", b"\x16\x03")


def is_silence(error: BaseException | None) -> bool:
    """Whether nothing came in time: trying again at once would take as long."""
    return isinstance(
        error,
        Silence | ConnectTimedOut | kafka_errors.RequestTimedOutError | kafka_errors.KafkaTimeoutError,
    )


def cause_of(error: BaseException | None) -> Cause:
    """Why a request or a connection failed; None is an end without an error."""
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
    """Why a connection ended to which the other side had said `first_bytes`."""
    if first_bytes.startswith(_HTTP):
        return Cause(FailureKind.HTTP)
    if first_bytes.startswith(_TLS):
        return Cause(FailureKind.TLS)
    cause = cause_of(error)
    if isinstance(error, kafka_errors.KafkaConnectionError) and cause.kind is FailureKind.NOT_CONNECTED:
        # kafka-python's own end of a connection: an answer that belongs to no request.
        return Cause(FailureKind.NOT_KAFKA)
    return cause


def _of_system(error: OSError) -> FailureKind:
    if isinstance(error, Disconnected):
        return FailureKind.CLOSED
    kind = _BY_ERRNO.get(error.errno or 0, FailureKind.OTHER)
    if kind is FailureKind.OTHER:
        _log.warning("a connection failed", exc_info=error)
    return kind
