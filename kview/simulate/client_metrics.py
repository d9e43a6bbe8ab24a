"""Subscriptions of client metrics (KIP-714), which are configurations. No client is asked for metrics.

Source: org.apache.kafka.server.metrics.ClientMetricsConfigs.
"""

import re
from collections.abc import Mapping, Sequence

from kview.errors import BadUse
from kview.simulate.alterations import Alteration, Altered, after_alterations
from kview.simulate.codes import ErrorCode
from kview.simulate.refusals import wrong_config
from kview.simulate.releases import Release
from kview.simulate.results import AdminResult, ConfigEntry, ConfigSource, ConfigSynonym
from kview.simulate.setting import INT_MAX, INT_MIN, ConfigType, Key, checked, items, number

INTERVAL, MATCH, METRICS = "interval.ms", "match", "metrics"
INTERVAL_MIN, INTERVAL_MAX = 100, 3_600_000
KEYS: Mapping[str, Key] = {
    INTERVAL: number(300_000, INT_MIN, INT_MAX),
    MATCH: Key("", type=ConfigType.LIST),
    METRICS: Key("", type=ConfigType.LIST),
}
MATCHED = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
"""What a subscription may match of a client."""
PATTERN_CHARACTERS = 1_000
_MATCH = re.compile(r"\s*([a-zA-Z0-9_]+)\s*=\s*(.*)")


def metrics_configs_after(
    before: Mapping[str, str], alterations: Sequence[Alteration], release: Release
) -> Altered:
    """Return the configurations of a subscription after the changes."""
    after = after_alterations(before, alterations, lambda name: None, lambda name: KEYS[name].default)
    if isinstance(after, AdminResult):
        return after
    for name, value in after.items():
        key = KEYS.get(name)
        if key is None:
            message = f"Unknown client metrics configuration: {name}"
            return AdminResult(ErrorCode.INVALID_REQUEST, message)
        try:
            after[name] = checked(name, key, value)
        except BadUse as wrong:
            if release.scala_configs:
                return AdminResult(ErrorCode.UNKNOWN_SERVER_ERROR)
            return AdminResult(ErrorCode.INVALID_CONFIG, wrong_config(wrong, KEYS, after))
        if name == INTERVAL and not INTERVAL_MIN <= int(value) <= INTERVAL_MAX:
            message = (
                f"Invalid value {value} for {INTERVAL}, interval must be between {INTERVAL_MIN} and "
                f"{INTERVAL_MAX} (1 hour)"
            )
            return AdminResult(ErrorCode.INVALID_REQUEST, message)
        if name == MATCH:
            illegal = next((pattern for pattern in items(value) if not _is_pattern(pattern)), None)
            if illegal is not None:
                message = f"Illegal client matching pattern: {illegal}"
                return AdminResult(ErrorCode.INVALID_CONFIG, message)
    return after


def _is_pattern(text: str) -> bool:
    match = _MATCH.fullmatch(text)
    if match is None or match[1] not in MATCHED or len(text) > PATTERN_CHARACTERS:
        return False
    try:
        re.compile(match[2])
    except (re.error, RecursionError, OverflowError):
        return False
    return True


def metrics_entries(own: Mapping[str, str], release: Release) -> list[ConfigEntry]:
    """Return all configurations of a subscription, of which `own` are set."""
    if release.scala_configs:
        source = ConfigSource.CLIENT_METRICS
        return [ConfigEntry(name, value, source, 0, (), False) for name, value in sorted(own.items())]
    rows = []
    for name, key in KEYS.items():
        if name in own:
            synonym = ConfigSynonym(name, own[name], ConfigSource.CLIENT_METRICS)
            rows.append(ConfigEntry(name, own[name], synonym.source, key.type, (synonym,), False))
        else:
            rows.append(ConfigEntry(name, key.default, ConfigSource.DEFAULT, key.type, (), False))
    return rows
