"""Figures as words: counts, rates, sizes, durations and times of day.

An unknown figure is "–", never 0, and what cannot be judged yet is "…". "≥" marks a bound, "≈" an estimate.
Nothing here pads or colours.
"""

import math
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

from kview.model.units import NEVER, UNKNOWN, UNKNOWN_ID

if TYPE_CHECKING:  # words without figures do not wait for numpy
    import numpy as np
    from numpy.typing import NDArray

    from kview.model.snapshot import Flags

NONE = "–"
"""Shown for a figure that is not known."""

NOT_YET = "…"
"""Shown for what was seen too shortly to be judged."""

UNSEEN = "?"
"""Marks what kview cannot reach although the rest of the cluster can, and what is not known."""

_SECOND_MS = 1_000
_MINUTE_MS = 60 * _SECOND_MS
_HOUR_MS = 60 * _MINUTE_MS
_DAY_MS = 24 * _HOUR_MS
_COARSE = ((_DAY_MS, "d"), (_HOUR_MS, "h"), (_MINUTE_MS, "m"))
_TENTHS_BELOW_MS = 10 * _SECOND_MS
_DECIMAL_BELOW = 10
_SI = ("", "k", "M", "G", "T", "P", "E")
_BYTES = ("B", "kB", "MB", "GB", "TB", "PB", "EB")


def count(value: int) -> str:
    """Return a number of things, or an offset, with separators: `1,204,117`."""
    return NONE if value in (UNKNOWN, UNKNOWN_ID) else f"{value:,}"


def setting(value: int) -> str:
    """Return the value of a setting that is a small number, such as min.insync.replicas."""
    return NONE if value in (UNKNOWN, UNKNOWN_ID) else str(value)


def signed(value: int) -> str:
    """Return a count with its sign: `+3,410`, but `0`."""
    return NONE if value == UNKNOWN else f"{value:+,}" if value else "0"


def rate(per_second: float, is_bound: bool = False) -> str:
    """Return a rate without its unit: `1,861`, or `≥1,861`. Below 10, fractions get one decimal: `0.4`."""
    if not math.isfinite(per_second):
        return NONE
    rounded = round(per_second, 1)
    is_fraction = abs(rounded) < _DECIMAL_BELOW and rounded != int(rounded)
    return at_least(f"{rounded:.1f}" if is_fraction else f"{round(per_second):,}", is_bound)


def rate_at(per_second: "NDArray[np.float64]", is_bound: "Flags", row: int) -> str:
    """Return the rate of a row in words. `is_bound` has the rows of `per_second`."""
    return rate(float(per_second[row]), bool(is_bound[row]))


def si(value: float) -> str:
    """Return a number with at most three digits and a prefix: `7.9 k`, `79 k`, `41`."""
    if not math.isfinite(value):
        return NONE
    digits, prefix = _scaled(value, _SI)
    return f"{digits} {prefix}".rstrip()


def size(value_bytes: int) -> str:
    """Return a size in decimal units: `1.1 GB`."""
    return NONE if value_bytes == UNKNOWN else " ".join(_scaled(value_bytes, _BYTES))


def _scaled(value: float, prefixes: tuple[str, ...]) -> tuple[str, str]:
    last = len(prefixes) - 1
    step = 0
    while abs(value) >= 999.5 and step < last:
        value /= 1000
        step += 1
    if step and abs(value) < 9.95:
        return f"{value:.1f}", prefixes[step]
    return f"{value:.0f}", prefixes[step]


def duration(length_ms: int, tenths: bool = True) -> str:
    """Return a length of time in at most two units: `0.3 s`, `2 m 10 s`, `3 h 5 m`, `2 d 4 h`, `never`.

    Lengths below 10 s have tenths, unless `tenths` is False. Negative lengths, which come from clocks that
    differ, count as 0.
    """
    if length_ms == UNKNOWN:
        return NONE
    if length_ms >= NEVER:
        return "never"
    length_ms = max(0, length_ms)
    if length_ms < _TENTHS_BELOW_MS and tenths:
        return f"{length_ms // 100 / 10:.1f} s"
    if length_ms < _MINUTE_MS:
        return f"{length_ms // _SECOND_MS} s"
    if length_ms < _HOUR_MS:
        return _two_units(length_ms, _MINUTE_MS, "m", _SECOND_MS, "s")
    if length_ms < _DAY_MS:
        return _two_units(length_ms, _HOUR_MS, "h", _MINUTE_MS, "m")
    return _two_units(length_ms, _DAY_MS, "d", _HOUR_MS, "h")


