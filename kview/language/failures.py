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
    FailureKind.UNREACHABLE: "no connection",
    FailureKind.SILENT: "accepts connections but does not answer",
    FailureKind.CLOSED: "closes connections without an answer",
    FailureKind.HTTP: "answers in HTTP",
    FailureKind.TLS: "answers in TLS",
    FailureKind.NOT_KAFKA: "does not speak Kafka's protocol",
    FailureKind.UNSUPPORTED: "does not know this request",
    FailureKind.KAFKA_ERROR: "answered with an error",
    FailureKind.OVERDUE: "has not answered yet",
    FailureKind.INCOMPLETE: "left out part of the answer",
    FailureKind.COORDINATOR_SILENT: "its coordinator does not answer",
    FailureKind.COORDINATOR_GONE: "its coordinator has left the cluster",
    FailureKind.OTHER: "failed; the log says why",
}
"""By kind; KAFKA_ERROR is said with Kafka's name of the error if its number is known."""

ONLY_KVIEW = "only kview cannot reach it: the quorum sees it fetching"
"""What is added for a broker that is silent to us alone."""


def of(kind: str, code: int = UNKNOWN_ID) -> str:
    """A FailureKind's value as words; '' if there is no failure. `code` is Kafka's error number, if any."""
    if kind == FailureKind.KAFKA_ERROR and code not in (0, UNKNOWN_ID):
        return kafka_errors.name(code)
    return WORDS[FailureKind(kind)]


def of_broker(kind: str, still_heard: bool) -> str:
    """Why a broker does not answer; `still_heard`: its fetches reach the quorum."""
    return "; ".join(filter(None, (of(kind), ONLY_KVIEW if still_heard else "")))


def of_group(kind: str, code: int, coordinator: int) -> str:
    """Why a group's figures are old."""
    match kind:
        case FailureKind.COORDINATOR_SILENT:
            return f"coordinator {coordinator} does not answer"
        case FailureKind.COORDINATOR_GONE:
            return f"coordinator {coordinator} has left the cluster"
        case _:
            return of(kind, code)


def of_partition(code: int) -> str:
    """Kafka's name of the error that stands for a partition, '' if there is none."""
    return kafka_errors.name(code) if code else ""
