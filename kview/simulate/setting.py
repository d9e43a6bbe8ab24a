"""A configuration's type, default and range, and how a value is checked."""

import re
from enum import IntEnum

from msgspec import Struct

from kview.errors import BadUse, ErrorKind

LONG_MAX = 2**63 - 1
LONG_MIN = -(2**63)
INT_MAX = 2**31 - 1
INT_MIN = -(2**31)
SHORT_MAX = 2**15 - 1

_WHOLE = re.compile(r"[+-]?[0-9]{1,30}")
_DECIMAL = re.compile(r"[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3})?")
_DURATION = re.compile(
    r"P(?:(\+?[0-9]{1,9})D)?(?:T(?=[0-9+])(?:(\+?[0-9]{1,9})H)?(?:(\+?[0-9]{1,9})M)?"
    r"(?:(\+?[0-9]{1,9})(?:[.,]([0-9]{0,9}))?S)?)?",
    re.IGNORECASE,
)
BY_DURATION = "by_duration:"
_REPLICA = re.compile(r"[0-9]{1,10}:[0-9]{1,10}")


class ConfigType(IntEnum):
    """The type of a configuration, with its number in DescribeConfigs."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


NUMERIC = (ConfigType.INT, ConfigType.SHORT, ConfigType.LONG, ConfigType.DOUBLE)


class Key(Struct, frozen=True):
    """A configuration key.

    `low` and `high` bound a number, and `besides` is a valid number outside them. `choices` lists the words
    that are valid. `replicas` marks a list of `partition:broker`, or the single item `*`. With `duration`, a
    text of BY_DURATION and a duration is valid besides the choices. `version` marks a release of Kafka, of
    which only the first numbers count: the choices are without those of bug fixes.
    """

    default: str
    low: float | None = None
    high: float = LONG_MAX
    choices: tuple[str, ...] = ()
    type: ConfigType = ConfigType.STRING
    besides: str | None = None
    replicas: bool = False
    duration: bool = False
    version: bool = False


def number(default: int, low: int = 0, high: int = INT_MAX) -> Key:
    """Return the key of a whole number, which is a LONG if its range is larger than an INT's."""
    return Key(str(default), low, high, type=ConfigType.INT if high <= INT_MAX else ConfigType.LONG)


def boolean(default: bool) -> Key:
    """Return the key of a configuration that is true or false."""
    return Key(str(default).lower(), choices=("true", "false"), type=ConfigType.BOOLEAN)


def items(value: str) -> list[str]:
    """Return the items of a list, which is written with commas."""
    return [item.strip() for item in value.split(",")] if value.strip() else []


def checked(name: str, key: Key, value: str) -> str:
    """Return `value` as Kafka stores it, without blanks around it. Raises BadUse if it is not valid."""
    text = value.strip()
    if key.type is ConfigType.BOOLEAN:
        text = text.lower()
    if key.type in NUMERIC:
        _check_number(name, key, text)
    elif key.type is ConfigType.LIST:
        wrong = [item for item in items(text) if not _valid_item(key, item, text)]
        if wrong:
            raise _not_a_choice(name, key, wrong[0])
        return ",".join(items(text))
    elif (
        key.choices
        and (_without_fixes(text) if key.version else text) not in key.choices
        and not (key.duration and duration_ms(text) is not None)
    ):
        raise _not_a_choice(name, key, value)
    return text


def _without_fixes(version: str) -> str:
    """Return the first two numbers of a release of Kafka, or three before 1.0.

    Source: org.apache.kafka.server.common.MetadataVersion.fromVersionString.
    """
    numbers, count = version.rstrip(".").split("."), 3 if version.startswith("0.") else 2
    return ".".join(numbers[:count]) if len(numbers) > count else version


def duration_ms(text: str) -> int | None:
    """Return the ms in BY_DURATION and a duration of ISO 8601, such as `by_duration:PT1H`, or None if it is
    something else. Negative durations are not valid here (java.time.Duration)."""
    iso = text.removeprefix(BY_DURATION)
    matched = _DURATION.fullmatch(iso)
    if iso == text or matched is None or len(iso) == 1:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in matched.groups()[:4])
    thousandths = int((matched[5] or "").ljust(3, "0")[:3])
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + thousandths


def _check_number(name: str, key: Key, value: str) -> None:
    pattern = _DECIMAL if key.type is ConfigType.DOUBLE else _WHOLE
    if not pattern.fullmatch(value):
        raise BadUse(ErrorKind.SETTING_NOT_A_NUMBER, name=name, value=value, default=key.default)
    given = float(value) if key.type is ConfigType.DOUBLE else int(value)
    low = key.low if key.low is not None else LONG_MIN
    if not low <= given <= key.high and value != key.besides:
        raise BadUse(
            ErrorKind.SETTING_OUT_OF_RANGE,
            name=name,
            value=value,
            low=low,
            high=key.high,
            default=key.default,
        )


def _valid_item(key: Key, item: str, value: str) -> bool:
    if key.replicas:
        return value.strip() == "*" or _REPLICA.fullmatch(item) is not None
    return not key.choices or item in key.choices


def _not_a_choice(name: str, key: Key, value: str) -> BadUse:
    choices = ("*", "partition:broker,…") if key.replicas else key.choices
    return BadUse(
        ErrorKind.SETTING_NOT_A_CHOICE, name=name, value=value, choices=choices, default=key.default
    )
