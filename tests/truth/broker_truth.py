"""What is true of the brokers at a moment, by the truth log. Pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from enum import StrEnum
from statistics import median

from kview.model.events import Severity
from tests.truth.log import Deed, TruthLog
from tests.truth.schedule import Do

HIDDEN_SURE_MS = 8_000
"""How soon DescribeQuorum tells a broker that only kview cannot reach from one that is lost."""
SLOW_SAID_MS = 15_000
"""Ten requests, and 5 s for which they were slow, at about one request a second."""
SLOW_MS, SLOW_TIMES = 60.0, 12.0
"""A broker is slow beyond doubt above this median of our own requests, and this many times its peers'."""
SLOW_CLEARS_MS = 5_000
"""Ten requests, at two or three a second."""
PROBED_MS = 10_000
LABOURS_MS, LABOURS_FOR_MS = 400.0, 4_000
"""A request of our own that took so long excuses an answer to kview that is late, for so long."""
STILL_MS = 1_000
"""A broker that stands still for this long at a time can be called silent now and then."""

Bounds = tuple[Severity, Severity]
"""The least and the most that a severity can honestly be."""
CALM: Bounds = (Severity.CALM, Severity.CALM)


class Condition(StrEnum):
    """What a broker is, whoever looks."""

    UP = "up"
    SILENT = "silent"
    """Dead or hung, and the controller has not fenced it yet."""
    FENCED = "fenced"
    UNTOLD = "untold"
    """Fenced, but no broker runs that could tell kview so."""
    STARTING = "starting"
    """Let in by the controller, but its port does not answer yet."""
    HIDDEN = "hidden"
    """It is well, but the link to kview is cut."""
    UNCLEAR = "unclear"
    """The same, since so short a time that the quorum cannot have told that it still hears the broker."""
    UNSTEADY = "unsteady"
    """It stops and runs by turns, or its link to kview is slow."""
    LABOURING = "labouring"
    """It is well, but has just been slow to answer our own requests: the machine is busy."""
    RECOVERING = "recovering"
    """It was unsteady until a moment ago, and kview's last ten requests may still tell so."""


TROUBLED = frozenset(Condition) - {Condition.UP}


def last_deed(deeds: Sequence[Deed], node: int, at_ms: int, among: tuple[Do, ...]) -> Deed | None:
    """Return the last of some deeds to a node before a moment."""
    found = [deed for deed in deeds if deed.node == node and deed.do in among and deed.at_ms <= at_ms]
    return found[-1] if found else None


