"""What a step saw: the standing of the cluster, and what was concluded from it with the past's help."""

import numpy as np

from kview.derive.align import among
from kview.derive.brokers.slowness import Slowness
from kview.derive.evidence import Evidence
from kview.derive.partitions.placement import Unreached, lost_in_isr_since
from kview.derive.partitions.watermarks import Watermarks, frozen_since
from kview.derive.standing import Standing
from kview.model.snapshot import Flags, Longs
from kview.model.states import BrokerState
from kview.model.units import UNKNOWN


class Seen(Standing, frozen=True):
    """The standing of the cluster in one snapshot, together with what the next step's events need."""

    known: Evidence
    slow_since_ms: Longs
    """Since when each broker has been slow, UNKNOWN if it is not."""
    frozen_since_ms: Longs
    leader_lost_since_ms: Longs
    """Since when the leaders that the cluster has lost have been silent; UNKNOWN for other partitions."""

    @property
    def unseen(self) -> Flags:
        """The partitions whose leader does not answer us, and may live for all we know."""
        silent = self.placed.leader_silent_since_ms != UNKNOWN
        return np.asarray(silent & (self.leader_lost_since_ms == UNKNOWN), np.bool_)

    @property
    def unreached(self) -> Unreached:
        """The leaders and replicas that live but do not answer us, and the leaders that are starting."""
        table, brokers = self.snapshot.partitions, self.snapshot.brokers
        starting = brokers.id[np.asarray(brokers.state == BrokerState.STARTING, np.bool_)]
        leaders = self.known.cannot_reach(table.leader) | among(table.leader, starting)
        return Unreached(leaders, self.known.cannot_reach(table.replicas))


def see(now: Standing, known: Evidence, slow: Slowness, marks: Watermarks) -> Seen:
    """Return what a step saw. `marks` include the watermarks of its snapshot."""
    snapshot, placed = now.snapshot, now.placed
    table, silent = snapshot.partitions, now.placed.leader_silent_since_ms
    lost = np.where(known.has_lost(table.leader), silent, UNKNOWN)
    waits = lost_in_isr_since(table, placed, now.quiet, known.lost)
    frozen = frozen_since(marks, table, waits, lost, (silent != UNKNOWN) & (lost == UNKNOWN))
    slow_since = slow.since_ms(snapshot.brokers)
    return Seen(
        snapshot,
        now.quiet,
        placed,
        now.readings,
        now.interval_ms,
        now.topic_rows,
        now.rack_codes,
        now.held,
        known,
        slow_since,
        frozen,
        lost,
    )
