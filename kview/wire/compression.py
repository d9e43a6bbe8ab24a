"""Decompresses the records of a batch, in any of Kafka's codecs, up to a limit that holds while it works, and
compresses them.

It reads what Kafka reads, and refuses the rest. After the compressed data, gzip and zstd read on, LZ4 ignores
what follows, and Snappy refuses it. gzip comes with Python. Snappy, LZ4 and zstd come with pyarrow, which is
imported only when a batch needs it.
"""

import zlib

from kview.wire.primitives import MalformedBytes, read_uvarint

INFLATED_MAX = 67_108_864
"""Limit of decompressed bytes (64 MiB), so that a small batch cannot take all memory. A batch that is larger
than this counts as unreadable."""

GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4
"""The codecs' numbers in a batch's attributes."""

_XERIAL = b"\x82SNAPPY\0"
"""The beginning of Snappy data as Java clients send it: blocks, each after its length, behind a header."""
_XERIAL_HEADER_BYTES = 16
_XERIAL_BLOCKS_MAX = 20_000
"""Clients' blocks have 32 kB each."""
_GZIP_WINDOW = 31
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_MEMBERS_MAX = 100
"""Clients send one. Every member copies the bytes after it."""

_LZ4_FRAME = 0x184D2204
_LZ4_INDEPENDENT = 0x20
"""Set in a frame whose blocks can be decompressed one by one. Kafka reads no others."""
_LZ4_BLOCK_CHECKSUM, _LZ4_SIZE, _LZ4_CHECKSUM, _LZ4_DICTIONARY = 0x10, 0x08, 0x04, 0x01
_LZ4_BLOCK_BYTES = 0x7FFFFFFF
_LZ4_HEADER = bytes.fromhex("04224d18604082")
"""Of a frame of independent blocks, of up to _LZ4_BLOCK bytes, without checksums."""
_LZ4_BLOCK = 65_536


class Unreadable(MalformedBytes):
    """Raised for bytes that cannot be decompressed, or not within the limit."""


class TooLarge(Unreadable):
    """Raised for bytes that cannot be decompressed within the limit."""


def inflated(codec: int, data: bytes, limit: int = INFLATED_MAX) -> bytes:
    """Return the decompressed `data`, which has at most `limit` bytes. Raises Unreadable."""
    if codec == GZIP:
        return _gunzip(data, limit)
    if codec == SNAPPY:
        return _snappy(data, limit)
    if codec == LZ4:
        return _streamed("lz4", data[: _lz4_end(data)], limit)
    if codec == ZSTD:
        return _streamed("zstd", data, limit) if data else b""
    raise Unreadable(f"codec {codec}")


def deflated(codec: int, data: bytes) -> bytes:
    """Return `data` compressed as clients do it. Codec 0 leaves it as it is."""
    if codec == GZIP:
        compressor = zlib.compressobj(wbits=_GZIP_WINDOW)
        return compressor.compress(data) + compressor.flush()
    if not codec:
        return data
    import pyarrow as pa

    if codec == SNAPPY:
        return bytes(pa.compress(data, "snappy", asbytes=True))
    if codec == ZSTD:
        return bytes(pa.compress(data, "zstd", asbytes=True))
    pieces = [_LZ4_HEADER]
    for at in range(0, len(data), _LZ4_BLOCK):
        block = bytes(pa.compress(data[at : at + _LZ4_BLOCK], "lz4_raw", asbytes=True))
        pieces += (len(block).to_bytes(4, "little"), block)
    return b"".join((*pieces, bytes(4)))


def _checked(data: bytes, limit: int) -> bytes:
    if len(data) > limit:
        raise TooLarge(f"more than {limit} bytes")
    return data


def _gunzip(data: bytes, limit: int) -> bytes:
    """Decompress all members of gzip data. Bytes that are not a member end the data."""
    pieces: list[bytes] = []
    for _ in range(_GZIP_MEMBERS_MAX):
        member = zlib.decompressobj(_GZIP_WINDOW)
        try:
            pieces.append(member.decompress(data, limit + 1))
        except zlib.error as error:
            raise Unreadable(str(error)) from error
        limit -= len(_checked(pieces[-1], limit))
        if not member.eof:
            raise Unreadable("gzip data is cut off")
        data = member.unused_data
        if not data.startswith(_GZIP_MAGIC):
            return b"".join(pieces)
    raise TooLarge(f"more than {_GZIP_MEMBERS_MAX} gzip members")


def _lz4_end(data: bytes) -> int:
    """Return where the first LZ4 frame ends.

    Raises Unreadable if it is cut off, or if Kafka could not read it. What else is wrong with the frame is
    left to the decompressor.
    """
    if int.from_bytes(data[:4], "little") != _LZ4_FRAME:
        raise Unreadable("no LZ4 frame")
    flags = data[4] if len(data) > 4 else 0
    if not flags & _LZ4_INDEPENDENT:
        raise Unreadable("LZ4 blocks that depend on each other")
    at = 7 + 8 * bool(flags & _LZ4_SIZE) + 4 * bool(flags & _LZ4_DICTIONARY)
    while at + 4 <= len(data):
        size = int.from_bytes(data[at : at + 4], "little")
        at += 4
        if not size:
            at += 4 * bool(flags & _LZ4_CHECKSUM)
            break
        at += (size & _LZ4_BLOCK_BYTES) + 4 * bool(flags & _LZ4_BLOCK_CHECKSUM)
    else:
        raise Unreadable("an LZ4 frame is cut off")
    return at


def _streamed(codec: str, data: bytes, limit: int) -> bytes:
    import pyarrow as pa

    try:
        with pa.CompressedInputStream(pa.BufferReader(data), codec) as stream:
            return _checked(bytes(stream.read(limit + 1)), limit)
    except (OSError, pa.ArrowException) as error:
        raise Unreadable(str(error)) from error


def _snappy(data: bytes, limit: int) -> bytes:
    if not data.startswith(_XERIAL):
        return _snappy_block(data, limit)
    pieces: list[bytes] = []
    at = _XERIAL_HEADER_BYTES
    while at + 4 <= len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        at += 4
        if at + size > len(data):
            raise Unreadable("Snappy data is cut off")
        if len(pieces) == _XERIAL_BLOCKS_MAX:
            raise TooLarge(f"more than {_XERIAL_BLOCKS_MAX} Snappy blocks")
        pieces.append(_snappy_block(data[at : at + size], limit))
        limit -= len(pieces[-1])
        at += size
    return b"".join(pieces)


def _snappy_block(data: bytes, limit: int) -> bytes:
    """Decompress a block, which begins with its decompressed length as a varint."""
    import pyarrow as pa

    try:
        size, _ = read_uvarint(data, 0)
    except MalformedBytes as error:
        raise Unreadable(str(error)) from error
    if size > limit:
        raise TooLarge(f"{size} bytes")
    try:
        return bytes(pa.decompress(data, decompressed_size=size, codec="snappy", asbytes=True))
    except (OSError, pa.ArrowException) as error:
        raise Unreadable(str(error)) from error
