"""Which rows of a table have metrics of their own if there are too many rows: those that are named, those in
trouble, and the busiest. The others count in aggregates."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np

from kview.derive.view import Floats
from kview.model.events import Severity, severity_rank
from kview.model.name_patterns import NamePattern, Of
from kview.model.snapshot import Flags, Longs, Strings

MOST_NAMED = 20_000
"""The most rows of a kind that have series because a pattern includes them. A pattern may match anything."""

TROUBLE_LINGERS_MS = 600_000
"""For how long a row still counts as in trouble after its trouble has ended, so that a graph shows the end,
and what comes and goes within minutes does not make series come and go."""

HOLDS = 2.0
"""A row with series of its own makes way for one that is so many times as busy."""

HALVED_MS = 300_000
"""The highest figure of a row that has series is remembered, and halved in this time: a producer that sends
now and then is not idle in between."""

RISK, WARN, CALM = map(severity_rank, (Severity.RISK, Severity.WARN, Severity.CALM))
"""How bad the trouble of a row is: the less, the worse."""


@dataclass(frozen=True, slots=True)
class Names:
    """Names that always have series of their own, and names that never have. What is in both always has."""

    include: tuple[NamePattern, ...] = ()
    exclude: tuple[NamePattern, ...] = ()

    def included(self, of: Of, names: Strings) -> Flags:
        """Return which names always have series."""
        return _matching(self.include, of, names)

    def excluded(self, of: Of, names: Strings) -> Flags:
        """Return which names match a pattern that excludes them."""
        return _matching(self.exclude, of, names)


EVERY_NAME = Names()


def _matching(patterns: tuple[NamePattern, ...], of: Of, names: Strings) -> Flags:
    """Return which names match. Equal names are matched once."""
    own = [pattern for of_pattern, pattern in patterns if of_pattern is of]
    if not own:
        return np.zeros(len(names), np.bool_)
    listed = names.tolist()
    matches = {name: any(fnmatchcase(name, pattern) for pattern in own) for name in set(listed)}
    return np.array([matches[name] for name in listed], np.bool_)


class Rows(NamedTuple):
    """The rows of a table that compete for series."""

    keys: Sequence[Hashable]
    """What stays the same from scrape to scrape."""
    trouble: Longs
    """The ranks of severities."""
    busy: Floats
    """How busy or how far behind. NaN if it is not known."""
    included: Flags
    excluded: Flags
    """What is both is included."""


class Choice(NamedTuple):
    """Rows with series of their own, and the rest of those that are not excluded. Both ascend."""

    own: Longs
    rest: Longs
    rest_in_trouble: int
    """How many of the rest are in trouble."""


class _Held(NamedTuple):
    """A row that has series because it is busy: the highest figure, and when."""

    busy: float
    at_ms: int

    def now(self, now_ms: int) -> float:
        passed_ms = max(0, now_ms - self.at_ms)
        return float(self.busy * 0.5 ** (passed_ms / HALVED_MS))


@dataclass(slots=True)
class Keeper:
    """Chooses the rows of one table at each scrape, and remembers which it chose.

    So that series do not come and go, a row keeps its own until another one is `HOLDS` times as busy, and for
    `TROUBLE_LINGERS_MS` after its trouble. It remembers no more than twice the limit.
    """

    _busy: dict[Hashable, _Held] = field(default_factory=dict)
    _troubled_ms: dict[Hashable, int] = field(default_factory=dict)
    """When the rows that have series because of their trouble were last seen in trouble."""

    def choose(self, rows: Rows, limit: int, now_ms: int) -> Choice:
        """Return the rows that have series: all of them if they are at most `limit`.

        Otherwise there are those that are included (at most MOST_NAMED), `limit` rows in trouble, and the
        `limit` busiest.
        """
        compete = ~rows.excluded | rows.included
        rows_in = np.flatnonzero(compete)
        if len(rows_in) <= limit:
            self._busy, self._troubled_ms = {}, {}
            return Choice(rows_in, rows_in[:0], 0)
        busy = np.nan_to_num(rows.busy, nan=0.0)
        own = np.zeros(len(busy), np.bool_)
        own[np.flatnonzero(rows.included)[:MOST_NAMED]] = True  # always the same ones
        own[self._busiest(rows.keys, rows_in, busy, limit, now_ms)] = True
        own[self._troubled(rows.keys, rows_in, rows.trouble, busy, limit, now_ms)] = True
        rest = np.flatnonzero(compete & ~own)
        return Choice(np.flatnonzero(own), rest, int((rows.trouble[rest] <= WARN).sum()))

    def _busiest(self, keys: Sequence[Hashable], rows: Longs, busy: Floats, limit: int, now_ms: int) -> Longs:
        worth, held = busy.copy(), np.zeros(len(busy), np.bool_)
        for row in rows.tolist() if self._busy else ():
            if before := self._busy.get(keys[row]):
                held[row] = True
                worth[row] = max(worth[row], before.now(now_ms))
        # Among equals, the one that has series keeps them.
        chosen = _first(rows, limit, -np.where(held, worth * HOLDS, worth), ~held)
        self._busy = {keys[row]: _Held(float(worth[row]), now_ms) for row in chosen.tolist()}
        return chosen

    def _troubled(
        self, keys: Sequence[Hashable], rows: Longs, trouble: Longs, busy: Floats, limit: int, now_ms: int
    ) -> Longs:
        since_ms = {row: now_ms for row in rows[trouble[rows] <= WARN].tolist()}
        held = np.zeros(len(trouble), np.bool_)
        for row in rows.tolist() if self._troubled_ms else ():
            at_ms = self._troubled_ms.get(keys[row])
            if at_ms is not None and now_ms - at_ms < TROUBLE_LINGERS_MS:
                held[row] = True
                since_ms.setdefault(row, min(at_ms, now_ms))  # if the clock was set back
        chosen = _first(np.array(sorted(since_ms), np.int64), limit, trouble, ~held, -busy)
        self._troubled_ms = {keys[row]: since_ms[row] for row in chosen.tolist()}
        return chosen


def _first(rows: Longs, most: int, *orders: "Flags | Floats | Longs") -> Longs:
    """Return the first `most` of the rows, ordered by the first of `orders`, then by the next, then as they
    stand."""
    if len(rows) <= most:
        return rows
    order = np.lexsort(tuple(each[rows] for each in reversed(orders)))
    return rows[order[:most]]


@dataclass(frozen=True, slots=True)
class Limits:
    """How many of the busiest rows have series of their own, and as many in trouble besides.

    If there are no more rows than that, all have them. The rest counts in the metrics `kview_rest_…`, which
    have other names so that a `sum()` over a part is not taken for the whole, and `kview_omitted_rows` says
    how many rows that is. With these limits, a scrape has fewer than 300,000 series, unless names are
    included, and a cluster that grows cannot fill Prometheus' memory.
    """

    brokers: int = 1_000
    topics: int = 2_000
    groups: int = 2_000
    partitions: int = 2_000
    group_partitions: int = 5_000
    connectors: int = 5_000
    log_dirs: int = 2_000


LIMITS = Limits()


@dataclass(slots=True)
class OwnSeries:
    """Which rows have series of their own: by name, and those that had them at the last scrape."""

    names: Names = EVERY_NAME
    limits: Limits = LIMITS
    _keepers: dict[str, Keeper] = field(default_factory=dict)

    def choose(self, of: str, rows: Rows, now_ms: int) -> Choice:
        """Return which rows of the table `of` have series."""
        limit: int = getattr(self.limits, of)
        return self._keepers.setdefault(of, Keeper()).choose(rows, limit, now_ms)
