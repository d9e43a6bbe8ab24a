"""Kafka's primitive types: numbers, strings, bytes, arrays, tagged fields and the fields of records.

Every reader raises MalformedBytes for a value that is cut off, too long or negative where it must not be. A
position or a length that a client sent is never trusted.

Sources: org.apache.kafka.common.utils.ByteUtils and DefaultRecord, KIP-482 (compact types, tagged fields).
This module imports nothing but the standard library, because every room below the screen may use it.
"""

from collections.abc import Iterator, Mapping, Sequence
from struct import Struct, pack, unpack
from struct import error as StructError

INT16 = Struct(">h")
INT32 = Struct(">i")
INT64 = Struct(">q")

STRING_BYTES_MAX = 32_767
"""Kafka's limit of a string, compact or not. It is also the largest int16."""

UVARINT_MAX = 2**32 - 1
UVARINT_BYTES = 5
"""An unsigned varint has 32 bits, in bytes of seven bits each."""

VARINT_BYTES = 5
VARLONG_BYTES = 10
"""A zigzag varint has 32 or 64 bits."""

TAGGED_FIELDS_MAX = 1_000
"""Limit of the tagged fields in one section, because a message of 16 MB could have millions. Kafka's own
messages have fewer than ten."""

_ALL_BITS = 2**64 - 1
_ONE_BYTE = tuple(bytes((value,)) for value in range(0x80))
_NULL_FIELD = b"\1"
"""The zigzag varint −1."""

Bytes = bytes | bytearray | memoryview


class MalformedBytes(ValueError):
    """Raised for bytes that are not what they should be.

    This is a ValueError, because kafka-python treats a ValueError as a protocol error.
    """


# --- encoding


def uvarint(value: int) -> bytes:
    """Encode an unsigned varint."""
    if value < 0x80:
        return _ONE_BYTE[value]
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varint(value: int) -> bytes:
    """Encode a signed number of up to 64 bits as a zigzag varint, as in records."""
    rest = (value << 1) ^ (value >> 63)
    return _ONE_BYTE[rest] if 0 <= rest < 0x80 else uvarint(rest & _ALL_BITS)


def record_field(value: bytes | None) -> bytes:
    """Encode a key or a value of a record."""
    return _NULL_FIELD if value is None else varint(len(value)) + value


def string(text: str | None, compact: bool = False) -> bytes:
    """Encode a nullable string. Raises struct.error if it is not compact and has more than 32,767 bytes."""
    if text is None:
        return b"\0" if compact else b"\xff\xff"
    data = text.encode()
    return (uvarint(len(data) + 1) if compact else INT16.pack(len(data))) + data


def array_length(length: int | None, compact: bool = False) -> bytes:
    """Encode the length of a nullable array, or of bytes, which comes before what is in it."""
    if compact:
        return uvarint(0 if length is None else length + 1)
    return INT32.pack(-1 if length is None else length)


# --- decoding: each function returns the value and the position after it


def read_uvarint(data: Bytes, at: int) -> tuple[int, int]:
    """Decode the unsigned varint at byte `at`."""
    try:
        byte = data[at]
        at += 1
        if byte < 0x80:
            return byte, at
        value = byte & 0x7F
        for shift in range(7, 7 * UVARINT_BYTES, 7):
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                if value > UVARINT_MAX:
                    break
                return value, at
    except IndexError:
        raise MalformedBytes(f"a varint that is cut off at {at}") from None
    raise MalformedBytes(f"a varint of more than 32 bits at {at}")


def read_varint(data: Bytes, at: int, most_bytes: int = VARLONG_BYTES) -> tuple[int, int]:
    """Decode the zigzag varint at byte `at`, which has at most `most_bytes` bytes.

    As in Kafka, bits beyond the 64th are dropped.
    """
    try:
        byte = data[at]
        if byte < 0x80:
            return (byte >> 1) ^ -(byte & 1), at + 1
        value = byte & 0x7F
        for shift in range(7, 7 * most_bytes, 7):
            at += 1
            byte = data[at]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                value &= _ALL_BITS
                return (value >> 1) ^ -(value & 1), at + 1
    except IndexError:
        raise MalformedBytes(f"a varint that is cut off at {at}") from None
    raise MalformedBytes(f"a varint of more than {most_bytes} bytes at {at}")


