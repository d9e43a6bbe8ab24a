"""The features of a cluster: what brokers and controllers of 4.3.1 support, and what is in force."""

from collections.abc import Mapping

METADATA_VERSION, KRAFT_VERSION = "metadata.version", "kraft.version"
SHARE_VERSION, STREAMS_VERSION = "share.version", "streams.version"
TRANSACTION_VERSION = "transaction.version"
GROUP_VERSION, ELR_VERSION = "group.version", "eligible.leader.replicas.version"

SUPPORTED: Mapping[str, tuple[int, int]] = {
    GROUP_VERSION: (0, 1),
    KRAFT_VERSION: (0, 1),
    METADATA_VERSION: (7, 30),
    SHARE_VERSION: (0, 1),
    STREAMS_VERSION: (0, 1),
    TRANSACTION_VERSION: (0, 2),
    ELR_VERSION: (0, 1),
}
"""Feature → the lowest and the highest level that 4.3.1 supports. A new cluster has the highest ones."""


def new_cluster(supported: Mapping[str, tuple[int, int]], elr_level: int) -> dict[str, int]:
    """Return the levels in a new cluster of a release. Level 0 is that of a feature that is off, and is left
    out."""
    levels = {name: high for name, (_, high) in supported.items()}
    if ELR_VERSION in levels:
        levels[ELR_VERSION] = elr_level
    return {name: level for name, level in levels.items() if level}
