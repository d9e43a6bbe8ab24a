"""The input of topics over the last minutes, and the topics whose input has fallen.

A client quota, a producer that stops, or a broken job upstream shows nowhere else in a cluster.

Records are counted by periods of PERIOD_MS, from log end to log end. The input of a topic in a period is
known only if that of all its partitions is: each has been led, and read at both ends of the period. What is
not known is neither a fall nor the end of one.
"""

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from kview.derive.align import Alignment, first_rows
from kview.derive.partitions.rates import LOOK_BACK_MS, SETTLE_MS, Ends
from kview.derive.view import Floats
from kview.model.events import Event, EventKind, Severity
from kview.model.findings import MOST_TOPICS, Finding, FindingKind
from kview.model.snapshot import Flags, Longs, Partitions, Strings
from kview.model.units import UNKNOWN

PERIOD_MS = 10_000
"""Periods begin with the first observation of each ten seconds of the clock, so that every fold has the same
ones."""

MOST_MS = 60_000
"""What was written in a longer time without a reading says nothing about when it was."""

BACK_MS = LOOK_BACK_MS - SETTLE_MS
"""How far back periods are kept: nine minutes."""

LASTS_MS = 30_000
"""How long an input must have been low."""

SLACK_MS = PERIOD_MS // 2
"""Observations do not begin exactly when a period ends."""

LEAST_MS = 120_000
"""What a topic got in less time than this is not its usual level: it may have been filled once."""

LEAST_LEVEL = 10.0
"""Records per second. Below this, an input often comes from people or from jobs that run now and then, and
half a minute without a record is nothing unusual."""

SHARE = 0.2
"""An input below this share of its level is low."""

LONGER = 1.5
"""A pause counts only if it is this many times longer than all other pauses of the last minutes: an input
that comes in bursts has such pauses all the time."""


class Fall(Struct, frozen=True):
    """The input of a topic that fell from `level` to `rate` records per second at `since_ms`."""

    topic: str
    level: float
    rate: float
    since_ms: int


class Inputs(Struct, frozen=True):
    """The last periods. `topic`, `topic_id`, `first`, `internal` and the rows of `rates` belong to topics,
    `ends`, `read_ms` and `led` to partitions: what was read when the present period began."""

    topic: Strings = field(default_factory=lambda: np.empty(0, object))
    topic_id: Strings = field(default_factory=lambda: np.empty(0, object))
    first: Longs = field(default_factory=lambda: np.empty(0, np.int64))
    """The first row of each topic in `Partitions`."""
    internal: Flags = field(default_factory=lambda: np.empty(0, np.bool_))
    ends: Longs = field(default_factory=lambda: np.empty(0, np.int64))
    read_ms: Longs = field(default_factory=lambda: np.empty(0, np.int64))
    led: Flags = field(default_factory=lambda: np.empty(0, np.bool_))
    at_ms: int = UNKNOWN
    """When the present period began."""
    bounds_ms: Longs = field(default_factory=lambda: np.empty((2, 0), np.int64))
    """When each of the earlier periods began, and when it ended."""
    rates: Floats = field(default_factory=lambda: np.empty((0, 0)))
    """Records per second of each topic in each of the earlier periods, NaN if not known."""
    low: tuple[Fall, ...] = ()
    """The falls that the last periods show, the largest first."""
    fallen: tuple[Fall, ...] = ()
    """The falls that are events and whose ends are not, also while the input is not known."""

    def carried(self, alignment: Alignment, table: Partitions) -> "Inputs":
        """Return the same in this step's rows."""
        if alignment.rows is None and len(self.ends) == len(table):
            return self
        first = first_rows(table.topic)
        topic, topic_id = table.topic[first], table.topic_id[first]
        before = {key: row for row, key in enumerate(zip(self.topic, self.topic_id, strict=True))}
        keys = list(zip(topic, topic_id, strict=True))
        rows = np.array([before.get(key, -1) for key in keys], np.int64)
        rates = Alignment(rows, len(first)).carry(self.rates, np.nan)
        left = {name for name, id in keys if (name, id) in before}
        return Inputs(
            topic,
            topic_id,
            first,
            table.internal[first],
            alignment.carry(self.ends, UNKNOWN),
            alignment.carry(self.read_ms, UNKNOWN),
            alignment.carry(self.led, False),
            self.at_ms,
            self.bounds_ms,
            rates,
            tuple(fall for fall in self.low if fall.topic in left),
            tuple(fall for fall in self.fallen if fall.topic in left),
        )


def follow(
    before: Inputs, alignment: Alignment, table: Partitions, ends: Ends, led: Flags, now_ms: int
) -> tuple[Inputs, tuple[Event, ...]]:
    """Add an observation, and return what it shows. `led` are the partitions whose leaders answer."""
    then = before.carried(alignment, table)
    bounds_ms, rates = then.bounds_ms, then.rates
    events: tuple[Event, ...] = ()
    if then.at_ms == UNKNOWN:
        rates = np.empty((len(then.first), 0))
    elif now_ms // PERIOD_MS == then.at_ms // PERIOD_MS:
        return then, ()
    else:
        young = bounds_ms[0] >= now_ms - BACK_MS
        period = np.array([[then.at_ms], [now_ms]], np.int64)
        bounds_ms = np.hstack((bounds_ms[:, young], period))
        rates = np.hstack((rates[:, young], _rates(then, ends, led)[:, None]))
        low = _falls(then, bounds_ms, rates)
        fallen, events = _told(then, low, rates[:, -1], now_ms)
        then = replace(then, low=low, fallen=fallen)
    at = replace(then, ends=ends.value, read_ms=ends.received_ms, led=led, at_ms=now_ms)
    return replace(at, bounds_ms=bounds_ms, rates=rates), events