def read_record_field(data: bytes, at: int) -> tuple[bytes | None, int]:
    """Decode the key or value of a record at byte `at`. As in Kafka, every negative length means null."""
    length, at = read_varint(data, at, VARINT_BYTES)
    if length < 0:
        return None, at
    end = at + length
    if end > len(data):
        raise MalformedBytes(f"{length} bytes wanted at {at} of {len(data)}")
    return data[at:end], end


def skip_tagged_fields(data: Bytes, at: int) -> int:
    """Return the position after the section of tagged fields at byte `at`."""
    count, at = read_uvarint(data, at)
    if count > TAGGED_FIELDS_MAX:
        raise MalformedBytes(f"{count} tagged fields at {at}")
    for _ in range(count):
        _, at = read_uvarint(data, at)
        size, at = read_uvarint(data, at)
        at += size
    if at > len(data):
        raise MalformedBytes(f"tagged fields up to {at} in {len(data)} bytes")
    return at


class Reader:
    """Reads one value after the other, beginning at `position`."""

    __slots__ = ("data", "position")

    def __init__(self, data: Bytes, position: int = 0) -> None:
        self.data = memoryview(data)
        self.position = position

    @property
    def left(self) -> int:
        """The number of bytes that have not been read."""
        return len(self.data) - self.position

    def take(self, length: int) -> memoryview:
        """Read the next `length` bytes."""
        end = self.position + length
        if length < 0 or end > len(self.data):
            raise MalformedBytes(f"{length} bytes wanted at {self.position} of {len(self.data)}")
        piece = self.data[self.position : end]
        self.position = end
        return piece

    def int8(self) -> int:
        """Read a signed number of one byte."""
        return int.from_bytes(self.take(1), "big", signed=True)

    def int16(self) -> int:
        """Read a signed number of two bytes."""
        return int.from_bytes(self.take(2), "big", signed=True)

    def int32(self) -> int:
        """Read a signed number of four bytes."""
        return int.from_bytes(self.take(4), "big", signed=True)

    def int64(self) -> int:
        """Read a signed number of eight bytes."""
        return int.from_bytes(self.take(8), "big", signed=True)

    def uvarint(self) -> int:
        """Read an unsigned varint."""
        value, self.position = read_uvarint(self.data, self.position)
        return value

    def nullable_string(self) -> str | None:
        """Read a string after its length in two bytes. The length −1 means null."""
        length = self.int16()
        return None if length == -1 else self._text(length)

    def string(self) -> str:
        """Read a string that is not null."""
        return _not_null(self.nullable_string())

    def nullable_compact_string(self) -> str | None:
        """Read a string after its length + 1 as a varint. The varint 0 means null."""
        length = self.uvarint()
        return self._text(length - 1) if length else None

    def compact_string(self) -> str:
        """Read a compact string that is not null."""
        return _not_null(self.nullable_compact_string())

    def _text(self, length: int) -> str:
        try:
            return str(self.take(length), "utf-8")
        except UnicodeDecodeError as error:
            raise MalformedBytes(str(error)) from error

    def nullable_bytes(self) -> bytes | None:
        """Read bytes after their length in four bytes. The length −1 means null."""
        length = self.int32()
        return None if length == -1 else bytes(self.take(length))

    def array_length(self, compact: bool = False) -> int:
        """Read the length of an array. A null array counts as empty.

        Raises MalformedBytes if the array has more elements than there are bytes left.
        """
        length = self.uvarint() - 1 if compact else self.int32()
        if not -1 <= length <= self.left:
            raise MalformedBytes(f"an array of {length} in {self.left} bytes")
        return max(0, length)

    def rows_by_topic(self, topics: int, row_bytes: int) -> Iterator[tuple[str, bytes]]:
        """Read so many topics, each a string and an array of rows of `row_bytes`, and yield name and rows.

        There may be thousands, so there is no call and no view of the bytes for each value.
        """
        data, at = bytes(self.data), self.position
        try:
            for _ in range(topics):
                (length,) = INT16.unpack_from(data, at)
                begin, at = at + INT16.size, at + INT16.size + length
                name = data[begin:at].decode()
                (count,) = INT32.unpack_from(data, at)
                begin, at = at + INT32.size, at + INT32.size + count * row_bytes
                if length < 0 or count < 0 or at > len(data):
                    raise MalformedBytes(f"{count} rows after a name of {length} bytes, up to {at}")
                self.position = at
                yield name, data[begin:at]
        except (StructError, UnicodeDecodeError) as error:
            raise MalformedBytes(str(error)) from error

    def int32s(self) -> tuple[int, ...]:
        """Read an array of numbers of four bytes each."""
        count = self.array_length()
        return unpack(f">{count}i", self.take(4 * count))

    def tagged_fields(self) -> dict[int, bytes]:
        """Read a section of tagged fields, and return tag → bytes."""
        begin, self.position = self.position, skip_tagged_fields(self.data, self.position)
        fields = Reader(self.data[begin : self.position])
        return {fields.uvarint(): bytes(fields.take(fields.uvarint())) for _ in range(fields.uvarint())}

    def no_tagged_fields(self) -> None:
        """Read a section of tagged fields, which must be empty."""
        if self.take(1)[0]:
            raise MalformedBytes(f"tagged fields at {self.position}")

    def end(self) -> None:
        """Check that no bytes are left."""
        if self.left:
            raise MalformedBytes(f"{self.left} bytes too many")