def _two_units(length_ms: int, big_ms: int, big: str, small_ms: int, small: str) -> str:
    bigs, rest = divmod(length_ms, big_ms)
    smalls = rest // small_ms
    return f"{bigs} {big} {smalls} {small}" if smalls else f"{bigs} {big}"


def age(since_ms: int, now_ms: int) -> str:
    """Return how long ago a moment was, in whole seconds: `4 s`, or `–` if the moment is not known."""
    if since_ms == UNKNOWN:
        return duration(since_ms)
    return duration(now_ms - since_ms, tenths=False)


def at_least(text: str, is_bound: bool) -> str:
    """Put `≥` before a figure if it is only a lower bound."""
    return f"≥{text}" if is_bound and text != NONE else text


def marked(text: str, is_bound: bool, is_estimate: bool) -> str:
    """Put `≥` before a figure if it is only a lower bound, or `≈` if it is an estimate."""
    return f"≈{text}" if is_estimate and not is_bound and text != NONE else at_least(text, is_bound)


def state_age(since_ms: int, now_ms: int, is_bound: bool) -> str:
    """Return how long a state has lasted, in one unit: `12 s`, `2 m`, or `≥12 s` if it may be longer.

    It stands in a narrow column, where the second unit would be cut off.
    """
    if since_ms == UNKNOWN:
        return duration(since_ms)
    lasted_ms = max(0, now_ms - since_ms)
    unit_ms, unit = next(((size, name) for size, name in _COARSE if lasted_ms >= size), (_SECOND_MS, "s"))
    return at_least(f"{lasted_ms // unit_ms} {unit}", is_bound)


FENCING_TAKES_MS = 1_500
"""A session's end is noticed up to an eighth of it later, and told to kview with its next observation."""


def fencing(due_ms: int, now_ms: int) -> str:
    """Return a countdown: `fenced in ≈ 4.9 s`, `fenced any moment now`, `fencing overdue by ≈ 3 s`.

    It is '' if the moment is not known.
    """
    if due_ms == UNKNOWN:
        return ""
    left_ms = due_ms - now_ms
    if left_ms >= 100:
        return f"fenced in ≈ {duration(left_ms)}"
    return (
        "fenced any moment now"
        if left_ms > -FENCING_TAKES_MS
        else f"fencing overdue by ≈ {duration(-left_ms)}"
    )


def latency(value_us: int) -> str:
    """Return how long a request takes: `0.4 ms`, `212 ms`, `1.2 s`, `12 s`."""
    if value_us == UNKNOWN:
        return NONE
    ms = value_us / 1000
    if round(ms) >= _SECOND_MS:
        return duration(round(ms))
    return f"{ms:.1f} ms" if ms < 1 else f"{ms:.0f} ms"


def answering(some: int, all_of: int) -> str:
    """Return how many brokers answer: `6 brokers`, or `4 of 6 brokers answer` if not all do."""
    brokers = plural(all_of, "broker")
    return brokers if some == all_of else f"{some:,} of {brokers} {'answers' if some == 1 else 'answer'}"


def plural(number: int, thing: str) -> str:
    """Return a count and its noun: `1 partition`, `4 partitions`."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def clock(at_ms: int, zone: tzinfo | None, tenths: bool = True) -> str:
    """Return a moment as a time of day in `zone` (None: the machine's own): `14:02:07.1`."""
    moment = datetime.fromtimestamp(at_ms // 1000, zone).strftime("%H:%M:%S")
    return f"{moment}.{at_ms % 1000 // 100}" if tenths else moment


def day(at_ms: int, zone: tzinfo | None) -> str:
    """Return the day of a moment in `zone` (None: the machine's own): `2026-03-01`."""
    return datetime.fromtimestamp(at_ms // 1000, zone).strftime("%Y-%m-%d")


def moment(at_ms: int, zone: tzinfo | None) -> str:
    """Return a moment with its day: `2026-03-01 14:02:07`."""
    return f"{day(at_ms, zone)} {clock(at_ms, zone, tenths=False)}"
