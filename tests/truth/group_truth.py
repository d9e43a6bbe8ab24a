"""What is true of the groups at a moment, by their clients' own books. Pure."""

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from statistics import median

from kview.model.events import Severity
from kview.model.states import GroupType
from tests.truth.broker_truth import Bounds, Brokers, Condition
from tests.truth.log import Partition, Placed, Track, TruthLog
from tests.truth.schedule import INVOICE, Do
from tests.truth.transaction_truth import Transactions

STOPPED_SAID_MS = 12_000
"""How soon a group that nobody reads for must be told from one between two members."""
OVERDUE_SAID_MS = 140_000
"""The same of a simple group, whose commits must have been missing for two minutes."""
BEHIND_MS, GROWS_MS, GROWTH_SEEN_MS = 15_000, 2_500, 10_000
"""A group falls behind beyond doubt if it is 15 s behind, and twice lost 2.5 s within 10 s. Once would be a
reset, from which it may gain."""
NOT_BEHIND_MS, LOOK_BACK_MS = 5_000, 30_000
"""A group keeps up beyond doubt if it was never further behind for this long."""
LOSS_STAYS_MS = 30_000
RESET_MS = 5_000
"""A reset is in the log once the group's consumer has joined again, this much later at most."""
COMMITTED_AT_ONCE = 30
"""A simple group's commits are this many records apart."""
UNACKNOWLEDGED_MS = 1_500
STEADY = frozenset({Condition.UP, Condition.RECOVERING, Condition.LABOURING})
FAR = 1_000
MISSED_MS = 5_000
"""How soon a silent coordinator, a silent leader or a commit beyond the end must be said."""


