"""Why something could not be judged, from the failures of an observation."""

from kview.model.checks import NotJudgedWhy
from kview.model.failures import NOT_AUTHORIZED, Cause, FailureKind, Part
from kview.model.snapshot import Observation

_WAITING = frozenset({FailureKind.NONE, FailureKind.NOT_CONNECTED, FailureKind.OVERDUE})
"""The kinds of an answer that may still come."""


def why_of(cause: Cause) -> NotJudgedWhy:
    """Return why something could not be judged, from the cause of a failure."""
    if cause.kind in _WAITING:
        return NotJudgedWhy.NO_HISTORY
    if cause.kind is FailureKind.KAFKA_ERROR and cause.code in NOT_AUTHORIZED:
        return NotJudgedWhy.NOT_AUTHORIZED
    unsupported = cause.kind is FailureKind.UNSUPPORTED
    return NotJudgedWhy.UNSUPPORTED if unsupported else NotJudgedWhy.NOT_ANSWERED


def cause_of(seen: Observation, part: Part) -> Cause:
    """Return why `part` failed. Without a failure, it has only not been answered yet."""
    causes = (Cause(FailureKind(f.kind), f.code) for f in seen.failures if f.part == part)
    return next(causes, Cause(FailureKind.NOT_CONNECTED))
