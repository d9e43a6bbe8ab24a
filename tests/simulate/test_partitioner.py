"""The partitioner, compared with Kafka's own test vectors."""

from random import Random

import pytest

from kview.model.murmur2 import murmur2, partition_for_key
from kview.simulate.partitioner import (
    STICKY_BATCH_BYTES,
    StickyPartitioner,
    weights_for_keys,
)


@pytest.mark.parametrize(
    ("key", "hashed"),
    [
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        ("abc", 479470107),
    ],
)
def test_murmur2_is_kafkas(key: str, hashed: int) -> None:
    assert murmur2(key.encode()) == hashed
    assert partition_for_key(key.encode(), 7) == (hashed & 0x7FFFFFFF) % 7


def test_without_a_key_a_batch_goes_to_one_partition_then_to_another() -> None:
    sticky = StickyPartitioner(4, Random("1/test"))
    first = sticky.spread(100, 100)
    assert len(first) == 1
    (partition,) = first
    rest = sticky.spread(STICKY_BATCH_BYTES // 100 + 1 - 100, 100)  # this fills the batch
    assert rest == {partition: 64}
    assert partition not in sticky.spread(10, 100)


def test_sticky_use_is_even_in_the_long_run() -> None:
    sticky = StickyPartitioner(4, Random("1/test"))
    counts = [0] * 4
    for _ in range(1000):
        for partition, count in sticky.spread(500, 200).items():
            counts[partition] += count
    assert sum(counts) == 500_000
    assert max(counts) < 1.15 * min(counts)


def test_one_partition_takes_everything() -> None:
    assert StickyPartitioner(1, Random("1/test")).spread(1000, 1000) == {0: 1000}


def test_weights_follow_the_keys() -> None:
    even = weights_for_keys(5000, 6, 0.0)
    skewed = weights_for_keys(5000, 6, 1.2)
    assert sum(even) == pytest.approx(1) == sum(skewed)
    assert max(even) < 1.2 / 6
    assert max(skewed) == skewed[partition_for_key(b"key-0", 6)] > 0.2
