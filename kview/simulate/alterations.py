"""Changes of configurations, as AlterConfigs and IncrementalAlterConfigs ask for them.

Sources: org.apache.kafka.controller.ConfigurationControlManager and kafka.server.ConfigAdminManager.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from kview.errors import BadUse
from kview.simulate.codes import ErrorCode
from kview.simulate.refusals import wrong_config
from kview.simulate.results import AdminResult
from kview.simulate.setting import ConfigType, Key, checked, items
from kview.simulate.settings import (
    BROKER_KEYS,
    DYNAMIC_BROKER_KEYS,
    GROUP_KEYS,
    Settings,
    check_topic_configs,
)
from kview.simulate.topic_settings import TOPIC_CONFIG_KEYS

MIN_ISR = "min.insync.replicas"
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


def topic_configs_after(
    before: Configs, alterations: Sequence[Alteration], default: Callable[[str], str]
) -> Altered:
    """Return a topic's configurations after the changes. `default` returns the value of one that is not
    set."""
    after = _after(before, alterations, TOPIC_CONFIG_KEYS, default)
    if isinstance(after, AdminResult):
        return after
    try:
        return check_topic_configs(after)
    except BadUse as wrong:
        return AdminResult(ErrorCode.INVALID_CONFIG, wrong_config(wrong, TOPIC_CONFIG_KEYS, after))


def broker_configs_after(
    broker: str, before: Configs, alterations: Sequence[Alteration], others_too: bool, elr_enabled: bool
) -> Altered:
    """Return a broker's dynamic configurations after the changes.

    `broker` is its id, or empty for all brokers. `others_too` removes those that no alteration names.
    """
    fixed = sorted({a.name for a in alterations} & (BROKER_KEYS.keys() - DYNAMIC_BROKER_KEYS))
    if fixed:
        message = f"Cannot update these configs dynamically: [{', '.join(fixed)}]"
        return AdminResult(ErrorCode.INVALID_REQUEST, message)
    if elr_enabled and broker and any(alteration.name == MIN_ISR for alteration in alterations):
        message = f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled."
        return AdminResult(ErrorCode.INVALID_CONFIG, message)
    after = _after(
        {} if others_too else before, alterations, BROKER_KEYS, lambda name: BROKER_KEYS[name].default
    )
    if isinstance(after, AdminResult):
        return after
    if elr_enabled and not broker and MIN_ISR in before and MIN_ISR not in after:
        message = f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled."
        return AdminResult(ErrorCode.INVALID_CONFIG, message)
    try:
        return {n: checked(n, BROKER_KEYS[n], v) if n in BROKER_KEYS else v for n, v in after.items()}
    except BadUse as wrong:
        return AdminResult(ErrorCode.INVALID_REQUEST, wrong_config(wrong, BROKER_KEYS, after))


def group_configs_after(before: Configs, alterations: Sequence[Alteration], settings: Settings) -> Altered:
    """Return a group's configurations after the changes."""
    keys = {name: BROKER_KEYS[of_brokers] for name, of_brokers in GROUP_KEYS.items()}
    after = _after(before, alterations, keys, lambda name: settings.text(GROUP_KEYS[name]))
    if isinstance(after, AdminResult):
        return after
    for name, value in after.items():
        if name not in keys:
            return AdminResult(ErrorCode.INVALID_CONFIG, f"Unknown group config name: {name}")
        try:
            after[name] = checked(name, keys[name], value)
        except BadUse as wrong:
            return AdminResult(ErrorCode.INVALID_CONFIG, wrong_config(wrong, keys, after))
        low, high = (GROUP_KEYS[name].replace(".consumer.", f".consumer.{end}.", 1) for end in ("min", "max"))
        if int(value) < settings.number(low):
            message = f"{name} must be greater than or equal to {low}"
            return AdminResult(ErrorCode.INVALID_CONFIG, message)
        if int(value) > settings.number(high):
            message = f"{name} must be less than or equal to {high}"
            return AdminResult(ErrorCode.INVALID_CONFIG, message)
    return after


def _after(
    before: Configs,
    alterations: Sequence[Alteration],
    keys: Mapping[str, Key],
    default: Callable[[str], str],
) -> Altered:
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
            key = keys.get(name)
            if key is None or key.type is not ConfigType.LIST:
                verb = Operation(operation).name
                message = f"Can't {verb} to key {name} because its type is not LIST."
                return AdminResult(ErrorCode.INVALID_CONFIG, message)
            have = dict.fromkeys(items(after[name] if name in after else default(name)))
            given = dict.fromkeys(items(value))
            if operation == Operation.APPEND:
                have |= given
            else:
                have = {item: None for item in have if item not in given}
            after[name] = ",".join(have)
        else:
            # As in Kafka, where a number without a meaning is an exception that nobody catches.
            return AdminResult(ErrorCode.UNKNOWN_SERVER_ERROR)
    if len(after) > CONFIGS_MAX or any(len(value.encode()) > VALUE_BYTES_MAX for value in after.values()):
        return AdminResult(ErrorCode.INVALID_CONFIG, "Too many configurations, or a value that is too long.")
    return after
