"""Changes of configurations, as AlterConfigs and IncrementalAlterConfigs ask for them.

Sources: org.apache.kafka.controller.ConfigurationControlManager and kafka.server.ConfigAdminManager.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from kview.errors import BadUse
from kview.simulate.broker_configs import Update, find, without_listener
from kview.simulate.codes import ErrorCode
from kview.simulate.refusals import wrong_config
from kview.simulate.releases import Release
from kview.simulate.results import AdminResult
from kview.simulate.setting import ConfigType, Key, checked, items
from kview.simulate.settings import BROKER_KEYS, GROUP_KEYS, GROUP_ONLY_KEYS, Settings, check_topic_configs

MIN_ISR = "min.insync.replicas"
THREADS = frozenset(
    (
        "background.threads",
        "num.io.threads",
        "num.network.threads",
        "num.recovery.threads.per.data.dir",
        "num.replica.fetchers",
        "remote.log.reader.threads",
    )
)
"""Numbers of threads that can at most double, or halve, at once."""
ADVERTISED = "advertised.listeners"
ADVERTISED_FIXED = "Advertised listeners cannot be altered when using a Raft-based metadata quorum"
INVALID_DYNAMIC = (
    "Invalid value org.apache.kafka.common.config.ConfigException: {} for configuration Invalid dynamic"
    " configuration"
)
VALUE_BYTES_MAX = 32_767
"""Limit of a value, which is the protocol's limit of a string."""
CONFIGS_MAX = 1_000
"""Limit of a resource's own configurations, because brokers accept names that they do not know."""


