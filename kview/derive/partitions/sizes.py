"""The sizes and the retention of topics, for growth and forecasts."""

from dataclasses import dataclass

import numpy as np

from kview.derive.align import runs
from kview.model.snapshot import Flags, Longs, Snapshot, Strings, TopicConfigs
from kview.model.units import UNKNOWN

RETENTION_MS, RETENTION_BYTES, CLEANUP_POLICY = "retention.ms", "retention.bytes", "cleanup.policy"


@dataclass(frozen=True, slots=True)
class TopicSizes:
    """The topics, one per row, sorted by name. Numbers are UNKNOWN if they are not known."""

    topic: Strings
    internal: Flags
    partitions: Longs
    replicas: Longs
    bytes: Longs
    """The sum over the replicas whose size is known."""
    bytes_are_bound: Flags
    """Whether the size of some replica is not known."""
    leader_bytes: Longs
    """The sum over the leaders, UNKNOWN if the size of one is not known."""
    log_start: Longs
    """The sum over the partitions, UNKNOWN if that of one is not known. So is `log_end`."""
    log_end: Longs
    retention_ms: Longs
    """Kafka's value: −1 for "no limit". So is `retention_bytes`, which is per partition."""
    retention_bytes: Longs
    cleanup_policy: Strings
    """None if it is not known."""


def topic_sizes(snapshot: Snapshot) -> TopicSizes:
    """Return the sizes of all topics."""
    table, replicas = snapshot.partitions, snapshot.replicas
    begins, ends = runs(table.topic)
    counts = ends - begins
    topic_of = np.repeat(np.arange(len(begins)), counts)
    of_replica = topic_of[replicas.row]
    known = replicas.size_bytes != UNKNOWN
    leads = (table.leader[replicas.row] == replicas.broker) & (replicas.broker >= 0)
    size = len(begins)
    on_disk = _sums(of_replica, replicas.size_bytes, known, size)
    led = _sums(of_replica, replicas.size_bytes, known & leads, size)
    numbers = np.bincount(of_replica, minlength=size).astype(np.int64)
    sized = np.bincount(of_replica[known], minlength=size)
    sized_leaders = np.bincount(of_replica[known & leads], minlength=size)
    names = table.topic[begins]
    settings = _settings(snapshot.topic_configs)
    none: tuple[int, int, str | None] = (UNKNOWN, UNKNOWN, None)
    retention = [settings.get(str(name), none) for name in names]
    return TopicSizes(
        topic=names,
        internal=table.internal[begins],
        partitions=counts.astype(np.int64),
        replicas=numbers,
        bytes=np.where(sized > 0, on_disk, UNKNOWN),
        bytes_are_bound=sized < numbers,
        leader_bytes=np.where(sized_leaders == counts, led, UNKNOWN),
        log_start=_all_known(topic_of, table.log_start, counts),
        log_end=_all_known(topic_of, table.log_end, counts),
        retention_ms=np.array([ms for ms, _, _ in retention], np.int64),
        retention_bytes=np.array([size for _, size, _ in retention], np.int64),
        cleanup_policy=np.array([*(policy for _, _, policy in retention), None], object)[:-1],
    )


def _sums(index: Longs, values: Longs, which: Flags, size: int) -> Longs:
    out = np.zeros(size, np.int64)
    np.add.at(out, index[which], values[which])
    return out


def _all_known(index: Longs, values: Longs, counts: Longs) -> Longs:
    known = values != UNKNOWN
    sums = _sums(index, values, known, len(counts))
    return np.where(np.bincount(index[known], minlength=len(counts)) == counts, sums, UNKNOWN)


def _settings(configs: TopicConfigs) -> dict[str, tuple[int, int, str | None]]:
    """Return retention.ms, retention.bytes and cleanup.policy of each topic that has any."""
    columns: list[dict[str, str]] = []
    for name in (RETENTION_MS, RETENTION_BYTES, CLEANUP_POLICY):
        which = np.asarray(configs.name == name, np.bool_)
        columns.append(dict(zip(configs.topic[which].tolist(), configs.value[which].tolist(), strict=True)))
    ms, size, policy = columns
    topics = ms.keys() | size.keys() | policy.keys()
    return {
        topic: (_number(ms.get(topic, "")), _number(size.get(topic, "")), policy.get(topic) or None)
        for topic in topics
    }


def _number(value: str) -> int:
    try:
        number = int(value)
    except ValueError:
        return UNKNOWN
    return number if -1 <= number < 2**63 else UNKNOWN
