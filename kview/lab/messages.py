"""The messages between kview and its simulated cluster: one JSON document per line, typed in both directions.

The cluster first sends Ready or NotStarted. After that, each request gets one reply, in order.
"""

from typing import Any, TypeAlias

import msgspec

from kview.errors import ErrorFacts
from kview.model.adjustments import Adjustment, AdjustmentReply
from kview.model.faults import ActiveFault, FaultCommand, FaultReply
from kview.model.lab import LabSettings

MAX_REQUEST_BYTES = 4096
"""Limit of a request. A fault takes about a hundred bytes."""

MAX_REPLY_BYTES = 1 << 24
"""Limit of a reply, large enough for what is set in ten thousand topics and groups with the longest names."""


class DoFault(msgspec.Struct, frozen=True, tag="fault"):
    """Carry out a fault. Answered with FaultAnswer."""

    command: FaultCommand


class DoAdjustment(msgspec.Struct, frozen=True, tag="adjustment"):
    """Carry out an adjustment. Answered with AdjustmentAnswer."""

    wanted: Adjustment


class AskStatus(msgspec.Struct, frozen=True, tag="status"):
    """Ask for the state of the cluster. Answered with Status."""


class AskCounters(msgspec.Struct, frozen=True, tag="counters"):
    """Ask for the counters. Answered with Counters."""


class AskSettings(msgspec.Struct, frozen=True, tag="settings"):
    """Ask for what is set and can be adjusted. Answered with Settings."""


class Quit(msgspec.Struct, frozen=True, tag="quit"):
    """End the cluster. Answered with Ending."""


Request: TypeAlias = DoFault | DoAdjustment | AskStatus | AskCounters | AskSettings | Quit


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """The cluster listens on its bootstrap servers, each given as HOST:PORT."""

    servers: tuple[str, ...]


class NotStarted(msgspec.Struct, frozen=True, tag="not started"):
    """The cluster could not start, and its process ends."""

    error: ErrorFacts


class FaultAnswer(msgspec.Struct, frozen=True, tag="fault"):
    """The outcome of a fault."""

    reply: FaultReply


class AdjustmentAnswer(msgspec.Struct, frozen=True, tag="adjustment"):
    """The outcome of an adjustment."""

    reply: AdjustmentReply


class Status(msgspec.Struct, frozen=True, tag="status"):
    """The number of nodes, how far the cluster's clock is behind the wall clock, the faults in force, and
    whether it has none and has recovered from those it had: every broker serves, and every ISR is full."""

    brokers: int
    controllers: int
    behind_ms: int
    active: tuple[ActiveFault, ...]
    healthy: bool


class Counters(msgspec.Struct, frozen=True, tag="counters"):
    """The numbers of records appended, acknowledged and consumed, by name."""

    counters: dict[str, Any]


class Settings(msgspec.Struct, frozen=True, tag="settings"):
    """What is set and can be adjusted."""

    settings: LabSettings


class Ending(msgspec.Struct, frozen=True, tag="ending"):
    """The cluster is ending."""


Reply: TypeAlias = Ready | NotStarted | FaultAnswer | AdjustmentAnswer | Status | Counters | Settings | Ending

_encoder = msgspec.json.Encoder()
_requests: msgspec.json.Decoder[Request] = msgspec.json.Decoder(Request)
_replies: msgspec.json.Decoder[Reply] = msgspec.json.Decoder(Reply)


def encode(message: Request | Reply) -> bytes:
    """Return a message as a line, with its line feed."""
    return _encoder.encode(message) + b"\n"


def request_of(line: bytes) -> Request:
    """Return the request in `line`. Raises msgspec.DecodeError if the line is not a request."""
    return _requests.decode(line)


def reply_of(line: bytes) -> Reply:
    """Return the reply in `line`. Raises msgspec.DecodeError if the line is not a reply."""
    return _replies.decode(line)
