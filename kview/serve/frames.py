"""Kafka's framing: reads the header of a request from its frame, and packs a response into a frame.

A frame is its size (int32) followed by that many bytes. The request header is parsed here and not by the
codec for two reasons: the codec would copy the complete frame, and the client id in the header is never a
compact string, whatever the version.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct

from kview.wire.primitives import INT32, Reader

MAX_REQUEST_BYTES = 100 * 1024 * 1024
"""A broker's `socket.request.max.bytes`."""

_KEY_VERSION_CORRELATION = Struct(">hhi")
_SIZE_CORRELATION = Struct(">ii")


class Garbage(Exception):
    """Raised for bytes that are not a valid request. Their connection is then closed, as in Kafka."""


@dataclass(frozen=True, slots=True)
class Header:
    """The header of a request.

    `end` is the position in the frame after the client id, and before the tagged fields if there are any.
    """

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str
    end: int


def frame_size(buffer: bytearray, position: int, limit_bytes: int | None = None) -> int:
    """Return the size of the frame whose size field is at `position`.

    Raises Garbage if the size is negative or exceeds `limit_bytes`, which is MAX_REQUEST_BYTES unless it is
    given.
    """
    (size,) = INT32.unpack_from(buffer, position)
    if not 0 <= size <= (limit_bytes or MAX_REQUEST_BYTES):
        raise Garbage(f"a frame of {size} bytes")
    return int(size)


def parse_header(frame: memoryview) -> Header:
    """Parse the header at the start of `frame` (without its size).

    Raises MalformedBytes or struct.error.
    """
    api_key, api_version, correlation_id = _KEY_VERSION_CORRELATION.unpack_from(frame)
    reader = Reader(frame, _KEY_VERSION_CORRELATION.size)
    client_id = reader.nullable_string() or ""
    return Header(api_key, api_version, correlation_id, client_id, reader.position)


def pack_token(token: bytes) -> bytes:
    """Pack an answer without a header into a frame."""
    return INT32.pack(len(token)) + token


def pack(correlation_id: int, body: Sequence[bytes | bytearray], tagged_header: bool) -> bytes:
    """Pack the pieces of an encoded response body into a frame.

    `tagged_header` is True for response headers of version 1.
    """
    tags = b"\0" if tagged_header else b""
    size = 4 + len(tags) + sum(map(len, body))
    return b"".join((_SIZE_CORRELATION.pack(size, correlation_id), tags, *body))
