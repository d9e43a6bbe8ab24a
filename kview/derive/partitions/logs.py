"""What is carried from step to step about logs: rates, watermarks, and where they ended in the past."""

from typing import Self

import numpy as np
from msgspec import Struct

from kview.derive.align import Alignment
from kview.derive.groups import past_ends
from kview.derive.groups.past_ends import Points
from kview.derive.partitions import rates
from kview.derive.partitions.rates import Ends
from kview.derive.partitions.watermarks import Watermarks
from kview.derive.partitions.watermarks import follow as follow_watermarks
from kview.model.snapshot import Flags, Longs, Snapshot


def log_ends(snapshot: Snapshot) -> tuple[Longs, Longs]:
    """Return where logs end, and when these log ends were read.

    If the cluster does not report log ends, high watermarks take their place.
    """
    table = snapshot.partitions
    if "debugging_replica" in snapshot.observation.capabilities:
        return table.log_end, table.log_end_ms
    return table.high_watermark, table.high_watermark_ms


class Logs(Struct, frozen=True):
    """The logs as of a step. The arrays have the rows of `Partitions`."""

    ends: Ends
    watermarks: Watermarks
    points: Points
    fell: Flags
    """Which logs were cut, or created again, in this step."""
    answered: bool
    """Whether this step has new answers of ListOffsets by timestamp."""

    @classmethod
    def none(cls) -> Self:
        """Return the state before any step."""
        return cls(Ends.none(0), Watermarks.none(0), Points.none(0), np.empty(0, np.bool_), False)

    def follow(self, then: Snapshot | None, snapshot: Snapshot, rows: Alignment) -> "Logs":
        """Add a step. `then` is the previous snapshot, None in the first step."""
        table, now_ms = snapshot.partitions, snapshot.observation.ended_ms
        read, read_ms = log_ends(snapshot)
        ends, fell = rates.advance(self.ends.carried(rows), read, read_ms, now_ms)
        before_ms = (then or Snapshot(snapshot.observation)).partitions.high_watermark_ms
        marks = follow_watermarks(self.watermarks, before_ms, rows, table, now_ms)
        points = past_ends.capped(past_ends.carried(self.points, rows), fell, read)
        answered = then is None or not past_ends.same_answers(then.time_points, snapshot.time_points)
        if answered or rows.rows is not None:
            points = past_ends.with_seeds(points, table, snapshot.time_points, read)
        return Logs(ends, marks, past_ends.with_reading(points, read_ms, read, now_ms), fell, answered)
