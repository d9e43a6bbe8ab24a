"""What the time bar shows of incidents: when each began, was being healed, and ended."""

from collections.abc import Iterable

from kview.model.incidents import Incident, PhaseKind
from kview.model.ports import TimeMark
from kview.model.units import UNKNOWN

_REPAIRS = (PhaseKind.ELECTED, PhaseKind.MOVES)
"""The phases after which a partition can be read and written again."""


def time_marks(incidents: Iterable[Incident]) -> tuple[TimeMark, ...]:
    """Return the marks of incidents, in their order."""
    return tuple(
        TimeMark(incident.began_ms, incident.seen_ms, _healing_ms(incident), incident.ended_ms)
        for incident in incidents
        if incident.is_open or incident.phases[-1].kind is not PhaseKind.JOINED
    )


def _healing_ms(incident: Incident) -> int:
    """Return since when every partition has been led again and its watermark moved, UNKNOWN if not yet."""
    repairs = [phase for phase in incident.phases if phase.kind in _REPAIRS]
    is_hurt = incident.is_waiting or incident.leaderless or incident.none_answers
    if is_hurt or not repairs or not all(phase.is_complete for phase in repairs):
        return UNKNOWN
    return max(phase.last_ms for phase in repairs)
