"""The messages between kview and its simulated cluster: one JSON document per line, typed in both directions.

The cluster first sends Ready or NotStarted. After that, each request gets one answer, in order.
"""

from enum import StrEnum
from typing import Any, TypeAlias

import msgspec

from kview.errors import ErrorFacts
from kview.model.lab import Command, LabSettings, Reply, Status

MAX_REQUEST_BYTES = 4096
"""Limit of a request. A fault takes about a hundred bytes."""

MAX_ANSWER_BYTES = 1 << 24
"""Limit of an answer: what is set in ten thousand topics and groups with the longest names."""


class Ask(StrEnum):
    """What else is requested of a cluster than a command. QUIT ends it."""

    STATUS = "status"
    COUNTERS = "counters"
    SETTINGS = "settings"
    QUIT = "quit"


Request: TypeAlias = Command | Ask
"""A command is answered with Reply, the others with Status, Counters, LabSettings and Ending."""


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The cluster listens on its bootstrap servers, each given as HOST:PORT."""

    servers: tuple[str, ...]


class NotStarted(msgspec.Struct, frozen=True, tag="not started"):
    """The cluster could not start, and its process ends."""

    error: ErrorFacts


class Counters(msgspec.Struct, frozen=True, tag="counters"):
    """The numbers of records appended, acknowledged and consumed, by name."""

    counters: dict[str, Any]


class Ending(msgspec.Struct, frozen=True, tag="ending"):
    """The cluster is ending."""


Answer: TypeAlias = Ready | NotStarted | Reply | Status | Counters | LabSettings | Ending

_encoder = msgspec.json.Encoder()
_requests: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_answers: msgspec.json.Decoder[Answer] = msgspec.json.Decoder(Answer)


def encode(message: Request | Answer) -> bytes:
    """Return a message as a line, with its line feed."""
    return _encoder.encode(message) + b"\n"


def request_of(line: bytes) -> Request:
    """Return the request in `line`. Raises msgspec.DecodeError if the line is not a request."""
    return _requests.decode(line)


def answer_of(line: bytes) -> Answer:
    """Return the answer in `line`. Raises msgspec.DecodeError if the line is not an answer."""
    return _answers.decode(line)
