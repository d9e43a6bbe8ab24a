"""Which rows of GROUP_LAGS an observation adds: what changed, and what was not written for a while."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kview.derive.align import group_rows, same
from kview.derive.facts import Facts, worst_offsets
from kview.model.snapshot import Longs, Snapshot, Strings
from kview.model.units import UNKNOWN
from kview.recording.columns import Array

EVERY_MS = 10_000
"""A group that does not change has a row this often, so that a kill loses little, and a thousand groups at
rest cost a hundred rows a second."""

COMPARED = (
    "state",
    "verdict",
    "severity",
    "lag",
    "lag_is_bound",
    "behind_ms",
    "behind_is_bound",
    "behind_is_estimate",
    "lost",
)
"""The columns whose change is worth a row."""


_NONE = np.array(None, object)


@dataclass(frozen=True, slots=True)
class LagRows:
    """Rows of GROUP_LAGS. The arrays have one element per row."""

    observed_ms: Longs
    interval_ms: Longs
    columns: dict[str, Array]
    """The other columns by name. Unknown numbers are UNKNOWN, unknown words None."""


@dataclass(frozen=True, slots=True)
class _Groups:
    """The groups of an observation, one per row."""

    at_ms: int
    names: Strings
    columns: dict[str, Array]
    covered_ms: Longs
    """Until when the rows that were written account for each group."""


class GroupLags:
    """Follows the groups from observation to observation."""

    def __init__(self) -> None:
        self._last: _Groups | None = None
        self._index: tuple[Strings, Strings, Longs] | None = None
        """The group of each offset, and the two columns from which it was calculated."""

    def rows(self, snapshot: Snapshot, facts: Facts, interval_ms: int) -> Iterator[LagRows]:
        """Yield the rows that an observation adds.

        `interval_ms` is the time since the last observation, 0 if it is not known, as over a gap.
        """
        now_ms = snapshot.observation.ended_ms
        names, columns = snapshot.groups.group, self._columns(snapshot, facts)
        last = self._last
        if last is None or not interval_ms:
            yield from self.pending()
            covered_ms = np.full(len(names), now_ms, np.int64)
            yield _picked(columns, now_ms, np.zeros(len(names), np.int64), np.arange(len(names)))
            self._last = _Groups(now_ms, names, columns, covered_ms)
            return
        old = None if same(last.names, names) else _positions(last.names, names)
        size = len(names)
        is_new = np.zeros(size, np.bool_) if old is None else old < 0
        before = np.arange(size) if old is None else np.maximum(old, 0)
        changed = is_new.copy()
        for name in COMPARED if len(last.names) else ():
            changed |= np.asarray(columns[name] != last.columns[name][before], np.bool_)
        written_ms = last.covered_ms[before] if len(last.names) else np.full(size, last.at_ms)
        written_ms = np.where(is_new, now_ms, written_ms)
        # What stood until the last observation, of groups that changed since or that are gone.
        ended = np.ones(len(last.names), np.bool_)
        ended[before[~changed]] = False
        if (unwritten := ended & (last.covered_ms < last.at_ms)).any():
            rows = np.flatnonzero(unwritten)
            yield _picked(last.columns, last.at_ms, last.at_ms - last.covered_ms[rows], rows)
        gone = np.ones(len(last.names), np.bool_)
        gone[before[~is_new]] = False
        if gone.any():
            yield _gone(last.columns, now_ms, np.flatnonzero(gone))
        due = changed | (now_ms - written_ms >= EVERY_MS)
        if due.any():
            rows = np.flatnonzero(due)
            began_ms = np.where(changed & ~is_new, last.at_ms, written_ms)[rows]
            yield _picked(columns, now_ms, now_ms - began_ms, rows)
        self._last = _Groups(now_ms, names, columns, np.where(due, now_ms, written_ms))

    def pending(self) -> Iterator[LagRows]:
        """Yield the rows that account for every group until the last observation."""
        last = self._last
        if last is None:
            return
        rows = np.flatnonzero(last.covered_ms < last.at_ms)
        if len(rows):
            yield _picked(last.columns, last.at_ms, last.at_ms - last.covered_ms[rows], rows)
            self._last = replace(last, covered_ms=np.full(len(last.names), last.at_ms, np.int64))

    def forget(self) -> None:
        """Forget the groups, because nothing is known about the time until the next observation."""
        self._last = None

    def _columns(self, snapshot: Snapshot, facts: Facts) -> dict[str, Array]:
        groups, figures, offsets = snapshot.groups, facts.groups, snapshot.offsets
        index = self._index
        if index is None or index[0] is not groups.group or index[1] is not offsets.group:
            index = (groups.group, offsets.group, group_rows(groups.group, offsets.group))
            self._index = index
        worst = worst_offsets(index[2], facts.lag, facts.behind_ms, len(groups))
        at = np.maximum(worst, 0)
        return {
            "group": groups.group,
            "state": np.where(groups.state == "", _NONE, groups.state),
            "verdict": figures.verdict,
            "severity": figures.severity,
            "lag": figures.lag,
            "lag_is_bound": figures.lag_is_bound,
            "behind_ms": figures.behind_ms,
            "behind_is_bound": figures.behind_is_bound,
            "behind_is_estimate": figures.behind_is_estimate,
            "lost": figures.lost,
            "worst_topic": _where(worst, offsets.topic, at, None, np.object_),
            "worst_partition": _where(worst, offsets.partition, at, UNKNOWN, np.int64),
        }


def _where(worst: Longs, column: Array, at: Longs, fill: object, dtype: type) -> Array:
    out: NDArray[np.generic] = np.full(len(worst), fill, dtype)
    out[worst >= 0] = column[at[worst >= 0]]
    return out


def _picked(columns: dict[str, Array], at_ms: int, interval_ms: Longs, rows: Longs) -> LagRows:
    picked = {name: column[rows] for name, column in columns.items()}
    return LagRows(np.full(len(rows), at_ms, np.int64), interval_ms, picked)


def _gone(columns: dict[str, Array], at_ms: int, rows: Longs) -> LagRows:
    """Return rows that say that groups are gone: nothing is known of them but their name."""
    fills: dict[str, object] = {"O": None, "b": False}
    nothing = {
        name: np.full(len(rows), fills.get(column.dtype.kind, UNKNOWN), column.dtype)
        for name, column in columns.items()
    }
    no_time = np.zeros(len(rows), np.int64)
    return LagRows(np.full(len(rows), at_ms, np.int64), no_time, nothing | {"group": columns["group"][rows]})


def _positions(names: Strings, wanted: Strings) -> Longs:
    """Return the index in `names` of each of `wanted`, −1 if it is not there."""
    index = {name: row for row, name in enumerate(names.tolist())}
    return np.array([index.get(name, -1) for name in wanted.tolist()], np.int64)
