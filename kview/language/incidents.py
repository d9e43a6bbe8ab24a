"""Incidents as words: what happened, its stages with their times, and what followed from it."""

from collections.abc import Mapping
from itertools import groupby
from typing import NamedTuple

from kview.language import glyphs, nouns
from kview.language.words import at_least, count, duration
from kview.model.incidents import HitPartition, Incident, IncidentKind, Phase, PhaseKind
from kview.model.units import UNKNOWN

MOST_NAMES = 4
"""The most partitions named in one sentence. More of them are only counted."""

GONE_UNKNOWN = "records gone: not known"
"""What is said while nothing is known about the loss. A loss that kview did not see may have happened."""

TOGETHER_MS = 3_000
"""Brokers that fall silent within this time are said to have been lost together: kview asks each once a
second, and may wait a second for an answer."""


class Stage(NamedTuple):
    """What happened in an incident, from `after_ms` to `until_ms` after it began.

    The text has the counts as they were at the end of that time.
    """

    after_ms: int
    until_ms: int
    text: str
    kinds: tuple[PhaseKind, ...]

    @property
    def when(self) -> str:
        """`+8.7 s`, or `+1 m 37 s … +2 m 51 s` if it took some time."""
        return during(self.after_ms, self.until_ms)


def title(incident: Incident) -> str:
    """Return what the incident began with: `broker 4 silent`."""
    match incident.kind:
        case IncidentKind.BROKERS if _began_with_all(incident):
            return "no broker answers" if incident.none_answers else "no broker answered"
        case IncidentKind.BROKERS:
            left = incident.phase(PhaseKind.STOPPED) is not None
            return f"{nouns.some_brokers(incident.brokers)} {'left the cluster' if left else 'silent'}"
        case IncidentKind.QUORUM:
            active = incident.controllers
            return f"{nouns.controllers(active)} without a majority" if active else "no controller can act"
        case IncidentKind.PARTITIONS:
            what = "no leader" if incident.phase(PhaseKind.FROZEN) is None else "watermark frozen"
            return f"{what}, although no broker is silent"


def _began_with_all(incident: Incident) -> bool:
    """Return whether all brokers were lost together."""
    none = incident.phase(PhaseKind.NO_ANSWER)
    return none is not None and none.at_ms - incident.began_ms < TOGETHER_MS


def after(length_ms: int) -> str:
    """Return a time since an incident began: `+8.7 s`."""
    return f"+{duration(length_ms)}"


def during(first_ms: int, last_ms: int) -> str:
    """Return the time from one moment of an incident to another: `+9.1 s … +20 s`."""
    return after(first_ms) if first_ms == last_ms else f"{after(first_ms)} {glyphs.ELLIPSIS} {after(last_ms)}"


def began_until_ms(incident: Incident) -> int:
    """Return how long after its first sign an incident still lost brokers, 0 if it lost all at once."""
    first = incident.phases[:1]
    return _until_ms(first[0]) - incident.began_ms if first and first[0].kind in _BEGINNINGS else 0


def _until_ms(phase: Phase) -> int:
    """Return when a phase had its counts: the moment when it began, if they changed soon after it."""
    return phase.last_ms if phase.last_ms - phase.at_ms >= _LATER_MS else phase.at_ms


_LATER_MS = 1_500
"""Counts that change within this time are of one moment: kview looks once a second, and an observation takes
some time itself."""


def lasted_ms(incident: Incident, now_ms: int) -> int:
    """Return how long an incident has lasted, or lasted in all."""
    return max(0, (now_ms if incident.is_open else incident.ended_ms) - incident.began_ms)


def length(incident: Incident, now_ms: int) -> str:
    """Return how long an incident has lasted in words: `≤ 48 s` if it may have begun later than that."""
    lasts = duration(longest_ms(incident, now_ms))
    return lasts if incident.not_before_ms == UNKNOWN else f"≤ {lasts}"


def longest_ms(incident: Incident, now_ms: int) -> int:
    """Return how long an incident has lasted, at most if it may have begun later than that."""
    lasts_ms = lasted_ms(incident, now_ms)
    if incident.not_before_ms == UNKNOWN:
        return lasts_ms
    return lasts_ms + incident.began_ms - incident.not_before_ms


def waited(incident: Incident) -> str:
    """Return how long a producer may have waited, in words. A clean stop makes nobody wait."""
    return "nobody" if _is_clean(incident) else duration(incident.waited_ms)


def waited_ms(incident: Incident) -> int:
    """Return how long a producer may have waited at most: 0 after a clean stop, UNKNOWN if nobody knows."""
    return 0 if _is_clean(incident) else incident.waited_ms


def _is_clean(incident: Incident) -> bool:
    """Return whether the brokers left without a silence, and nobody had to wait."""
    return incident.phase(PhaseKind.STOPPED) is not None and incident.waited_ms == UNKNOWN


def first_seen(incident: Incident) -> str:
    """Return that the moment shown is the first one that has the incident."""
    late_ms = incident.seen_ms - incident.began_ms
    late = f", {duration(late_ms)} after it began" if late_ms >= _SEEN_LATE_MS else ""
    return f"the incident is first seen here{late}"


