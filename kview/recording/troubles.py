"""Finds the troubles of a recording in the columns that it keeps, without folding its snapshots.

This reads three or four columns where they changed, which takes a hundredth of the time of a fold, so that
the time bar of a long recording has its marks soon.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from kview.model.ports import TimeMark
from kview.model.states import BrokerState
from kview.model.units import NO_BROKER, UNKNOWN
from kview.recording.reader import Recording

COLUMNS = ("brokers.state", "partitions.leader", "partitions.isr")
"""The columns that tell whether there is trouble."""

MAX_MARKS = 200
"""The most marks kept, the latest ones: a time bar has no more cells."""


class Health(NamedTuple):
    """What the columns say from a moment on."""

    at_ms: int
    hurt: bool
    """Whether a broker is silent, or a partition has no leader."""
    missing: int
    """How many replicas are missing from the ISRs, compared with the replicas that are listed."""


def healths(recording: Recording, cancelled: Callable[[], bool]) -> Iterator[Health]:
    """Yield the health of the cluster whenever it may have changed. Ends early if `cancelled`.

    Raises KviewError if a segment cannot be read.
    """
    for at_ms, (state, leader, isr), replicas in recording.changed_columns(COLUMNS, "partitions.replicas"):
        if cancelled():
            return
        hurt = bool((state == BrokerState.SILENT).any() or (leader == NO_BROKER).any())
        yield Health(at_ms, hurt, int((replicas >= 0).sum()) - int((isr >= 0).sum()))


def troubles(health: Iterator[Health]) -> tuple[TimeMark, ...]:
    """Return a mark for each trouble: from the first hurt until every ISR is as full as before it.

    What hurts when the recording begins counts as begun there.
    """
    marks: list[TimeMark] = []
    began, before, last = UNKNOWN, 0, Health(UNKNOWN, False, 0)
    healing = UNKNOWN
    for now in health:
        if began == UNKNOWN and now.hurt:
            began, before, healing = now.at_ms, 0 if last.at_ms == UNKNOWN else last.missing, UNKNOWN
        elif began != UNKNOWN and now.hurt:
            healing = UNKNOWN
        if began != UNKNOWN and not now.hurt:
            healing = now.at_ms if healing == UNKNOWN else healing
            if now.missing <= before:
                marks.append(TimeMark(began, began, healing, now.at_ms))
                began = UNKNOWN
        last = now
    if began != UNKNOWN:
        marks.append(TimeMark(began, began, healing, UNKNOWN))
    return tuple(marks[-MAX_MARKS:])
