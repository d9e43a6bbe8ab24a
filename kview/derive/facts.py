"""What a recording keeps of a view besides its snapshot. It is small, so that many can wait to be written."""

import numpy as np
from msgspec import Struct

from kview.derive.view import GroupFigures, View
from kview.model.findings import Finding
from kview.model.incidents import Incident
from kview.model.snapshot import Longs, OldestUnread, UncleanElections
from kview.model.units import UNKNOWN


class Facts(Struct, frozen=True):
    """What the fold concluded at one observation."""

    findings: tuple[Finding, ...]
    incidents: tuple[Incident, ...]
    groups: GroupFigures
    lag: Longs
    """The lag of each group's partition in records. Like `behind_ms`, it has the rows of
    `snapshot.offsets`."""
    behind_ms: Longs
    unclean: UncleanElections
    oldest_unread: OldestUnread

    @staticmethod
    def of(view: View) -> "Facts":
        """Return the facts of a view."""
        offsets = view.offsets
        findings = view.headline.findings
        concluded = view.unclean, view.oldest_unread
        return Facts(findings, view.incidents, view.groups, offsets.lag, offsets.behind_ms, *concluded)


def worst_offsets(index: Longs, lag: Longs, behind_ms: Longs, size: int) -> Longs:
    """Return the offset row of each group's worst partition, −1 if no lag of the group is known.

    The worst one is furthest behind in time. Equals, and those whose lag in time is not known, are compared
    by records. `index` is the row of each offset's group, or −1; there are `size` groups.
    """
    worst = np.full(size, -1, np.int64)
    rows = np.flatnonzero((index >= 0) & ((lag != UNKNOWN) | (behind_ms != UNKNOWN)))
    rows = rows[np.lexsort((-rows, lag[rows], behind_ms[rows]))]
    worst[index[rows]] = rows  # of several rows for one group, the last one is kept
    return worst
