"""The state of the fold: what is carried from step to step."""

from collections.abc import Mapping

import numpy as np
from msgspec import Struct, field

from kview.derive.brokers.past import Brokers
from kview.derive.evidence import Proofs
from kview.derive.groups.commits import Reading
from kview.derive.groups.figures import GroupSeries
from kview.derive.groups.offsets import Followed, Led, offset_figures
from kview.derive.groups.past import Groups
from kview.derive.incidents.following import Incidents
from kview.derive.partitions.elections import Memory
from kview.derive.partitions.inputs import Inputs
from kview.derive.partitions.logs import Logs
from kview.derive.partitions.reassignments import Progress
from kview.derive.seen import Seen
from kview.derive.series import Series
from kview.derive.transactions.holds import Hold
from kview.derive.view import Floats, OffsetFigures
from kview.model.events import Event
from kview.model.snapshot import Longs

_NONE = np.empty(0, np.int64)


class State(Struct, frozen=True):
    """What is carried from step to step: the previous snapshot, what was seen in it, and bounded series.

    States are frozen, and columns are never written to.
    """

    ignore: tuple[str, ...] = ()
    """Patterns of the names of groups that count nowhere. They come from the run."""
    seen: Seen | None = None
    brokers: Brokers = field(default_factory=Brokers)
    logs: Logs = field(default_factory=Logs.none)
    groups: Groups = field(default_factory=Groups)
    changed_ms: Longs = field(default_factory=lambda: _NONE)
    """When the leader, epoch or ISR of each partition last changed."""
    proofs: Proofs = field(default_factory=dict)
    in_series: Series = ()
    """The records in per second of all of the user's topics."""
    topic_series: Mapping[str, Series] = field(default_factory=dict)
    broker_series: Mapping[int, Series] = field(default_factory=dict)
    group_series: GroupSeries = field(default_factory=GroupSeries)
    moments: tuple[int, ...] = ()
    events: tuple[Event, ...] = ()
    new_events: tuple[Event, ...] = ()
    incidents: Incidents = field(default_factory=Incidents)
    progress: Progress = field(default_factory=Progress)
    inputs: Inputs = field(default_factory=Inputs)
    holds: tuple[Hold, ...] = ()
    """The transactions that were found holding back last stable offsets, and whose ends are not seen."""
    elections: Memory = field(default_factory=Memory)


def seen_of(state: State) -> Seen:
    """Return what the last step saw. There must have been one."""
    assert state.seen is not None
    return state.seen


def read_of(state: State) -> Reading:
    """Return what the last step read about the groups' partitions. There must have been one."""
    assert state.groups.read is not None
    return state.groups.read


def offsets_of(state: State, in_rate: Floats) -> OffsetFigures:
    """Return the figures of groups' partitions in a state. `in_rate` has the rates of partitions."""
    seen = seen_of(state)
    led = Led(in_rate, seen.leader_lost_since_ms, seen.frozen_since_ms, seen.unseen)
    past = state.groups
    known = Followed(
        read_of(state), past.unread, past.commits, past.trends, past.losses, past.readers, past.kept
    )
    return offset_figures(seen.snapshot, past.partition_rows, led, known)
