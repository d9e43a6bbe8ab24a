"""All configurations of a broker, with their types, defaults, ranges, and how they can change.

The table `broker_configs.tsv` has a line for each of Kafka 4.3: name, type, update mode, default (\\N for
null) and valid values, as `low..high`, as words, or as a range and one more value. It was read from a 4.3.1's
AbstractKafkaConfig and DynamicBrokerConfig, without internal configurations, which brokers do not list.
`broker_configs_3_9.tsv` has those that are others in 3.9.1, and the bare names of those that it lacks.
"""

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from math import inf
from pathlib import Path
from typing import NamedTuple

from kview.simulate.setting import INT_MAX, LONG_MAX, SHORT_MAX, ConfigType, Key, boolean

COLUMNS = 5
NULL = "\\N"
LISTENER_PREFIX = "listener.name."


class Update(StrEnum):
    """How a configuration can change while brokers run.

    CLUSTER ones can be set for all brokers or for one, BROKER ones for one only, LISTENER ones for a listener
    of one only. UNLISTED ones are like CLUSTER, but brokers list them only while they are set.
    """

    FIXED = "fixed"
    LISTENER = "listener"
    BROKER = "broker"
    CLUSTER = "cluster"
    UNLISTED = "unlisted"


class BrokerConfig(NamedTuple):
    """A configuration of a broker. `default` is None if it is null unless it is set."""

    key: Key
    default: str | None
    update: Update


SYNONYMS = {
    "log.flush.interval.ms": "log.flush.scheduler.interval.ms",
    "log.retention.ms": "log.retention.hours",
    "log.roll.jitter.ms": "log.roll.jitter.hours",
    "log.roll.ms": "log.roll.hours",
}
"""Configurations without a default, and those that count if they are not set."""


BrokerConfigs = Mapping[str, BrokerConfig]


@cache
def broker_configs(changes: str = "") -> BrokerConfigs:
    """Return all configurations by name: those of Kafka 4.3, with the changes in another table."""
    table = Path(__file__).with_suffix(".tsv")
    lines = {line.partition("\t")[0]: line for line in table.read_text().splitlines()}
    if changes:
        changed = table.with_stem(f"{table.stem}_{changes}").read_text().splitlines()
        lines |= {line.partition("\t")[0]: line for line in changed}
    return dict(_read(line) for _, line in sorted(lines.items()) if "\t" in line)


def find(configs: BrokerConfigs, name: str) -> BrokerConfig | None:
    """Return the configuration of this name, which may be that of a listener (`listener.name.x.`…)."""
    return configs.get(without_listener(name))


def without_listener(name: str) -> str:
    """Return a configuration's name without the prefix that makes it one of a single listener."""
    if not name.startswith(LISTENER_PREFIX):
        return name
    return name.removeprefix(LISTENER_PREFIX).partition(".")[2]


def _read(line: str) -> tuple[str, BrokerConfig]:
    name, kind, update, default, valid = (*line.split("\t"), "", "")[:COLUMNS]
    value = None if default == NULL else default
    return name, BrokerConfig(_key(ConfigType[kind], value or "", valid), value, Update(update))


def _key(kind: ConfigType, default: str, valid: str) -> Key:
    if kind is ConfigType.BOOLEAN:
        return boolean(default == "true")
    limits, _, besides = valid.partition("|")
    if ".." not in limits:
        low, high = _LIMITS.get(kind, (None, LONG_MAX))
        return Key(default, low, high, tuple(valid.split("|")) if valid else (), kind)
    least, _, most = limits.partition("..")
    high = _number(most) if most else _LIMITS[kind][1]
    return Key(default, _number(least), high, type=kind, besides=besides or None)


def _number(text: str) -> float:
    return float(text) if "." in text else int(text)


_LIMITS: Mapping[ConfigType, tuple[float, float]] = {
    ConfigType.SHORT: (-SHORT_MAX - 1, SHORT_MAX),
    ConfigType.INT: (-INT_MAX - 1, INT_MAX),
    ConfigType.LONG: (-LONG_MAX - 1, LONG_MAX),
    ConfigType.DOUBLE: (-inf, inf),
}
