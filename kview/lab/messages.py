"""What kview and its simulated cluster say to each other: one JSON document a line, typed in both directions.

The cluster begins with Ready or NotStarted; from then on each request gets one reply, in order.
"""

from typing import Any, TypeAlias

import msgspec

from kview.errors import ErrorFacts
from kview.model.faults import ActiveFault, FaultCommand, FaultReply

MAX_REQUEST_BYTES = 4096
"""A fault takes about a hundred bytes."""

MAX_REPLY_BYTES = 1 << 20
"""Large enough for the counters of thousands of topics."""


class DoFault(msgspec.Struct, frozen=True, tag="fault"):
    """Carry out a fault. Answered with FaultAnswer."""

    command: FaultCommand


class AskStatus(msgspec.Struct, frozen=True, tag="status"):
    """Answered with Status."""


class AskCounters(msgspec.Struct, frozen=True, tag="counters"):
    """Answered with Counters."""


class Quit(msgspec.Struct, frozen=True, tag="quit"):
    """End the cluster. Answered with Ending."""


Request: TypeAlias = DoFault | AskStatus | AskCounters | Quit


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The cluster listens: its bootstrap servers, HOST:PORT each."""

    servers: tuple[str, ...]


class NotStarted(msgspec.Struct, frozen=True, tag="not started"):
    """The cluster could not start, and its process ends."""

    error: ErrorFacts


class FaultAnswer(msgspec.Struct, frozen=True, tag="fault"):
    """What became of a fault."""

    reply: FaultReply


class Status(msgspec.Struct, frozen=True, tag="status"):
    """How many nodes there are, how far the clock is behind the wall's, and the faults in force."""

    brokers: int
    controllers: int
    behind_ms: int
    active: tuple[ActiveFault, ...]


class Counters(msgspec.Struct, frozen=True, tag="counters"):
    """What was appended, acknowledged and consumed, by name."""

    counters: dict[str, Any]


class Ending(msgspec.Struct, frozen=True, tag="ending"):
    """The cluster ends."""


Reply: TypeAlias = Ready | NotStarted | FaultAnswer | Status | Counters | Ending

_encoder = msgspec.json.Encoder()
_requests: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_replies: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)


def encode(message: Request | Reply) -> bytes:
    """A message as its line, with the line feed."""
    return _encoder.encode(message) + b"\n"


def request_of(line: bytes) -> Request:
    """Raises msgspec.DecodeError if the line is not a request."""
    return _requests.decode(line)


def reply_of(line: bytes) -> Reply:
    """Raises msgspec.DecodeError if the line is not a reply."""
    return _replies.decode(line)