_SEEN_LATE_MS = 500
"""An incident that is seen this long after it began is worth saying so."""


def stages(incident: Incident, terse: bool = False) -> list[Stage]:
    """Return the stages of an incident after its beginning. What was seen at the same time is one stage.

    Terse stages have fewer words. Partitions of internal topics count only if there are no others.
    """
    rest = [phase for phase in incident.phases if phase.kind not in _BEGINNINGS and not _is_undone(phase)]
    later_stages = []
    for (at_ms, until_ms), together in groupby(rest, key=lambda phase: (phase.at_ms, _until_ms(phase))):
        phases = [phase for phase in together if not _is_said(phase, incident)]
        texts = [text for phase in phases if (text := phase_text(phase, incident, terse))]
        if texts:
            times = at_ms - incident.began_ms, until_ms - incident.began_ms
            later_stages.append(Stage(*times, ", ".join(texts), tuple(p.kind for p in phases)))
    return later_stages


_BEGINNINGS = frozenset({PhaseKind.SILENT, PhaseKind.STOPPED, PhaseKind.QUORUM_LOST})


def _is_undone(phase: Phase) -> bool:
    """Return whether nothing is left of a repair: all that was led again was lost again."""
    is_repair = phase.kind in (PhaseKind.ELECTED, PhaseKind.MOVES, PhaseKind.BACK)
    return is_repair and not phase.count and not phase.internal_count


def _is_said(phase: Phase, incident: Incident) -> bool:
    """Return whether something else says the same: a leader that is back says that there was none."""
    if phase.kind is PhaseKind.NO_ANSWER:
        return _began_with_all(incident)
    return phase.kind is PhaseKind.NO_LEADER and incident.phase(PhaseKind.ELECTED) is not None


def phase_text(phase: Phase, incident: Incident, terse: bool = False) -> str:
    """Return a phase without its time: `7 of 8 led again`."""
    is_one = len(incident.brokers) == 1
    number = _number(phase)
    match phase.kind:
        case PhaseKind.SILENT:
            return f"{nouns.some_brokers(incident.brokers)} silent"
        case PhaseKind.STOPPED:
            return f"{nouns.some_brokers(incident.brokers)} left the cluster"
        case PhaseKind.QUORUM_LOST:
            return title(incident)
        case PhaseKind.NO_ANSWER:
            return "no broker answers" if incident.none_answers else "no broker answered"
        case PhaseKind.NO_LEADER:
            return f"no leader for {number}"
        case PhaseKind.FROZEN:
            return f"{number} frozen" if terse else f"watermark frozen on {number}"
        case PhaseKind.FENCED:
            return "fenced" if is_one else f"{phase.count} of {phase.total} fenced"
        case PhaseKind.ELECTED:
            return f"{number} led" if terse else f"{number} led again"
        case PhaseKind.MOVES:
            return f"{number} move" if terse else f"watermarks move again on {number}"
        case PhaseKind.BACK:
            return (
                ("back" if terse else "broker back")
                if is_one
                else f"{phase.count} of {phase.total} brokers back"
            )
        case _:
            return _ENDS[phase.kind]


_ENDS: Mapping[PhaseKind, str] = {
    PhaseKind.ISR_FULL: "all replicas in sync",
    PhaseKind.QUORUM_BACK: "a controller acts again",
    PhaseKind.REMOVED: "broker removed from the cluster",
    PhaseKind.REPEATED: "lost again (new incident)",
    PhaseKind.JOINED: "joined an older incident",
}


def _number(phase: Phase) -> str:
    """Return `7 of 8`, `8`, or `25 internal`. Kinds without a total of their own have only a count."""
    has_total = phase.kind in (PhaseKind.ELECTED, PhaseKind.MOVES)
    if not phase.total and not phase.count:
        return f"{_of(phase.internal_count, phase.internal_total, has_total)} internal"
    return _of(phase.count, phase.total, has_total)


def _of(some: int, all_of: int, has_total: bool) -> str:
    return f"{some:,} of {all_of:,}" if has_total and some != all_of else f"{some:,}"


def waits_for(incident: Incident) -> str:
    """Return what has to happen next, '' if the incident is over."""
    if not incident.is_open:
        return ""
    majority = "waiting for a majority of controllers"
    if incident.kind is IncidentKind.QUORUM:
        return majority
    if incident.none_answers:
        return "waiting for any broker to answer"
    if incident.no_controller and (incident.unfenced or incident.leaderless):
        return majority
    if incident.unfenced:
        return "waiting for fencing"
    if incident.leaderless:
        mine = incident.leaderless - incident.internal_leaderless
        return f"{nouns.partitions(mine, incident.internal_leaderless)} without a leader"
    if incident.is_waiting:
        return "waiting for watermarks"
    if incident.away:
        return f"waiting for {nouns.some_brokers(incident.away)}"
    return "waiting for full ISR"


