"""Broker and topic configurations under Kafka's keys, with Kafka's defaults."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from kview.errors import BadUse, ErrorKind

LONG_MAX = 2**63 - 1
INT_MAX = 2**31 - 1

_WHOLE = re.compile(r"[+-]?[0-9]{1,30}")


@dataclass(frozen=True, slots=True)
class Key:
    """A configuration key. `low` and `high` bound a number, `choices` lists the words that are valid."""

    default: str
    low: int | None = None
    high: int = LONG_MAX
    choices: tuple[str, ...] = ()


def _number(default: int, low: int = 0, high: int = INT_MAX) -> Key:
    return Key(str(default), low, high)


def _boolean(default: bool) -> Key:
    return Key(str(default).lower(), choices=("true", "false"))


BROKER_KEYS: Mapping[str, Key] = {
    "auto.create.topics.enable": _boolean(True),
    "auto.leader.rebalance.enable": _boolean(True),
    "broker.heartbeat.interval.ms": _number(2000, 1),
    "broker.session.timeout.ms": _number(9000, 1),
    "controller.quorum.election.timeout.ms": _number(1000, 1),
    "controller.quorum.fetch.timeout.ms": _number(2000, 1),
    "default.replication.factor": _number(1, 1, 32767),
    "eligible.leader.replicas.version": _number(1, 0, 1),
    "group.initial.rebalance.delay.ms": _number(3000),
    "group.max.session.timeout.ms": _number(1800000, 1),
    "group.max.size": _number(INT_MAX, 1),
    "group.min.session.timeout.ms": _number(6000, 1),
    "leader.imbalance.check.interval.seconds": _number(300, 1),
    "log.retention.bytes": _number(-1, -1, LONG_MAX),
    "log.retention.check.interval.ms": _number(300000, 1),
    "log.retention.ms": _number(604800000, -1, LONG_MAX),
    "message.max.bytes": _number(1048588),
    "metadata.max.idle.interval.ms": _number(500, 1),
    "min.insync.replicas": _number(1, 1),
    "num.partitions": _number(1, 1),
    "offset.metadata.max.bytes": _number(4096),
    "offsets.commit.timeout.ms": _number(5000, 1),
    "offsets.retention.check.interval.ms": _number(600000, 1),
    "offsets.retention.minutes": _number(10080, 1),
    "offsets.topic.num.partitions": _number(50, 1, 10000),
    "offsets.topic.replication.factor": _number(3, 1, 32767),
    "replica.fetch.wait.max.ms": _number(500, 1),
    "replica.lag.time.max.ms": _number(30000, 1, LONG_MAX),
    "unclean.leader.election.enable": _boolean(False),
}

TOPIC_KEYS: Mapping[str, tuple[Key, str | None]] = {
    "cleanup.policy": (
        Key("delete", choices=("delete", "compact", "compact,delete", "delete,compact")),
        None,
    ),
    "compression.type": (
        Key("producer", choices=("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")),
        None,
    ),
    "max.message.bytes": (_number(1048588), "message.max.bytes"),
    "message.timestamp.type": (Key("CreateTime", choices=("CreateTime",)), None),
    "min.insync.replicas": (_number(1, 1), "min.insync.replicas"),
    "retention.bytes": (_number(-1, -1, LONG_MAX), "log.retention.bytes"),
    "retention.ms": (_number(604800000, -1, LONG_MAX), "log.retention.ms"),
    "segment.bytes": (_number(1073741824, 14), None),
    "segment.ms": (_number(604800000, 1, LONG_MAX), None),
    "unclean.leader.election.enable": (_boolean(False), "unclean.leader.election.enable"),
}
"""The keys of a topic, each with the broker key that its default comes from."""


def check_value(name: str, key: Key, value: str) -> None:
    """Raise BadUse if `value` is not valid for the key `name`."""
    if key.low is not None:
        if not _WHOLE.fullmatch(value):
            raise BadUse(ErrorKind.SETTING_NOT_A_NUMBER, name=name, value=value, default=key.default)
        number = int(value)
        if not key.low <= number <= key.high:
            raise BadUse(
                ErrorKind.SETTING_OUT_OF_RANGE,
                name=name,
                value=value,
                low=key.low,
                high=key.high,
                default=key.default,
            )
    elif key.choices and value not in key.choices:
        raise BadUse(
            ErrorKind.SETTING_NOT_A_CHOICE,
            name=name,
            value=value,
            choices=key.choices,
            default=key.default,
        )


def check_broker_settings(settings: Mapping[str, str]) -> None:
    """Check broker settings.

    Raises BadUse for a wrong value, or for an unknown key, with the nearest known key.
    """
    for name, value in settings.items():
        key = BROKER_KEYS.get(name)
        if key is None:
            raise _unknown(name, BROKER_KEYS)
        check_value(name, key, value)


def check_topic_configs(configs: Mapping[str, str]) -> None:
    """Check a topic's own configurations. Raises BadUse as `check_broker_settings` does."""
    for name, value in configs.items():
        found = TOPIC_KEYS.get(name)
        if found is None:
            raise _unknown(name, TOPIC_KEYS)
        check_value(name, found[0], value)


def _unknown(name: str, known: Mapping[str, object]) -> BadUse:
    near = get_close_matches(name, list(known), n=1, cutoff=0.5)
    if near:
        return BadUse(ErrorKind.SETTING_MISSPELT, name=name, nearest=near[0])
    return BadUse(ErrorKind.SETTING_UNKNOWN, name=name, known=tuple(sorted(known)))


class Settings:
    """The settings of all brokers of a cluster. Raises BadUse if they are wrong."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        check_broker_settings(settings)
        self.explicit = dict(settings)

    def text(self, name: str) -> str:
        """Return the effective value as text."""
        return self.explicit.get(name, BROKER_KEYS[name].default)

    def number(self, name: str) -> int:
        """Return the effective value of a numeric key."""
        return int(self.text(name))

    def us(self, name: str) -> int:
        """Return the effective value, in microseconds, of a key whose unit is milliseconds."""
        return self.number(name) * 1000

    def flag(self, name: str) -> bool:
        """Return the effective value of a boolean key."""
        return self.text(name) == "true"

    def topic(self, configs: Mapping[str, str], name: str) -> str:
        """Return a topic's effective value: its own, else the brokers', else Kafka's default."""
        own = configs.get(name)
        if own is not None:
            return own
        key, broker_name = TOPIC_KEYS[name]
        return self.text(broker_name) if broker_name else key.default
