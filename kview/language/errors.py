"""Errors as sentences: what was wrong, and what to do about it."""

from collections.abc import Mapping

from kview.config.log import log_path
from kview.errors import ErrorFacts, ErrorKind, ErrorValue, KviewError
from kview.language import (
    failures,
    glyphs,
    key_errors,
    nouns,
    recording_errors,
    security_errors,
    simulation_errors,
    spark_errors,
)
from kview.language.error_words import ErrorWords

MOST_ADDRESSES = 4
"""The most addresses that a sentence names; the rest are only counted."""
_SEPARATORS = {"where": ", ", "tried": "; "}
"""Separator between a list's addresses, keyed by value name. Those of `tried` come with their failures."""

_SERVER_FORM = "write HOST:PORT, such as localhost:9092"

WORDS: Mapping[ErrorKind, ErrorWords] = {
    # -- reaching a cluster
    ErrorKind.CONNECTION_REFUSED: ErrorWords(
        "nothing is listening on {where} (connection refused)",
        "check the host, the port and that the broker is running; Kafka's usual port is 9092",
    ),
    ErrorKind.NO_CONNECTION: ErrorWords(
        "cannot connect to {where}",
        "check the address, the network and any firewalls in between",
    ),
    ErrorKind.NO_ANSWER: ErrorWords(
        "{where} accepts connections but does not answer",
        "the broker may be hung, or this is not a broker's port; try other addresses (HOST:PORT,HOST:PORT)",
        "{where} accept connections but do not answer",
    ),
    ErrorKind.UNKNOWN_HOST: ErrorWords(
        "the host name of {where} is unknown",
        "check the spelling, or give an IP address",
        "the host names of {where} are unknown",
    ),
    ErrorKind.HTTP_SERVER: ErrorWords(
        "{where} is the port of an HTTP server, not of a Kafka broker",
        "give a broker's listener, usually port 9092, not a REST proxy or Kafka Connect",
        "{where} are ports of HTTP servers, not of Kafka brokers",
    ),
    ErrorKind.CLOSES_CONNECTIONS: ErrorWords(
        "{where} closes connections without answering",
        "it may be starting, behind a proxy, or not a broker at all; check the address and the broker's log",
        "{where} close connections without answering",
    ),
    ErrorKind.NOT_A_BROKER: ErrorWords(
        "{where} does not speak Kafka's protocol",
        "give a broker's listener, usually port 9092",
        "{where} do not speak Kafka's protocol",
    ),
    ErrorKind.NO_BOOTSTRAP_SERVER: ErrorWords(
        "no bootstrap server answered ({tried})",
        "check the addresses, that the brokers are running, and that this machine can reach them",
    ),
    ErrorKind.ADVERTISED_UNREACHABLE: ErrorWords(
        "{server} answers, but none of the addresses that the cluster advertises does ({tried})",
        "this machine must be able to reach the brokers' advertised.listeners; if it reaches them at other"
        " addresses, as with containers, map each one: --map {advertised}=HOST:PORT",
    ),
    # -- flags and arguments
    ErrorKind.SERVER_EMPTY: ErrorWords(
        "{text!r} contains an empty bootstrap server", f"{_SERVER_FORM}; separate several with commas"
    ),
    ErrorKind.SERVER_IS_URL: ErrorWords("{server!r} is a URL, not a bootstrap server", _SERVER_FORM),
    ErrorKind.SERVER_WITHOUT_PORT: ErrorWords(
        "{server!r} has no port", "write HOST:PORT, such as {server}:9092"
    ),
    ErrorKind.SERVER_WITHOUT_BRACKETS: ErrorWords(
        "{server!r} has more than one colon", "put an IPv6 address in brackets: [::1]:9092"
    ),
    ErrorKind.SERVER_WITHOUT_HOST: ErrorWords("{server!r} has no valid host name", _SERVER_FORM),
    ErrorKind.SERVER_PORT_WRONG: ErrorWords(
        "{port!r} in {server!r} is not a valid port", "give a number from 1 to 65535"
    ),
    ErrorKind.NOT_A_TIME: ErrorWords("{text!r} is not a valid time", "write {forms}"),
    # -- metrics
    ErrorKind.METRICS_PORT_IN_USE: ErrorWords(
        "{address} is in use, so metrics cannot be served there", "choose another port for --metrics"
    ),
    ErrorKind.METRICS_NOT_SERVED: ErrorWords(
        "metrics cannot be served on {address} ({reason})",
        "give --metrics an address of this machine, and a port that you may use",
    ),
    # -- output
    ErrorKind.OUTPUT_FAILED: ErrorWords(
        "cannot write to standard output ({reason})",
        "check where it goes and, if that is a file, the free space",
    ),
    ErrorKind.FILE_NOT_WRITTEN: ErrorWords(
        "cannot write {file} ({reason})",
        "check that its folder exists, that you may write to it, and that the disk has space",
    ),
    **recording_errors.WORDS,
    **simulation_errors.WORDS,
    **spark_errors.WORDS,
    **security_errors.WORDS,
    **key_errors.WORDS,
}


def message(error: KviewError | ErrorFacts) -> str:
    """Return what was wrong, and where."""
    said, where = WORDS[error.kind], error.values.get("where", ())
    is_several = bool(said.several) and isinstance(where, tuple) and len(where) > 1
    return (said.several if is_several else said.message).format(**_listed(error.values))


def remedy(error: KviewError | ErrorFacts) -> str:
    """Return what the user can do about an error."""
    return WORDS[error.kind].remedy.format(log=log_path(), **_listed(error.values))


def sentence(error: KviewError | ErrorFacts) -> str:
    """Return what was wrong and what to do, in one line."""
    return f"{message(error)}: {remedy(error)}"


def _listed(values: Mapping[str, ErrorValue]) -> dict[str, str | int | float]:
    """Return the values for a sentence: lists as words, and texts in characters that can be printed."""
    words = {
        name: _in_words(name, value) if isinstance(value, tuple) else value for name, value in values.items()
    }
    return {
        name: glyphs.printable(value) if isinstance(value, str) else value for name, value in words.items()
    }


def _in_words(name: str, items: tuple[str | tuple[str, str], ...]) -> str:
    """Return a list as words.

    Of a long list of addresses, only the first are named: `a:1, b:2 and 3 more`.
    """
    words = [item if isinstance(item, str) else f"{item[0]}: {failures.of(item[1])}" for item in items]
    if name not in _SEPARATORS:
        return ", ".join(words)
    rest = len(words) - MOST_ADDRESSES
    if rest > 0:
        between = "; " if name == "tried" else " "
        return f"{_SEPARATORS[name].join(words[:MOST_ADDRESSES])}{between}and {rest} more"
    return nouns.listed(words) if name == "where" else _SEPARATORS[name].join(words)
