"""Failures: what was not answered, and why, as facts. `kview.language.failures` puts them into words."""

from enum import StrEnum
from typing import NamedTuple

from kview.model.units import UNKNOWN_ID


class Part(StrEnum):
    """A part of an observation: what a request asks for."""

    BROKER = "broker"
    """The broker itself, which answers no request."""
    BOOTSTRAP = "bootstrap"
    """The bootstrap servers, which are tried again when no known broker answers."""
    METADATA = "metadata"
    REGISTERED_BROKERS = "registered_brokers"
    OFFSETS = "offsets"
    LOG_ENDS = "log_ends"
    TIME_POINTS = "time_points"
    GROUPS = "groups"
    COMMITS = "commits"
    QUORUM = "quorum"
    REASSIGNMENTS = "reassignments"
    CONFIGS = "configs"
    SESSION_TIMEOUT = "session_timeout"
    ELR = "elr"
    LOG_DIRS = "log_dirs"


class FailureKind(StrEnum):
    """Why a request was not answered, as seen from outside. `''` means no failure."""

    NONE = ""
    NOT_CONNECTED = "not_connected"
    """No connection is open yet."""
    UNRESOLVED = "unresolved"
    """The host name could not be resolved."""
    REFUSED = "refused"
    """The port refuses connections, because no process listens."""
    UNREACHABLE = "unreachable"
    """No connection could be made in time, or the network reports that there is no route."""
    SILENT = "silent"
    """Connections are accepted, but nothing is answered."""
    CLOSED = "closed"
    """Connections are closed without an answer."""
    HTTP = "http"
    TLS = "tls"
    NOT_KAFKA = "not_kafka"
    """The answer is not Kafka's protocol."""
    UNSUPPORTED = "unsupported"
    """The broker does not support this request."""
    KAFKA_ERROR = "kafka_error"
    """The broker answered with an error number."""
    OVERDUE = "overdue"
    """The answer has taken too long, and may still come."""
    INCOMPLETE = "incomplete"
    """The answer lacks what was asked for."""
    COORDINATOR_SILENT = "coordinator_silent"
    """The group's coordinator does not answer. The failure of its broker says why."""
    COORDINATOR_GONE = "coordinator_gone"
    """The group's coordinator has left the cluster."""
    OTHER = "other"
    """Something else; the log file has the details."""


class Cause(NamedTuple):
    """Why a request failed. `code` is Kafka's error number if the kind is KAFKA_ERROR, else UNKNOWN_ID."""

    kind: FailureKind
    code: int = UNKNOWN_ID


NO_FAILURE = Cause(FailureKind.NONE)


def refused(code: int) -> Cause:
    """Return the cause for an answer with Kafka's error number `code`."""
    return Cause(FailureKind.KAFKA_ERROR, code)
