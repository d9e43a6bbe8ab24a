"""Rows of incidents, of the partitions that one of them hit, and of events."""

from collections.abc import Hashable, Sequence
from datetime import tzinfo
from itertools import compress

from kview.derive.passing import Listed, passing_texts
from kview.derive.view import View
from kview.language import findings, glyphs, words
from kview.language import incidents as said
from kview.language.events import sentence
from kview.model.events import Event, Severity
from kview.model.incidents import HitPartition, Incident, IncidentKind, PhaseKind
from kview.model.units import NO_BROKER, UNKNOWN, UNKNOWN_ID
from kview.tui.options import Options
from kview.tui.rows.columns import Column, with_bound
from kview.tui.rows.common import FRESH_MS, ROLES, SIGNS, Keyed, title
from kview.tui.rows.figures import (
    AT_LEAST,
    AT_MOST,
    Figure,
    count_figure,
    duration_figure,
    moment_figure,
    number_figure,
)
from kview.tui.rows.row import Row
from kview.tui.text import EMPTY, Line, Role, Span, line, line_width

ENDED_ROLE = Role.DIM
EVENT_ROLES = {**ROLES, Severity.CALM: Role.TEXT}


def state(incident: Incident) -> Line:
    """Return what an incident waits for, or how it ended, with its sign."""
    role = ROLES[incident.severity]
    text = said.waits_for(incident)
    if incident.is_open:
        return line(Span(f"{SIGNS[incident.severity]} {text}", role))
    ended = incident.phases[-1]
    return line(
        Span(f"{SIGNS[incident.severity]} ", role), Span(said.phase_text(ended, incident), ENDED_ROLE)
    )


def _wrong_already(view: View) -> str:
    """Return what is wrong now, '' if nothing is: it may have begun before kview watched."""
    worst = next(iter(view.headline.findings), None)
    if worst is None or worst.severity not in (Severity.RISK, Severity.WARN):
        return ""
    return f". Wrong now: {findings.sentence(worst, view.snapshot.observation.ended_ms)}"


class IncidentRows(Keyed[tuple[object, ...]]):
    """The incidents, newest first. The key is the incident's."""

    def __init__(self, view: View, options: Options, zone: tzinfo | None) -> None:
        listed = list(reversed(view.incidents))
        texts = [said.sentence(incident, 0) for incident in listed]
        about = [incident.brokers for incident in listed]
        newest = list(compress(listed, passing_texts(texts, about, options.wanted)))
        super().__init__([incident.key for incident in newest])
        self._incidents, self._zone = newest, zone
        going = sum(incident.is_open for incident in newest)
        order = "newest first" if len(newest) > 1 else ""
        self.title: Line = title("INCIDENTS", order, options.filter_of(Listed.EVENTS))
        if going:
            self.title += (Span(f"  {going} going on", Role.WARN),)
        self.empty = (
            "no incident matches the filter"
            if view.incidents
            else f"none was seen to begin{_wrong_already(view)}"
        )
        what = max((line_width(line(said.title(incident))) for incident in newest), default=8)
        ends = max((line_width(state(incident)) for incident in newest), default=8)
        self.columns: Sequence[Column] = (
            Column("began", "", 8),
            Column("what", "", min(what, 30), flex=3, most=what),
            Column("lasted", "lasted", 9, right=True, exported=with_bound("lasted", "s")),
            Column("hit", "hit", 5, right=True, rank=3),
            Column("moved", "moved", 5, right=True, rank=4),
            Column("waited", "waited ≤", 8, right=True, rank=2, exported=with_bound("waited", "s")),
            Column("gone", "gone ≥", 7, right=True, rank=1, exported=with_bound("gone")),
            Column("state", "state", min(ends, 32), flex=4, most=ends),
        )

    def row(self, index: int, now_ms: int) -> Row:
        incident = self._incidents[index]
        role = Role.TEXT if incident.is_open else ENDED_ROLE
        waited_ms = said.waited_ms(incident)
        return Row(
            (
                moment_figure(words.clock(incident.began_ms, self._zone, tenths=False), incident.began_ms),
                line(Span(said.title(incident), ROLES[incident.severity] if incident.is_open else Role.TEXT)),
                duration_figure(
                    said.length(incident, now_ms),
                    said.longest_ms(incident, now_ms),
                    "" if incident.not_before_ms == UNKNOWN else AT_MOST,
                    role,
                ),
                count_figure(incident.partitions, role),
                count_figure(incident.moved, role),
                duration_figure(said.waited(incident), waited_ms, AT_MOST if waited_ms else "", role),
                _gone_figure(incident.gone, role),
                state(incident),
            ),
            now_ms - incident.began_ms < FRESH_MS,
        )


