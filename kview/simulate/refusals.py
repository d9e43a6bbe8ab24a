"""Kafka's own messages for wrong topic names and configurations, which clients and their tools print.

Sources: org.apache.kafka.common.internals.Topic, org.apache.kafka.common.config.ConfigDef and
org.apache.kafka.storage.internals.log.LogConfig.
"""

from collections.abc import Mapping

from kview.errors import BadUse, ErrorKind
from kview.simulate.setting import INT_MAX, LONG_MAX, SHORT_MAX, ConfigType, Key, items

TOPIC_NAME_MAX = 249
MIN_COMPACTION_LAG, MAX_COMPACTION_LAG = "min.compaction.lag.ms", "max.compaction.lag.ms"
REPLICA_LIST = (
    "must be the literal '*' or a list of replicas in the following format: "
    "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
)


def wrong_topic_name(name: str) -> str | None:
    """Return why a name is not valid for a topic, or None if it is."""
    if not name:
        why = "the empty string is not allowed"
    elif name in (".", ".."):
        why = f"'{name}' is not allowed"
    elif len(name) > TOPIC_NAME_MAX:
        why = f"the length of '{name}' is longer than the max allowed length {TOPIC_NAME_MAX}"
    elif not all(c.isascii() and (c.isalnum() or c in "._-") for c in name):
        why = f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    else:
        return None
    return f"Topic name is invalid: {why}"


def wrong_config(wrong: BadUse, keys: Mapping[str, Key], configs: Mapping[str, str]) -> str:
    """Return why one of `configs` is refused. `keys` are the configurations that exist."""
    name = str(wrong.values["name"])
    if wrong.kind in (ErrorKind.SETTING_UNKNOWN, ErrorKind.SETTING_MISSPELT):
        return f"Unknown topic config name: {name}"
    key, value = keys[name], str(wrong.values["value"])
    if wrong.kind is ErrorKind.SETTING_OUT_OF_RANGE and name == MIN_COMPACTION_LAG and _holds(key, value):
        most = configs[MAX_COMPACTION_LAG]
        return f"conflict topic config setting {name} ({value}) > {MAX_COMPACTION_LAG} ({most})"
    if key.replicas:
        listed = ", ".join(items(configs[name]))
        return f"Invalid value [{listed}] for configuration {name}: {name} {REPLICA_LIST}"
    rule = _rule(wrong.kind, name, key, value)
    if key.type is ConfigType.DOUBLE and wrong.kind is ErrorKind.SETTING_OUT_OF_RANGE:
        value = str(float(value))
    return f"Invalid value {value} for configuration {name}: {rule}"


def _holds(key: Key, value: str) -> bool:
    """Return whether a number is in the range of its key."""
    return key.low is not None and key.low <= int(value) <= key.high


def _rule(kind: ErrorKind, name: str, key: Key, value: str) -> str:
    """Return the rule that a value breaks."""
    if key.type is ConfigType.BOOLEAN:
        return "Expected value to be either true or false"
    if key.duration:
        valid = "either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'."
        return f"Invalid value `{value}` for configuration {name}. The value must be {valid}"
    if key.version:
        return f"Version {value} is not a valid version"
    if kind is ErrorKind.SETTING_NOT_A_CHOICE:
        return f"String must be one of: {', '.join(key.choices)}"
    most = {ConfigType.INT: INT_MAX, ConfigType.SHORT: SHORT_MAX}.get(key.type, LONG_MAX)
    if kind is ErrorKind.SETTING_NOT_A_NUMBER or not -most - 1 <= float(value) <= most:
        return f"Not a number of type {key.type.name}"
    if key.besides is not None:
        return f"Value must be between {key.low} and {key.high} or equal to {key.besides}"
    if key.low is not None and float(value) < key.low:
        return f"Value must be at least {key.low}"
    return f"Value must be no more than {key.high}"
