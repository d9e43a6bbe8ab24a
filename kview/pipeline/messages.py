"""What the live job's process says to kview: frames of a kind, a length and a body on a socket."""

import socket
import struct
from collections.abc import Iterator
from enum import Enum

import msgspec

from kview.errors import ErrorFacts, KviewError

_HEAD = struct.Struct(">cI")

MAX_BODY_BYTES = 256 << 20
"""A longer one is no message of ours: roll-ups of a batch are some hundred kilobytes."""


class MessageKind(Enum):
    """What a message's body is."""

    ROLLUPS = b"R"
    """An Arrow IPC stream with the columns of `kview.pipeline.rollup.rolled`."""
    FAILED = b"F"
    """Why it ends: ErrorFacts as JSON."""


def failure(error: KviewError) -> bytes:
    """The body of a FAILED message."""
    return msgspec.json.encode(error.facts)


def failure_of(body: bytes) -> ErrorFacts:
    """The error in a FAILED message. Raises ValueError if there is none."""
    try:
        return msgspec.json.decode(body, type=ErrorFacts)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from error


def send(to: socket.socket, kind: MessageKind, body: bytes) -> None:
    """Sends one message whole. Raises OSError."""
    to.sendall(_HEAD.pack(kind.value, len(body)) + body)


def messages(source: socket.socket) -> Iterator[tuple[MessageKind, bytes]]:
    """The messages until the other side has gone. Raises ValueError where it sends something else."""
    with source.makefile("rb") as stream:
        while len(head := stream.read(_HEAD.size)) == _HEAD.size:
            kind, length = _HEAD.unpack(head)
            if length > MAX_BODY_BYTES:
                raise ValueError(f"a message of {length} bytes")
            body = stream.read(length)
            if len(body) < length:
                return
            yield MessageKind(kind), body
