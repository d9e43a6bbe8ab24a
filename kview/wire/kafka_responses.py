"""Encodes responses step by step, with parts of kafka-python's codec that are not documented.

The codec encodes a message in one go, which takes seconds for the largest ones. A server has other clients
meanwhile, so responses are encoded by the codec's own generated code, made into a generator.
"""

from collections.abc import Callable, Generator
from functools import cache
from typing import Any

from kafka.protocol.schemas.fields.codecs.encode_buffer import EncodeBuffer

from kview.wire.stepwise import StepwiseCode

__all__ = ["response_encoder"]

_FIRST_BYTES = 512
"""Size of the buffer until a message fills it."""

Encoder = Callable[[Any], Generator[None, None, bytearray]]


@cache
def response_encoder(response: Any, version: int) -> Encoder:
    """Return the generator function that encodes a message of the class `response`, without its header.

    The generator yields now and then while it works through arrays, and returns the bytes.
    """
    struct, flexible = response._struct, response.flexible_version_q(version)
    code = StepwiseCode()
    code.begin("def _encode(item, out):", "    buf = out.buf", "    pos = out.pos", "    _cap = len(buf)")
    struct.emit_encode_into(code, "item", "    ", version=version, compact=flexible, tagged=flexible)
    code.lines += ["    out.pos = pos", "    return"]
    encode = code.compiled(f"{struct.name} {version}", "_encode")

    def encoded(message: Any) -> Generator[None, None, bytearray]:
        out = EncodeBuffer(_FIRST_BYTES)
        yield from encode(message, out)
        result: bytearray = out.result()
        return result

    return encoded
