"""How much of what a topic keeps a group has not read: its lag as a share of retention."""

from typing import NamedTuple

import numpy as np

from kview.derive.partitions.retention import retentions
from kview.derive.view import Floats, View
from kview.model.snapshot import Longs
from kview.model.units import NEVER, UNKNOWN

NEAR_RETENTION = 0.8
"""A group whose lag is this share of what a topic keeps is about to lose records."""


class LagShares(NamedTuple):
    """The lag of groups' partitions as a share of what their topics keep. The arrays have the rows of
    `snapshot.offsets`, and NaN for what is not known.

    A topic that is compacted or keeps everything has neither figure: no record that a group still has to read
    is removed because of its age.
    """

    of_log: Floats
    """(end − committed) / (end − log start), in offsets. Above 1, records were removed before the group read
    them. Only known once retention has removed something: until then the log has not its full length."""
    of_time: Floats
    """Time behind / retention.ms."""


def lag_shares(view: View) -> LagShares:
    """Return the shares of all groups' partitions. What is known only as a bound has none."""
    offsets, figures, table = view.snapshot.offsets, view.offsets, view.snapshot.partitions
    by_topic = retentions(view.snapshot.topic_configs)
    deleting = {
        topic: kept.ms
        for topic, kept in by_topic.items()
        if kept.is_deleted and not kept.is_compacted and not (kept.ms == NEVER and kept.bytes == NEVER)
    }
    keeps_ms: Longs = np.array([deleting.get(topic, UNKNOWN) for topic in offsets.topic.tolist()], np.int64)
    deletes = np.array([topic in deleting for topic in offsets.topic.tolist()], np.bool_)
    row = figures.partition_row
    start = table.log_start[row] if len(table) else np.full(len(row), UNKNOWN, np.int64)
    end, lag = figures.log_end_offset, figures.lag
    known = deletes & (row >= 0) & (lag != UNKNOWN) & ~figures.lag_is_bound & (start > 0) & (end > start)
    span = np.where(known, end - np.where(known, start, 0), 1)
    timed = (keeps_ms > 0) & (keeps_ms != NEVER) & (figures.behind_ms != UNKNOWN) & ~figures.behind_is_bound
    return LagShares(
        np.where(known, np.where(known, lag, 0) / span, np.nan),
        np.where(timed, np.where(timed, figures.behind_ms, 0) / np.where(timed, keeps_ms, 1), np.nan),
    )
