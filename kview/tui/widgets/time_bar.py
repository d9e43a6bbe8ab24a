"""The time bar, while time is paused or a recording is played: where the moment shown lies between the first
and the last one, the incidents there, and what happened at the moment shown."""

from collections.abc import Sequence
from datetime import tzinfo

from kview.derive.view import View
from kview.language import glyphs, words
from kview.language import incidents as of_incident
from kview.language.briefs import brief
from kview.language.events import sentence
from kview.model.events import SEVERITY_ORDER, Severity
from kview.model.ports import TimeMark
from kview.model.units import UNKNOWN
from kview.tui.rows.common import ROLES
from kview.tui.text import Line, Role, Span, cut, line, line_width, runs

LEAST_CELLS, MOST_CELLS = 20, 100
"""The fewest and the most cells for the time between the first and the last moment."""

LATE_MS = 500
"""If an incident is seen this long after it began, that is said."""

HERE = "●"
"""The sign of the moment shown."""


def bar_line(view: View, replay: bool, zone: tzinfo | None, cells: int) -> Line:
    """Return `❚❚ 14:02:07.1 ├───✕━━▲┅┅───●────┤ live  3 partitions moved to broker 3`.

    ✕ is where an incident began, ━ while something was lost or frozen, and ▲ from where on replicas were
    only catching up.
    """
    moment, at_ms = view.moment, view.snapshot.observation.ended_ms
    sign = glyphs.PLAYING if moment.playing else glyphs.PAUSED
    begin = line(Span(f" {sign} {words.clock(at_ms, zone)} ", Role.BRIGHT), Span(glyphs.LOG_START, Role.DIM))
    last = "live" if not replay else words.clock(moment.last_ms, zone, tenths=False)
    end = line(Span(f"{glyphs.TICK} ", Role.DIM), Span(f"{last}  ", Role.DIM))
    if UNKNOWN in (moment.first_ms, moment.last_ms):
        return cut((*begin[:1], *happened(view)), cells)
    fixed = line_width(begin) + line_width(end)
    room = max(LEAST_CELLS, min(MOST_CELLS, (cells - fixed) // 2))
    bar = _bar(moment.marks, moment.first_ms, moment.last_ms, at_ms, min(room, max(1, cells - fixed)))
    return cut((*begin, *bar, *end, *happened(view)), cells)


def happened(view: View) -> Line:
    """Return what happened at the moment shown: an incident that it shows first, else the worst event, else
    what is wrong."""
    at_ms = view.snapshot.observation.ended_ms
    for incident in view.incidents:
        if incident.seen_ms == at_ms:
            late_ms = at_ms - incident.began_ms
            late = f", {of_incident.after(late_ms)}" if late_ms >= LATE_MS else ""
            return line(Span(of_incident.title(incident) + late, ROLES[incident.severity]))
    ranked = sorted(view.new_events, key=lambda event: SEVERITY_ORDER.index(event.severity))
    if not ranked:
        alarms = (Severity.RISK, Severity.WARN)
        wrong = [finding for finding in view.headline.findings if finding.severity in alarms][:1]
        return tuple(Span(brief(finding, at_ms)[0], ROLES[finding.severity]) for finding in wrong)
    more = f" {glyphs.DOT} +{len(ranked) - 1} more" if len(ranked) > 1 else ""
    return line(Span(sentence(ranked[0]), ROLES[ranked[0].severity]), Span(more, Role.DIM))


def _bar(marks: Sequence[TimeMark], first_ms: int, last_ms: int, at_ms: int, cells: int) -> Line:
    signs, roles = [glyphs.RULE] * cells, [Role.RULE] * cells

    def cell(ms: int) -> int:
        share = (ms - first_ms) / max(1, last_ms - first_ms)
        return min(cells - 1, max(0, round(share * (cells - 1))))

    def fill(begin: int, end: int, sign: str, role: Role) -> None:
        signs[begin:end], roles[begin:end] = [sign] * (end - begin), [role] * (end - begin)

    for mark in marks:
        ended_ms = last_ms if mark.ended_ms == UNKNOWN else mark.ended_ms
        if ended_ms < first_ms or mark.began_ms > last_ms:
            continue
        healing_ms = ended_ms if mark.healing_ms == UNKNOWN else mark.healing_ms
        began, healing, ended = cell(mark.began_ms), cell(healing_ms), cell(ended_ms)
        fill(began, healing + 1, glyphs.LINE, Role.RISK)
        if mark.healing_ms != UNKNOWN and healing > began:
            fill(healing, ended + 1, glyphs.DOTTED, Role.WARN)
            signs[healing] = glyphs.UP
    for mark in marks:
        if first_ms <= mark.began_ms <= last_ms:
            began = cell(mark.began_ms)
            signs[began], roles[began] = glyphs.DEAD, Role.RISK
    here = cell(at_ms)
    signs[here], roles[here] = HERE, Role.MOMENT
    return runs(signs, roles)
