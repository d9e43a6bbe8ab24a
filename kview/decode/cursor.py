"""A position in bytes, with limits for what is made of them, and the way to the part that is being read."""

import math
import struct

from kview.model.decoded import DECODED, MOST_DEPTH, MOST_NODES, DecodeFailure, DecodeFailureKind

LONGEST_VARINT = 10
"""The bytes of a varint of 64 bits."""
_MASK = (1 << 64) - 1
MOST_PATH = 200
"""Limit of the characters of a path."""


class Stopped(Exception):
    """Raised where bytes cannot be read on. What was read before it stays in its tree."""

    def __init__(self, kind: DecodeFailureKind, at: int) -> None:
        super().__init__(kind)
        self.kind = kind
        self.at = at


class Cursor:
    """Reads what Avro's and Protobuf's binary encodings have in common. Every method raises Stopped.

    `limit` is the number of nodes that may be made.
    """

    def __init__(self, data: bytes, at: int = 0, limit: int = MOST_NODES) -> None:
        self.data = data
        self.at = at
        self.left = limit
        """How many nodes may still be made."""
        self.path: list[str | int] = []
        self.note = DECODED
        """What is said of bytes that were read nevertheless."""
        self._depth = 0

    def wrong(self, at: int | None = None) -> Stopped:
        """Return the exception that bytes are not what the schema says."""
        return Stopped(DecodeFailureKind.WRONG, self.at if at is None else at)

    def count_node(self) -> None:
        """Count a node that is being made."""
        self.left -= 1
        if self.left < 0:
            raise Stopped(DecodeFailureKind.TOO_MANY, self.at)

    def deeper(self) -> None:
        """Go a level deeper, from which `higher` leads back."""
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise Stopped(DecodeFailureKind.TOO_DEEP, self.at)

    def higher(self) -> None:
        self._depth -= 1

    def take(self, count: int) -> bytes:
        """Return the next bytes."""
        if count < 0:
            raise self.wrong()
        if count > len(self.data) - self.at:
            raise Stopped(DecodeFailureKind.ENDS, self.at)
        taken = self.data[self.at : self.at + count]
        self.at += count
        return taken

    def varint(self) -> int:
        """Return an unsigned number of 64 bits."""
        data, at, end = self.data, self.at, len(self.data)
        number = shift = 0
        for place in range(at, at + LONGEST_VARINT):
            if place >= end:
                raise Stopped(DecodeFailureKind.ENDS, at)
            byte = data[place]
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                self.at = place + 1
                return number & _MASK
            shift += 7
        raise self.wrong()

    def zigzag(self) -> int:
        """Return a signed number of 64 bits."""
        number = self.varint()
        return (number >> 1) ^ -(number & 1)

    def text(self, count: int) -> str:
        """Return the next bytes as text, in which U+FFFD stands for what is not UTF-8."""
        at, data = self.at, self.take(count)
        try:
            return data.decode()
        except UnicodeDecodeError:
            self.note = self.note or self.failure(Stopped(DecodeFailureKind.NOT_UTF8, at))
            return data.decode(errors="replace")

    def failure(self, stopped: Stopped) -> DecodeFailure:
        """Return why reading stopped, and in which field."""
        parts: list[str] = []
        for step in self.path:
            if isinstance(step, int):
                parts.append(f"[{step}]")
            else:
                parts.append(f".{step}" if parts else step)
        path = "".join(parts)
        return DecodeFailure(stopped.kind, stopped.at, path[:MOST_PATH])


def uuid_text(data: bytes) -> str:
    """Return 16 bytes as the text of a UUID."""
    text = data.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def short_float(data: bytes) -> float:
    """Return a float of 4 bytes as the shortest number that stands for it: 0.1, not 0.10000000149011612."""
    number: float = struct.unpack("<f", data)[0]
    if not math.isfinite(number):
        return number
    shorter = (float(f"{number:.{digits}g}") for digits in range(6, 9))
    return next((short for short in shorter if _packed(short) == data), float(f"{number:.9g}"))


def _packed(number: float) -> bytes:
    try:
        return struct.pack("<f", number)
    except OverflowError:  # rounded up beyond the largest float
        return b""
