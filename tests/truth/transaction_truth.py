"""What is true of transactions at a moment, by the book of who begins and ends them. Pure."""

from tests.truth.log import Held, TruthLog

WAIT_MS = 59_000
"""A group must have waited a minute for a transaction, less what clocks round."""
SAID_MS = 12_000
"""How soon it must be said then: last stable offsets are read every 5 s, and so are their holders."""
ENDED_MS = 3_000
"""How soon the end must be seen: last stable offsets that stand still are read in every round."""


class Transactions:
    """Answers questions about moments of a run, which are epoch ms."""

    def __init__(self, log: TruthLog) -> None:
        self._log = log

    def holding(self, at_ms: int) -> Held | None:
        """Return the transaction that is open."""
        for one in self._log.transactions:
            if one.began_ms <= at_ms and (one.ended_ms is None or at_ms < one.ended_ms):
                return one
        return None

    def may_block(self, at_ms: int) -> Held | None:
        """Return the transaction that can honestly be said to block a group, or a moment ago could."""
        for one in self._log.transactions:
            ended_ms = one.ended_ms if one.ended_ms is not None else at_ms
            if one.began_ms + WAIT_MS <= at_ms <= ended_ms + ENDED_MS and ended_ms - one.began_ms >= WAIT_MS:
                return one
        return None

    def blocks(self, at_ms: int) -> bool:
        """Return whether a transaction has been open for so long that it must have been said."""
        one = self.holding(at_ms)
        return one is not None and at_ms - one.began_ms >= WAIT_MS + SAID_MS
