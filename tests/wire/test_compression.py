"""Compressed bytes of every codec, and bytes that only claim to be compressed."""

import tracemalloc

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kview.wire.compression import GZIP, LZ4, SNAPPY, ZSTD, TooLarge, Unreadable, inflated
from tests.simulate.client_batches import compressed, streamed

PLAIN = b"the same words again and again. " * 1_000
LIMIT = 1 << 20


def xerial(*blocks: bytes) -> bytes:
    """Return blocks of raw Snappy in the framing of Java clients."""
    header = b"\x82SNAPPY\0" + (1).to_bytes(4, "big") + (1).to_bytes(4, "big")
    return header + b"".join(len(block).to_bytes(4, "big") + block for block in blocks)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_every_codec_is_read(codec: int) -> None:
    data = compressed(codec, PLAIN)
    assert len(data) < len(PLAIN) / 5
    assert inflated(codec, data) == PLAIN
    assert inflated(codec, data, len(PLAIN)) == PLAIN
    with pytest.raises(TooLarge):
        inflated(codec, data, len(PLAIN) - 1)


def test_snappy_of_java_clients_is_read() -> None:
    blocks = [compressed(SNAPPY, PLAIN), compressed(SNAPPY, b"more")]
    assert inflated(SNAPPY, xerial(*blocks)) == PLAIN + b"more"
    with pytest.raises(TooLarge):
        inflated(SNAPPY, xerial(*blocks), len(PLAIN) + 3)
    with pytest.raises(Unreadable):
        inflated(SNAPPY, xerial(*blocks)[:-1])


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
def test_a_bomb_is_refused_without_its_memory(codec: int) -> None:
    bomb = compressed(codec, bytes(64 * LIMIT))
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            inflated(codec, bomb, LIMIT)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * LIMIT
    assert pa.total_allocated_bytes() - before < 4 * LIMIT


MORE = {GZIP: b"more", SNAPPY: None, LZ4: b"", ZSTD: b"more"}
"""What a broker reads after the end of the compressed data, if more compressed data follows."""


@pytest.mark.parametrize(("codec", "more"), MORE.items())
def test_what_follows_is_read_or_not_as_kafka_does(codec: int, more: bytes | None) -> None:
    data = compressed(codec, PLAIN) + compressed(codec, b"more")
    if more is None:
        with pytest.raises(Unreadable):
            inflated(codec, data)
    else:
        assert inflated(codec, data) == PLAIN + more


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4, ZSTD])
@pytest.mark.parametrize("missing", [1, 9, 30])
def test_data_that_is_cut_off_is_unreadable(codec: int, missing: int) -> None:
    with pytest.raises(Unreadable):
        inflated(codec, compressed(codec, PLAIN)[:-missing])


def test_linked_blocks_of_lz4_are_unreadable() -> None:
    with pytest.raises(Unreadable, match="depend"):
        inflated(LZ4, streamed("lz4", PLAIN))


def test_many_pieces_of_nothing_are_refused() -> None:
    with pytest.raises(TooLarge):
        inflated(GZIP, compressed(GZIP, b"") * 50_000)
    with pytest.raises(TooLarge):
        inflated(SNAPPY, xerial(*[b"\0"] * 200_000))


@given(st.sampled_from([GZIP, SNAPPY, LZ4, ZSTD, 5, 7]), st.binary(max_size=200))
def test_anything_else_is_unreadable(codec: int, data: bytes) -> None:
    try:
        inflated(codec, data, LIMIT)
    except Unreadable:
        return
