"""The last minute second by second, from the rates between two observations, for plots without Spark."""

import math
from collections.abc import Sequence

import numpy as np

from kview.derive.view import View
from kview.model.aggregates import Key
from kview.model.sums import Kind
from kview.tui.plot import marks_between
from kview.tui.text import Span

WINDOW_MS = 60_000
STEP_MS = 1_000


def marks(view: View) -> tuple[tuple[float, Span], ...]:
    """Return the marks of incidents on the time axis of the last minute."""
    shown_ms = view.snapshot.observation.ended_ms
    return marks_between(view.moment.marks, shown_ms - WINDOW_MS, shown_ms)


def records_in(view: View, key: Key) -> list[float]:
    """Return the records in per second of the cluster, a topic, a rack or a broker.

    The last minute has one value per second. Empty if there are none, as for groups.
    """
    if len(view.throughput.at_ms) < 2:
        return []
    match key.kind:
        case Kind.CLUSTER:
            values: Sequence[float] = view.throughput.in_series
        case Kind.TOPIC:
            rows = np.flatnonzero(view.topics.topic == key.name)
            values = view.topics.in_series[int(rows[0])] if len(rows) else ()
        case Kind.BROKER:
            rows = np.flatnonzero(view.snapshot.brokers.id == int(key.name))
            values = view.brokers.in_series[int(rows[0])] if len(rows) else ()
        case Kind.RACK:
            rows = np.flatnonzero(view.snapshot.brokers.rack == key.name)
            values = _summed([view.brokers.in_series[row] for row in rows.tolist()])
        case _:
            values = ()
    return over_window(view.throughput.at_ms, values) if values else []


def lag(view: View, group: str) -> list[float]:
    """Return a group's lag in records: one value per second of the last minute."""
    rows = np.flatnonzero(view.snapshot.groups.group == group)
    if not len(rows) or len(view.throughput.at_ms) < 2:
        return []
    values = [value if value >= 0 else math.nan for value in view.groups.lag_series[int(rows[0])]]
    return over_window(view.throughput.at_ms, values)


def over_window(at_ms: tuple[int, ...], values: Sequence[float]) -> list[float]:
    """Return one value per second over the minute that ends at the last moment.

    `values` belong to the last of the moments `at_ms`. Seconds before the first value and in gaps are NaN.
    """
    at_ms = at_ms[-len(values) :] if values else ()
    slots = WINDOW_MS // STEP_MS
    per_second = [math.nan] * slots
    if not at_ms:
        return per_second
    end = at_ms[-1]
    for moment, value in zip(at_ms, values[-len(at_ms) :], strict=True):
        slot = slots - 1 - (end - moment) // STEP_MS
        if 0 <= slot < slots:
            per_second[slot] = value
    return _bridged(per_second, max(1, (at_ms[-1] - at_ms[0]) // max(1, len(at_ms) - 1) // STEP_MS))


def _bridged(values: list[float], spacing: int) -> list[float]:
    """Fill slots between two samples that are one usual interval apart with the earlier sample's value.

    Longer gaps remain.
    """
    filled = list(values)
    last, age = math.nan, 0
    for slot, value in enumerate(values):
        if math.isfinite(value):
            last, age = value, 0
        else:
            age += 1
            if age <= spacing and math.isfinite(last):
                filled[slot] = last
    return filled


def _summed(each: Sequence[Sequence[float]]) -> list[float]:
    """Return the sum of the known values at each moment, NaN if none is known. The last values belong
    together."""
    longest = max((len(values) for values in each), default=0)
    sums = []
    for back in range(longest, 0, -1):
        known = [values[-back] for values in each if len(values) >= back and math.isfinite(values[-back])]
        sums.append(sum(known) if known else math.nan)
    return sums
