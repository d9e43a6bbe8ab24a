"""ListOffsets by timestamp: where logs ended some time ago, so that lag in time is right from the start."""

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from kview.model.snapshot import Flags, Longs, TimePoints, empty
from kview.observe.layout import Layout, Rows, old_rows, same_partitions

AGES_S = (60, 10, 300, 30, 600, 120)
"""Ages in seconds to ask for, most useful first. None is over ten minutes, as lag looks back no further."""
KEPT_MS = 600_000
"""Time for which answers are stored, which is as long as the look-back of the fold."""


class _Answer(Struct, frozen=True):
    """One answer: where the logs of some partitions ended at `timestamp_ms`, UNKNOWN if nobody can tell."""

    rows: Rows
    offsets: Longs
    timestamp_ms: int
    received_ms: int


class Points(Struct):
    """The answers of the last ten minutes about the partitions that exist now."""

    _layout: Layout | None = None
    """The layout whose rows `_asked` and the answers have."""
    _asked: Flags = field(default_factory=lambda: np.empty(0, np.bool_))
    _answers: list[_Answer] = field(default_factory=list)
    _table: TimePoints | None = None

    @property
    def table(self) -> TimePoints:
        """The answers by topic, partition and time. The same object until an answer comes or goes."""
        if self._table is None:
            self._table = self._as_table()
        return self._table

    def due(self, layout: Layout, rows: Rows) -> Rows:
        """Return those of `rows` that have not been asked for."""
        self._follow(layout)
        return rows[~self._asked[rows]]

    def mark(self, layout: Layout, rows: Rows) -> None:
        """Remember that `rows` have been asked for."""
        self._follow(layout)
        self._asked[rows] = True

    def answered(self, layout: Layout, rows: Rows, offsets: Longs, timestamp_ms: int, at_ms: int) -> None:
        """Store where the logs of some rows of `layout` ended at `timestamp_ms`, as answered at `at_ms`."""
        self._follow(layout)
        self._answers.append(_Answer(rows, offsets, timestamp_ms, at_ms))
        self._table = None

    def expire(self, now_ms: int, layout: Layout) -> None:
        """Drop answers older than ten minutes, and those about partitions that no longer exist."""
        self._follow(layout)
        kept = [answer for answer in self._answers if answer.received_ms >= now_ms - KEPT_MS]
        if len(kept) < len(self._answers):
            self._answers, self._table = kept, None

    def _follow(self, layout: Layout) -> None:
        """Move everything to the rows of `layout`. A topic that was created again is another topic."""
        before, self._layout = self._layout, layout
        if before is None:
            self._asked = np.zeros(len(layout), np.bool_)
            return
        if same_partitions(layout, before):
            return
        old = old_rows(layout, before)
        there = old >= 0
        self._asked = there & np.r_[self._asked, False][old]
        now_at = np.full(len(before), -1, np.intp)
        now_at[old[there]] = np.flatnonzero(there)
        moved = []
        for answer in self._answers:
            rows = now_at[answer.rows]
            exists = rows >= 0
            moved.append(replace(answer, rows=rows[exists], offsets=answer.offsets[exists]))
        self._answers, self._table = moved, None

    def _as_table(self) -> TimePoints:
        layout, answers = self._layout, self._answers
        if layout is None or not answers:
            return empty(TimePoints)
        counts = [len(answer.rows) for answer in answers]
        rows = np.concatenate([answer.rows for answer in answers])
        timestamp_ms = np.repeat(np.array([answer.timestamp_ms for answer in answers], np.int64), counts)
        received_ms = np.repeat(np.array([answer.received_ms for answer in answers], np.int64), counts)
        order = np.lexsort((timestamp_ms, rows))
        return TimePoints(
            topic=layout.topic[rows[order]],
            partition=layout.partition[rows[order]],
            timestamp_ms=timestamp_ms[order],
            offset=np.concatenate([answer.offsets for answer in answers])[order],
            received_ms=received_ms[order],
        )
