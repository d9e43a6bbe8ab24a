"""CRC-32C (Castagnoli), the checksum of record batches, computed with numpy.

A CRC is linear, so what a byte contributes depends only on its value and its distance from the end. The CRC
of a block is therefore the exclusive or of one table entry per byte, and numpy looks up all entries at once.
To continue with the next block, the CRC so far is treated like the first four bytes of that block.

Large data is folded first. Where x^8a = x^8b + x^8c + 1 modulo the polynomial, a byte contributes as much as
three equal bytes do that come a − b, a − c and a bytes later. So bytes with at least a bytes after them are
added to others and left out, which needs no table and runs at the speed of memory.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

POLYNOMIAL = 0x82F63B78
BLOCK_BYTES = 1024
"""Bytes per block. With this size the table takes 1 MiB, which fits into the processor's cache."""
FOLDS = (
    (1_050_184, 1_703, 1_545),
    (524_390, 1_437, 907),
    (263_923, 1_885, 168),
    (131_490, 1_566, 435),
    (65_789, 1_640, 53),
    (33_522, 1_458, 1_427),
    (16_557, 1_853, 1_534),
    (10_269, 1_304, 837),
    (5_685, 1_362, 426),
)
"""The smallest (a, b, c) in bytes above 1 MiB, 512 KiB and so on, found by trying."""
FOLD_FROM_BYTES = 8192

Words = NDArray[np.uint32]


@cache
def _tables() -> tuple[list[int], Words, list[list[int]], NDArray[np.intp]]:
    """Return the CRC of each byte, the entries of every (position in a block, byte), those that continue a
    CRC, and the index of each position's first entry."""
    byte = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        byte = np.where(byte & 1, (byte >> 1) ^ np.uint32(POLYNOMIAL), byte >> 1)
    single = byte.astype(np.uint32)
    rows = np.empty((BLOCK_BYTES, 256), dtype=np.uint32)
    rows[BLOCK_BYTES - 1] = single
    for index in range(BLOCK_BYTES - 2, -1, -1):
        rows[index] = (rows[index + 1] >> np.uint32(8)) ^ single[rows[index + 1] & np.uint32(0xFF)]
    # The CRC so far acts like four bytes at the start of the next block, so it uses the tables of their
    # positions.
    skip = [rows[index].tolist() for index in range(4)]
    return single.tolist(), rows.ravel(), skip, np.arange(BLOCK_BYTES, dtype=np.intp) * 256


def crc32c(data: bytes | bytearray | memoryview) -> int:
    """Return the CRC-32C of `data`."""
    if len(data) >= FOLD_FROM_BYTES:
        return _crc_of_blocks(_folded(data), 0) ^ 0xFFFFFFFF
    return _crc_of_blocks(np.frombuffer(data, dtype=np.uint8), 0xFFFFFFFF) ^ 0xFFFFFFFF


def _folded(data: bytes | bytearray | memoryview) -> NDArray[np.uint8]:
    """Return fewer bytes. Their CRC, if it begins with 0, is that of `data`."""
    left = np.frombuffer(data, dtype=np.uint8).copy()
    left[:4] ^= 0xFF
    for a, b, c in FOLDS:
        while len(left) > a:
            head = left[: min(len(left) - a, a - b)]
            for further in (a - b, a - c, a):
                left[further : further + len(head)] ^= head
            left = left[len(head) :]
    return left


def _crc_of_blocks(data: NDArray[np.uint8], register: int) -> int:
    """Return the CRC of bytes, block by block, without the inversion at the end. `register` is how it
    begins."""
    single, entries, (first, second, third, fourth), positions = _tables()
    blocks = len(data) // BLOCK_BYTES
    if blocks:
        index = data[: blocks * BLOCK_BYTES].reshape(blocks, BLOCK_BYTES) + positions
        parts = np.bitwise_xor.reduce(entries.take(index, mode="clip"), axis=1)
        for part in parts.tolist():
            register = (
                first[register & 0xFF]
                ^ second[(register >> 8) & 0xFF]
                ^ third[(register >> 16) & 0xFF]
                ^ fourth[register >> 24]
                ^ part
            )
    tail = data[blocks * BLOCK_BYTES :]
    if len(tail) < 4:
        for value in tail.tolist():
            register = (register >> 8) ^ single[(register ^ value) & 0xFF]
        return register
    rest = tail.copy()
    rest[:4] ^= np.frombuffer(register.to_bytes(4, "little"), dtype=np.uint8)
    return int(np.bitwise_xor.reduce(entries.take(rest + positions[BLOCK_BYTES - len(rest) :], mode="clip")))
