"""DescribeLogDirs (35): the size of each replica on disk, and the log directories of a broker.

To answer, a broker walks through all its logs.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from kafka.protocol.admin.cluster import DescribeLogDirsRequest

from kview.model.failures import STORAGE_ERROR, refused
from kview.model.inspection import Directory
from kview.model.snapshot import LogDirs
from kview.model.units import UNKNOWN
from kview.observe.causes import Refused
from kview.observe.layout import Layout, strings
from kview.observe.state import Readings


def request() -> Any:
    """Build the request for all replicas of a broker."""
    return DescribeLogDirsRequest(topics=None)


def read_sizes(readings: Readings, layout: Layout, broker: int, answer: Any) -> int:
    """Store the sizes that `broker` answered, and return the bytes of all its replicas. Raises Refused.

    `offset_lag` is ignored, because it is relative to the follower's own high watermark, so it does not show
    how far the follower is behind.
    """
    codes = [answer.error_code or 0, *(folder.error_code for folder in answer.results)]
    refusals = [code for code in codes if code not in (0, STORAGE_ERROR)]
    if refusals and not any(folder.topics for folder in answer.results):
        raise Refused(refused(refusals[0]))
    topics = [topic for folder in answer.results for topic in folder.topics]
    held = [[p for p in topic.partitions if not p.is_future_key] for topic in topics]
    counts = [len(of_topic) for of_topic in held]
    partitions = np.array([p.partition_index for of_topic in held for p in of_topic], np.int32)
    sizes = np.array([p.partition_size for of_topic in held for p in of_topic], np.int64)
    rows = layout.rows_of([topic.name for topic in topics], counts, partitions)
    there = np.flatnonzero(rows >= 0)
    places = layout.replica_rows_of(broker, rows[there])
    known = places >= 0
    readings.replica_size_bytes[places[known]] = sizes[there][known]
    return sum(sizes.tolist())


def directories(answer: Any) -> tuple[Directory, ...]:
    """Return the log directories, sorted by path. Their volumes are known from version 4 on."""
    return tuple(sorted(map(_directory, answer.results), key=lambda directory: directory.path))


def with_answer(known: LogDirs, broker: int, answer: Any, at_ms: int) -> LogDirs:
    """Return the table with the directories that `broker` answered in place of its earlier ones."""
    answered = directories(answer)
    keep, size = known.broker != broker, len(answered)
    table = LogDirs(
        broker=np.append(known.broker[keep], np.full(size, broker, np.int32)),
        path=np.append(known.path[keep], strings([directory.path for directory in answered])),
        error_code=np.append(
            known.error_code[keep], np.array([directory.error for directory in answered], np.int32)
        ),
        total_bytes=np.append(
            known.total_bytes[keep], np.array([directory.total_bytes for directory in answered], np.int64)
        ),
        usable_bytes=np.append(
            known.usable_bytes[keep], np.array([directory.usable_bytes for directory in answered], np.int64)
        ),
        received_ms=np.append(known.received_ms[keep], np.full(size, at_ms, np.int64)),
    )
    return table.take(np.argsort(table.broker, kind="stable"))


def without(known: LogDirs, brokers: Iterable[int]) -> LogDirs:
    """Return the table without the directories of these brokers."""
    gone = np.isin(known.broker, list(brokers))
    return known.take(~gone) if gone.any() else known


def _directory(folder: Any) -> Directory:
    held = [p for topic in folder.topics or () for p in topic.partitions]
    total, usable = folder.total_bytes, folder.usable_bytes
    return Directory(
        path=folder.log_dir,
        error=folder.error_code,
        replicas=sum(not p.is_future_key for p in held),
        size_bytes=sum(p.partition_size for p in held),
        moving=sum(bool(p.is_future_key) for p in held),
        total_bytes=UNKNOWN if total is None or total < 0 else total,
        usable_bytes=UNKNOWN if usable is None or usable < 0 else usable,
        cordoned=bool(folder.is_cordoned),
    )
