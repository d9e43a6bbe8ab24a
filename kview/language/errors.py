"""Errors as sentences: what was wrong, and what to do about it."""

from collections.abc import Mapping
from typing import NamedTuple

from kview.errors import ErrorKind, KviewError


class ErrorWords(NamedTuple):
    """How an error is said. `{name}` stands for the error's value of that name; no full stops."""

    message: str
    remedy: str


WORDS: Mapping[ErrorKind, ErrorWords] = {
    # -- recordings
    # -- the simulated cluster and its world
    # -- Spark
    # -- reaching a cluster
    # -- flags and arguments
}


def message(error: KviewError) -> str:
    """What was wrong, and where."""
    return WORDS[error.kind].message.format(**error.values)


def remedy(error: KviewError) -> str:
    """What to do about it."""
    return WORDS[error.kind].remedy.format(**error.values)


def sentence(error: KviewError) -> str:
    """Both in one line."""
    return f"{message(error)}: {remedy(error)}"
