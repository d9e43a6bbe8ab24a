"""What is said about brokers that have never listed their groups: the cause, and not that all are silent."""

import pytest

from kview.language.unheard import heading, sentence
from kview.model.failures import FailureKind, Part
from kview.model.snapshot import Failure

CAUSES = {
    FailureKind.NONE: "broker 2 has not answered yet",
    FailureKind.NOT_CONNECTED: "not connected to broker 2 yet",
    FailureKind.UNRESOLVED: "the host name of broker 2 is unknown",
    FailureKind.REFUSED: "broker 2 refuses connections",
    FailureKind.UNREACHABLE: "kview cannot connect to broker 2",
    FailureKind.SILENT: "broker 2 accepts connections but does not answer",
    FailureKind.CLOSED: "broker 2 closes connections without answering",
    FailureKind.HTTP: "broker 2 speaks HTTP, not Kafka's protocol",
    FailureKind.TLS: "broker 2 speaks TLS, not plaintext",
    FailureKind.NOT_TLS: "broker 2 speaks plaintext, not TLS",
    FailureKind.UNTRUSTED: "kview does not trust the certificate of broker 2",
    FailureKind.WRONG_HOST_NAME: "the certificate of broker 2 is for another host name",
    FailureKind.CERTIFICATE_EXPIRED: "the certificate of broker 2 has expired",
    FailureKind.CERTIFICATE_BAD: "the certificate of broker 2 is not valid; see kview.log",
    FailureKind.CLIENT_CERTIFICATE_MISSING: "broker 2 asks for a client certificate",
    FailureKind.CLIENT_CERTIFICATE_REFUSED: "broker 2 does not accept kview's certificate",
    FailureKind.NO_COMMON_TLS: "kview and broker 2 have no TLS version or cipher in common",
    FailureKind.NEEDS_SASL: "broker 2 asks for a login (SASL)",
    FailureKind.NO_SASL: "broker 2 does not support logins (SASL)",
    FailureKind.MECHANISM: "broker 2 does not offer kview's SASL mechanism",
    FailureKind.LOGIN_REFUSED: "broker 2 does not accept the user name and password",
    FailureKind.TOKEN_REFUSED: "broker 2 does not accept the OAuth token",
    FailureKind.NO_TOKEN: "the token endpoint gives no token for broker 2; see kview.log",
    FailureKind.TOKEN_CLIENT_REFUSED: (
        "the token endpoint does not accept the client id and secret for broker 2"
    ),
    FailureKind.LOGIN_FAILED: "the login for broker 2 could not be prepared; see kview.log",
    FailureKind.CONTROLLER: "the port of broker 2 is a controller's, not a broker's",
    FailureKind.NOT_KAFKA: "broker 2 does not speak Kafka's protocol",
    FailureKind.UNSUPPORTED: "broker 2 cannot list groups",
    FailureKind.KAFKA_ERROR: "broker 2 cannot list its groups (answered with an error)",
    FailureKind.HTTP_STATUS: "broker 2 answered with another status than 200",
    FailureKind.OVERDUE: "broker 2 has not answered yet",
    FailureKind.INCOMPLETE: "broker 2 sent an incomplete answer",
    FailureKind.MALFORMED: "broker 2 sent an answer that cannot be read",
    FailureKind.TOO_LARGE: "broker 2 sent an answer larger than kview reads",
    FailureKind.OUTDATED: "broker 2 describes an older state of the cluster",
    FailureKind.COORDINATOR_SILENT: "broker 2 does not answer",
    FailureKind.COORDINATOR_GONE: "the cluster no longer lists broker 2",
    FailureKind.OTHER: "asking broker 2 failed; see kview.log",
}


def test_every_cause_is_told() -> None:
    said = {kind: sentence([Failure(Part.GROUPS, 2, kind)]) for kind in FailureKind}
    assert said == CAUSES


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (14, "broker 2 is still loading its groups"),
        (15, "broker 2 cannot list its groups (COORDINATOR_NOT_AVAILABLE)"),
        (30, "broker 2 does not let kview list its groups (GROUP_AUTHORIZATION_FAILED)"),
        (31, "broker 2 does not let kview list its groups (CLUSTER_AUTHORIZATION_FAILED)"),
    ],
)
def test_kafkas_errors_are_told_apart(code: int, said: str) -> None:
    assert sentence([Failure(Part.GROUPS, 2, FailureKind.KAFKA_ERROR, code)]) == said


def test_brokers_with_the_same_cause_are_named_together() -> None:
    failures = [
        Failure(Part.GROUPS, 2, FailureKind.REFUSED),
        Failure(Part.GROUPS, 3, FailureKind.KAFKA_ERROR, 14),
        Failure(Part.GROUPS, 5, FailureKind.REFUSED),
    ]
    assert sentence(failures) == "brokers 2 and 5 refuse connections; broker 3 is still loading its groups"
    assert sentence([]) == ""


def test_several_certificates_are_in_the_plural() -> None:
    expired = [Failure(Part.GROUPS, broker, FailureKind.CERTIFICATE_EXPIRED) for broker in (2, 5)]
    assert sentence(expired) == "the certificates of brokers 2 and 5 have expired"
    assert sentence(expired[:1]) == "the certificate of broker 2 has expired"


def test_many_brokers_are_counted() -> None:
    failures = [Failure(Part.GROUPS, broker, FailureKind.SILENT) for broker in range(30)]
    assert sentence(failures) == "30 brokers accept connections but do not answer"


def test_a_heading_tells_who_may_still_answer_from_who_cannot() -> None:
    late = [Failure(Part.GROUPS, broker, FailureKind.OVERDUE) for broker in range(6)]
    assert heading(late) == "waiting for 6 brokers"
    assert heading(late[:1]) == "waiting for broker 0"
    refused = Failure(Part.GROUPS, 2, FailureKind.REFUSED)
    assert heading([refused, *late[:1]]) == (
        "incomplete: broker 2 refuses connections; broker 0 has not answered yet"
    )
    assert heading([]) == ""