class Brokers:
    """Answers questions about brokers at moments of a run, which are epoch ms."""

    def __init__(self, log: TruthLog) -> None:
        self._log = log

    def condition(self, broker: int, at_ms: int) -> Condition:
        """Return a broker's condition."""
        last = self._last(broker, at_ms, Do.KILL, Do.START, Do.HANG, Do.GO_ON)
        let_in_ms, fenced = self._fencing(broker, at_ms)
        if fenced:
            told = any(self._runs(one, at_ms) for one in self._log.brokers)
            return Condition.FENCED if told else Condition.UNTOLD
        if last is not None and last.do in (Do.KILL, Do.HANG):
            return Condition.SILENT
        if last is not None and last.do is Do.START and not self._answered_since(broker, last.at_ms, at_ms):
            return Condition.STARTING if let_in_ms > last.at_ms else Condition.SILENT
        link = self._last(broker, at_ms, Do.CUT, Do.DELAY, Do.MEND)
        if link is not None and link.do is Do.CUT:
            return Condition.HIDDEN if at_ms - link.at_ms > HIDDEN_SURE_MS else Condition.UNCLEAR
        duty = self._last(broker, at_ms, Do.DUTY)
        unsteady = duty is not None and at_ms < duty.until_ms
        if unsteady or (link is not None and link.do is Do.DELAY):
            return Condition.UNSTEADY
        ends = [duty.until_ms if duty else 0, self._slow_link_ended_ms(broker, at_ms)]
        if at_ms - max(ends) < SLOW_CLEARS_MS:
            return Condition.RECOVERING
        return Condition.LABOURING if self._labours(broker, at_ms) else Condition.UP

    def all(self, at_ms: int) -> dict[int, Condition]:
        """Return every broker's condition."""
        return {broker: self.condition(broker, at_ms) for broker in self._log.brokers}

    def severity(self, broker: int, at_ms: int) -> Bounds:
        """Return what the severity can be as far as one broker is concerned."""
        match self.condition(broker, at_ms):
            case Condition.UP:
                return CALM
            case Condition.SILENT | Condition.UNTOLD:
                return Severity.RISK, Severity.RISK
            case Condition.UNCLEAR:
                return Severity.WARN, Severity.RISK
            case Condition.UNSTEADY:
                duty = self._last(broker, at_ms, Do.DUTY)
                still = duty is not None and duty.stopped_ms >= STILL_MS
                least = Severity.WARN if self.slow_for_long(broker, at_ms) else Severity.CALM
                return least, Severity.RISK if still else Severity.WARN
            case Condition.RECOVERING:
                return Severity.CALM, Severity.WARN
            case Condition.LABOURING:
                return Severity.CALM, Severity.RISK
            case _:
                return Severity.WARN, Severity.WARN

    def slow_for_long(self, broker: int, at_ms: int) -> bool:
        """Return whether our own requests show a broker slow for so long that it must have been said."""
        return all(self._slow(broker, at_ms - back) for back in range(0, SLOW_SAID_MS, 3_000))

    def _runs(self, broker: int, at_ms: int) -> bool:
        """Return whether a broker's process runs and has answered since it was started."""
        last = self._last(broker, at_ms, Do.KILL, Do.START, Do.HANG, Do.GO_ON)
        if last is None or last.do is Do.GO_ON:
            return True
        return last.do is Do.START and self._answered_since(broker, last.at_ms, at_ms)

    def _labours(self, broker: int, at_ms: int) -> bool:
        probes = self._log.probes.get(broker, [])
        first = bisect_left(probes, at_ms - LABOURS_FOR_MS, key=lambda one: one.sent_ms)
        last = bisect_right(probes, at_ms, key=lambda one: one.sent_ms)
        return any(one.took_ms is not None and one.took_ms >= LABOURS_MS for one in probes[first:last])

    def _slow(self, broker: int, at_ms: int) -> bool:
        own = self._latency(broker, at_ms)
        peers = [self._latency(other, at_ms) for other in self._log.brokers if other != broker]
        known = [one for one in peers if one is not None]
        return own is not None and bool(known) and own > max(SLOW_MS, SLOW_TIMES * median(known))

    def _latency(self, broker: int, at_ms: int) -> float | None:
        found = [
            one.took_ms
            for one in self._log.probes.get(broker, ())
            if one.took_ms is not None and at_ms - PROBED_MS <= one.sent_ms <= at_ms
        ]
        return median(found) if found else None

    def _fencing(self, broker: int, at_ms: int) -> tuple[int, bool]:
        """Return when the controller last fenced a broker or let it in, and which; 0 if it never did."""
        found = [one for one in self._log.fencing if one.broker == broker and one.at_ms <= at_ms]
        return (found[-1].at_ms, found[-1].fenced) if found else (0, False)

    def _slow_link_ended_ms(self, broker: int, at_ms: int) -> int:
        """Return when the broker's slow link was mended, 0 if it never was slow."""
        mended = self._last(broker, at_ms, Do.MEND)
        before = self._last(broker, mended.at_ms, Do.CUT, Do.DELAY) if mended else None
        return mended.at_ms if mended and before and before.do is Do.DELAY else 0

    def _answered_since(self, broker: int, since_ms: int, at_ms: int) -> bool:
        return any(
            one.took_ms is not None and one.sent_ms >= since_ms and one.sent_ms + one.took_ms <= at_ms
            for one in self._log.probes.get(broker, ())
        )

    def _last(self, broker: int, at_ms: int, *among: Do) -> Deed | None:
        return last_deed(self._log.deeds, broker, at_ms, among)
