"""Decodes and checks requests, with parts of kafka-python's codec that are not documented.

The codec trusts what it decodes. A null array where the schema wants one fails only when somebody iterates
over it, a number of any length is read to its end, and each section of tagged fields copies the rest of the
message. A server cannot trust its clients, so requests are decoded by the codec's own generated code with
limits added, and then checked against the schema. Both yield between the elements of arrays, so that a large
request does not keep others waiting.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from functools import cache
from typing import Any

from kview.wire.primitives import STRING_BYTES_MAX, UVARINT_BYTES, MalformedBytes
from kview.wire.stepwise import ELEMENTS, StepwiseCode

__all__ = ["MAX_ELEMENTS", "request_decoder"]

MAX_ELEMENTS = 200_000
"""Limit of array elements and tagged fields in a request: twice the partitions of the largest cluster that
kview is made for. Without it, a frame of 100 MB could become 50 million objects."""

_SURELY_SHORT = STRING_BYTES_MAX // 4
"""A string of so many characters is within the limit, because a character has at most four bytes in UTF-8."""

_LAST_VARINT_SHIFT = 7 * (UVARINT_BYTES - 1)

Decoding = Generator[None, None, tuple[Any, int]]
Decoder = Callable[[memoryview, int], Decoding]
_Check = Callable[[Any], Iterator[None] | None]
"""Checks a value at once, or returns an iterator that checks it step by step."""


@cache
def request_decoder(request: Any, version: int, flexible: bool) -> Decoder:
    """Return the function that decodes a request's body: (frame, start of body) → (request, end of body).

    It is a generator function, which yields now and then while it works through arrays. It raises
    MalformedBytes, or whatever the codec raises. The end may be after the frame's end.
    """
    decode = _bounded_decoder(request, version, flexible)
    checks = _checks(request._struct, version)
    if not checks:
        return decode

    def checked(frame: memoryview, begin: int) -> Decoding:
        message, end = yield from decode(frame, begin)
        yield from _check_fields(message, checks)
        return message, end

    return checked


# --- limits in the generated code


class _Bounded(StepwiseCode):
    """The codec's generator of code, which adds limits to the lines it generates.

    In the generated function, `left` is the number of array elements and tagged fields still allowed.
    """

    def emit(self, indent: str, line: str) -> None:
        """Add a line. `canary` tests in tests/wire show when the library changes the lines named here."""
        code = line.strip()
        if code.startswith("for ") and " in range(" in code:  # for _idx1 in range(_n1):
            count = code.split(" in range(")[1].removesuffix("):")
            self.lines.append(f"{indent}left = spend(left, {count})")
        elif "_BytesIO(bytes(data[pos:]))" in code:  # _bio1 = _BytesIO(bytes(data[pos:]))
            line = line.replace("_BytesIO(bytes(data[pos:]))", "tail(data, pos, left)")
        super().emit(indent, line)
        if code.endswith(" += 7"):  # _sh1 += 7
            shift = code.split(" ")[0]
            self.lines.append(
                f"{indent}    if {shift} > {_LAST_VARINT_SHIFT}: raise malformed('a long varint')"
            )
        elif code.startswith("pos += ") and code.endswith(".tell()"):  # pos += _bio1.tell()
            self.lines.append(f"{indent}left -= {code.split(' ')[2].removesuffix('.tell()')}.reads")


class _Tail:
    """The rest of a message, from which the codec reads tagged fields. Unlike BytesIO, it copies nothing."""

    def __init__(self, data: memoryview, position: int, left: int) -> None:
        self._data = data
        self._begin = self._at = position
        self._left = left
        self.reads = 0

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes. Raises MalformedBytes if there are fewer, or after too many reads."""
        end = self._at + size
        self.reads += 1
        if not self._at <= end <= len(self._data) or self.reads > self._left:
            raise MalformedBytes("tagged fields that are longer than their message")
        data = bytes(self._data[self._at : end])
        self._at = end
        return data

    def tell(self) -> int:
        """Return the number of bytes read."""
        return self._at - self._begin


