"""The keys of a simulated producer's records."""

from collections.abc import Callable, Sequence

from kview.model.murmur2 import partition_for_key
from kview.simulate.world import ProducerSpec

KEY_PREFIX = "key-"
KEYS_SHOWN_MAX = 1_000
"""Limit of different keys per partition in a producer's records, which bounds the memory for keys."""


def keys_of(spec: ProducerSpec, partitions: int) -> Callable[[str, int], Sequence[bytes]] | None:
    """Return a function from (topic, partition) to the keys that a producer uses there, or None for null
    keys."""
    if not spec.keys:
        return None

    def keys(topic: str, partition: int) -> Sequence[bytes]:
        every = (f"{KEY_PREFIX}{i}".encode() for i in range(spec.keys))
        return [key for key in every if partition_for_key(key, partitions) == partition][:KEYS_SHOWN_MAX]

    return keys