class Operation(IntEnum):
    """What IncrementalAlterConfigs does with a configuration, with its number in the protocol."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Alteration(NamedTuple):
    """A change of one configuration. `operation` is one of `Operation`, or a number no client should send."""

    name: str
    operation: int
    value: str | None


Configs = Mapping[str, str]
Altered = AdminResult | dict[str, str]
"""Why the changes are refused, or the configurations after them."""


def topic_configs_after(before: Configs, alterations: Sequence[Alteration], settings: Settings) -> Altered:
    """Return a topic's configurations after the changes. `settings` are the brokers'."""
    keys = settings.release.topic_config_keys
    after = after_alterations(before, alterations, keys.get, lambda name: settings.topic({}, name))
    if isinstance(after, AdminResult):
        return after
    try:
        return check_topic_configs(after, keys)
    except BadUse as wrong:
        return AdminResult(ErrorCode.INVALID_CONFIG, wrong_config(wrong, keys, after))


def broker_configs_after(
    broker: str,
    before: Configs,
    alterations: Sequence[Alteration],
    others_too: bool,
    current: Callable[[str], str | None],
    release: Release,
) -> Altered:
    """Return a broker's dynamic configurations after the changes.

    `broker` is its id, or empty for all brokers. `others_too` removes those that no alteration names.
    `current` returns the value that counts now.
    """

    def key_of(name: str) -> Key | None:
        config = find(release.broker_configs, name)
        return None if config is None else config.key

    after = after_alterations(
        {} if others_too else before, alterations, key_of, lambda name: current(name) or "", True
    )
    unknown = [each for each in alterations if each.operation > Operation.DELETE and not key_of(each.name)]
    if isinstance(after, AdminResult):
        unexpected = release.scala_configs and after.error_code is ErrorCode.INVALID_CONFIG and unknown
        return AdminResult(ErrorCode.UNKNOWN_SERVER_ERROR) if unexpected else after
    message = _not_dynamic(after, bool(broker), release) or _wrong_threads(after, current)
    if message is not None:
        return AdminResult(ErrorCode.INVALID_REQUEST, message)
    return {n: checked(n, key, value) if (key := key_of(n)) else value for n, value in after.items()}


def min_isr_refusal(
    broker: str, before: Configs, alterations: Sequence[Alteration], after: Configs
) -> AdminResult | None:
    """Return why a broker's or the cluster's min.insync.replicas cannot be changed so, or None, if there are
    eligible leader replicas."""
    if broker and any(alteration.name == MIN_ISR for alteration in alterations):
        message = f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled."
        return AdminResult(ErrorCode.INVALID_CONFIG, message)
    if not broker and MIN_ISR in before and MIN_ISR not in after:
        message = f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled."
        return AdminResult(ErrorCode.INVALID_CONFIG, message)
    return None


def _not_dynamic(after: Configs, of_one_broker: bool, release: Release) -> str | None:
    """Return why a broker cannot have these dynamic configurations, or None.

    Source: kafka.server.DynamicBrokerConfig.validate.
    """
    configs = release.broker_configs
    known = [(name, config) for name in after if (config := find(configs, name))]
    fixed = [name for name, config in known if config.update is Update.FIXED]
    if fixed:
        return f"Cannot update these configs dynamically: {release.of_configs(fixed)}"
    of_listeners = [n for n, config in known if config.update is Update.LISTENER and n in configs]
    if of_listeners:
        only = "These security configs can be dynamically updated only per-listener using the listener prefix"
        return f"{only}: {release.of_configs(of_listeners, is_hash_set=True)}"
    for name, config in known:
        base = without_listener(name)
        try:
            checked(base, config.key, after[name])
        except BadUse as wrong:
            return wrong_config(wrong, {base: config.key}, {base: after[name]})
    if "log.retention.ms" in after and int(after["log.retention.ms"]) == 0:
        return "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1"
    if ADVERTISED in after and configs[ADVERTISED].update is not Update.FIXED:
        return INVALID_DYNAMIC.format(f"{ADVERTISED_FIXED}.")
    of_brokers = [n for n, config in known if config.update in (Update.BROKER, Update.LISTENER)]
    if of_brokers and not of_one_broker:
        only = "Cannot update these configs at default cluster level, broker id must be specified"
        return f"{only}: {release.of_configs(of_brokers)}"
    return None


def _wrong_threads(after: Configs, current: Callable[[str], str | None]) -> str | None:
    """Return why threads cannot become so many more or fewer at once, or None.

    Source: kafka.server.DynamicThreadPool.validateReconfiguration.
    """
    for name in sorted(THREADS & after.keys()):
        now, wanted = int(current(name) or 0), int(after[name])
        rule = ""
        if wanted < 1:
            rule = "should be at least 1"
        elif wanted < now // 2:
            rule = f"should be at least half the current value {now}"
        elif wanted > 2 * now:
            rule = f"should not be greater than double the current value {now}"
        if rule:
            what = f"Dynamic thread count update validation failed for {name}={wanted}, value {rule}"
            return INVALID_DYNAMIC.format(what)
    return None


def group_configs_after(before: Configs, alterations: Sequence[Alteration], settings: Settings) -> Altered:
    """Return a group's configurations after the changes."""
    keys = {name: BROKER_KEYS[of_brokers] for name, of_brokers in GROUP_KEYS.items()}
    keys.update(GROUP_ONLY_KEYS)
    after = after_alterations(before, alterations, keys.get, lambda name: keys[name].default)
    if isinstance(after, AdminResult):
        return after
    for name, value in after.items():
        if name not in keys:
            return AdminResult(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {name}")
        try:
            after[name] = checked(name, keys[name], value)
        except BadUse as wrong:
            return AdminResult(ErrorCode.INVALID_CONFIG, wrong_config(wrong, keys, after))
        if name in GROUP_ONLY_KEYS:
            continue
        kind, setting = name.split(".", 1)
        low, high = (f"group.{kind}.{end}.{setting.removeprefix('num.')}" for end in ("min", "max"))
        if low in BROKER_KEYS and int(value) < settings.number(low):
            message = f"{name} must be greater than or equal to {low}"
            return AdminResult(ErrorCode.INVALID_CONFIG, message)
        if high in BROKER_KEYS and int(value) > settings.number(high):
            message = f"{name} must be less than or equal to {high}"
            return AdminResult(ErrorCode.INVALID_CONFIG, message)
    return after


def after_alterations(
    before: Configs,
    alterations: Sequence[Alteration],
    key_of: Callable[[str], Key | None],
    default: Callable[[str], str],
    of_broker: bool = False,
) -> Altered:
    """Return configurations after the changes. A broker refuses some of its own with other words than the
    controller does those of topics."""
    if len({a.name for a in alterations}) != len(alterations):
        return AdminResult(ErrorCode.INVALID_REQUEST, "Error due to duplicate config keys")
    after = dict(before)
    for name, operation, value in alterations:
        if operation == Operation.DELETE:
            after.pop(name, None)
        elif value is None:
            return AdminResult(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {name}")
        elif operation == Operation.SET:
            after[name] = value
        elif operation in (Operation.APPEND, Operation.SUBTRACT):
            key, verb = key_of(name), Operation(operation).name
            if key is None or key.type is not ConfigType.LIST:
                message = f"Can't {verb} to key {name} because its type is not LIST."
                if of_broker:
                    message = f"Config value {verb.lower()} is not allowed for config key: {name}"
                if of_broker and key is None:
                    message = f"Unknown config name: {name}"
                return AdminResult(ErrorCode.INVALID_CONFIG, message)
            have = dict.fromkeys(items(after[name] if name in after else default(name)))
            given = dict.fromkeys(items(value))
            if operation == Operation.APPEND:
                have |= given
            else:
                have = {item: None for item in have if item not in given}
            after[name] = ",".join(have)
        elif of_broker:
            return AdminResult(ErrorCode.INVALID_REQUEST, f"Unknown operations type {operation}")
        else:
            # As in Kafka, where a number without a meaning is an exception that nobody catches.
            return AdminResult(ErrorCode.UNKNOWN_SERVER_ERROR)
    if len(after) > CONFIGS_MAX or any(len(value.encode()) > VALUE_BYTES_MAX for value in after.values()):
        return AdminResult(ErrorCode.INVALID_CONFIG, "Too many configurations, or a value that is too long.")
    return after
