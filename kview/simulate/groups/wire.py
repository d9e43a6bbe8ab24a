"""Readers and writers of Kafka's plain and flexible fields, for the group protocol's own bytes."""

import struct
from collections.abc import Sequence

_INT16 = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")


class MalformedBytes(ValueError):
    """Raised when a client's bytes are not in the expected format."""


class Writer:
    """Appends fields to a buffer."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def int16(self, value: int) -> "Writer":
        self._parts.append(_INT16.pack(value))
        return self

    def int32(self, value: int) -> "Writer":
        self._parts.append(_INT32.pack(value))
        return self

    def int64(self, value: int) -> "Writer":
        self._parts.append(_INT64.pack(value))
        return self

    def string(self, value: str | None) -> "Writer":
        if value is None:
            return self.int16(-1)
        data = value.encode()
        self.int16(len(data))
        self._parts.append(data)
        return self

    def uvarint(self, value: int) -> "Writer":
        while value >= 0x80:
            self._parts.append(bytes((value & 0x7F | 0x80,)))
            value >>= 7
        self._parts.append(bytes((value,)))
        return self

    def compact_string(self, value: str) -> "Writer":
        data = value.encode()
        self.uvarint(len(data) + 1)
        self._parts.append(data)
        return self

    def tagged(self, tag: int, data: bytes) -> "Writer":
        """Write a section of tagged fields with a single field."""
        self.uvarint(1).uvarint(tag).uvarint(len(data))
        self._parts.append(data)
        return self

    def data(self, value: bytes | None) -> "Writer":
        if value is None:
            return self.int32(-1)
        self.int32(len(value))
        self._parts.append(value)
        return self

    def int32s(self, values: Sequence[int]) -> "Writer":
        self.int32(len(values))
        self._parts.append(struct.pack(f">{len(values)}i", *values))
        return self

    def done(self) -> bytes:
        return b"".join(self._parts)


class Reader:
    """Reads fields from bytes, and raises MalformedBytes if they end too early."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def _take(self, length: int) -> bytes:
        end = self._at + length
        if length < 0 or end > len(self._data):
            raise MalformedBytes(f"{length} bytes wanted at {self._at} of {len(self._data)}")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    @property
    def left(self) -> int:
        return len(self._data) - self._at

    def int16(self) -> int:
        return int(_INT16.unpack(self._take(2))[0])

    def int32(self) -> int:
        return int(_INT32.unpack(self._take(4))[0])

    def int64(self) -> int:
        return int(_INT64.unpack(self._take(8))[0])

    def string(self) -> str:
        value = self.nullable_string()
        if value is None:
            raise MalformedBytes("a string is missing")
        return value

    def nullable_string(self) -> str | None:
        length = self.int16()
        if length == -1:
            return None
        try:
            return self._take(length).decode()
        except UnicodeDecodeError as error:
            raise MalformedBytes(str(error)) from error

    def uvarint(self) -> int:
        value = shift = 0
        while True:
            byte = self._take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def compact_string(self) -> str:
        try:
            return self._take(self.uvarint() - 1).decode()
        except UnicodeDecodeError as error:
            raise MalformedBytes(str(error)) from error

    def tagged(self) -> dict[int, bytes]:
        """Read a section of tagged fields, and return tag → bytes."""
        return {self.uvarint(): self._take(self.uvarint()) for _ in range(self.uvarint())}

    def data(self) -> bytes | None:
        length = self.int32()
        return None if length == -1 else self._take(length)

    def count(self) -> int:
        """Read an array's length.

        A null array counts as 0. Raises MalformedBytes if the length exceeds the remaining bytes.
        """
        count = self.int32()
        if count > self.left:
            raise MalformedBytes(f"an array of {count} in {self.left} bytes")
        return max(0, count)

    def int32s(self) -> tuple[int, ...]:
        count = self.count()
        return struct.unpack(f">{count}i", self._take(4 * count))
