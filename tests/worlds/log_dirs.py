"""Log directories in a world, as an observer sees them."""

from collections.abc import Iterable

import numpy as np
from msgspec.structs import replace

from kview.model.failures import STORAGE_ERROR
from kview.model.snapshot import LogDirs, Snapshot
from kview.model.units import UNKNOWN
from kview.school.camera.columns import matrix, table

GOOD, FAILED = "/disk-1/kafka", "/disk-2/kafka"
TOTAL = 1_000_000_000_000


def with_dirs(
    seen: Snapshot, broker: int, failed: bool = False, usable: int = TOTAL // 2, received_ms: int = UNKNOWN
) -> Snapshot:
    """Return a snapshot in which one broker has told of two log directories, of which one may have failed."""
    at_ms = seen.observation.ended_ms if received_ms == UNKNOWN else received_ms
    bad = (STORAGE_ERROR, UNKNOWN, UNKNOWN) if failed else (0, TOTAL, usable)
    rows = [(broker, GOOD, 0, TOTAL, usable, at_ms), (broker, FAILED, *bad, at_ms)]
    return replace(seen, log_dirs=table(LogDirs, rows))


def with_offline(seen: Snapshot, broker: int, partitions: Iterable[tuple[str, int]]) -> Snapshot:
    """Return a snapshot in which Metadata lists a broker's replicas of some partitions as offline."""
    there, lists = set(partitions), seen.partitions
    keys = zip(lists.topic.tolist(), lists.partition.tolist(), strict=True)
    offline = matrix([[broker] if key in there else [] for key in keys])
    return replace(seen, partitions=replace(lists, offline=np.asarray(offline, np.int32)))
