"""CRC-32C (Castagnoli), the checksum of record batches, at numpy's speed.

A CRC is linear, so what a byte contributes depends only on its value and its distance from the end. The CRC
of a block is therefore the exclusive or of table entries, all looked up at once. Blocks are chained by the
operator that appends a block of zeros.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

POLYNOMIAL = 0x82F63B78
BLOCK_BYTES = 1024
"""Bytes looked up per row, few enough for the table (1 MiB) to stay in the processor's cache."""


@cache
def _tables() -> tuple[list[int], NDArray[np.uint32], list[list[int]]]:
    byte = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        byte = np.where(byte & 1, (byte >> 1) ^ np.uint32(POLYNOMIAL), byte >> 1)
    single = byte.astype(np.uint32)
    rows = np.empty((BLOCK_BYTES, 256), dtype=np.uint32)
    rows[BLOCK_BYTES - 1] = single
    for index in range(BLOCK_BYTES - 2, -1, -1):
        rows[index] = (rows[index + 1] >> np.uint32(8)) ^ single[rows[index + 1] & np.uint32(0xFF)]
    # A four-byte register has the same effect as the same bytes at the head of the next block.
    skip = [rows[index].tolist() for index in range(4)]
    return single.tolist(), rows, skip


def crc32c(data: bytes | bytearray | memoryview) -> int:
    """Return the CRC-32C of `data`."""
    single, rows, skip = _tables()
    blocks = len(data) // BLOCK_BYTES
    register = 0xFFFFFFFF
    if blocks:
        table = np.frombuffer(data, dtype=np.uint8, count=blocks * BLOCK_BYTES).reshape(blocks, BLOCK_BYTES)
        position = np.arange(BLOCK_BYTES)
        first, second, third, fourth = skip
        for start in range(0, blocks, 64):  # 64 rows at a time: a lookup of 256 KiB
            parts = np.bitwise_xor.reduce(rows[position, table[start : start + 64]], axis=1)
            for part in parts.tolist():
                register = (
                    first[register & 0xFF]
                    ^ second[(register >> 8) & 0xFF]
                    ^ third[(register >> 16) & 0xFF]
                    ^ fourth[register >> 24]
                    ^ part
                )
    tail = len(data) - blocks * BLOCK_BYTES
    if tail >= 4:
        rest = np.frombuffer(data, dtype=np.uint8, offset=blocks * BLOCK_BYTES).copy()
        rest[:4] ^= np.frombuffer(register.to_bytes(4, "little"), dtype=np.uint8)
        index = np.arange(tail)
        register = int(np.bitwise_xor.reduce(rows[index + (BLOCK_BYTES - tail), rest]))
    else:
        for value in bytes(data[blocks * BLOCK_BYTES :]):
            register = (register >> 8) ^ single[(register ^ value) & 0xFF]
    return register ^ 0xFFFFFFFF
