"""Times as people type them: `14:05`, `14:05:30`, `-5m`, `+30s`, `2026-03-01T14:05:30`."""

import re
from datetime import datetime, time, timedelta, tzinfo

_OF_DAY = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?")
_AWAY = re.compile(r"([-−+])\s*([0-9]{1,12}(?:\.[0-9]{1,12})?)\s*(ms|s|m|h)")
_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
_DAY = timedelta(days=1)

FORMS = "14:05, 14:05:30, -5m, +30s or 2026-03-01T14:05"


def moment_of(
    text: str, *, minus_from_ms: int, plus_from_ms: int, last_ms: int, zone: tzinfo | None
) -> int | None:
    """Return the moment that `text` stands for, epoch ms, or None if it has none of the FORMS.

    A time of day is its last occurrence up to `last_ms`, in `zone` (None: the machine's own). A signed
    duration is counted back from `minus_from_ms`, or forward from `plus_from_ms`.
    """
    text = text.strip()
    if match := _AWAY.fullmatch(text):
        away_ms = round(float(match[2]) * _UNITS_MS[match[3]])
        return plus_from_ms + away_ms if match[1] == "+" else minus_from_ms - away_ms
    try:
        if match := _OF_DAY.fullmatch(text):
            last = datetime.fromtimestamp(last_ms / 1000, zone).astimezone(zone)
            at = time(int(match[1]), int(match[2]), int(match[3] or 0))
            then = _on(last, at, zone)
            return _ms(then if _ms(then) <= last_ms else _on(last - _DAY, at, zone))
        when = datetime.fromisoformat(text)
        return _ms(when if when.tzinfo is not None else when.replace(tzinfo=zone))
    except (ValueError, OverflowError, OSError):
        return None


def _on(day: datetime, at: time, zone: tzinfo | None) -> datetime:
    return datetime.combine(day.date(), at, zone)


def _ms(when: datetime) -> int:
    return round(when.timestamp() * 1000)
