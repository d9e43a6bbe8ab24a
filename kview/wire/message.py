"""Requests with an encoded body, in the form that kafka-python's connections expect, and primitive types."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kview.wire.kafka_internals import response_header

T = TypeVar("T")


class LayoutError(ValueError):
    """Raised for an unexpected layout of bytes.

    This is a ValueError, because kafka-python treats a ValueError as a protocol error.
    """


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """The part of a request header that kafka-python's parser needs."""

    api_key: int
    api_version: int
    correlation_id: int
    response_class: Any

    def get_response_class(self) -> Any:
        """Return the object whose `parse_header` and `decode` read the response."""
        return self.response_class


class Message(Generic[T]):
    """A request with an encoded body, and the function that decodes the response body.

    A message takes the place of kafka-python's request classes in `KafkaConnection.send_request`. It can be
    sent many times, because only the header differs. `decode` receives the response without its header and
    may raise ValueError.
    """

    def __init__(
        self, api_key: int, version: int, flexible: bool, body: bytes, decode: Callable[[memoryview], T]
    ) -> None:
        self.API_KEY = api_key
        self.API_VERSION = version
        self.header: RequestHeader | None = None
        self._flexible = flexible
        self._body = body
        self._decode = decode
        self._client_id = b""

    def with_header(self, correlation_id: int, client_id: str) -> None:
        """Set the header for the next time the request is sent."""
        self._client_id = client_id.encode()
        self.header = RequestHeader(self.API_KEY, self.API_VERSION, correlation_id, self)

    def encode(self, framed: bool = True, header: bool = True) -> bytes:
        """Encode the request with its header. With `framed`, the length of the request comes first."""
        if self.header is None or not header:
            raise ValueError("a request is sent with its header")
        data = b"".join(
            (
                struct.pack(
                    ">hhih", self.API_KEY, self.API_VERSION, self.header.correlation_id, len(self._client_id)
                ),
                self._client_id,
                b"\x00" if self._flexible else b"",
                self._body,
            )
        )
        return struct.pack(">i", len(data)) + data if framed else data

    def expect_response(self) -> bool:
        """Return True, because every read-only request has a response."""
        return True

    def parse_header(self, buffer: Any) -> Any:
        """Read the response header from `buffer`, and leave the buffer's position after the header."""
        return response_header(buffer, self._flexible)

    def decode(self, buffer: Any) -> T:
        """Decode the response body."""
        return self._decode(memoryview(buffer)[buffer.tell() :])

    def __str__(self) -> str:
        return f"Message(api_key={self.API_KEY}, version={self.API_VERSION}, {len(self._body)} bytes)"


class Reader:
    """Reads Kafka's primitive types from the bytes of a response.

    Reading past the end raises LayoutError.
    """

    __slots__ = ("data", "position")

    def __init__(self, data: memoryview, position: int = 0) -> None:
        self.data = data
        self.position = position

    def take(self, length: int) -> memoryview:
        """Read the next `length` bytes."""
        end = self.position + length
        if length < 0 or end > len(self.data):
            raise LayoutError(f"{length} bytes wanted at {self.position} of {len(self.data)}")
        piece = self.data[self.position : end]
        self.position = end
        return piece

    def integer(self, length: int) -> int:
        """Read a big-endian signed integer of `length` bytes."""
        return int.from_bytes(self.take(length), "big", signed=True)

    def varint(self) -> int:
        """Read an unsigned varint of at most 32 bits."""
        value = 0
        for shift in (0, 7, 14, 21, 28):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise LayoutError(f"a varint of more than five bytes at {self.position}")

    def string(self) -> str:
        """Read a string that follows its length in two bytes."""
        return str(self.take(self.integer(2)), "utf-8")

    def compact_string(self) -> str | None:
        """Read a string that follows its length + 1 as a varint. A length field of 0 means None."""
        length = self.varint()
        return str(self.take(length - 1), "utf-8") if length else None

    def no_tags(self) -> None:
        """Read tagged fields, and check that there are none."""
        if self.take(1)[0]:
            raise LayoutError(f"tagged fields at {self.position}")

    def end(self) -> None:
        """Check that no bytes are left."""
        if self.position != len(self.data):
            raise LayoutError(f"{len(self.data) - self.position} bytes too many")


def varint(value: int) -> bytes:
    """Encode an unsigned varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def compact_string(text: str) -> bytes:
    """Encode a string after its length + 1 as a varint."""
    data = text.encode()
    return varint(len(data) + 1) + data
