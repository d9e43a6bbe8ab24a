"""The partition of `__consumer_offsets` that a group belongs to (GroupMetadataManager.partitionFor)."""

from kview.simulate.coordination.java_hashes import java_string_hash


def partition_of(group: str, partitions: int) -> int:
    """Return a group's offsets partition.

    Kafka's abs turns the smallest 32-bit integer, which has no positive counterpart, into 0.
    """
    h = java_string_hash(group)
    return 0 if h == -(1 << 31) else abs(h) % partitions
