"""A topic as a strip: a sign for each partition, or for several of them the worst one's."""

import numpy as np

from kview.derive.statuses import RANK, SEVERITIES, STATUSES, PartitionStatus
from kview.derive.view import View
from kview.language import glyphs, words
from kview.tui.rows.common import ROLES, STATUS_SIGNS
from kview.tui.text import Line, Role, runs

SEVERAL = glyphs.UNCOMMITTED
"""The sign of several partitions of which none is in trouble."""

_SIGNS = np.array([STATUS_SIGNS[status] for status in STATUSES], object)
_ROLES = [ROLES[SEVERITIES[status]] if status in SEVERITIES else Role.DIM for status in STATUSES]
LEAST_OK = RANK[PartitionStatus.REASSIGNING]
"""From this rank on, nothing is wrong with a partition."""


def strip(view: View, topic: int, cells: int) -> Line:
    """Return the signs of a topic's partitions, in order, in at most `cells`."""
    first, number = int(view.topics.first_row[topic]), int(view.topics.partitions[topic])
    ranks = view.partitions.rank[first : first + number].astype(np.int64)
    if not number or cells < 1:
        return ()
    if number <= cells:
        worst, signs = ranks.tolist(), _SIGNS[ranks].tolist()
    else:
        begins = np.arange(cells) * number // cells
        worst = np.minimum.reduceat(ranks, begins).tolist()
        is_unknown = np.maximum.reduceat(ranks == RANK[PartitionStatus.UNKNOWN], begins).tolist()
        signs = [
            _SIGNS[rank] if rank < LEAST_OK else words.UNSEEN if unknown else SEVERAL
            for rank, unknown in zip(worst, is_unknown, strict=True)
        ]
    return runs(signs, [_ROLES[rank] for rank in worst])
