"""Kafka's framing: reads the header of a request from its frame, and packs a response into a frame.

A frame is its size (int32) followed by that many bytes. The request header is parsed here and not by the
codec for two reasons: the codec would copy the complete frame, and the client id in the header is never a
compact string, whatever the version.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct

MAX_REQUEST_BYTES = 100 * 1024 * 1024
"""A broker's `socket.request.max.bytes`."""

_SIZE = Struct(">i")
_KEY_VERSION_CORRELATION = Struct(">hhi")
_SHORT = Struct(">h")
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


def frame_size(buffer: bytearray, position: int) -> int:
    """Return the size of the frame whose size field is at `position`.

    Raises Garbage if the size exceeds MAX_REQUEST_BYTES or is too small for a header.
    """
    (size,) = _SIZE.unpack_from(buffer, position)
    if not _KEY_VERSION_CORRELATION.size <= size <= MAX_REQUEST_BYTES:
        raise Garbage(f"a frame of {size} bytes")
    return int(size)


def parse_header(frame: memoryview) -> Header:
    """Parse the header at the start of `frame` (without its size).

    Raises Garbage, struct.error or UnicodeDecodeError.
    """
    api_key, api_version, correlation_id = _KEY_VERSION_CORRELATION.unpack_from(frame)
    position = _KEY_VERSION_CORRELATION.size
    (length,) = _SHORT.unpack_from(frame, position)
    position += _SHORT.size
    client_id = ""
    if length > 0:
        if position + length > len(frame):
            raise Garbage("a client id longer than its frame")
        client_id = str(frame[position : position + length], "utf-8")
        position += length
    return Header(api_key, api_version, correlation_id, client_id, position)


def skip_tags(frame: memoryview, position: int) -> int:
    """Return the position after the tagged fields at `position`. Raises Garbage or IndexError."""
    count, position = _unsigned(frame, position)
    for _ in range(count):
        _, position = _unsigned(frame, position)
        size, position = _unsigned(frame, position)
        position += size
    return position


def pack(correlation_id: int, body: Sequence[bytes | bytearray], tagged_header: bool) -> bytes:
    """Return, in pieces, the frame of a response whose body is already encoded.

    `tagged_header` is True for response headers of version 1.
    """
    tags = b"\0" if tagged_header else b""
    size = 4 + len(tags) + sum(map(len, body))
    return b"".join((_SIZE_CORRELATION.pack(size, correlation_id), tags, *body))


def _unsigned(frame: memoryview, position: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 35, 7):
        byte = frame[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, position
    raise Garbage("a variable-length number of more than five bytes")
