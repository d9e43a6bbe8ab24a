"""The configurations that DescribeConfigs returns, with the values that count if they are not set."""

from collections.abc import Collection, Mapping

from kview.simulate.broker_configs import SYNONYMS, BrokerConfigs, Update, find, without_listener
from kview.simulate.metadata import MetadataImage
from kview.simulate.results import ConfigEntry, ConfigSource, ConfigSynonym
from kview.simulate.setting import ConfigType
from kview.simulate.settings import BROKER_KEYS, GROUP_KEYS, GROUP_ONLY_KEYS, Settings

ALL_BROKERS = ""
"""The name under which the metadata has the dynamic configurations of all brokers."""


def topic_entries(
    settings: Settings,
    image: MetadataImage,
    broker: int,
    own: Mapping[str, str],
    wanted: Collection[str] = (),
) -> list[ConfigEntry]:
    """Return a topic's configurations, the `wanted` ones or all. `own` are set on the topic itself."""
    rows: list[ConfigEntry] = []
    keys = settings.release.topic_keys
    for name in sorted(keys.keys() & wanted if wanted else keys):
        topic_key = keys[name]
        chain = [ConfigSynonym(name, own[name], ConfigSource.TOPIC)] if name in own else []
        if topic_key.broker_name is not None:
            chain += _chain(
                settings.release.broker_configs, settings.explicit, image, broker, topic_key.broker_name
            )
        value, source = (chain[0].value, chain[0].source) if chain else (None, ConfigSource.DEFAULT)
        default = topic_key.key.default
        rows.append(
            ConfigEntry(
                name, default if value is None else value, source, topic_key.key.type, tuple(chain), False
            )
        )
    return rows


def broker_entries(
    settings: Settings, image: MetadataImage, broker: int, identity: Mapping[str, str]
) -> list[ConfigEntry]:
    """Return a broker's configurations. `identity` are those that only this broker has."""
    configs, static = settings.release.broker_configs, {**settings.explicit, **identity}
    listed = {name for name, config in configs.items() if config.update is not Update.UNLISTED}
    known = {name for name in static if name in configs}
    dynamic = {name for place in _places(broker) for name in image.broker_configs.get(place, {})}
    names = sorted(listed | known | dynamic)
    return [_entry(configs, name, _chain(configs, static, image, broker, name)) for name in names]


def default_broker_entries(settings: Settings, image: MetadataImage) -> list[ConfigEntry]:
    """Return the dynamic configurations of all brokers."""
    configs = settings.release.broker_configs
    return [
        _entry(configs, name, [ConfigSynonym(name, value, ConfigSource.DYNAMIC_DEFAULT)])
        for name, value in sorted(image.broker_configs.get(ALL_BROKERS, {}).items())
    ]


def group_entries(
    settings: Settings, image: MetadataImage, broker: int, own: Mapping[str, str]
) -> list[ConfigEntry]:
    """Return all configurations of a group, of which `own` are set on the group itself."""
    rows: list[ConfigEntry] = []
    for name, of_brokers in sorted(GROUP_KEYS.items()):
        chain = [ConfigSynonym(name, own[name], ConfigSource.GROUP)] if name in own else []
        chain += _chain(settings.release.broker_configs, settings.explicit, image, broker, of_brokers)
        kind = BROKER_KEYS[of_brokers].type
        rows.append(ConfigEntry(name, chain[0].value, chain[0].source, kind, tuple(chain)))
    for name, key in GROUP_ONLY_KEYS.items():
        chain = [ConfigSynonym(name, own[name], ConfigSource.GROUP)] if name in own else []
        chain.append(ConfigSynonym(name, key.default, ConfigSource.DEFAULT))
        rows.append(ConfigEntry(name, chain[0].value, chain[0].source, key.type, tuple(chain)))
    return sorted(rows)


def _places(broker: int) -> dict[str, int]:
    """Return where a broker's dynamic configurations are, and their sources, the one that counts first."""
    return {str(broker): ConfigSource.DYNAMIC_BROKER, ALL_BROKERS: ConfigSource.DYNAMIC_DEFAULT}


def _chain(
    configs: BrokerConfigs, static: Mapping[str, str], image: MetadataImage, broker: int, name: str
) -> list[ConfigSynonym]:
    """Return what is set for a broker's configuration, the value that counts first."""
    chain: list[ConfigSynonym] = []
    for place, source in _places(broker).items():
        value = image.broker_configs.get(place, {}).get(name)
        if value is not None:
            chain.append(ConfigSynonym(name, value, source))
    if name in static:
        chain.append(ConfigSynonym(name, static[name], ConfigSource.STATIC_BROKER))
    last = SYNONYMS.get(name) if chain else None
    base = last or without_listener(name)
    config = find(configs, base)
    if config is not None and config.default is not None and config.update is not Update.UNLISTED:
        chain.append(ConfigSynonym(base, config.default, ConfigSource.DEFAULT))
    return chain


def _entry(configs: BrokerConfigs, name: str, chain: list[ConfigSynonym]) -> ConfigEntry:
    """Return a broker's configuration. One that Kafka does not know may be secret."""
    config = find(configs, name)
    kind = config.key.type if config is not None else 0
    sensitive = kind in (0, ConfigType.PASSWORD)
    if sensitive:
        chain = [synonym._replace(value=None) for synonym in chain]
    value, source = (chain[0].value, chain[0].source) if chain else (None, ConfigSource.DEFAULT)
    is_read_only = config is None or config.update is Update.FIXED or name not in configs
    return ConfigEntry(name, value, source, kind, tuple(chain), is_read_only, sensitive)
