"""How long and how much a topic keeps, from its settings."""

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from kview.model.snapshot import TopicConfigs
from kview.model.units import NEVER, UNKNOWN

_FOREVER = -1
"""Kafka's value of retention.ms and retention.bytes for "no limit"."""


class Retention(NamedTuple):
    """When a topic's records are removed.

    `ms` and `bytes` (per partition) are UNKNOWN if the setting is not known, and NEVER if there is no limit.
    """

    ms: int
    bytes: int
    is_deleted: bool
    """Whether old records are deleted."""
    is_compacted: bool


def settings_of(configs: TopicConfigs, topic: str) -> dict[str, str]:
    """Return the known settings of a topic by name."""
    if not len(configs):
        return {}
    name = np.array([topic], object)
    begin = int(np.searchsorted(configs.topic, name, "left")[0])
    end = int(np.searchsorted(configs.topic, name, "right")[0])
    return dict(zip(configs.name[begin:end].tolist(), configs.value[begin:end].tolist(), strict=True))


def retention(configs: TopicConfigs, topic: str) -> Retention:
    """Return when a topic's records are removed."""
    return _of(settings_of(configs, topic))


def retentions(configs: TopicConfigs) -> dict[str, Retention]:
    """Return when the records of each topic are removed whose settings are known."""
    settings: dict[str, dict[str, str]] = {}
    for topic, name, value in zip(
        configs.topic.tolist(), configs.name.tolist(), configs.value.tolist(), strict=True
    ):
        settings.setdefault(topic, {})[name] = value
    return {topic: _of(values) for topic, values in settings.items()}


def _of(settings: Mapping[str, str]) -> Retention:
    policy = settings.get("cleanup.policy", "")
    ms, size = (_limit(settings.get(f"retention.{name}", "")) for name in ("ms", "bytes"))
    return Retention(ms, size, "delete" in policy, "compact" in policy)


def _limit(value: str) -> int:
    try:
        number = int(value)
    except ValueError:
        return UNKNOWN
    return NEVER if number == _FOREVER else number if 0 <= number < NEVER else UNKNOWN


class RemovalKind(StrEnum):
    """Why and when a partition's first records are removed."""

    NOT_KNOWN = "not_known"
    NEVER = "never"
    """Neither time nor size limits the log."""
    BY_TIME = "by_time"
    BY_SIZE = "by_size"
    OVERDUE = "overdue"
    """They are past a limit. Kafka removes whole segments, never the active one, so they wait for theirs."""


class Removal(NamedTuple):
    """When a partition's first records are removed: not before `at_ms`, epoch ms, UNKNOWN if not known.

    This is a lower bound, because the segment that holds them can hold younger records.
    """

    kind: RemovalKind
    at_ms: int = UNKNOWN


def removal(kept: Retention, first_ms: int, size: int, records: int, in_rate: float, now_ms: int) -> Removal:
    """Return when retention removes the first records of a log.

    `first_ms` is the timestamp of its first record, `size` and `records` what the log holds (each UNKNOWN if
    not known), `in_rate` the records written per second (NaN if not known). The log grows by records of the
    size that it holds on average.
    """
    if not kept.is_deleted or (kept.ms == NEVER and kept.bytes == NEVER):
        return Removal(RemovalKind.NEVER if kept.ms != UNKNOWN else RemovalKind.NOT_KNOWN)
    removals: list[Removal] = []
    if kept.ms != NEVER:
        if UNKNOWN in (kept.ms, first_ms):
            return Removal(RemovalKind.NOT_KNOWN)
        removals.append(Removal(RemovalKind.BY_TIME, first_ms + kept.ms))
    if kept.bytes != NEVER:
        if UNKNOWN in (kept.bytes, size, records) or np.isnan(in_rate):
            return Removal(RemovalKind.NOT_KNOWN)
        growth = in_rate * size / records if records > 0 else 0.0
        room = kept.bytes - size
        if room <= 0:
            removals.append(Removal(RemovalKind.BY_SIZE, now_ms))
        elif growth > 0:
            removals.append(Removal(RemovalKind.BY_SIZE, now_ms + int(min(room / growth * 1000, _FAR_MS))))
    if not removals:
        return Removal(RemovalKind.NEVER)
    first = min(removals, key=lambda removal: removal.at_ms)
    return Removal(RemovalKind.OVERDUE) if first.at_ms <= now_ms else first


_FAR_MS = 10**15
"""Limit of an estimate: thousands of years."""