class HitRows(Keyed[tuple[str, int]]):
    """The partitions that an incident hit. The key is (topic, partition)."""

    def __init__(self, incident: Incident | None, options: Options) -> None:
        named = incident.hit if incident else ()
        listed = [hit for hit in named if options.internal or not hit.internal]
        about = [(hit.leader_before, hit.leader_after) for hit in listed]
        self._hit = list(
            compress(listed, passing_texts([hit.topic for hit in listed], about, options.wanted))
        )
        super().__init__([(hit.topic, hit.partition) for hit in self._hit])
        self.troubled = sum(hit.leaderless for hit in self._hit)
        note = "leader changes first"
        if incident is not None:
            total = incident.partitions + (incident.internal_partitions if options.internal else 0)
            if total > len(listed):
                note += f", the first {len(listed):,} of {total:,}"
            elif incident.internal_partitions and not options.internal:
                note += f", +{incident.internal_partitions:,} internal ({options.keys.name('internal')})"
        self.title: Line = title("PARTITIONS HIT", note, options.filter_of(Listed.EVENTS))
        self.empty = "no partition was hit" if not named else "no partition matches the filter"
        longest = max((len(hit.topic) for hit in self._hit), default=5)
        width = max((len(_ids(hit.isr_before)) for hit in self._hit), default=6)
        self.columns: Sequence[Column] = (
            Column("topic", "topic", min(max(longest, 8), 24), flex=2, most=40, name=True),
            Column("partition", "p", 4, right=True),
            Column("leader", "leader·epoch", 16, flex=1, most=22),
            Column("isr", "ISR before → after", max(18, 2 * width + 3), flex=1, most=40),
            Column("gone", "gone ≥", 7, right=True, rank=1, exported=with_bound("gone")),
        )

    def row(self, index: int, now_ms: int) -> Row:
        hit = self._hit[index]
        left = [broker for broker in hit.isr_before if broker not in hit.isr_after]
        isr = line(Span(_ids(hit.isr_before), Role.DIM))
        if left:
            isr += (Span(f" {glyphs.ARROW} ", Role.DIM), Span(_ids(hit.isr_after), Role.WARN))
        return Row(
            (
                line(hit.topic),
                number_figure(hit.partition),
                _leaders(hit),
                isr,
                _gone_figure(hit.gone, Role.DIM) if _had_election(hit) else EMPTY,
            )
        )


def _gone_figure(gone: int, role: Role) -> Figure:
    """Return the cell of how many records are gone at least. None is gone only if no leader was lost."""
    return count_figure(gone, Role.RISK if gone > 0 else role, mark=AT_LEAST if gone else "")


def _had_election(hit: HitPartition) -> bool:
    return hit.moved or hit.leaderless


def _ids(ids: Sequence[int]) -> str:
    return " ".join(map(str, ids)) or words.NONE


def _leader(broker: int, epoch: int) -> str:
    after = f"{glyphs.DOT}{epoch}" if epoch != UNKNOWN_ID else ""
    return f"{words.NONE if broker < 0 else broker}{after}"


def _leaders(hit: HitPartition) -> Line:
    """Return `4·5 → 2·6`, `4·5 → none`, or `1·5` if there was no election."""
    before = _leader(hit.leader_before, hit.epoch_before)
    if hit.moved and hit.leader_after != NO_BROKER:
        now = _leader(hit.leader_after, hit.epoch_after)
        ends = line(Span(f"{before} {glyphs.ARROW} ", Role.DIM), Span(now))
        return ends + (line(Span("  now none", Role.RISK)) if hit.leaderless else EMPTY)
    if hit.leaderless:
        return line(Span(f"{before} {glyphs.ARROW} ", Role.DIM), Span("none", Role.RISK))
    return line(Span(before, Role.DIM))


def event_key(event: Event) -> tuple[object, ...]:
    """Return what identifies an event in every view, but for equal ones of the same moment."""
    return (event.at_ms, event.kind, event.brokers, event.group, event.topic, event.partition_count)


