"""Errors as sentences: what was wrong, and what to do about it."""

from collections.abc import Mapping
from typing import NamedTuple

from kview.errors import ErrorKind, KviewError
from kview.language import failures, nouns

MOST_NAMED = 4
"""Addresses and the like that a sentence names."""


class ErrorWords(NamedTuple):
    """How an error is said. `{name}` stands for the error's value of that name; no full stops."""

    message: str
    remedy: str


WORDS: Mapping[ErrorKind, ErrorWords] = {
    # -- recordings
    # -- the simulated cluster and its world
    # -- Spark
    # -- reaching a cluster
    ErrorKind.CONNECTION_REFUSED: ErrorWords(
        "nothing listens on {where} (connection refused)",
        "check host and port, and that the broker runs; Kafka's usual port is 9092",
    ),
    ErrorKind.NO_CONNECTION: ErrorWords(
        "no connection to {where}",
        "check the address, the network and firewalls between here and there",
    ),
    ErrorKind.NO_ANSWER: ErrorWords(
        "{where} accepts connections but does not answer",
        "the broker may hang, or it is not a broker's port; name more bootstrap servers, separated by commas",
    ),
    ErrorKind.UNKNOWN_HOST: ErrorWords(
        "the host name of {where} is unknown",
        "check its spelling, or give an IP address",
    ),
    ErrorKind.HTTP_SERVER: ErrorWords(
        "{where} is the port of an HTTP server, not of a Kafka broker",
        "give a broker's listener, usually port 9092, not that of a REST proxy or of Kafka Connect",
    ),
    ErrorKind.TLS_LISTENER: ErrorWords(
        "{where} is a TLS listener",
        "give the address of a plaintext listener",
    ),
    ErrorKind.CLOSES_CONNECTIONS: ErrorWords(
        "{where} closes connections without an answer",
        "it may be a TLS or SASL listener, or not a broker's port: give a plaintext listener",
    ),
    ErrorKind.NOT_A_BROKER: ErrorWords(
        "{where} does not speak Kafka's protocol",
        "give a broker's plaintext listener, usually port 9092",
    ),
    ErrorKind.NO_BOOTSTRAP_SERVER: ErrorWords(
        "none of the bootstrap servers answers ({tried})",
        "check the addresses, that the brokers run, and the network between here and there",
    ),
    ErrorKind.ADVERTISED_UNREACHABLE: ErrorWords(
        "{server} answers, but none of the addresses that the cluster advertises does ({tried})",
        "the brokers' advertised.listeners must be reachable from here: check them, and the network to them",
    ),
    ErrorKind.SERVER_EMPTY: ErrorWords(
        "{text!r} has an empty bootstrap server",
        "write HOST:PORT, such as localhost:9092, several with a comma between them",
    ),
    ErrorKind.SERVER_IS_URL: ErrorWords(
        "{server!r} is a URL, not a bootstrap server",
        "write HOST:PORT, such as localhost:9092",
    ),
    ErrorKind.SERVER_WITHOUT_PORT: ErrorWords(
        "{server!r} has no port",
        "write HOST:PORT, such as {server}:9092",
    ),
    ErrorKind.SERVER_UNBRACKETED: ErrorWords(
        "{server!r} has several colons",
        "put an IPv6 address in brackets: [::1]:9092",
    ),
    ErrorKind.SERVER_WITHOUT_HOST: ErrorWords(
        "{server!r} has no usable host name",
        "write HOST:PORT, such as localhost:9092",
    ),
    ErrorKind.SERVER_BAD_PORT: ErrorWords(
        "{server!r} has the port {port!r}",
        "a port is a number from 1 to 65535",
    ),
    # -- flags and arguments
}


def message(error: KviewError) -> str:
    """What was wrong, and where."""
    return WORDS[error.kind].message.format(**_worded(error))


def remedy(error: KviewError) -> str:
    """What to do about it."""
    return WORDS[error.kind].remedy.format(**_worded(error))


def sentence(error: KviewError) -> str:
    """Both in one line."""
    return f"{message(error)}: {remedy(error)}"


def _worded(error: KviewError) -> dict[str, str | int | float]:
    """An error's values as they stand in its sentence: lists in words, numbers as they are."""
    return {
        name: _listed(value) if isinstance(value, tuple) else value for name, value in error.values.items()
    }


def _listed(items: tuple[str, ...] | tuple[tuple[str, str], ...]) -> str:
    """`a, b and c`; addresses with failures as `a: connection refused; b: no connection`."""
    shown, rest = items[:MOST_NAMED], len(items) - MOST_NAMED
    pairs = [f"{item[0]}: {failures.of(item[1])}" for item in shown if isinstance(item, tuple)]
    names = [item for item in shown if isinstance(item, str)]
    if rest > 0:
        return f"{'; '.join(pairs) or ', '.join(names)} and {rest} more"
    return "; ".join(pairs) or nouns.listed(names)
