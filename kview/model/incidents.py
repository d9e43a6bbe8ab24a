"""Incidents: a fault, its consequences and its end, as facts. `kview.language.incidents` puts them into
words."""

from enum import StrEnum

from msgspec import Struct

from kview.model.events import Severity
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID


class IncidentKind(StrEnum):
    """What an incident began with. JSON documents contain the values, so they must not change."""

    BROKERS = "brokers"
    """The cluster lost `brokers`: they stopped answering, and not only kview. If no broker answers any more,
    nobody can tell that, and all of them belong to the incident."""
    QUORUM = "quorum"
    """No controller could act. `controllers` has the active one that heard no majority, if there was one."""
    PARTITIONS = "partitions"
    """Partitions lost their leader or their watermark froze, although no broker was lost."""


class PhaseKind(StrEnum):
    """The stages of an incident. JSON documents contain the values, so they must not change."""

    SILENT = "silent"
    """The first request that a broker did not answer; for a broker that left cleanly, when that was seen."""
    STOPPED = "stopped"
    """Brokers left the cluster without a silence that anybody waited for."""
    NO_ANSWER = "no_answer"
    """None of the `total` brokers answered kview any more. Whether the others still reached them is not
    known."""
    QUORUM_LOST = "quorum_lost"
    NO_LEADER = "no_leader"
    """`count` partitions had no leader."""
    FROZEN = "frozen"
    """The watermarks of `count` partitions stood still."""
    FENCED = "fenced"
    """The controller fenced `count` of the `total` brokers, or no longer lists them."""
    ELECTED = "elected"
    """`count` of `total` partitions that had lost their leader are led again."""
    MOVES = "moves"
    """The watermarks of `count` of `total` partitions that were frozen move again."""
    BACK = "back"
    """`count` of `total` brokers answer again."""
    ISR_FULL = "isr_full"
    """Every replica of every partition that was hit is in sync again."""
    QUORUM_BACK = "quorum_back"
    REMOVED = "removed"
    """The brokers are no longer part of the cluster."""
    REPEATED = "repeated"
    """The same broker was lost again: a new incident goes on from here."""
    JOINED = "joined"
    """No broker was left, so an older incident, to which all of them belong, goes on from here."""


ENDS = frozenset(
    {PhaseKind.ISR_FULL, PhaseKind.QUORUM_BACK, PhaseKind.REMOVED, PhaseKind.REPEATED, PhaseKind.JOINED}
)
"""The phases that end an incident."""


class Phase(Struct, frozen=True):
    """A stage of an incident, first seen at `at_ms` (epoch ms)."""

    kind: PhaseKind
    at_ms: int
    count: int = 0
    """How many brokers or partitions of the user's topics it concerns, depending on the kind."""
    total: int = 0
    """Out of how many."""
    internal_count: int = 0
    """The same for partitions of internal topics."""
    internal_total: int = 0
    last_ms: int = UNKNOWN
    """When a count last changed, epoch ms. UNKNOWN if the kind has no count."""

    @property
    def is_complete(self) -> bool:
        """Whether all that was to happen in this stage has happened."""
        return (self.count, self.internal_count) == (self.total, self.internal_total)


class HitPartition(Struct, frozen=True):
    """A partition that an incident hit: its leader and its ISR before and after.

    `leader_after` and `epoch_after` are those of the first election within the incident, NO_BROKER if there
    was none or nobody leads. `isr_after` is the smallest ISR that was seen within the incident, of
    equally small ones the first without the incident's brokers.
    """

    topic: str
    partition: int
    internal: bool
    leader_before: int
    epoch_before: int
    isr_before: tuple[int, ...]
    leader_after: int = NO_BROKER
    epoch_after: int = UNKNOWN_ID
    isr_after: tuple[int, ...] = ()
    moved: bool = False
    """Whether there was an election within the incident, which another broker may have won."""
    leaderless: bool = False
    """Whether nobody leads the partition now because of this incident."""
    gone: int = UNKNOWN
    """A lower bound of the records that only the old leader had. UNKNOWN if nothing is known about them: also
    if kview saw none, because the leader may have written more after its last reading."""

    @property
    def returned(self) -> bool:
        """Whether the election gave the partition back to the leader that it had before."""
        return self.moved and self.leader_after == self.leader_before


