"""Messages from a child that runs Spark to kview: frames of kind, length and body on a socket."""

import contextlib
import socket
import struct
from collections.abc import Iterator
from enum import Enum

import msgspec

from kview.errors import ErrorFacts, KviewError

_HEAD = struct.Struct(">cI")

MAX_BODY_BYTES = 256 << 20
"""A longer body cannot be from the job, because the roll-ups of a batch take a few hundred kilobytes."""


WATCHED, UNWATCHED = b"w", b"u"
"""What kview tells the live job: whether somebody looks at the roll-ups."""


class MessageKind(Enum):
    """The content of a message's body."""

    ROLLUPS = b"R"
    """An Arrow IPC stream with what `kview.pipeline.reading.next_rollups` returns."""
    FAILED = b"F"
    """The reason why the process ends: ErrorFacts as JSON."""
    PROGRESS = b"P"
    """How far a report is: ReportProgress as JSON."""
    REPORT = b"M"
    """A report that is complete, as `kview.run.report_process` has it."""


def failure(error: KviewError) -> bytes:
    """Return the body of a FAILED message."""
    return msgspec.json.encode(error.facts)


def failure_of(body: bytes) -> ErrorFacts:
    """Return the error in a FAILED message. Raises ValueError if the body does not describe an error."""
    try:
        return msgspec.json.decode(body, type=ErrorFacts)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from error


def send(to: socket.socket, kind: MessageKind, body: bytes) -> None:
    """Send one complete message. Raises OSError."""
    to.sendall(_HEAD.pack(kind.value, len(body)) + body)


def messages(source: socket.socket) -> Iterator[tuple[MessageKind, bytes]]:
    """Yield messages until the other side closes the socket. Raises ValueError if it sends anything else."""
    # The reset says that it has ended and left something unread.
    with source.makefile("rb") as stream, contextlib.suppress(ConnectionResetError):
        while len(head := stream.read(_HEAD.size)) == _HEAD.size:
            kind, length = _HEAD.unpack(head)
            if length > MAX_BODY_BYTES:
                raise ValueError(f"a message of {length} bytes")
            body = stream.read(length)
            if len(body) < length:
                return
            yield MessageKind(kind), body
