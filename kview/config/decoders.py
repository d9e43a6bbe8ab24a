"""How the keys and values of a topic are decoded, if a profile says it: with schemas of files."""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from kview.config.references import in_folder, read_file

VALUES, KEYS = "decoder", "key-decoder"
"""The keys of a profile, which are tables by topic."""


class DecoderKind(StrEnum):
    """The beginnings of a decoder's text."""

    REGISTRY = "registry"
    """As the payload or its headers say, which is the default."""
    PLAIN = "plain"
    """Not at all: the bytes are text, JSON or hex."""
    AVRO = "avro"
    """`avro:FILE`: Avro without a schema's id, with the schema in a file."""
    PROTOBUF = "protobuf"
    """`protobuf:FILE:MESSAGE`: a message without a schema's id, with descriptors as `protoc` writes them
    (`--include_imports --descriptor_set_out=FILE`)."""


class Decoder(Struct, frozen=True):
    """A way to decode. `data` is what its file held, and `message` the full name of Protobuf's message."""

    kind: DecoderKind
    name: str = ""
    """The file and the message as the profile names them."""
    data: bytes = b""
    message: str = ""


class Decoders(Struct, frozen=True):
    """Decoders by topic."""

    values: Mapping[str, Decoder] = {}
    keys: Mapping[str, Decoder] = {}


class NotADecoder(ValueError):
    """Raised for a text that is not a decoder."""


def decoder(text: str, folder: Path) -> Decoder:
    """Return the decoder that a text names, with its file, whose path starts at `folder`.

    Raises NotADecoder, or BadUse if the file cannot be read.
    """
    kind, _, rest = text.partition(":")
    if kind in (DecoderKind.REGISTRY, DecoderKind.PLAIN) and not rest:
        return Decoder(DecoderKind(kind))
    file, message = rest.rpartition(":")[::2] if kind == DecoderKind.PROTOBUF else (rest, "")
    if kind not in (DecoderKind.AVRO, DecoderKind.PROTOBUF) or not file:
        raise NotADecoder
    if kind == DecoderKind.PROTOBUF and not message:
        raise NotADecoder
    return Decoder(DecoderKind(kind), rest, read_file(in_folder(file, folder)), message)
