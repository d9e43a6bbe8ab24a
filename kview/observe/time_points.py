"""ListOffsets by timestamp: where logs ended some time ago, so that lag in time is right from the start."""

from dataclasses import dataclass, field

import numpy as np

from kview.model.snapshot import TimePoints, empty
from kview.model.units import UNKNOWN
from kview.observe.layout import Layout, Rows, strings
from kview.observe.readings import Readings, answered_rows
from kview.wire.list_offsets import ListOffsetsAnswer

AGES_S = (60, 10, 300, 30, 600, 120)
"""Ages in seconds to ask for, most useful first. None is over ten minutes, as lag looks back no further."""
KEPT_MS = 600_000
"""Time for which answers are stored, which is as long as the look-back of the fold."""


@dataclass(slots=True)
class Points:
    """The answers of the last ten minutes.

    The table is the same object until its content changes.
    """

    table: TimePoints = field(default_factory=lambda: empty(TimePoints))
    asked: set[tuple[str, str, int]] = field(default_factory=set)
    """The (topic, topic id, partition) combinations that have been asked for."""
    _answers: dict[tuple[str, int, int, str], tuple[int, int]] = field(default_factory=dict)

    def due(self, layout: Layout, rows: Rows) -> Rows:
        """Return those of `rows` that have not been asked for."""
        keys = zip(layout.topic[rows], layout.topic_id[rows], layout.partition[rows].tolist(), strict=True)
        return rows[[key not in self.asked for key in keys]]

    def mark(self, layout: Layout, rows: Rows) -> None:
        """Remember that `rows` have been asked for."""
        self.asked.update(
            zip(layout.topic[rows], layout.topic_id[rows], layout.partition[rows].tolist(), strict=True)
        )

    def answered(
        self, layout: Layout, readings: Readings, timestamp_ms: int, answer: ListOffsetsAnswer, at_ms: int
    ) -> None:
        """Store an answer.

        If there is no record as young as `timestamp_ms`, the log ended where it ends now.
        """
        rows, errors, offsets = answered_rows(layout, answer)
        ends = readings.log_end[rows]
        young = np.where(readings.log_end_ms[rows] >= timestamp_ms, ends, UNKNOWN)
        offsets = np.where(offsets >= 0, offsets, young)
        for row, error, offset in zip(rows.tolist(), errors.tolist(), offsets.tolist(), strict=True):
            if not error:
                key = (layout.topic[row], int(layout.partition[row]), timestamp_ms, layout.topic_id[row])
                self._answers[key] = (offset, at_ms)
        self._make()

    def expire(self, now_ms: int, layout: Layout) -> None:
        """Drop answers older than ten minutes, and incarnations of topics that no longer exist."""
        there = {(topic, layout.topic_id[row]) for topic, (row, _) in layout.first.items()}
        old = [
            key
            for key, (_, at_ms) in self._answers.items()
            if at_ms < now_ms - KEPT_MS or (key[0], key[3]) not in there
        ]
        if old:
            for key in old:
                del self._answers[key]
            self._make()
        self.asked = {key for key in self.asked if key[:2] in there}

    def _make(self) -> None:
        ordered = sorted(self._answers, key=lambda key: key[:3])
        values = [self._answers[key] for key in ordered]
        self.table = TimePoints(
            topic=strings([topic for topic, _, _, _ in ordered]),
            partition=np.array([partition for _, partition, _, _ in ordered], np.int32),
            timestamp_ms=np.array([timestamp for _, _, timestamp, _ in ordered], np.int64),
            offset=np.array([offset for offset, _ in values], np.int64),
            received_ms=np.array([at_ms for _, at_ms in values], np.int64),
        )