def outcome(incident: Incident) -> str:
    """Return how an incident ended: `all replicas in sync after 21.1 s`, '' if it goes on."""
    if incident.is_open:
        return ""
    how = phase_text(incident.phases[-1], incident)
    return f"{how} after {length(incident, incident.ended_ms)}"


def consequences(incident: Incident, internal: bool = False) -> list[str]:
    """Return what followed from an incident, each as a few words, the most important first."""
    if incident.kind is IncidentKind.QUORUM:
        parts = ["no elections, no fencing and no new topics meanwhile"]
        if incident.not_before_ms != UNKNOWN:
            early_ms = incident.began_ms - incident.not_before_ms
            parts.append(f"may have begun up to {duration(early_ms)} earlier, when no broker answered")
        return parts
    parts = []
    if without := without_leader(incident):
        parts.append(without)
    parts += moves(incident, internal)
    if back := returned(incident, internal):
        parts.append(back)
    if incident.waited_ms != UNKNOWN:
        verb = "waiting" if incident.is_waiting else "waited"
        parts.append(f"acks=all producers {verb} ≤ {duration(incident.waited_ms)}")
    if incident.gone != UNKNOWN or not _is_clean(incident):
        parts.append(records_gone(incident))
    if incident.groups_count:
        names = ", ".join(incident.groups[:2])
        more = incident.groups_count - 2
        parts.append(f"groups waited: {names}{f' + {more:,} more' if more > 0 else ''}")
    return parts


def records_gone(incident: Incident) -> str:
    """Return `records gone ≥ 12`, or `records gone: not known`."""
    if incident.gone == UNKNOWN:
        return GONE_UNKNOWN
    return (
        f"records gone {at_least(f' {count(incident.gone)}', True)}" if incident.gone else "no records gone"
    )


def without_leader(incident: Incident) -> str:
    """Return `no leader: audit-log-0`, '' if every partition is led."""
    names = [(partition.topic, partition.partition) for partition in incident.hit if partition.leaderless]
    return f"no leader: {partition_names(names, incident.leaderless)}" if names else ""


def moves(incident: Incident, internal: bool = False) -> list[str]:
    """Return who leads the partitions now that had lost their leader: `invoice-0, -6 → broker 3`."""
    texts = []
    ordered = sorted(
        _elected(incident, internal, returned=False), key=lambda partition: partition.leader_after
    )
    for leader, together in groupby(ordered, key=lambda partition: partition.leader_after):
        names = [(partition.topic, partition.partition) for partition in together]
        texts.append((len(names), f"{partition_names(names, len(names))} {glyphs.ARROW} broker {leader}"))
    return [text for _, text in sorted(texts, key=lambda pair: -pair[0])]


def returned(incident: Incident, internal: bool = False) -> str:
    """Return which partitions waited for the leader that they had before: `audit-log-3 back on broker 4`.

    '' if there are none.
    """
    back = _elected(incident, internal, returned=True)
    if not back:
        return ""
    names = partition_names([(partition.topic, partition.partition) for partition in back], len(back))
    leaders = sorted({partition.leader_after for partition in back})
    where = f"broker {leaders[0]}" if len(leaders) == 1 else "their old leaders"
    return f"{names} back on {where}"


def _elected(incident: Incident, internal: bool, returned: bool) -> list[HitPartition]:
    """Return the partitions that had lost their leader and got it back (`returned`), or got another one.

    Those of internal topics are left out, unless there are no others or `internal` asks for them.
    """
    elected = [
        partition
        for partition in incident.hit
        if partition.moved
        and partition.leader_after >= 0
        and _lost_leader(partition, incident)
        and partition.returned == returned
    ]
    mine = [partition for partition in elected if internal or not partition.internal]
    return mine if mine or returned else elected


def _lost_leader(partition: HitPartition, incident: Incident) -> bool:
    return not incident.brokers or partition.leader_before in incident.brokers


def partition_names(names: list[tuple[str, int]], total: int) -> str:
    """Return names with each topic said once: `invoice-0, -6, payment-0 + 3 more`."""
    said, before = [], None
    for topic, partition in names[:MOST_NAMES]:
        said.append(f"-{partition}" if topic == before else f"{topic}-{partition}")
        before = topic
    more = total - len(said)
    return ", ".join(said) + (f" + {more:,} more" if more > 0 else "")


def sentence(incident: Incident, now_ms: int) -> str:
    """Return an incident in one line: what it began with, its stages, and what it waits for or its end."""
    begun = title(incident)
    if until_ms := began_until_ms(incident):
        begun = f"{begun} by {after(until_ms)}"
    parts = [begun, *(f"{stage.when} {stage.text}" for stage in stages(incident))]
    if incident.is_open:
        parts.append(f"{waits_for(incident)} ({after(lasted_ms(incident, now_ms))})")
    return f" {glyphs.MARK} ".join(parts)


def hit(incident: Incident) -> str:
    """Return how many partitions were hit: `10 partitions`."""
    return nouns.partitions(incident.partitions, incident.internal_partitions)
