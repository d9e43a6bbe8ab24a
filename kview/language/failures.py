"""Failures as words: why a broker, or a part of an observation, did not answer."""

from collections.abc import Mapping

from kview.language import kafka_errors
from kview.model.failures import FailureKind
from kview.model.units import UNKNOWN_ID

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
    FailureKind.NOT_KAFKA: "does not speak Kafka's protocol",
    FailureKind.UNSUPPORTED: "does not support this request",
    FailureKind.KAFKA_ERROR: "answered with an error",
    FailureKind.OVERDUE: "has not answered yet",
    FailureKind.INCOMPLETE: "sent an incomplete answer",
    FailureKind.COORDINATOR_SILENT: "its coordinator does not answer",
    FailureKind.COORDINATOR_GONE: "its coordinator has left the cluster",
    FailureKind.OTHER: "failed; see kview.log",
}
"""The words for each kind. For KAFKA_ERROR, Kafka's own name of the error is used instead, if known."""

ONLY_KVIEW = (
    "kview cannot reach it, but the quorum still hears from it: check the network between kview and the"
    " broker"
)
"""Added for a broker that is silent only to kview."""


def of(kind: str, code: int = UNKNOWN_ID) -> str:
    """Return a FailureKind's value as words, '' for no failure. `code` is Kafka's error number, if any."""
    if kind == FailureKind.KAFKA_ERROR and code not in (0, UNKNOWN_ID):
        return kafka_errors.name(code)
    return WORDS[FailureKind(kind)]


def of_broker(kind: str, still_heard: bool) -> str:
    """Return why a broker does not answer. `still_heard`: the broker's fetches still reach the quorum."""
    return "; ".join(filter(None, (of(kind), ONLY_KVIEW if still_heard else "")))


def of_group(kind: str, code: int, coordinator: int) -> str:
    """Return why a group's figures are old."""
    match kind:
        case FailureKind.COORDINATOR_SILENT:
            return f"coordinator {coordinator} does not answer"
        case FailureKind.COORDINATOR_GONE:
            return f"coordinator {coordinator} has left the cluster"
        case _:
            return of(kind, code)


def of_partition(code: int) -> str:
    """Return Kafka's name of a partition's error, '' if it has none."""
    return kafka_errors.name(code) if code else ""
