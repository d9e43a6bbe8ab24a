"""Exceptions into kinds of failures, by their type and number."""

import errno

import kafka.errors as kafka_errors
import pytest

from kview.model.failures import FailureKind
from kview.model.units import UNKNOWN_ID
from kview.observe.causes import Silence, cause_of, cause_of_end, is_silence
from kview.observe.loop import TooManyLookups, Unresolved
from kview.wire.kafka_internals import ConnectTimedOut, Disconnected


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (None, FailureKind.CLOSED, UNKNOWN_ID),
        (ConnectionRefusedError(errno.ECONNREFUSED, ""), FailureKind.REFUSED, UNKNOWN_ID),
        (ConnectionResetError(errno.ECONNRESET, ""), FailureKind.CLOSED, UNKNOWN_ID),
        (kafka_errors.KafkaConnectionError(BrokenPipeError(errno.EPIPE, "")), FailureKind.CLOSED, UNKNOWN_ID),
        (OSError(errno.EHOSTUNREACH, ""), FailureKind.UNREACHABLE, UNKNOWN_ID),
        (OSError(errno.EMFILE, ""), FailureKind.OTHER, UNKNOWN_ID),
        (Disconnected(), FailureKind.CLOSED, UNKNOWN_ID),
        (ConnectTimedOut(), FailureKind.UNREACHABLE, UNKNOWN_ID),
        (Silence(), FailureKind.SILENT, UNKNOWN_ID),
        (kafka_errors.RequestTimedOutError(), FailureKind.SILENT, UNKNOWN_ID),
        (kafka_errors.KafkaTimeoutError(), FailureKind.SILENT, UNKNOWN_ID),
        (Unresolved("x", OSError()), FailureKind.UNRESOLVED, UNKNOWN_ID),
        (TooManyLookups(), FailureKind.NOT_CONNECTED, UNKNOWN_ID),
        (kafka_errors.KafkaConnectionError("Node not connected"), FailureKind.NOT_CONNECTED, UNKNOWN_ID),
        (kafka_errors.IncompatibleBrokerVersion(), FailureKind.UNSUPPORTED, UNKNOWN_ID),
        (kafka_errors.CorrelationIdError(), FailureKind.NOT_KAFKA, UNKNOWN_ID),
        (kafka_errors.ClusterAuthorizationFailedError(), FailureKind.KAFKA_ERROR, 31),
        (kafka_errors.for_code(999)(), FailureKind.KAFKA_ERROR, 999),
        (ZeroDivisionError(), FailureKind.OTHER, UNKNOWN_ID),
    ],
)
def test_causes(error: Exception | None, kind: FailureKind, code: int) -> None:
    assert cause_of(error) == (kind, code)


@pytest.mark.parametrize(
    ("first_bytes", "kind"),
    [
        (b"HTTP/1.1", FailureKind.HTTP),
        (b"<html>", FailureKind.HTTP),
        (b"\x15\x03\x03", FailureKind.TLS),
        (b"\x16\x03\x01", FailureKind.TLS),
        (b"\0\0\0\x08", FailureKind.CLOSED),
        (b"", FailureKind.CLOSED),
    ],
)
def test_how_the_other_side_began_tells_what_it_is(first_bytes: bytes, kind: FailureKind) -> None:
    assert cause_of_end(Disconnected(), first_bytes).kind is kind


def test_an_answer_to_no_request_is_not_kafkas() -> None:
    unasked = kafka_errors.KafkaConnectionError("Received response with no in-flight-requests!")
    assert cause_of_end(unasked, b"\0\0\0\x08").kind is FailureKind.NOT_KAFKA
    assert cause_of_end(TooManyLookups(), b"").kind is FailureKind.NOT_CONNECTED


@pytest.mark.parametrize("error", [Silence(), ConnectTimedOut(), kafka_errors.RequestTimedOutError()])
def test_silence_is_not_tried_again_at_once(error: Exception) -> None:
    assert is_silence(error)
    assert not is_silence(Disconnected())
