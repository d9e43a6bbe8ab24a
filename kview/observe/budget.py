"""Chooses the partitions to read in each observation.

All partitions are read if the budget allows it. Otherwise the important ones are read each time, and the
others in turn.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from kview.model.snapshot import Ids
from kview.model.units import NO_BROKER
from kview.observe.layout import Layout, Rows
from kview.observe.settings import ObserveSettings

BYTES_A_READING = 42
"""Bytes of a ListOffsets record, of which 16 are in the request and 26 in the answer."""


BIG_BYTES = 3_000_000
"""A cluster is big if reading all costs more than this: from about 14,000 partitions of three replicas on."""
MANY_GROUPS = 1_000
"""With more groups it is big, too."""
FIRST_LAGS_S = 2.0
"""Longest time the first observation of a big cluster waits for commits, and then for high watermarks."""


class Share(Struct, frozen=True):
    """The rows of `layout` to ask one broker for: those of partitions it leads, and those it follows.

    With `briefly`, only what lags need is asked for: high watermarks.
    """

    layout: Layout
    leads: Rows
    follows: Rows
    briefly: bool = False


Shares = dict[int, Share]
"""Broker → what to read from it."""


def shares(layout: Layout, chosen: NDArray[np.bool_] | None = None) -> Shares:
    """Return what to ask each broker to read the offsets of the `chosen` rows (None: all)."""
    led_by = layout.leader[layout.replica_row]
    wanted = np.ones(len(layout), np.bool_) if chosen is None else chosen
    out = {}
    for broker in np.unique(np.concatenate((layout.replica_broker, layout.leader))).tolist():
        if broker < 0:
            continue
        held = layout.replica_row[(layout.replica_broker == broker) & (led_by != broker)]
        leads = np.flatnonzero((layout.leader == broker) & wanted)
        out[broker] = Share(layout, leads, held[wanted[held]].astype(np.intp))
    return out


def slice_of(layout: Layout, slices: int, number: int, always: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return a mask of the rows to read when reading all would cost too much.

    These are the rows in slice `number` of `slices`, and the rows in `always`.
    """
    chosen = always.copy()
    bounds = np.linspace(0, len(layout), slices + 1).astype(int)
    chosen[bounds[number % slices] : bounds[number % slices + 1]] = True
    return chosen


class Budget:
    """Distributes the reading of offsets over observations and brokers.

    Preferred partitions are always read.
    """

    def __init__(self, settings: ObserveSettings) -> None:
        self._settings = settings
        self.lags_first = settings.lags_first
        """Whether lags come first. Not any more after the first observation."""
        self._whole: tuple[Any, Shares] = (None, {})
        self._preferred: tuple[tuple[str, Ids], ...] = ()

    def prefer(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Read these (topic, partition) pairs in every observation, instead of those preferred before.

        May be called from any thread.
        """
        by_topic: dict[str, list[int]] = {}
        for topic, partition in partitions:
            by_topic.setdefault(topic, []).append(partition)
        self._preferred = tuple((topic, np.array(ids, np.int32)) for topic, ids in by_topic.items())

    def shares(self, at: Layout, sequence: int, failing: Iterable[int]) -> tuple[Shares, bool]:
        """Return what to ask each broker in that observation, and whether that covers all partitions.

        There is nothing to ask in observations that are skipped to stay within the budget of requests.
        Partitions led by a `failing` broker count as important.
        """
        chosen = self._chosen_rows(at, sequence, failing)
        parts = self._all(at) if chosen is None else shares(at, chosen)
        per_observation = max(1.0, self._settings.requests_per_second * self._settings.interval_s)
        if self.is_brief(at):
            nothing = np.empty(0, np.intp)
            parts = {broker: Share(at, share.leads, nothing, True) for broker, share in parts.items()}
        skipped = sequence % int(np.ceil(3 * len(parts) / per_observation) or 1)
        return {} if skipped else parts, chosen is None

    def is_brief(self, at: Layout) -> bool:
        """Return whether to read only what lags need: this is the first observation, reading all would take
        long, and somebody waits for the lags."""
        return self.lags_first and _cost_bytes(at) > BIG_BYTES

    def patience_s(self, at: Layout, groups: int, usual_s: float) -> float:
        """Return the longest wait for commits, and then for high watermarks: longer than usual if somebody
        waits for the lags of many partitions or groups."""
        of_many = self.lags_first and groups > MANY_GROUPS
        return FIRST_LAGS_S if of_many or self.is_brief(at) else usual_s

    def _all(self, at: Layout) -> Shares:
        key, parts = self._whole
        if key is None or key[0] is not at.leader or key[1] is not at.replicas or key[2] is not at.topic:
            parts = shares(at)
            self._whole = ((at.leader, at.replicas, at.topic), parts)
        return parts

    def _chosen_rows(self, at: Layout, sequence: int, failing: Iterable[int]) -> NDArray[np.bool_] | None:
        """Return the rows to read, or None for all."""
        settings = self._settings
        slices = int(np.ceil(_cost_bytes(at) / max(1.0, settings.bytes_per_second * settings.interval_s)))
        if slices <= 1:
            return None
        in_sync = (at.isr != NO_BROKER).sum(axis=1)
        always = in_sync < (at.replicas != NO_BROKER).sum(axis=1)
        always |= np.isin(at.leader, [NO_BROKER, *failing])
        if always.sum() > len(at) / slices:
            always[:] = False  # too many partitions have problems: read all of them in turn
        for topic, partitions in self._preferred:
            rows = at.rows_of((topic,), (len(partitions),), partitions)
            always[rows[rows >= 0]] = True
        return slice_of(at, slices, sequence, always)


def _cost_bytes(at: Layout) -> int:
    """Return about how many bytes one reading of all partitions and replicas takes."""
    return BYTES_A_READING * (2 * len(at) + len(at.replica_row))