class Incident(Struct, frozen=True):
    """A fault and what followed from it. Incidents that are over do not change any more."""

    kind: IncidentKind
    began_ms: int
    """When it began, in epoch ms: the first sign of it that kview saw."""
    seen_ms: int
    """When the observation ended that shows it first, in epoch ms. It takes some seconds to tell that a
    broker that hangs is lost."""
    phases: tuple[Phase, ...]
    """In the order in which they were first seen."""
    brokers: tuple[int, ...] = ()
    not_before_ms: int = UNKNOWN
    """The earliest moment at which it can have begun, in epoch ms, if nobody could tell until `began_ms`
    because no broker answered. UNKNOWN if `began_ms` is when it began."""
    away: tuple[int, ...] = ()
    """Those of the brokers that are not back: they are silent, fenced, starting or no longer listed."""
    unfenced: int = 0
    """How many of them are silent, and still have to be fenced."""
    no_controller: bool = False
    """Whether no controller can act now, so that nothing is fenced or elected."""
    controllers: tuple[int, ...] = ()
    ended_ms: int = UNKNOWN
    """UNKNOWN while it goes on."""
    partitions: int = 0
    """The number of the user's partitions that were hit: a lost broker led them or was in their ISR."""
    internal_partitions: int = 0
    hit: tuple[HitPartition, ...] = ()
    """The partitions that were hit, those whose leader changed first, then the user's; not all if there are
    many."""
    moved: int = 0
    """The number of the user's partitions that had lost their leader and got another one. A partition that
    waited for its leader to return has not moved."""
    leaderless: int = 0
    """The number of partitions, internal ones included, that have no leader now, or had none at the end. One
    that a later incident took the leader from counts there."""
    internal_leaderless: int = 0
    """How many of them are of internal topics."""
    gone: int = UNKNOWN
    """A lower bound of the records that were in an old leader's log and are not in the new leader's. It is
    not known whether they were acknowledged. UNKNOWN while nothing is known, and if kview saw none. 0 only if
    no partition lost its leader."""
    gone_partitions: int = 0
    """The number of partitions that lost these records."""
    waited_ms: int = UNKNOWN
    """An upper bound of how long an acks=all producer waited on a partition, so far or in all, because its
    watermark was frozen or nobody led it; UNKNOWN if there was none. A wait in which two incidents had a part
    counts in one of them only."""
    is_waiting: bool = False
    """Whether some watermark is still frozen or some partition has no leader, so that `waited_ms` grows."""
    groups: tuple[str, ...] = ()
    """The groups with members that had to wait, by name; not all of them if there are many."""
    groups_count: int = 0

    @property
    def key(self) -> tuple[str, int]:
        """What identifies the incident in every view. Brokers that are lost later do not change it."""
        return (self.kind, self.began_ms)

    @property
    def is_open(self) -> bool:
        """Whether the incident goes on."""
        return self.ended_ms == UNKNOWN

    @property
    def none_answers(self) -> bool:
        """Whether no broker has answered kview since the last of them was lost."""
        back = self.phase(PhaseKind.BACK)
        lost = self.is_open and self.phase(PhaseKind.NO_ANSWER) is not None
        return lost and not (back and back.count)

    @property
    def severity(self) -> Severity:
        """RISK while leaders are missing, watermarks are frozen, no broker answers or no controller acts.

        WARN while it goes on otherwise, GOOD if it ended with every replica in sync."""
        if not self.is_open:
            is_good = self.phases[-1].kind in (PhaseKind.ISR_FULL, PhaseKind.QUORUM_BACK)
            return Severity.GOOD if is_good else Severity.CALM
        at_risk = self.is_waiting or self.leaderless > 0 or self.none_answers
        at_risk |= self.kind is IncidentKind.QUORUM
        return Severity.RISK if at_risk else Severity.WARN

    def phase(self, kind: PhaseKind) -> Phase | None:
        """Return the phase of that kind, or None if it was not seen."""
        return next((phase for phase in self.phases if phase.kind is kind), None)
