"""What coordinators have never told: groups that may exist, and commits that groups may have."""

import numpy as np

from kview.model.failures import Part
from kview.model.snapshot import Failure, Flags, Observation, Snapshot
from kview.model.units import UNKNOWN


def unheard(observation: Observation) -> tuple[Failure, ...]:
    """Return the failures of brokers that may coordinate groups of which nothing is known."""
    return tuple(
        failure
        for failure in observation.failures
        if failure.part == Part.GROUPS and failure.shown_since_ms == UNKNOWN
    )


def never_read(snapshot: Snapshot) -> Flags:
    """Return which groups' commits cannot be read: they seem to have none, and kview's requests fail."""
    groups = snapshot.groups
    failing = np.asarray(groups.error != "", np.bool_)
    if not failing.any():
        return failing
    named, rows = snapshot.offsets.group, np.flatnonzero(failing)
    names = groups.group[rows]
    at = np.searchsorted(named, names)  # they are sorted by group
    failing[rows] = [row == len(named) or named[row] != name for row, name in zip(at, names, strict=True)]
    return failing
