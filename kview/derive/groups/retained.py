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
    them. Only where retention.bytes limits the log, and once something was removed: until then the log has
    not its full length. Where time alone limits it, the log of a topic that is idle may well begin at the
    commit."""
    of_time: Floats
    """Time behind / retention.ms. Not known where the time behind is only a bound."""
    of_time_min: Floats
    """The same, at least: with bounds, too."""


def lag_shares(view: View) -> LagShares:
    """Return the shares of all groups' partitions. What is known only as a bound counts in `of_time_min`
    alone."""
    offsets, figures, table = view.snapshot.offsets, view.offsets, view.snapshot.partitions
    by_topic = retentions(view.snapshot.topic_configs)
    deleting = {
        topic: kept
        for topic, kept in by_topic.items()
        if kept.is_deleted and not kept.is_compacted and not (kept.ms == NEVER and kept.bytes == NEVER)
    }
    kept_of = [deleting.get(topic) for topic in offsets.topic.tolist()]
    keeps_ms: Longs = np.array([kept.ms if kept else UNKNOWN for kept in kept_of], np.int64)
    limited = np.array(
        [kept is not None and kept.bytes not in (UNKNOWN, NEVER) for kept in kept_of], np.bool_
    )
    row = figures.partition_row
    start = table.log_start[row] if len(table) else np.full(len(row), UNKNOWN, np.int64)
    end, lag = figures.log_end_offset, figures.lag
    known = limited & (row >= 0) & (lag != UNKNOWN) & ~figures.lag_is_bound & (start > 0) & (end > start)
    span = np.where(known, end - np.where(known, start, 0), 1)
    timed = (keeps_ms > 0) & (keeps_ms != NEVER) & (figures.behind_ms != UNKNOWN)
    at_least = np.where(timed, np.where(timed, figures.behind_ms, 0) / np.where(timed, keeps_ms, 1), np.nan)
    return LagShares(
        np.where(known, np.where(known, lag, 0) / span, np.nan),
        np.where(figures.behind_is_bound, np.nan, at_least),
        at_least,
    )
