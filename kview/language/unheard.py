"""Brokers that have never listed their groups, in words: whose groups are not known, and why."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kview.language import failures, nouns
from kview.model.failures import NOT_AUTHORIZED, Cause, FailureKind
from kview.model.snapshot import Failure
from kview.model.units import NO_BROKER


class _Words(NamedTuple):
    """What is said about one broker, and about several. `{who}` is replaced by `broker 2`, `{why}` by
    Kafka's name of an error."""

    one: str
    several: str


def _same(words: str) -> _Words:
    return _Words(words, words)


_WORDS: Mapping[FailureKind, _Words] = {
    FailureKind.NONE: _Words("{who} has not answered yet", "{who} have not answered yet"),
    FailureKind.NOT_CONNECTED: _same("not connected to {who} yet"),
    FailureKind.UNRESOLVED: _Words(
        "the host name of {who} is unknown", "the host names of {who} are unknown"
    ),
    FailureKind.REFUSED: _Words("{who} refuses connections", "{who} refuse connections"),
    FailureKind.UNREACHABLE: _same("kview cannot connect to {who}"),
    FailureKind.SILENT: _Words(
        "{who} accepts connections but does not answer", "{who} accept connections but do not answer"
    ),
    FailureKind.CLOSED: _Words(
        "{who} closes connections without answering", "{who} close connections without answering"
    ),
    FailureKind.HTTP: _Words(
        "{who} speaks HTTP, not Kafka's protocol", "{who} speak HTTP, not Kafka's protocol"
    ),
    FailureKind.TLS: _Words("{who} speaks TLS, not plaintext", "{who} speak TLS, not plaintext"),
    FailureKind.NOT_TLS: _Words("{who} speaks plaintext, not TLS", "{who} speak plaintext, not TLS"),
    FailureKind.UNTRUSTED: _Words(
        "kview does not trust the certificate of {who}", "kview does not trust the certificates of {who}"
    ),
    FailureKind.WRONG_HOST_NAME: _Words(
        "the certificate of {who} is for another host name",
        "the certificates of {who} are for other host names",
    ),
    FailureKind.CERTIFICATE_EXPIRED: _Words(
        "the certificate of {who} has expired", "the certificates of {who} have expired"
    ),
    FailureKind.CERTIFICATE_BAD: _Words(
        "the certificate of {who} is not valid; see kview.log",
        "the certificates of {who} are not valid; see kview.log",
    ),
    FailureKind.CLIENT_CERTIFICATE_MISSING: _Words(
        "{who} asks for a client certificate", "{who} ask for a client certificate"
    ),
    FailureKind.CLIENT_CERTIFICATE_REFUSED: _Words(
        "{who} does not accept kview's certificate", "{who} do not accept kview's certificate"
    ),
    FailureKind.NO_COMMON_TLS: _same("kview and {who} have no TLS version or cipher in common"),
    FailureKind.NEEDS_SASL: _Words("{who} asks for a login (SASL)", "{who} ask for a login (SASL)"),
    FailureKind.NO_SASL: _Words("{who} does not support logins (SASL)", "{who} do not support logins (SASL)"),
    FailureKind.MECHANISM: _Words(
        "{who} does not offer kview's SASL mechanism", "{who} do not offer kview's SASL mechanism"
    ),
    FailureKind.LOGIN_REFUSED: _Words(
        "{who} does not accept the user name and password", "{who} do not accept the user name and password"
    ),
    FailureKind.TOKEN_REFUSED: _Words(
        "{who} does not accept the OAuth token", "{who} do not accept the OAuth token"
    ),
    FailureKind.NO_TOKEN: _same("the token endpoint gives no token for {who}; see kview.log"),
    FailureKind.TOKEN_CLIENT_REFUSED: _same(
        "the token endpoint does not accept the client id and secret for {who}"
    ),
    FailureKind.LOGIN_FAILED: _same("the login for {who} could not be prepared; see kview.log"),
    FailureKind.CONTROLLER: _Words(
        "the port of {who} is a controller's, not a broker's",
        "the ports of {who} are controllers', not brokers'",
    ),
    FailureKind.NOT_KAFKA: _Words(
        "{who} does not speak Kafka's protocol", "{who} do not speak Kafka's protocol"
    ),
    FailureKind.UNSUPPORTED: _Words("{who} cannot list groups", "{who} cannot list groups"),
    FailureKind.KAFKA_ERROR: _Words(
        "{who} cannot list its groups ({why})", "{who} cannot list their groups ({why})"
    ),
    FailureKind.HTTP_STATUS: _Words("{who} {why}", "{who} {why}"),
    FailureKind.OVERDUE: _Words("{who} has not answered yet", "{who} have not answered yet"),
    FailureKind.INCOMPLETE: _Words("{who} sent an incomplete answer", "{who} sent incomplete answers"),
    FailureKind.MALFORMED: _Words(
        "{who} sent an answer that cannot be read", "{who} sent answers that cannot be read"
    ),
    FailureKind.TOO_LARGE: _Words(
        "{who} sent an answer larger than kview reads", "{who} sent answers larger than kview reads"
    ),
    FailureKind.OUTDATED: _Words(
        "{who} describes an older state of the cluster", "{who} describe an older state of the cluster"
    ),
    FailureKind.COORDINATOR_SILENT: _Words("{who} does not answer", "{who} do not answer"),
    FailureKind.COORDINATOR_GONE: _Words(
        "the cluster no longer lists {who}", "the cluster no longer lists {who}"
    ),
    FailureKind.OTHER: _same("asking {who} failed; see kview.log"),
}

_NO_LEADER = "a partition of __consumer_offsets has no leader"
_LOADING = _Words("{who} is still loading its groups", "{who} are still loading their groups")
_NOT_AUTHORIZED = _Words(
    "{who} does not let kview list its groups ({why})", "{who} do not let kview list their groups ({why})"
)


def sentence(unheard: Sequence[Failure]) -> str:
    """Return whose groups are not known, and why: `broker 2 refuses connections`, '' if there are none.

    Brokers with the same cause are named together.
    """
    brokers: dict[Cause, list[int]] = {}
    for failure in unheard:
        brokers.setdefault(Cause(failure.kind, failure.code), []).append(failure.broker)
    return "; ".join(_said(cause, ids) for cause, ids in brokers.items())


_WAITING = (FailureKind.NONE, FailureKind.NOT_CONNECTED, FailureKind.OVERDUE)
"""The kinds of brokers that may answer at any moment."""


def heading(unheard: Sequence[Failure]) -> str:
    """Return in a few words that the list of groups is incomplete, and why, '' if it is complete.

    Examples: `waiting for 6 brokers`, `incomplete: broker 2 refuses connections`.
    """
    if not unheard:
        return ""
    brokers = [failure.broker for failure in unheard]
    if NO_BROKER not in brokers and all(failure.kind in _WAITING for failure in unheard):
        return f"waiting for {nouns.some_brokers(brokers)}"
    return f"incomplete: {sentence(unheard)}"


def _said(cause: Cause, brokers: Sequence[int]) -> str:
    if brokers == [NO_BROKER]:
        return _NO_LEADER
    words = _WORDS[cause.kind]
    if cause.kind is FailureKind.KAFKA_ERROR and cause.code == failures.LOADING:
        words = _LOADING
    elif cause.kind is FailureKind.KAFKA_ERROR and cause.code in NOT_AUTHORIZED:
        words = _NOT_AUTHORIZED
    said = words.one if len(brokers) == 1 else words.several
    return said.format(who=nouns.some_brokers(brokers), why=failures.of(*cause))
