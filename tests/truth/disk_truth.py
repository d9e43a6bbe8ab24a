"""What is true of moves, throttles and log directories at a moment: what was done, and what Metadata and the
controller's list of reassignments told a client of our own. Pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from kview.model.events import Severity
from tests.truth.broker_truth import CALM, Bounds, last_deed
from tests.truth.log import Partition, Placed, TruthLog
from tests.truth.schedule import Do

SEEN_MS = 4_000
"""Reassignments are asked for in every other round, and the slow lane may be late by one."""
ROUND_MS = 1_000
DIR_SAID_MS = 8_000
"""How soon after Metadata named its replicas offline a directory must be called failed."""
DIR_CLEARS_MS = 3_000
"""How soon after its broker is used again it must no longer be."""
QUIET_MS = 55_000
"""A throttle is left behind once nothing has moved for a minute."""
SETTINGS_MS = 65_000
"""Settings of brokers are read once a minute."""


class Disks:
    """Answers questions about moments and spans of a run, which are epoch ms."""

    def __init__(self, log: TruthLog) -> None:
        self._log = log
        self._placed_ms = [one.at_ms for one in log.placed]

    def between(self, from_ms: int, to_ms: int) -> Sequence[Placed]:
        """Return the Metadata answers of a span, with the last one before it."""
        first = max(0, bisect_left(self._placed_ms, from_ms) - 1)
        return self._log.placed[first : bisect_right(self._placed_ms, to_ms)]

    def may_be_moving(self, partition: Partition, window: range) -> bool:
        """Return whether a partition is moved, or was a moment ago."""
        seen = self.between(window[0] - SEEN_MS, window[-1])
        return not seen or any(partition in one.moving for one in seen)

    def is_moving(self, partition: Partition, window: range) -> bool:
        """Return whether a partition has been moved for so long that it must have been said."""
        seen = self.between(window[0] - SEEN_MS, window[-1])
        return len(seen) > 1 and all(partition in one.moving for one in seen)

    def moving(self, at_ms: int) -> frozenset[Partition]:
        """Return what was moved when Metadata was last asked."""
        seen = self.between(at_ms, at_ms)
        return seen[-1].moving if seen else frozenset()

    def may_be_short(self, partition: Partition, window: range) -> bool:
        """Return whether a partition is under-replicated, or was a moment ago."""
        seen = self.between(window[0] - ROUND_MS, window[-1])
        return not seen or any(partition in one.short for one in seen)

    def is_lost(self, broker: int, at_ms: int) -> bool:
        """Return whether a broker has lost a log directory, or had a moment ago."""
        last = last_deed(self._log.deeds, broker, at_ms, (Do.LOSE_DIR, Do.REPAIR_DIR))
        if last is None:
            return False
        return last.do is Do.LOSE_DIR or at_ms - last.at_ms <= DIR_CLEARS_MS

    def must_be_lost(self, broker: int, window: range) -> bool:
        """Return whether Metadata has told for long that the broker, which lost a directory, has offline
        replicas."""
        seen = self.between(window[0] - DIR_SAID_MS, window[-1])
        told = bool(seen) and all(broker in one.offline for one in seen)
        return told and all(self.is_lost(broker, at_ms) for at_ms in (window[0] - DIR_SAID_MS, window[-1]))

    def severity(self, broker: int, at_ms: int) -> Bounds:
        """Return what the severity can be as far as a broker's directories are concerned."""
        return (Severity.CALM, Severity.RISK) if self.is_lost(broker, at_ms) else CALM

    def throttle_may_be_left(self, at_ms: int) -> bool:
        """Return whether a throttle is set, or was when settings were last read, and nothing moves."""
        deeds = [one for one in self._log.deeds if one.at_ms <= at_ms]
        last = next((one for one in deeds[::-1] if one.do in (Do.MOVE, Do.UNTHROTTLE)), None)
        if last is None or (last.do is Do.UNTHROTTLE and at_ms - last.at_ms > SETTINGS_MS):
            return False
        return not any(one.moving for one in self.between(at_ms - QUIET_MS, at_ms))
