"""Why something could not be asked, as a fact: `kview.language.failures` says it in words."""

from enum import StrEnum


class FailureKind(StrEnum):
    """Why a request was not answered, as far as it can be told from outside. `''` stands for no failure."""

    NONE = ""
    NOT_CONNECTED = "not connected"
    """No connection is up yet."""
    UNRESOLVED = "unresolved"
    """The host name is not known."""
    REFUSED = "refused"
    """The port refuses connections: no process listens."""
    UNREACHABLE = "unreachable"
    """No connection came up in time, or the network says that there is no way."""
    SILENT = "silent"
    """The connection is accepted and nothing is answered."""
    CLOSED = "closed"
    """Connections are closed without an answer."""
    HTTP = "http"
    TLS = "tls"
    NOT_KAFKA = "not kafka"
    """What was answered is not Kafka's protocol."""
    UNSUPPORTED = "unsupported"
    """The broker does not know this request."""
    KAFKA_ERROR = "kafka error"
    """The broker answered with an error number."""
    COORDINATOR_SILENT = "coordinator silent"
    COORDINATOR_GONE = "coordinator gone"
    """The group's coordinator has left the cluster."""
    OTHER = "other"
    """Something else; the log has it."""
