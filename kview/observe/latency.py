"""How long a broker takes to answer: a few small requests, spread over the time between observations.

An observation's own requests cannot tell. They go out in one burst a second, so a broker that stands still
for 300 ms in every 500 ms may answer each burst at once, and large answers take long without being slow.
"""

from collections import deque
from collections.abc import Callable, Mapping
from statistics import median
from typing import Protocol

from msgspec import Struct, field

from kview.model.units import UNKNOWN

OBSERVATIONS = 5
"""The latency is the median over this many observations."""
PROBES = 3
"""The most requests to a broker between two observations, and per second."""
PROBES_A_SECOND = 30
"""If there are more brokers than this allows for, each gets fewer requests, but at least one."""
OFFSETS = (0.0, 0.27, 0.61)
"""When the requests are sent, as shares of the time between two observations. They are unevenly spaced."""
STEP = 0.618
"""The shift of OFFSETS from one observation to the next, so that stalls at regular intervals cannot always
fall between two requests."""
WINDOW = 0.7
"""The share of the interval in which they go out. The rest belongs to the next observation."""


class Latency(Struct):
    """The durations of one broker's small requests, in seconds."""

    _new: list[float] = field(default_factory=list)
    _slowest: deque[float] = field(default_factory=lambda: deque(maxlen=OBSERVATIONS))

    def add(self, duration_s: float) -> None:
        self._new.append(duration_s)

    def observed(self, owed_s: float) -> None:
        """End the time between two observations, of which only the slowest request counts.

        `owed_s` is how long the oldest request in flight has waited, 0 if there is none.
        """
        durations = [*self._new, owed_s] if owed_s else self._new
        if durations:
            self._slowest.append(max(durations))
        self._new = []

    def us(self, owed_s: float) -> int:
        """Return the latency in microseconds, at least what is owed; UNKNOWN before the first answer."""
        if not self._slowest:
            return UNKNOWN
        return int(max(median(self._slowest), owed_s) * 1_000_000)


class Probed(Protocol):
    """A link, as far as it is measured."""

    latency: Latency

    @property
    def owed_s(self) -> float:
        """Seconds for which the oldest request in flight has waited, or 0: it counts as a latency."""

    def probe(self) -> None:
        """Send a small request and measure it, unless one is in flight."""


class Probes(Struct):
    """Plans the small requests: `call_later` takes seconds and what to do then."""

    call_later: Callable[[float, Callable[[], None]], object]
    _turn: int = 0

    def plan(self, links: Mapping[int, Probed], interval_s: float) -> None:
        """Count what was measured since the last call, and plan the requests until the next one."""
        self._turn += 1
        budget = int(PROBES_A_SECOND * interval_s) // max(1, len(links))
        number = max(1, min(PROBES, round(PROBES * interval_s), budget))
        for broker, link in links.items():
            link.latency.observed(link.owed_s)
            start = (self._turn + broker) * STEP
            for offset in OFFSETS[:number]:
                self.call_later((start + offset) % 1.0 * WINDOW * interval_s, link.probe)