class EventRows(Keyed[tuple[object, ...]]):
    """The events, newest first."""

    def __init__(self, view: View, options: Options, zone: tzinfo | None) -> None:
        newest = sorted(reversed(view.events), key=lambda event: event.at_ms, reverse=True)
        if options.wanted:
            about = [event.brokers for event in newest]
            passing = passing_texts([sentence(event) for event in newest], about, options.wanted)
            newest = list(compress(newest, passing))
        super().__init__([event_key(event) for event in newest])
        self.events, self._zone = newest, zone
        self.title: Line = title("EVENTS", "newest first", options.filter_of(Listed.EVENTS))
        self.empty = "no event matches the filter" if view.events else f"none yet{_wrong_already(view)}"
        self.columns: Sequence[Column] = (
            Column("at", "", 10),
            Column("what", "", 20, flex=1),
        )

    def row(self, index: int, now_ms: int) -> Row:
        event = self.events[index]
        role = EVENT_ROLES[event.severity]
        sign = SIGNS[event.severity] if event.severity is not Severity.CALM else glyphs.DOT
        at = words.clock(event.at_ms, self._zone)
        return Row(
            (moment_figure(at, event.at_ms), line(Span(f"{sign} ", role), Span(sentence(event), role))),
            now_ms - event.at_ms < FRESH_MS,
        )


def incident_of(view: View, key: Hashable) -> Incident | None:
    """Return the incident with that key, None if the view has none."""
    return next((incident for incident in view.incidents if incident.key == key), None)


def stage_lines(incident: Incident, now_ms: int, zone: tzinfo | None) -> list[Line]:
    """Return the stopwatch: a line for each stage with its time of day and its times since the beginning."""

    stages = said.stages(incident)
    begun = said.during(0, said.began_until_ms(incident))
    width = max(9, len(begun), *(len(stage.when) for stage in stages), 0)

    def row(after_ms: int, when: str, *what: Span) -> Line:
        clock = Span(f"  {words.clock(incident.began_ms + after_ms, zone)}  ", Role.DIM)
        return line(clock, Span(f"{when:>{width}}  ", Role.HEAD), *what)

    lines = [row(0, begun, Span(said.title(incident), _role(PhaseKind.SILENT, incident)))]
    for stage in stages:
        role = _role(stage.kinds[-1], incident)
        lines.append(row(stage.after_ms, stage.when, Span(stage.text, role)))
    if incident.is_open:
        waits = Span(f"{glyphs.ELLIPSIS} {said.waits_for(incident)}", ROLES[incident.severity])
        lasted_ms = said.lasted_ms(incident, now_ms)
        lines.append(row(lasted_ms, said.after(lasted_ms), waits))
    return lines


def _role(kind: PhaseKind, incident: Incident) -> Role:
    if kind in (PhaseKind.MOVES, PhaseKind.ELECTED, PhaseKind.BACK):
        phase = incident.phase(kind)
        return Role.GOOD if phase and phase.is_complete else Role.WARN
    if kind in (PhaseKind.ISR_FULL, PhaseKind.QUORUM_BACK):
        return Role.GOOD
    if kind in (PhaseKind.FENCED, PhaseKind.REMOVED, PhaseKind.REPEATED):
        return Role.WARN
    return Role.RISK if incident.is_open else Role.TEXT


def facts(incident: Incident, options: Options) -> list[tuple[str, Line]]:
    """Return the figures of an incident, as pairs of a name and what is known."""
    figures = [("hit", line(said.hit(incident)))]
    if incident.leaderless:
        names = said.without_leader(incident).removeprefix("no leader: ")
        figures.append(("no leader", line(Span(names, Role.RISK))))
    if moves := said.moves(incident, options.internal):
        figures.append(("moved", line(f" {glyphs.DOT} ".join(moves))))
    waited = words.NONE if incident.waited_ms == UNKNOWN else f"≤ {words.duration(incident.waited_ms)}"
    note = " so far" if incident.is_waiting else ""
    figures.append(("acks=all", line(Span("producers waited ", Role.DIM), f"{waited}{note}")))
    figures.append(("gone", _gone(incident)))
    names = ", ".join(incident.groups)
    more = incident.groups_count - len(incident.groups)
    groups = f"{names}{f' + {more:,} more' if more > 0 else ''}" if names else "none that kview saw"
    figures.append(("waited", line(Span("groups ", Role.DIM), groups)))
    return figures


def _gone(incident: Incident) -> Line:
    """Return how many records are gone, and what that figure means."""
    if incident.gone > 0:
        about = " records that only the old leaders had, acknowledged or not"
        return line(Span(f"≥ {words.count(incident.gone)}", Role.RISK), Span(about, Role.DIM))
    if incident.kind is IncidentKind.QUORUM:
        return line(words.NONE)
    if incident.gone == UNKNOWN:
        about = f" {glyphs.DOT} kview may have missed what was written just before"
        return line(Span("not known", Role.TEXT), Span(about, Role.DIM))
    return line(Span("no records", Role.TEXT), Span(f" {glyphs.DOT} no leader was lost", Role.DIM))
