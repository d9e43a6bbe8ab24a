"""The partition of `__consumer_offsets` that a group belongs to (GroupMetadataManager.partitionFor)."""

OFFSETS_TOPIC = "__consumer_offsets"


def java_string_hash(text: str) -> int:
    """Return Java's String.hashCode, a signed 32-bit number computed over UTF-16 code units."""
    units = text.encode("utf-16-be", "surrogatepass")
    h = 0
    for i in range(0, len(units), 2):
        h = (31 * h + (units[i] << 8 | units[i + 1])) & 0xFFFFFFFF
    return h - (1 << 32) if h & 0x80000000 else h


def offsets_partition(group: str, partitions: int) -> int:
    """Return a group's offsets partition.

    Kafka's abs turns the smallest 32-bit integer, which has no positive counterpart, into 0.
    """
    h = java_string_hash(group)
    return 0 if h == -(1 << 31) else abs(h) % partitions
