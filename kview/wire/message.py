"""A request whose body is bytes already, in the shape that kafka-python's connections send and receive."""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kview.wire.kafka_internals import response_header

T = TypeVar("T")


class LayoutError(ValueError):
    """Bytes that are not laid out as expected; a ValueError, which kafka-python takes as a protocol error."""


@dataclass(frozen=True, slots=True)
class RequestHeader:
    """What kafka-python's parser asks of a request's header."""

    api_key: int
    api_version: int
    correlation_id: int
    response_class: Any

    def get_response_class(self) -> Any:
        """The object whose `parse_header` and `decode` read the answer."""
        return self.response_class


class Message(Generic[T]):
    """A request of known bytes and the function that decodes its answer's body.

    Stands in for kafka-python's request classes in `KafkaConnection.send_request`, and may be sent many
    times: only the header is made anew. `decode` gets the answer after its header and may raise ValueError.
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
        """Set the header of the next sending."""
        self._client_id = client_id.encode()
        self.header = RequestHeader(self.API_KEY, self.API_VERSION, correlation_id, self)

    def encode(self, framed: bool = True, header: bool = True) -> bytes:
        """The request with its header, preceded by its length when `framed`."""
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
        """Every request that reads is answered."""
        return True

    def parse_header(self, buffer: Any) -> Any:
        """The answer's header, read from `buffer`, which is left behind it."""
        return response_header(buffer, self._flexible)

    def decode(self, buffer: Any) -> T:
        """The answer's body."""
        return self._decode(memoryview(buffer)[buffer.tell() :])

    def __str__(self) -> str:
        return f"Message(api_key={self.API_KEY}, version={self.API_VERSION}, {len(self._body)} bytes)"


class Reader:
    """A place in an answer's bytes, with Kafka's primitive types; reading past its end is a LayoutError."""

    __slots__ = ("data", "position")

    def __init__(self, data: memoryview, position: int = 0) -> None:
        self.data = data
        self.position = position

    def take(self, length: int) -> memoryview:
        """The next `length` bytes."""
        end = self.position + length
        if length < 0 or end > len(self.data):
            raise LayoutError(f"{length} bytes wanted at {self.position} of {len(self.data)}")
        piece = self.data[self.position : end]
        self.position = end
        return piece

    def integer(self, length: int) -> int:
        """A big-endian signed integer of that many bytes."""
        return int.from_bytes(self.take(length), "big", signed=True)

    def varint(self) -> int:
        """An unsigned varint of 32 bits at most."""
        value = 0
        for shift in (0, 7, 14, 21, 28):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise LayoutError(f"a varint of more than five bytes at {self.position}")

    def string(self) -> str:
        """A string with its length before it in two bytes."""
        return str(self.take(self.integer(2)), "utf-8")

    def compact_string(self) -> str | None:
        """A string with its length + 1 before it as a varint; None where that is 0."""
        length = self.varint()
        return str(self.take(length - 1), "utf-8") if length else None

    def no_tags(self) -> None:
        """A section of tagged fields that is empty."""
        if self.take(1)[0]:
            raise LayoutError(f"tagged fields at {self.position}")

    def end(self) -> None:
        """Nothing must be left."""
        if self.position != len(self.data):
            raise LayoutError(f"{len(self.data) - self.position} bytes too many")


def varint(value: int) -> bytes:
    """An unsigned varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def compact_string(text: str) -> bytes:
    """A string with its length + 1 before it as a varint."""
    data = text.encode()
    return varint(len(data) + 1) + data
