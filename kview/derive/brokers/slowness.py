"""Slow brokers, which take much longer to answer than their peers, or than they usually do themselves."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median_low
from typing import Protocol

import numpy as np
from msgspec import Struct, field

from kview.derive.history import Thinning, thinned
from kview.derive.partitions.rates import LOOK_BACK_MS
from kview.model.snapshot import Brokers, Ids, Longs, Strings
from kview.model.states import BrokerState
from kview.model.units import UNKNOWN

SLOW_TIMES = 10
"""A broker is slow if it takes this many times as long as usual …"""

SLOW_LEAST_US = 50_000
"""… and at least this long: a multiple of almost nothing is almost nothing …"""

SLOW_AFTER_MS = 5_000
"""… for at least this time."""

SLOW_LEAST_OF_ALL_US = 200_000
"""A broker whose peers take as long is only slow from here on: a busy machine or link of kview's own looks
the same up to this."""

MIN_PEERS = 2
"""With fewer peers, a broker is compared with its own past alone: a single peer may be the unusual one."""

MIN_PAST = 3
"""The least number of earlier latencies that make a past."""

USUAL_QUANTILE = 0.2
"""What a broker usually takes is the latency that a fifth of its past stays below."""

PAST_RULE = Thinning(((LOOK_BACK_MS, 10_000),))


class Timed(Protocol):
    """The columns of `Brokers` that tell how long brokers take to answer."""

    @property
    def id(self) -> Ids: ...

    @property
    def state(self) -> Strings: ...

    @property
    def latency_us(self) -> Longs: ...


class Latencies(Struct, frozen=True):
    """The latencies of one observation in microseconds, by broker."""

    at_ms: int
    of: Mapping[int, int]


class Spell(Struct, frozen=True):
    """A period in which a broker answers more slowly than usual."""

    usual_us: float
    """What the broker usually took before the spell began; infinite if that is not known."""
    over_ms: int
    """When the broker was first seen over the limit in one go; UNKNOWN if it is below the limit now."""
    stretches: tuple[tuple[int, int], ...] = ()
    """The beginning and the end of each time of SLOW_AFTER_MS or more over the limit in one go, oldest first.
    Only those within the look-back; without any, the broker is not slow."""

    @property
    def since_ms(self) -> int:
        """When the slow time began; UNKNOWN if the broker is not slow."""
        return self.stretches[0][0] if self.stretches else UNKNOWN


class Slowness(Struct, frozen=True):
    """Which brokers are slow, and what that is judged by."""

    past: tuple[Latencies, ...] = ()
    """The latencies of the look-back, without those of spells."""
    spells: Mapping[int, Spell] = field(default_factory=dict)
    """By broker; only those that are slow or over the limit."""

    @property
    def slow(self) -> frozenset[int]:
        """The brokers that are slow."""
        return frozenset(broker for broker, spell in self.spells.items() if spell.stretches)

    def since_ms(self, brokers: Brokers) -> Longs:
        """Return since when each broker has been slow, UNKNOWN if it is not."""
        since = {broker: spell.since_ms for broker, spell in self.spells.items()}
        return np.array([since.get(broker, UNKNOWN) for broker in brokers.id.tolist()], np.int64)


def follow(before: Slowness, brokers: Timed, now_ms: int) -> Slowness:
    """Add the latencies of a snapshot."""
    latencies = _latencies(brokers)
    past = thinned(before.past, now_ms, PAST_RULE)
    spells = {}
    for broker, latency_us in latencies.items():
        then = before.spells.get(broker)
        own_us = then.usual_us if then is not None else _usual(broker, past)
        peers = [other_us for other, other_us in latencies.items() if other != broker]
        spell = _spell(then, latency_us, own_us, _limit_us(own_us, peers), now_ms)
        if spell.over_ms != UNKNOWN or spell.stretches:
            spells[broker] = spell
    usual = {broker: latency_us for broker, latency_us in latencies.items() if broker not in spells}
    return Slowness((*past, Latencies(now_ms, usual)), spells)


def noticed(recorded: Iterable[tuple[int, Timed]]) -> Iterator[bool]:
    """Yield for each observation whether a broker became slow, or answers but is no longer slow.

    `recorded` are the times of observations, in epoch ms, and their brokers.
    """
    seen, last_ms = Slowness(), UNKNOWN
    for at_ms, brokers in recorded:
        before = seen if at_ms >= last_ms else Slowness()
        seen, last_ms = follow(before, brokers, at_ms), at_ms
        recovered = (before.slow - seen.slow) & _latencies(brokers).keys()
        yield bool(recovered or seen.slow - before.slow)


def _latencies(brokers: Timed) -> dict[int, int]:
    """Return the latencies of the brokers that are up, in microseconds."""
    known = np.flatnonzero((brokers.state == BrokerState.UP) & (brokers.latency_us != UNKNOWN))
    return dict(zip(brokers.id[known].tolist(), brokers.latency_us[known].tolist(), strict=True))


def _usual(broker: int, past: tuple[Latencies, ...]) -> float:
    """Return what is usual for a broker in microseconds, infinite if that is not known."""
    own = sorted(layer.of[broker] for layer in past if broker in layer.of)
    if len(own) < MIN_PAST:
        return float("inf")
    below, part = divmod(USUAL_QUANTILE * (len(own) - 1), 1)
    return own[int(below)] + part * (own[math.ceil(below + part)] - own[int(below)])


def _limit_us(own_us: float, peers: Sequence[int]) -> float:
    """Return from what latency on a broker is slow, in microseconds.

    `own_us` is what is usual for the broker itself, and `peers` are the latencies of the others.
    """
    if len(peers) < MIN_PEERS:
        return max(SLOW_TIMES * own_us, SLOW_LEAST_US)
    than_peers = max(SLOW_TIMES * float(median_low(peers)), SLOW_LEAST_US)
    return min(than_peers, max(SLOW_TIMES * own_us, SLOW_LEAST_OF_ALL_US))


def _spell(before: Spell | None, latency_us: int, usual_us: float, limit_us: float, now_ms: int) -> Spell:
    """Return the spell after another latency. It is over if it is neither slow nor over the limit."""
    if latency_us < limit_us / 2:
        return Spell(usual_us, UNKNOWN)
    stretches = before.stretches if before is not None else ()
    over, oldest_ms = UNKNOWN, now_ms - LOOK_BACK_MS
    if latency_us >= limit_us:
        over = now_ms if before is None or before.over_ms == UNKNOWN else before.over_ms
        over = max(over, oldest_ms)
        if stretches and over <= stretches[-1][1]:
            stretches = stretches[:-1]
        stretches = (*stretches, (over, now_ms))
    within = ((max(begin, oldest_ms), end) for begin, end in stretches)
    return Spell(usual_us, over, tuple((begin, end) for begin, end in within if end - begin >= SLOW_AFTER_MS))
