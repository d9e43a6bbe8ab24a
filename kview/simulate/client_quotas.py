"""Quotas of clients: for whom they are, which one counts, and how long a client has to wait above it.

Sources: Kafka's ClientQuotaManager.DefaultQuotaCallback, QuotaUtils, Rate, SampledStat and TokenBucket.
"""

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from kview.simulate.setting import INT_MAX, LONG_MAX

USER, CLIENT_ID, IP = "user", "client-id", "ip"
PRODUCER, CONSUMER = "producer_byte_rate", "consumer_byte_rate"
REQUESTS, MUTATIONS = "request_percentage", "controller_mutation_rate"
CONNECTIONS = "connection_creation_rate"

Entity = tuple[tuple[str, str | None], ...]
"""For whom a quota is: kinds with names, sorted by kind. The name None is the default of its kind."""

Quotas = Mapping[Entity, Mapping[str, float]]

WHOLE: Mapping[str, int] = {PRODUCER: LONG_MAX, CONSUMER: LONG_MAX, CONNECTIONS: INT_MAX}
"""Quotas that are whole numbers, with the largest one."""
OF_CLIENTS = frozenset({PRODUCER, CONSUMER, REQUESTS, MUTATIONS})
OF_ADDRESSES = frozenset({CONNECTIONS})

WINDOW_MS, WINDOWS = 1000, 11
"""Kafka's `quota.window.size.seconds` and `quota.window.num`."""


class Limit(NamedTuple):
    """A quota that counts for a client. Clients with the same `sharers` share it."""

    value: float
    sharers: tuple[str, str]


def limit_of(quotas: Quotas, key: str, user: str, client_id: str) -> Limit | None:
    """Return the quota of a kind for a user and a client id, or None. The most specific one counts."""
    for user_name, client_name, sharers in (
        ((USER, user), (CLIENT_ID, client_id), (user, client_id)),
        ((USER, user), (CLIENT_ID, None), (user, client_id)),
        ((USER, user), None, (user, "")),
        ((USER, None), (CLIENT_ID, client_id), (user, client_id)),
        ((USER, None), (CLIENT_ID, None), (user, client_id)),
        ((USER, None), None, (user, "")),
        (None, (CLIENT_ID, client_id), ("", client_id)),
        (None, (CLIENT_ID, None), ("", client_id)),
    ):
        entity = tuple(name for name in (client_name, user_name) if name is not None)
        value = quotas.get(entity, NOTHING).get(key)
        if value is not None:
            return Limit(value, sharers)
    return None


NOTHING: Mapping[str, float] = {}


def _whole_ms(wait_ms: float) -> int:
    """Return a wait in whole milliseconds, as many as an answer can have."""
    return round(min(wait_ms, float(INT_MAX)))


class Rate:
    """What a client has used in the last windows, per second."""

    def __init__(self) -> None:
        self._windows: deque[list[float]] = deque()

    def record(self, value: float, now_ms: float) -> None:
        """Add what was used at a moment, or take it back if it is negative."""
        if not self._windows or now_ms - self._windows[-1][0] >= WINDOW_MS:
            self._windows.append([now_ms, now_ms, 0.0])
        window = self._windows[-1]
        window[1] = now_ms
        window[2] += value
        self._forget(now_ms)

    def throttle_ms(self, limit: float, now_ms: float) -> int:
        """Return how long to wait until the rate is at the limit, 0 if it is not above it."""
        self._forget(now_ms)
        window_ms = self._window_ms(now_ms)
        rate = sum(value for _, _, value in self._windows) / window_ms * 1000
        return _whole_ms((rate - limit) / limit * window_ms) if rate > limit else 0

    def _window_ms(self, now_ms: float) -> float:
        elapsed_ms = now_ms - self._windows[0][0] if self._windows else 0.0
        full = int(elapsed_ms // WINDOW_MS)
        return max(1.0, elapsed_ms + max(0, WINDOWS - 1 - full) * WINDOW_MS)

    def _forget(self, now_ms: float) -> None:
        while self._windows and now_ms - self._windows[0][1] >= WINDOWS * WINDOW_MS:
            self._windows.popleft()


class TokenBucket:
    """Credits that come back at a rate, up to those of all windows."""

    def __init__(self) -> None:
        self._tokens = 0.0
        self._at_ms = 0.0

    def record(self, value: float, limit: float, now_ms: float) -> None:
        """Take credits, which may then be less than none."""
        self._refill(limit, now_ms)
        self._tokens -= value

    def throttle_ms(self, limit: float, now_ms: float) -> int:
        """Return how long to wait until there are credits, 0 if there are."""
        self._refill(limit, now_ms)
        return _whole_ms(-self._tokens / limit * 1000) if self._tokens < 0 else 0

    def _refill(self, limit: float, now_ms: float) -> None:
        burst = WINDOWS * WINDOW_MS / 1000 * limit
        self._tokens = min(burst, self._tokens + limit * (now_ms - self._at_ms) / 1000)
        self._at_ms = now_ms
