"""What is carried from step to step about groups: how their partitions' offsets moved, and what that told."""

from typing import NamedTuple

import numpy as np
from msgspec import Struct, field

from kview.derive.align import (
    Alignment,
    align_offsets,
    align_partitions,
    group_rows,
    partition_rows,
    same,
    take,
)
from kview.derive.groups import commit_moves, losses, trends, unread
from kview.derive.groups import commits as past
from kview.derive.groups.commits import Commits, Reading
from kview.derive.groups.losses import Losses
from kview.derive.groups.offsets import Kept, earlier, readers, reading, record_lag
from kview.derive.groups.trends import Trends
from kview.derive.groups.unread import Unread
from kview.derive.history import lean
from kview.derive.partitions.logs import Logs
from kview.model.snapshot import Longs, Snapshot


class Rows(NamedTuple):
    """How the rows of the previous snapshot's tables correspond to those of this one."""

    partitions: Alignment
    offsets: Alignment
    at: Longs
    """The row of each offset's partition in this snapshot."""
    commits: Commits
    """The commits before this snapshot, in its rows."""


class Groups(Struct, frozen=True):
    """The groups as of a step. The arrays have the rows of `Offsets`."""

    partition_rows: Longs = field(default_factory=lambda: np.empty(0, np.int64))
    """The row of each offset's partition."""
    read: Reading | None = None
    """What the last snapshot says about the groups' partitions."""
    commits: Commits = field(default_factory=lambda: Commits.none(0))
    trends: Trends = field(default_factory=lambda: Trends.none(0))
    unread: Unread = field(default_factory=lambda: Unread.none(0))
    losses: Losses = field(default_factory=lambda: Losses.none(0))
    readers: Longs = field(default_factory=lambda: np.empty(0, np.int64))
    """A number for each offset's group and owner."""
    kept: Kept = field(default_factory=lambda: Kept.none(0))

    def rows(self, then: Snapshot, snapshot: Snapshot) -> Rows:
        """Return how the rows of `then`, the previous snapshot, correspond to those of this one."""
        partitions = align_partitions(then.partitions, snapshot.partitions)
        offsets = align_offsets(then.offsets, snapshot.offsets)
        if self.read is not None and partitions.rows is None and offsets.rows is None:
            at = self.partition_rows
        else:
            at = partition_rows(snapshot.offsets, snapshot.partitions)
        return Rows(partitions, offsets, at, past.carried(self.commits, offsets))

    def follow(
        self, then: Snapshot, snapshot: Snapshot, rows: Rows, logs: Logs, frozen_since_ms: Longs
    ) -> "Groups":
        """Add a step, but for `kept`. `then` is the previous snapshot; an empty one in the first step."""
        offsets, at, is_first = snapshot.offsets, rows.at, self.read is None
        if self.read is not None and rows.offsets.rows is None and then.groups.group is snapshot.groups.group:
            group = self.read.group
        else:
            group = group_rows(snapshot.groups.group, offsets.group)
        now = lean(
            reading(
                snapshot,
                earlier(then, rows.partitions, at, rows.commits.received_ms),
                at,
                record_lag(snapshot.partitions, at, offsets),
                logs.ends.per_second,
                frozen_since_ms,
                group,
            )
        )
        commits = commit_moves.follow(rows.commits, now)
        restarted = take(logs.fell | ~rows.partitions.known(), at, True)
        oldest = self.unread.carried(rows.offsets)
        if is_first:
            oldest, restarted = Unread.recorded(snapshot), np.zeros(len(restarted), np.bool_)
        same_owners = not is_first and rows.offsets.rows is None and same(then.offsets.owner, offsets.owner)
        return Groups(
            partition_rows=at,
            read=now,
            commits=commits,
            trends=trends.follow(self.trends.carried(rows.offsets), commits, now),
            unread=lean(
                unread.follow(
                    oldest, now.committed, now.received_ms, at, logs.points, restarted, logs.answered
                )
            ),
            losses=lean(losses.follow(self.losses.carried(rows.offsets), commits, now)),
            readers=self.readers if same_owners else readers(offsets),
            kept=self.kept,
        )
