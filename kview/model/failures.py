"""Why a request failed, as a fact. `kview.language.failures` puts it into words."""

from enum import StrEnum


class FailureKind(StrEnum):
    """Why a request was not answered, as seen from outside. `''` means no failure."""

    NONE = ""
    NOT_CONNECTED = "not connected"
    """No connection is open yet."""
    UNRESOLVED = "unresolved"
    """The host name could not be resolved."""
    REFUSED = "refused"
    """The port refuses connections: no process listens."""
    UNREACHABLE = "unreachable"
    """No connection could be made in time, or the network reports that there is no route."""
    SILENT = "silent"
    """Connections are accepted, but nothing is answered."""
    CLOSED = "closed"
    """Connections are closed without an answer."""
    HTTP = "http"
    TLS = "tls"
    NOT_KAFKA = "not kafka"
    """The answer is not Kafka's protocol."""
    UNSUPPORTED = "unsupported"
    """The broker does not support this request."""
    KAFKA_ERROR = "kafka error"
    """The broker answered with an error code."""
    COORDINATOR_SILENT = "coordinator silent"
    COORDINATOR_GONE = "coordinator gone"
    """The group's coordinator has left the cluster."""
    OTHER = "other"
    """Something else. The log has the details."""