class Groups:
    """Answers questions about groups at moments of a run, which are epoch ms."""

    def __init__(
        self,
        log: TruthLog,
        brokers: Brokers,
        placed: Callable[[int], Placed | None],
        transactions: Transactions,
    ) -> None:
        self._log = log
        self._transactions = transactions
        self._brokers = brokers
        self._placed = placed

    @property
    def names(self) -> list[str]:
        """The groups."""
        return list(self._log.members)

    def severity(self, group: str, at_ms: int) -> Bounds:
        """Return what the severity can be as far as one group is concerned."""
        least = most = Severity.CALM
        if self.may_be_in_trouble(group, at_ms):
            most = Severity.WARN
        lost_ms = self.lost_ms(group, at_ms)
        if lost_ms is not None:
            most = Severity.RISK
        if self.trouble(group, at_ms) or (
            lost_ms is not None and MISSED_MS < at_ms - lost_ms < LOSS_STAYS_MS
        ):
            least = Severity.WARN
        return least, max(least, most, key=[Severity.CALM, Severity.WARN, Severity.RISK].index)

    def trouble(self, group: str, at_ms: int) -> str:
        """Return why a group is not ok beyond doubt, '' if it may be."""
        if self._nobody_reads(group, at_ms):
            return "nobody reads it, and records wait"
        if self.waits(group, at_ms):
            return "a transaction blocks it" if self._transactions.blocks(at_ms) else ""
        if self._falls_behind(group, at_ms):
            return "it falls behind"
        if all(self.beyond_end(group, at_ms - back) for back in (0, MISSED_MS)):
            return "it is beyond the end of the log"
        return ""

    def unseen(self, group: str, at_ms: int) -> str:
        """Return which silence hides how a group is doing, '' if there is none."""
        moments = (at_ms, at_ms - MISSED_MS // 2, at_ms - MISSED_MS)
        if all(self._is(self.coordinator(then), Condition.SILENT, then) for then in moments):
            return "its coordinator is silent"
        if all(any(self._leader_is_silent(one, then) for one in self._partitions(group)) for then in moments):
            return "a leader of its partitions is silent"
        return ""

    def may_be_blocked(self, group: str, at_ms: int) -> bool:
        """Return whether any partition may stand still: every partition has replicas on every broker.

        A partition of the group does if nothing that is written to it is acknowledged.
        """
        seen = self._placed(at_ms)
        silent = Condition.SILENT in self._brokers.all(at_ms).values()
        if silent or seen is None or seen.without_leader > 0 or seen.under_min_isr > 0:
            return True
        ends = (self._log.ends[one] for one in self._partitions(group) if one in self._log.ends)
        return any(at_ms - (end.changed_ms(at_ms) or 0) > UNACKNOWLEDGED_MS for end in ends)

    def may_be_in_trouble(self, group: str, at_ms: int) -> bool:
        """Return whether a group can honestly be called anything but ok."""
        back = range(0, LOOK_BACK_MS + 1, 3_000)
        behind = max(self._behind_ms(group, at_ms - one) or 0 for one in back)
        set_back = any(
            deed.group == group and deed.do in (Do.REWIND, Do.SKIP, Do.BEYOND, Do.RECREATE)
            for deed in self._log.deeds
            if deed.at_ms <= at_ms + RESET_MS
        )
        return behind >= NOT_BEHIND_MS or not self.has_member(group, at_ms) or set_back

    def kind(self, group: str) -> GroupType:
        """Return what kind of group its members are of."""
        return self._log.kinds.get(group, GroupType.CLASSIC)

    def waits(self, group: str, at_ms: int) -> bool:
        """Return whether a transaction holds back what a group reads with read_committed."""
        held = self._transactions.holding(at_ms)
        return held is not None and (group, held.partition) in self._log.committed

    def may_be_held(self, group: str, at_ms: int) -> bool:
        """Return whether a group can honestly be called blocked by a transaction."""
        held = self._transactions.may_block(at_ms)
        return held is not None and (group, held.partition) in self._log.committed

    def coordinator(self, at_ms: int) -> int:
        """Return the broker that had last loaded the groups, -1 if none had."""
        found = [one.broker for one in self._log.coordinators if one.at_ms <= at_ms]
        return found[-1] if found else -1

    def is_to_coordinate(self, at_ms: int) -> int:
        """Return the broker that leads the groups' partition, which may not have loaded them yet."""
        seen = self._placed(at_ms)
        return seen.leaders.get(("__consumer_offsets", 0), -1) if seen is not None else -1

    def has_member(self, group: str, at_ms: int) -> bool:
        """Return whether the group's consumer runs."""
        return bool(self._log.members[group].at(at_ms))

    def had_member(self, group: str, since_ms: int, until_ms: int) -> list[bool]:
        """Return whether the group's consumer ran, once for each part of a period."""
        return [bool(value) for value in self._log.members[group].between(since_ms, until_ms)] or [False]

    def beyond_end(self, group: str, at_ms: int) -> bool:
        """Return whether the group has committed far beyond the end of a log.

        Its writer may not have heard yet that its last records are there.
        """
        return any(committed > (end.at(at_ms) or 0) + FAR for end, committed in self._tracks(group, at_ms))

    def lag(self, group: str, at_ms: int) -> int | None:
        """Return the records that wait for a group, None if it has committed nothing."""
        pairs = list(self._tracks(group, at_ms))
        return sum(max(0, (end.at(at_ms) or 0) - committed) for end, committed in pairs) if pairs else None

    def read_per_second(self, group: str, at_ms: int) -> float:
        """Return the highest rate of reading of any 5 s in the last 30 s."""
        track = self._log.read[group]
        counts = [track.at(at_ms - back) or 0 for back in range(0, 35_001, 1_000)]
        return max((new - old) / 5 for new, old in zip(counts, counts[5:], strict=False))

    def lost_ms(self, group: str, at_ms: int) -> int | None:
        """Return when records were last deleted that a group had not read."""
        found = [
            deed.at_ms
            for deed in self._log.deeds
            if deed.do is Do.DELETE and deed.group == group and deed.count > 0 and deed.at_ms <= at_ms
        ]
        return found[-1] if found else None

    def _nobody_reads(self, group: str, at_ms: int) -> bool:
        simple = self.kind(group) is GroupType.SIMPLE
        moments = range(at_ms - (OVERDUE_SAID_MS if simple else STOPPED_SAID_MS), at_ms + 1, 3_000)
        return all(not self.has_member(group, then) and (self.lag(group, then) or 0) > 0 for then in moments)

    def _falls_behind(self, group: str, at_ms: int) -> bool:
        """An observer that could not see every broker for a while needs some time to see what grows."""
        if self.kind(group) is GroupType.SIMPLE and not self.has_member(group, at_ms):
            return False  # its next commit may only be late
        back = range(0, GROWTH_SEEN_MS + 1, 2_000)
        if not all(STEADY.issuperset(self._brokers.all(at_ms - one).values()) for one in back):
            return False
        found = [self._behind_ms(group, at_ms - back * GROWTH_SEEN_MS) or 0 for back in range(3)]
        grows = all(new - old >= GROWS_MS for new, old in pairwise(found))
        return found[0] >= BEHIND_MS and grows

    def _behind_ms(self, group: str, at_ms: int) -> int | None:
        """Return how long the oldest record that waits for a group has waited."""
        if self.kind(group) is GroupType.SHARE:
            return self._backlog_ms(group, at_ms)
        waits = []
        at_once = COMMITTED_AT_ONCE if self.kind(group) is GroupType.SIMPLE else 1
        for end, committed in self._tracks(group, at_ms):
            written_ms = end.first_at_least(committed + at_once)
            waits.append(max(0, at_ms - written_ms) if written_ms is not None else 0)
        return max(waits) if waits else None

    def _backlog_ms(self, group: str, at_ms: int) -> int:
        """Return how long the oldest record has waited for a share group, at least.

        It commits nothing, so what it was given is compared with what was written. Most of the time, nothing
        waits for it.
        """
        written = self._written
        now, before = written.at(at_ms), self._log.read[group].at(at_ms)
        if now is None or before is None:
            return 0
        unread = now - before - self._usual[group]
        first_ms = written.first_at_least(now - unread + 1) if unread > 0 else None
        return max(0, at_ms - first_ms) if first_ms is not None else 0

    @cached_property
    def _usual(self) -> dict[str, int]:
        """By how many records each share group was given fewer than were written, most of the time."""
        return {
            group: round(
                median(
                    (self._written.at(at_ms) or 0) - count
                    for at_ms, count in zip(given.at_ms, given.values, strict=True)
                )
            )
            for group, given in self._log.read.items()
            if self.kind(group) is GroupType.SHARE and given.at_ms
        }

    @cached_property
    def _written(self) -> Track:
        """The records of the topic that the share group reads."""
        ends = [track for (topic, _), track in self._log.ends.items() if topic == INVOICE]
        moments = sorted({at_ms for track in ends for at_ms in track.at_ms})
        return Track(moments, [sum(track.at(at_ms) or 0 for track in ends) for at_ms in moments])

    def _partitions(self, group: str) -> list[Partition]:
        return [partition for name, partition in self._log.committed if name == group]

    def _tracks(self, group: str, at_ms: int) -> Iterator[tuple[Track, int]]:
        """Yield the ends and the group's commit at a moment of each of its partitions."""
        for partition in self._partitions(group):
            committed = self._log.committed[group, partition].at(at_ms)
            if committed is not None and committed >= 0 and partition in self._log.ends:
                yield self._log.ends[partition], committed

    def _leader_is_silent(self, partition: Partition, at_ms: int) -> bool:
        seen = self._placed(at_ms)
        leader = seen.leaders.get(partition, -1) if seen is not None else -1
        return self._is(leader, Condition.SILENT, at_ms)

    def _is(self, broker: int, condition: Condition, at_ms: int) -> bool:
        known = broker in self._log.brokers
        return known and self._brokers.condition(broker, at_ms) is condition
