"""Kafka Connect as words: why the states of connectors are unknown or old, and the group of a sink."""

from kview.language import failures, words
from kview.model.failures import FailureKind
from kview.model.snapshot import Failure
from kview.model.units import UNKNOWN

NOT_ASKED = "states unknown: the profile has no connect-url"
ELSEWHERE = "no connector of connect-url is known to run on these workers"
NO_CONNECTORS = "no connectors"
NO_TRACE = "without a trace"


def unknown(failure: Failure | None) -> str:
    """Return why no states have been read yet."""
    if failure is None:
        return NOT_ASKED
    if failure.kind is FailureKind.NOT_CONNECTED:
        return "states unknown: Kafka Connect has not answered yet"
    return f"states unknown (connect-url: {failures.of(failure.kind, failure.code)})"


def old(failure: Failure | None, received_ms: int, now_ms: int) -> str:
    """Return how old states are and why, '' if they were read the last time."""
    if failure is None or received_ms == UNKNOWN:
        return ""
    why = failures.of(failure.kind, failure.code)
    return f"{words.duration(now_ms - received_ms, tenths=False)} old (connect-url: {why})"


def read_by(group: str, lag: int, is_bound: bool) -> str:
    """Return which group a sink reads as, and its lag: `group connect-jdbc, lag 1,234`."""
    return f"group {group}, lag {words.at_least(words.count(lag), is_bound)}"
