"""What failures are called."""

import kafka.errors as theirs
import pytest

from kview.errors import ClusterUnreachable, ErrorKind
from kview.language import errors, failures, kafka_errors
from kview.model.failures import FailureKind

SPELT_OTHERWISE = {-1, 6, 10, 17, 39}
"""Numbers whose errors kafka-python calls by names that Kafka has given up, or never had."""


def test_kafkas_errors_are_those_that_kafka_python_knows_and_newer_ones() -> None:
    known = {number: error.message for number, error in theirs.kafka_errors.items() if number}
    assert known.keys() <= kafka_errors.NAMES.keys()
    different = {number for number, name in known.items() if kafka_errors.NAMES[number] != name}
    assert different == SPELT_OTHERWISE
    assert kafka_errors.name(6) == "NOT_LEADER_OR_FOLLOWER"
    assert kafka_errors.name(9999) == "error 9999"


def test_every_kind_has_words() -> None:
    assert failures.WORDS.keys() == set(FailureKind)
    assert [kind for kind, words in failures.WORDS.items() if not words] == [FailureKind.NONE]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (failures.of(""), ""),
        (failures.of("refused"), "connection refused"),
        (failures.of("kafka_error", 14), "COORDINATOR_LOAD_IN_PROGRESS"),
        (failures.of("kafka_error", -1), "UNKNOWN_SERVER_ERROR"),
        (failures.of("kafka_error"), "answered with an error"),
        (failures.of_broker("", False), ""),
        (failures.of_broker("silent", False), "accepts connections but does not answer"),
        (
            failures.of_broker("refused", True),
            "connection refused; kview cannot reach it, but the cluster still hears from it: check the"
            " network between kview and the broker",
        ),
        (failures.of_group("", 0, 2), ""),
        (failures.of_group("coordinator_silent", 0, 2), "coordinator 2 silent"),
        (failures.of_group("coordinator_gone", 0, 2), "the cluster no longer lists coordinator 2"),
        (failures.of_group("kafka_error", 15, 2), "COORDINATOR_NOT_AVAILABLE"),
        (failures.of_partition(0), ""),
        (failures.of_partition(78), "OFFSET_NOT_AVAILABLE"),
    ],
)
def test_words(said: str, words: str) -> None:
    assert said == words


@pytest.mark.parametrize(
    ("servers", "named"),
    [
        (("a:1",), "a:1"),
        (("a:1", "b:2"), "a:1 and b:2"),
        (("a:1", "b:2", "c:3", "d:4"), "a:1, b:2, c:3 and d:4"),
        (("a:1", "b:2", "c:3", "d:4", "e:5", "f:6"), "a:1, b:2, c:3, d:4 and 2 more"),
    ],
)
def test_addresses_in_a_sentence(servers: tuple[str, ...], named: str) -> None:
    error = ClusterUnreachable(ErrorKind.NO_CONNECTION, where=servers)
    assert errors.message(error) == f"cannot connect to {named}"


def test_the_verb_agrees_with_the_number_of_addresses() -> None:
    many = ("a:1", "b:2", "c:3", "d:4", "e:5", "f:6")
    for kind, one, several in (
        (
            ErrorKind.NO_ANSWER,
            "accepts connections but does not answer",
            "accept connections but do not answer",
        ),
        (ErrorKind.CLOSES_CONNECTIONS, "closes connections", "close connections"),
        (ErrorKind.NOT_A_BROKER, "does not speak", "do not speak"),
        (ErrorKind.TLS_LISTENER, "is a TLS listener", "are TLS listeners"),
    ):
        assert errors.message(ClusterUnreachable(kind, where=("a:1",))).startswith(f"a:1 {one}")
        said = errors.message(ClusterUnreachable(kind, where=many))
        assert said.startswith(f"a:1, b:2, c:3, d:4 and 2 more {several}")


def test_addresses_with_their_failures_in_a_sentence() -> None:
    tried = tuple((f"b:{port}", "refused" if port % 2 else "silent") for port in range(1, 7))
    error = ClusterUnreachable(ErrorKind.NO_BOOTSTRAP_SERVER, tried=tried)
    assert errors.message(error) == (
        "no bootstrap server answered (b:1: connection refused; "
        "b:2: accepts connections but does not answer; b:3: connection refused; "
        "b:4: accepts connections but does not answer; and 2 more)"
    )
