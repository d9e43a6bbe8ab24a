"""What must be true of the cluster at a moment, worked out from the truth log alone. Pure.

Kafka's own delays are in the log itself: the controller tells when it fenced. Other limits are constants,
each with its reason.
"""

from bisect import bisect_right

from kview.model.events import Severity
from tests.truth.broker_truth import CALM, Bounds, Brokers, last_deed
from tests.truth.disk_truth import Disks
from tests.truth.group_truth import Groups
from tests.truth.log import Placed, TruthLog
from tests.truth.schedule import Do
from tests.truth.transaction_truth import Transactions

CONTROLLER_SAID_MS = 3_000
"""How soon the loss of the controller, or of its majority, must be said."""
VOTER_LOST_MS = 6_000
"""A controller that does not lead is missed when its last fetch is 2 s old and DescribeQuorum has told so."""
PLACED_OLD_MS = 2_000
"""An answer older than this says nothing: nobody answers."""

_CONTROLLER_DEEDS = (Do.KILL, Do.START, Do.HANG, Do.GO_ON)
ORDER = (Severity.CALM, Severity.WARN, Severity.RISK)


class Truth:
    """Answers questions about moments of a run, which are epoch ms."""

    def __init__(self, log: TruthLog) -> None:
        self.log = log
        self.brokers = Brokers(log)
        self.transactions = Transactions(log)
        self.disks = Disks(log)
        self.groups = Groups(log, self.brokers, self.placed, self.transactions)
        self._placed_ms = [one.at_ms for one in log.placed]

    def placed(self, at_ms: int) -> Placed | None:
        """Return the last Metadata answer before a moment."""
        row = bisect_right(self._placed_ms, at_ms) - 1
        return self.log.placed[row] if row >= 0 else None

    def severity(self, at_ms: int) -> Bounds:
        """Return the least and the most that the headline's severity can honestly be."""
        bounds = [
            *(self.brokers.severity(broker, at_ms) for broker in self.log.brokers),
            *(self.disks.severity(broker, at_ms) for broker in self.log.brokers),
            self._of_placement(at_ms),
            self._of_controllers(at_ms),
            *(self.groups.severity(group, at_ms) for group in self.groups.names),
        ]
        least = max((low for low, _ in bounds), key=ORDER.index)
        return least, max((high for _, high in bounds), key=ORDER.index)

    def _of_placement(self, at_ms: int) -> Bounds:
        seen = self.placed(at_ms)
        if seen is None or at_ms - seen.at_ms > PLACED_OLD_MS:
            return Severity.CALM, Severity.RISK
        if seen.without_leader or seen.under_min_isr:
            return Severity.RISK, Severity.RISK
        if seen.under_replicated:
            return Severity.WARN, Severity.WARN
        return Severity.CALM, Severity.WARN if seen.not_preferred else Severity.CALM

    def _of_controllers(self, at_ms: int) -> Bounds:
        if self._controllers_return(at_ms):
            return Severity.CALM, Severity.RISK
        out, size = self._controllers_out(at_ms), len(self.log.controllers)
        if not out:
            return CALM
        needed = size // 2 + 1
        if size - len(out) < needed:
            said = at_ms - out[size - needed] > CONTROLLER_SAID_MS
            return Severity.WARN if said else Severity.CALM, Severity.RISK
        said = at_ms - out[0] > VOTER_LOST_MS
        return Severity.WARN if said else Severity.CALM, Severity.WARN if said else Severity.RISK

    def _controllers_return(self, at_ms: int) -> bool:
        """Return whether a controller was let back in that has not joined the quorum yet, or only just."""
        for node in self.log.controllers:
            last = last_deed(self.log.deeds, node, at_ms, _CONTROLLER_DEEDS)
            if last is None or last.do not in (Do.START, Do.GO_ON):
                continue
            joined = (one.at_ms for one in self.log.joined if one.controller == node)
            first_ms = next((one for one in joined if last.at_ms <= one <= at_ms), None)
            if last.do is Do.GO_ON:  # it may just go on as the leader or follower that it was
                first_ms = last.at_ms
            if first_ms is None or at_ms - first_ms <= CONTROLLER_SAID_MS:
                return True
        return False

    def _controllers_out(self, at_ms: int) -> list[int]:
        """Return the times at which the controllers that are out went, the earliest first."""
        last = (last_deed(self.log.deeds, node, at_ms, _CONTROLLER_DEEDS) for node in self.log.controllers)
        return sorted(deed.at_ms for deed in last if deed is not None and deed.do in (Do.KILL, Do.HANG))
