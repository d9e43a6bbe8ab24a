"""The messages between kview and its child processes: one JSON document per line, typed in both directions.

What would take long to write as JSON, such as a table, is sent as bytes after a line with their number. A
child that fails sends ErrorFacts before it ends.
"""

import contextlib
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, TypeVar, cast

import msgspec
from msgspec import Meta, Struct
from msgspec.json import Decoder

if TYPE_CHECKING:
    from asyncio import StreamReader

MAX_MESSAGE_BYTES = 1 << 24
"""Limit of a line: what is set in ten thousand topics and groups with the longest names."""

MAX_FOLLOWING_BYTES = 256 << 20
"""Limit of the bytes after a line. The roll-ups of a batch take a few hundred kilobytes."""

M = TypeVar("M")


class BytesFollow(Struct, frozen=True, tag="bytes"):
    """This many bytes follow the line. They are received in place of this message, so a decoder of it has
    `bytes` in its type."""

    length: Annotated[int, Meta(ge=0, le=MAX_FOLLOWING_BYTES)]


def encode(message: object) -> bytes:
    """Return a message, or bytes that are sent as they are, as they go over the socket."""
    if isinstance(message, bytes):
        return encode(BytesFollow(len(message))) + message
    return msgspec.json.encode(message) + b"\n"


def messages(source: socket.socket, decoder: Decoder[M], most_bytes: int = MAX_MESSAGE_BYTES) -> Iterator[M]:
    """Yield messages until the other side closes the socket. A message that is cut off by this is left out.

    Raises ValueError for anything that is not a message or is longer than `most_bytes`.
    """
    # The reset says that it has ended and left something unread.
    with source.makefile("rb") as stream, contextlib.suppress(ConnectionResetError):
        while (line := stream.readline(most_bytes)).endswith(b"\n"):
            message = decoder.decode(line)
            if not isinstance(message, BytesFollow):
                yield message
            elif len(body := stream.read(message.length)) == message.length:
                yield cast(M, body)
        if len(line) == most_bytes:
            raise ValueError(f"a line longer than {most_bytes} bytes")


async def next_message(reader: "StreamReader", decoder: Decoder[M]) -> M:
    """Return the next message on an event loop, where no bytes follow a message. Cancelling it loses nothing.

    Raises EOFError if the other side has closed the socket, and ValueError for anything that is not a
    message or is longer than the reader's limit.
    """
    line = await reader.readline()
    if not line.endswith(b"\n"):
        raise EOFError
    return decoder.decode(line)