def _not_null(text: str | None) -> str:
    if text is None:
        raise MalformedBytes("a string is missing")
    return text


class Writer:
    """Builds bytes value by value. `done` returns them."""

    __slots__ = ("_parts",)

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def _add(self, *parts: bytes) -> "Writer":
        self._parts += parts
        return self

    def int8(self, value: int) -> "Writer":
        """Write a signed number of one byte."""
        return self._add(value.to_bytes(1, "big", signed=True))

    def int16(self, value: int) -> "Writer":
        """Write a signed number of two bytes."""
        return self._add(INT16.pack(value))

    def int32(self, value: int) -> "Writer":
        """Write a signed number of four bytes."""
        return self._add(INT32.pack(value))

    def int64(self, value: int) -> "Writer":
        """Write a signed number of eight bytes."""
        return self._add(INT64.pack(value))

    def string(self, value: str | None) -> "Writer":
        """Write a nullable string after its length in two bytes."""
        return self._add(string(value))

    def compact_string(self, value: str | None) -> "Writer":
        """Write a nullable string after its length + 1 as a varint."""
        return self._add(string(value, compact=True))

    def nullable_bytes(self, value: bytes | None) -> "Writer":
        """Write bytes after their length in four bytes."""
        return self._add(array_length(None if value is None else len(value)), value or b"")

    def raw(self, value: bytes) -> "Writer":
        """Write bytes as they are."""
        return self._add(value)

    def int32s(self, values: Sequence[int]) -> "Writer":
        """Write an array of numbers of four bytes each."""
        return self._add(array_length(len(values)), pack(f">{len(values)}i", *values))

    def array_length(self, length: int | None, compact: bool = False) -> "Writer":
        """Write the length of an array, whose elements follow, or None for null."""
        return self._add(array_length(length, compact))

    def tagged_fields(self, fields: Mapping[int, bytes]) -> "Writer":
        """Write a section of tagged fields, given by their tags in ascending order."""
        self._add(uvarint(len(fields)))
        for tag, data in fields.items():
            self._add(uvarint(tag), uvarint(len(data)), data)
        return self

    def done(self) -> bytes:
        """Return all that was written."""
        return b"".join(self._parts)