def _rates(then: Inputs, ends: Ends, led: Flags) -> Floats:
    """Return the records per second of each topic since the present period began, NaN if not known."""
    if not len(then.first):
        return np.empty(0)
    known = then.led & led & (then.ends != UNKNOWN) & (ends.value >= then.ends)
    elapsed = np.where(known, ends.received_ms - then.read_ms, 0)
    known &= (elapsed >= SLACK_MS) & (elapsed <= MOST_MS)
    grown = np.where(known, ends.value - then.ends, 0)
    rates: Floats = np.add.reduceat(grown * 1000.0 / np.maximum(elapsed, 1), then.first)
    return np.where(np.logical_and.reduceat(known, then.first), rates, np.nan)


def _falls(of: Inputs, bounds_ms: Longs, rates: Floats) -> tuple[Fall, ...]:
    """Return the falls that the last periods show, the largest first."""
    began_ms, now_ms = bounds_ms[0], int(bounds_ms[1, -1])
    last = began_ms >= now_ms - LASTS_MS - SLACK_MS
    last[-1] = True
    if now_ms - int(began_ms[last][0]) < LASTS_MS - SLACK_MS:
        return ()
    peak = np.fmax.reduce(rates, 1)
    rows = np.flatnonzero((rates[:, -1] < peak * SHARE) & (peak >= LEAST_LEVEL) & ~of.internal)
    if not len(rows):
        return ()
    rates, lengths = rates[rows], bounds_ms[1] - began_ms
    columns = np.arange(len(lengths))

    def since(limit: Floats) -> Longs:
        """Return the first period after the last one that was not below the limit."""
        high = rates >= limit[:, None]
        return np.where(high.any(1), len(columns) - np.argmax(high[:, ::-1], 1), 0)

    earlier = columns < since(_quantile(rates, 0.75) * SHARE)[:, None]
    level = _quantile(np.where(earlier, rates, np.nan), 0.5)
    limit = level * SHARE
    first = since(limit)
    earlier = columns < first[:, None]
    is_low, is_high = rates < limit[:, None], rates >= limit[:, None]
    watched_ms = (lengths * (earlier & np.isfinite(rates))).sum(1)
    pause_ms = longest_ms = np.zeros(len(rows), np.int64)
    for column, length_ms in enumerate(lengths.tolist()):
        pause_ms = np.where(is_high[:, column], 0, pause_ms + is_low[:, column] * length_ms)
        longest_ms = np.where(earlier[:, column], np.maximum(longest_ms, pause_ms), longest_ms)
    shown = (level >= LEAST_LEVEL) & is_low[:, last].all(1) & (watched_ms >= LEAST_MS)
    shown &= pause_ms >= longest_ms * LONGER
    now = (rates[:, last] * lengths[last]).sum(1) / lengths[last].sum()
    falls = [
        Fall(str(of.topic[rows[at]]), float(level[at]), float(now[at]), int(began_ms[first[at]]))
        for at in np.flatnonzero(shown).tolist()
    ]
    return tuple(sorted(falls, key=lambda fall: fall.rate - fall.level))


def _quantile(values: Floats, share: float) -> Floats:
    """Return a quantile of the known values of each row, NaN if there are none."""
    known = np.isfinite(values).sum(1)
    at = np.minimum((known * share).astype(np.int64), np.maximum(known - 1, 0))
    return np.take_along_axis(np.sort(values, 1), at[:, None], 1)[:, 0]


def _told(
    then: Inputs, low: tuple[Fall, ...], rates: Floats, now_ms: int
) -> tuple[tuple[Fall, ...], tuple[Event, ...]]:
    """Return the falls that are events now, and the events of this moment. `rates` are the last ones."""
    known = {fall.topic for fall in then.fallen}
    new = tuple(fall for fall in low if fall.topic not in known)
    if not new and not then.fallen:
        return (), ()
    rate = dict(zip(then.topic.tolist(), rates.tolist(), strict=True))
    risen = tuple(
        replace(fall, rate=rate[fall.topic]) for fall in then.fallen if rate[fall.topic] >= fall.level * SHARE
    )
    over = {fall.topic for fall in risen}
    left = (f for f in then.fallen if f.topic not in over and f.since_ms >= now_ms - BACK_MS)
    events = (
        *_event(new, EventKind.INPUT_FELL, Severity.CALM, now_ms),
        *_event(risen, EventKind.INPUT_ROSE, Severity.GOOD, now_ms),
    )
    return (*left, *new), events


def _event(falls: tuple[Fall, ...], kind: EventKind, severity: Severity, now_ms: int) -> tuple[Event, ...]:
    if not falls:
        return ()
    first, topics = falls[0], len(falls)
    before, after = whole(first.level), whole(first.rate)
    return (Event(now_ms, kind, severity, topic=first.topic, topics=topics, before=before, after=after),)


def input_findings(low: tuple[Fall, ...]) -> tuple[Finding, ...]:
    """Return a finding about the topics whose input has fallen, nothing if there is none."""
    if not low:
        return ()
    largest = low[0]
    return (
        Finding(
            FindingKind.INPUT_FELL,
            Severity.CALM,
            topics=tuple(fall.topic for fall in low[:MOST_TOPICS]),
            count=len(low),
            rate_before=whole(largest.level),
            rate=whole(largest.rate),
            since_ms=largest.since_ms,
        ),
    )


def whole(per_second: float) -> int:
    """Return a rate as a whole number, which is 0 only if nothing came."""
    return max(round(per_second), int(per_second > 0))
