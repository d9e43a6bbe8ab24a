"""What kview and its simulated cluster say to each other.

The cluster first sends Ready, or ErrorFacts if it cannot start. After that, each request gets one answer, in
order.
"""

from enum import StrEnum
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.json import Decoder

from kview.errors import ErrorFacts
from kview.model.lab import Command, LabSettings, LoggedRequest, Reply, Status

MAX_REQUEST_BYTES = 4096
"""Limit of a request. A fault takes about a hundred bytes."""


class Ask(StrEnum):
    """What else is requested of a cluster than a command. QUIT ends it."""

    STATUS = "status"
    COUNTERS = "counters"
    SETTINGS = "settings"
    REQUESTS = "requests"
    FORGET_REQUESTS = "forget-requests"
    QUIT = "quit"


Request: TypeAlias = Command | Ask
"""A command is answered with Reply, the others with Status, Counters, LabSettings, Requests and Ending."""


class Ready(Struct, frozen=True, tag="ready"):
    """The cluster listens on its bootstrap servers, each given as HOST:PORT.

    If it is secured, `client_file` is the path of the client.properties of a user who may do everything.
    """

    servers: tuple[str, ...]
    client_file: str = ""


class Counters(Struct, frozen=True, tag="counters"):
    """The numbers of records appended, acknowledged and consumed, by name."""

    counters: dict[str, Any]


class Requests(Struct, frozen=True, tag="requests"):
    """The requests that clients have sent since somebody first asked for them, the newest 20,000."""

    requests: tuple[LoggedRequest, ...]


class Ending(Struct, frozen=True, tag="ending"):
    """The cluster is ending."""


Answer: TypeAlias = Ready | ErrorFacts | Reply | Status | Counters | LabSettings | Requests | Ending

requests: Decoder[Request] = Decoder(Request)
answers: Decoder[Answer] = Decoder(Answer)
