"""Errors as sentences: what was wrong, and what to do about it."""

from collections.abc import Mapping
from typing import NamedTuple

from kview.errors import ErrorKind, ErrorValue, KviewError
from kview.language import failures, nouns

MOST_ADDRESSES = 4
"""So many addresses are named in a sentence."""
_SEPARATORS = {"where": ", ", "tried": "; "}
"""By the name of a value that is a list of addresses: `tried` has failures with them."""
_SERVER_FORM = "write HOST:PORT, such as localhost:9092"


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
    # -- flags and arguments
    ErrorKind.SERVER_EMPTY: ErrorWords(
        "{text!r} has an empty bootstrap server", f"{_SERVER_FORM}, with commas between several"
    ),
    ErrorKind.SERVER_IS_URL: ErrorWords("{server!r} is a URL, not a bootstrap server", _SERVER_FORM),
    ErrorKind.SERVER_WITHOUT_PORT: ErrorWords(
        "{server!r} has no port", "write HOST:PORT, such as {server}:9092"
    ),
    ErrorKind.SERVER_WITHOUT_BRACKETS: ErrorWords(
        "{server!r} has several colons", "put an IPv6 address in brackets: [::1]:9092"
    ),
    ErrorKind.SERVER_WITHOUT_HOST: ErrorWords("{server!r} has no valid host name", _SERVER_FORM),
    ErrorKind.SERVER_PORT_WRONG: ErrorWords(
        "{server!r} has the port {port!r}", "a port is a number from 1 to 65535"
    ),
}


def message(error: KviewError) -> str:
    """What was wrong, and where."""
    return WORDS[error.kind].message.format(**_listed(error.values))


def remedy(error: KviewError) -> str:
    """What to do about it."""
    return WORDS[error.kind].remedy.format(**_listed(error.values))


def sentence(error: KviewError) -> str:
    """Both in one line."""
    return f"{message(error)}: {remedy(error)}"


def _listed(values: Mapping[str, ErrorValue]) -> dict[str, str | int | float]:
    return {
        name: _in_words(name, value) if isinstance(value, tuple) else value for name, value in values.items()
    }


def _in_words(name: str, items: tuple[str | tuple[str, str], ...]) -> str:
    """A list; of addresses, which can be many, the first ones: `a:1, b:2 and 3 more`."""
    words = [item if isinstance(item, str) else f"{item[0]}: {failures.of(item[1])}" for item in items]
    if name not in _SEPARATORS:
        return ", ".join(words)
    rest = len(words) - MOST_ADDRESSES
    if rest > 0:
        return f"{_SEPARATORS[name].join(words[:MOST_ADDRESSES])} and {rest} more"
    return nouns.listed(words) if name == "where" else _SEPARATORS[name].join(words)
