"""Failures as words: why a broker, or a part of an observation, did not answer."""

from collections.abc import Mapping

from kview.model.failures import FailureKind

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
    FailureKind.COORDINATOR_SILENT: "its coordinator does not answer",
    FailureKind.COORDINATOR_GONE: "its coordinator has left the cluster",
    FailureKind.OTHER: "failed",
}
"""By kind; KAFKA_ERROR is said with Kafka's name of the error where its number is known."""