def _spend(left: int, count: int) -> int:
    """Return what is left of the limit after an array of `count` elements."""
    if count > left:
        raise MalformedBytes(f"an array of {count} elements, where {left} are left")
    return left - max(0, count)


def _bounded_decoder(request: Any, version: int, flexible: bool) -> Decoder:
    """Return the codec's decoder with limits (`StructField.compiled_decode_from`).

    It is used instead of `request.decode`, which copies the frame and does not report where the message ends.
    """
    struct = request._struct
    context = _Bounded()
    context.globs |= {"malformed": MalformedBytes, "spend": _spend, "tail": _Tail}
    context.begin("def _decode(data, pos):", f"    left = {MAX_ELEMENTS}")
    own, struct._data_class = struct._data_class, request[None]  # its own is a weak reference
    try:
        struct.emit_decode_from(context, "obj", "    ", version=version, compact=flexible, tagged=flexible)
    finally:
        struct._data_class = own
    context.lines.append("    return obj, pos")
    decoder: Decoder = context.compiled(f"{struct.name} {version}", "_decode")
    return decoder


# --- checks of the decoded message


def _checks(struct: Any, version: int) -> list[tuple[str, _Check]]:
    """Return the fields of a struct that need a check, with their checks."""
    fields = [field for field in struct.fields.values() if field.for_version_q(version)]
    checks = [(field.name, _check_of(field, version)) for field in fields]
    return [(name, check) for name, check in checks if check is not None]


def _check_of(field: Any, version: int) -> _Check | None:
    """Return the check of a field's value, or None if every value that can be decoded is valid."""
    nullable = field.nullable_for_version_q(version)
    if field.is_struct_array():
        return _array_of_structs(_checks(field.array_of, version), nullable, field.name)
    if field.is_array():
        item = _string if field.array_of.type_str == "string" else None
        return _array(item, nullable, field.name)
    if field.is_struct():
        return None if field.tag is not None else _struct(_checks(field, version), nullable, field.name)
    if field.type_str == "string":
        return _nullable_string if nullable else _string
    if field.type_str in ("bytes", "records") and not nullable:
        return _not_null
    return None


def _not_null(value: Any) -> None:
    if value is None:
        raise MalformedBytes("null where the schema wants a value")


def _string(value: str | None) -> None:
    if value is None:
        raise MalformedBytes("null where the schema wants a string")
    _nullable_string(value)


def _nullable_string(value: str | None) -> None:
    if value is not None and len(value) > _SURELY_SHORT:
        size = len(value.encode())
        if size > STRING_BYTES_MAX:
            raise MalformedBytes(f"a string of {size} bytes")


def _array(item: _Check | None, nullable: bool, name: str) -> _Check | None:
    if nullable and item is None:
        return None

    def check(value: Sequence[Any] | None) -> Iterator[None] | None:
        if value is None and not nullable:
            raise MalformedBytes(f"null {name}")
        return _check_items(value, item) if value and item is not None else None

    return check


def _check_items(values: Sequence[Any], item: _Check) -> Iterator[None]:
    for index, value in enumerate(values, start=1):
        rest = item(value)
        if rest is not None:
            yield from rest
        if not index % ELEMENTS:
            yield


def _check_fields(value: Any, checks: list[tuple[str, _Check]]) -> Iterator[None]:
    for field, check in checks:
        rest = check(getattr(value, field))
        if rest is not None:
            yield from rest


def _array_of_structs(inner: list[tuple[str, _Check]], nullable: bool, name: str) -> _Check | None:
    return _array((lambda value: _check_fields(value, inner)) if inner else None, nullable, name)


def _struct(inner: list[tuple[str, _Check]], nullable: bool, name: str) -> _Check | None:
    if not inner and nullable:
        return None

    def check(value: Any) -> Iterator[None] | None:
        if value is None and not nullable:
            raise MalformedBytes(f"null {name}")
        return None if value is None else _check_fields(value, inner)

    return check
