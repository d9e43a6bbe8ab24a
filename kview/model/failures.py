"""Failures: what was not answered, and why, as facts. `kview.language.failures` puts them into words."""

from enum import StrEnum
from typing import NamedTuple

from kview.model.units import UNKNOWN_ID


class Part(StrEnum):
    """A part of an observation, named after what its requests ask for."""

    BROKER = "broker"
    """The broker itself, which answers no request."""
    BOOTSTRAP = "bootstrap"
    """The bootstrap servers, which are tried again when no known broker answers."""
    METADATA = "metadata"
    TOPICS = "topics"
    """Which topics there are. Without an error, Kafka leaves out those that kview may not see."""
    REGISTERED_BROKERS = "registered_brokers"
    OFFSETS = "offsets"
    LOG_ENDS = "log_ends"
    TIME_POINTS = "time_points"
    GROUPS = "groups"
    COMMITS = "commits"
    SHARE_OFFSETS = "share_offsets"
    """Where share groups start and what waits for them."""
    QUORUM = "quorum"
    REASSIGNMENTS = "reassignments"
    CONFIGS = "configs"
    SESSION_TIMEOUT = "session_timeout"
    ELR = "elr"
    PRODUCERS = "producers"
    """The producers that hold a last stable offset, as the leader knows them."""
    TRANSACTIONS = "transactions"
    """Their transactions, as the coordinators know them."""
    LOG_DIRS = "log_dirs"
    CONNECTORS = "connectors"
    """The states of connectors, which Kafka Connect's REST API tells, not a broker."""


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
    """The port speaks TLS, and kview does not."""
    NOT_TLS = "not_tls"
    """The port speaks Kafka's protocol without TLS, and kview wants TLS."""
    UNTRUSTED = "untrusted"
    """No authority that kview trusts has signed the broker's certificate."""
    WRONG_HOST_NAME = "wrong_host_name"
    """The broker's certificate is for other host names."""
    CERTIFICATE_EXPIRED = "certificate_expired"
    CERTIFICATE_BAD = "certificate_bad"
    """The broker's certificate fails another check."""
    CLIENT_CERTIFICATE_MISSING = "client_certificate_missing"
    CLIENT_CERTIFICATE_REFUSED = "client_certificate_refused"
    NO_COMMON_TLS = "no_common_tls"
    """There is no version of TLS, or no cipher, that both sides accept."""
    NEEDS_SASL = "needs_sasl"
    """The listener asks for a login, and kview has none."""
    NO_SASL = "no_sasl"
    """The listener knows no logins, and kview has one."""
    MECHANISM = "mechanism"
    """The listener does not offer the SASL mechanism."""
    LOGIN_REFUSED = "login_refused"
    """The user name or the password is wrong."""
    TOKEN_REFUSED = "token_refused"
    """The broker does not accept the OAuth token."""
    NO_TOKEN = "no_token"
    """The token endpoint cannot be reached, or does not give a token."""
    TOKEN_CLIENT_REFUSED = "token_client_refused"
    """The token endpoint does not accept the client's id or secret."""
    LOGIN_FAILED = "login_failed"
    """kview could not make what the SASL mechanism needs; the log file has the details."""
    CONTROLLER = "controller"
    """The port is a controller's, which does not answer what kview asks a broker."""
    NOT_KAFKA = "not_kafka"
    """The answer is not Kafka's protocol."""
    UNSUPPORTED = "unsupported"
    """The broker does not support this request."""
    KAFKA_ERROR = "kafka_error"
    """The broker answered with an error number."""
    HTTP_STATUS = "http_status"
    """The server answered with another HTTP status than 200."""
    OVERDUE = "overdue"
    """The answer has taken too long, and may still come."""
    INCOMPLETE = "incomplete"
    """The answer lacks what was asked for."""
    MALFORMED = "malformed"
    """The answer cannot be read, or says what cannot be."""
    TOO_LARGE = "too_large"
    """The answer is larger than kview reads."""
    OUTDATED = "outdated"
    """The answer is from an older state of the cluster than another broker's."""
    COORDINATOR_SILENT = "coordinator_silent"
    """The group's coordinator does not answer. The failure of its broker says why."""
    COORDINATOR_GONE = "coordinator_gone"
    """The cluster no longer lists the group's coordinator."""
    OTHER = "other"
    """Something else; the log file has the details."""


STORAGE_ERROR = 56
"""Kafka's error number of a log directory that has failed."""
NO_TRANSACTIONAL_ID = 53
NOT_AUTHORIZED = frozenset({29, 30, 31, NO_TRANSACTIONAL_ID})
"""Kafka's error numbers TOPIC_, GROUP_, CLUSTER_ and TRANSACTIONAL_ID_AUTHORIZATION_FAILED."""

REFUSALS = frozenset({
    FailureKind.TLS, FailureKind.NOT_TLS, FailureKind.UNTRUSTED, FailureKind.WRONG_HOST_NAME,
    FailureKind.CERTIFICATE_EXPIRED, FailureKind.CERTIFICATE_BAD, FailureKind.CLIENT_CERTIFICATE_MISSING,
    FailureKind.CLIENT_CERTIFICATE_REFUSED, FailureKind.NO_COMMON_TLS, FailureKind.NEEDS_SASL,
    FailureKind.NO_SASL, FailureKind.MECHANISM, FailureKind.LOGIN_REFUSED, FailureKind.TOKEN_REFUSED,
    FailureKind.NO_TOKEN, FailureKind.TOKEN_CLIENT_REFUSED, FailureKind.LOGIN_FAILED, FailureKind.CONTROLLER,
})  # fmt: skip
"""The kinds that stay until somebody changes a setting, a certificate or a password."""


class Cause(NamedTuple):
    """Why a request failed.

    `code` is Kafka's error number if the kind is KAFKA_ERROR, the status if it is HTTP_STATUS, else
    UNKNOWN_ID.
    """

    kind: FailureKind
    code: int = UNKNOWN_ID


NO_FAILURE = Cause(FailureKind.NONE)


def refused(code: int) -> Cause:
    """Return the cause for an answer with Kafka's error number `code`."""
    return Cause(FailureKind.KAFKA_ERROR, code)
