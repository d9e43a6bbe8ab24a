"""How long and how much a topic keeps, from its settings."""

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
    settings = settings_of(configs, topic)
    policy = settings.get("cleanup.policy", "")
    ms, size = (_limit(settings.get(f"retention.{name}", "")) for name in ("ms", "bytes"))
    return Retention(ms, size, "delete" in policy, "compact" in policy)


def _limit(value: str) -> int:
    try:
        number = int(value)
    except ValueError:
        return UNKNOWN
    return NEVER if number == _FOREVER else number if 0 <= number < NEVER else UNKNOWN
