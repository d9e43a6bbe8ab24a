"""How a producer chooses partitions for its records. Source: Kafka's BuiltInPartitioner."""

from random import Random
from typing import Final

from kview.model.murmur2 import partition_for_key

STICKY_BATCH_BYTES: Final = 16_384
"""Kafka's batch.size: bytes that a producer without keys sends to one partition before it chooses another."""


class StickyPartitioner:
    """Chooses partitions for records without a key, and changes the partition whenever a batch is full
    (KIP-794)."""

    def __init__(self, partitions: int, random: Random) -> None:
        self._partitions = partitions
        self._random = random
        self._partition = random.randrange(partitions)
        self._room_bytes = STICKY_BATCH_BYTES

    def spread(self, records: int, record_bytes: int) -> dict[int, int]:
        """Distribute records of equal size, and return partition → number of records, in the order of use."""
        counts: dict[int, int] = {}
        while records > 0:
            taken = min(records, max(1, -(-self._room_bytes // record_bytes)))
            counts[self._partition] = counts.get(self._partition, 0) + taken
            records -= taken
            self._room_bytes -= taken * record_bytes
            if self._room_bytes <= 0:
                self._switch()
        return counts

    def _switch(self) -> None:
        self._room_bytes = STICKY_BATCH_BYTES
        if self._partitions > 1:
            step = self._random.randrange(1, self._partitions)
            self._partition = (self._partition + step) % self._partitions


def weights_for_keys(keys: int, partitions: int, skew: float, prefix: str = "key-") -> list[float]:
    """Return each partition's share of records with Zipf-distributed keys `prefix0`, `prefix1`…

    The key of rank i is used 1 / i^skew as often as the first key. With a skew of 0, all keys are used
    equally.
    """
    shares = [0.0] * partitions
    for i in range(keys):
        shares[partition_for_key(f"{prefix}{i}".encode(), partitions)] += (i + 1) ** -skew
    total = sum(shares)
    return [share / total for share in shares]
