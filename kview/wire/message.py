"""Requests whose body is already encoded, for kafka-python's connections."""

import struct
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from msgspec import Struct

from kview.wire.kafka_internals import response_header
from kview.wire.primitives import INT32, string

T = TypeVar("T")


class RequestHeader(Struct, frozen=True):
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
        self._client_id = ""

    def with_header(self, correlation_id: int, client_id: str) -> None:
        """Set the header, before each time the request is sent."""
        self._client_id = client_id
        self.header = RequestHeader(self.API_KEY, self.API_VERSION, correlation_id, self)

    def encode(self, framed: bool = True, header: bool = True) -> bytes:
        """Encode the request with its header. With `framed`, the length of the request comes first."""
        if self.header is None or not header:
            raise ValueError("a request is sent with its header")
        data = b"".join(
            (
                struct.pack(">hhi", self.API_KEY, self.API_VERSION, self.header.correlation_id),
                string(self._client_id),
                b"\x00" if self._flexible else b"",
                self._body,
            )
        )
        return INT32.pack(len(data)) + data if framed else data

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
