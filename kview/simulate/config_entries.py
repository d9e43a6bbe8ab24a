"""The configurations that DescribeConfigs returns, with the values that count if they are not set."""

from collections.abc import Mapping

from kview.simulate.metadata import MetadataImage
from kview.simulate.results import ConfigEntry, ConfigSource, ConfigSynonym
from kview.simulate.setting import ConfigType
from kview.simulate.settings import (
    BROKER_KEYS,
    DYNAMIC_BROKER_KEYS,
    ELR_VERSION,
    FOLLOWER_THROTTLE,
    GROUP_KEYS,
    LEADER_THROTTLE,
    Settings,
)
from kview.simulate.topic_settings import TOPIC_KEYS

ALL_BROKERS = ""
"""The name under which the metadata has the dynamic configurations of all brokers."""

WITHOUT_DEFAULT = frozenset(("log.retention.ms",))
"""Configurations that are null in Kafka unless they are set: log.retention.hours counts instead."""

NOT_LISTED = frozenset(
    (ELR_VERSION, "group.consumer.regex.refresh.interval.ms", "unclean.leader.election.interval.ms")
)
"""Settings of the simulated cluster that are not configurations of a broker in Kafka: a feature of the
cluster, and internal settings."""

LISTED_IF_SET = frozenset((FOLLOWER_THROTTLE, LEADER_THROTTLE))
"""Configurations that Kafka lists only while they are set, because they exist only as dynamic ones."""


IDENTITY_DEFAULTS = {"broker.id": (ConfigSynonym("broker.id", "-1", ConfigSource.DEFAULT),)}
"""The defaults of those configurations that each broker has for itself."""


def topic_entries(
    settings: Settings, image: MetadataImage, broker: int, own: Mapping[str, str]
) -> list[ConfigEntry]:
    """Return all configurations of a topic, of which `own` are set on the topic itself."""
    rows: list[ConfigEntry] = []
    for name, topic_key in sorted(TOPIC_KEYS.items()):
        chain = [ConfigSynonym(name, own[name], ConfigSource.TOPIC)] if name in own else []
        if topic_key.broker_name is not None and topic_key.broker_name in BROKER_KEYS:
            chain += _of_broker(settings, image, broker, topic_key.broker_name)
        elif topic_key.broker_name is not None:
            chain.append(ConfigSynonym(topic_key.broker_name, topic_key.key.default, ConfigSource.DEFAULT))
        rows.append(_entry(name, topic_key.key.default, topic_key.key.type, chain, read_only=False))
    return rows


def broker_entries(
    settings: Settings, image: MetadataImage, broker: int, identity: Mapping[str, str]
) -> list[ConfigEntry]:
    """Return a broker's configurations. `identity` are those that only this broker has."""
    rows = [
        _entry(
            name,
            value,
            ConfigType.STRING if name == "broker.rack" else ConfigType.INT,
            [ConfigSynonym(name, value, ConfigSource.STATIC_BROKER), *IDENTITY_DEFAULTS.get(name, ())],
            read_only=True,
        )
        for name, value in identity.items()
    ]
    for name, key in BROKER_KEYS.items():
        chain = _of_broker(settings, image, broker, name)
        if name in NOT_LISTED or (name in LISTED_IF_SET and chain[0].source == ConfigSource.DEFAULT):
            continue
        default = None if name in WITHOUT_DEFAULT else key.default
        rows.append(_entry(name, default, key.type, chain, name not in DYNAMIC_BROKER_KEYS))
    return sorted(rows)


def default_broker_entries(image: MetadataImage) -> list[ConfigEntry]:
    """Return the dynamic configurations of all brokers."""
    return [
        _entry(
            name,
            value,
            BROKER_KEYS[name].type if name in BROKER_KEYS else 0,
            [ConfigSynonym(name, value, ConfigSource.DYNAMIC_DEFAULT)],
            read_only=False,
        )
        for name, value in sorted(image.broker_configs.get(ALL_BROKERS, {}).items())
    ]


def group_entries(
    settings: Settings, image: MetadataImage, broker: int, own: Mapping[str, str]
) -> list[ConfigEntry]:
    """Return all configurations of a group, of which `own` are set on the group itself."""
    rows: list[ConfigEntry] = []
    for name, of_brokers in sorted(GROUP_KEYS.items()):
        chain = [ConfigSynonym(name, own[name], ConfigSource.GROUP)] if name in own else []
        chain += _of_broker(settings, image, broker, of_brokers)
        key = BROKER_KEYS[of_brokers]
        rows.append(_entry(name, key.default, key.type, chain, read_only=False))
    return rows


def _of_broker(settings: Settings, image: MetadataImage, broker: int, name: str) -> list[ConfigSynonym]:
    """Return what is set for a broker's configuration, the value that counts first."""
    chain: list[ConfigSynonym] = []
    sources = ((str(broker), ConfigSource.DYNAMIC_BROKER), (ALL_BROKERS, ConfigSource.DYNAMIC_DEFAULT))
    for place, source in sources:
        value = image.broker_configs.get(place, {}).get(name)
        if value is not None:
            chain.append(ConfigSynonym(name, value, source))
    if name in settings.explicit:
        chain.append(ConfigSynonym(name, settings.text(name), ConfigSource.STATIC_BROKER))
    if name not in WITHOUT_DEFAULT:
        chain.append(ConfigSynonym(name, BROKER_KEYS[name].default, ConfigSource.DEFAULT))
    return chain


def _entry(
    name: str, default: str | None, kind: int, chain: list[ConfigSynonym], read_only: bool
) -> ConfigEntry:
    value, source = (chain[0].value, chain[0].source) if chain else (default, ConfigSource.DEFAULT)
    return ConfigEntry(name, value, source, kind, tuple(chain), read_only)
