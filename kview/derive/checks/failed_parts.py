"""What a check cannot judge because a part of the last observation failed."""

from collections.abc import Iterator, Mapping

import numpy as np

from kview.derive.checks.causes import why_of
from kview.derive.checks.partitions import topics_of
from kview.derive.view import View
from kview.model.checks import GROUP_KINDS, PARTITION_KINDS, CheckKind, NotJudged
from kview.model.failures import Cause, FailureKind, Part
from kview.model.states import BrokerState
from kview.model.units import NO_BROKER

METADATA_KINDS = (
    *PARTITION_KINDS,
    CheckKind.BROKER_GONE,
    CheckKind.BROKER_LOSS,
    CheckKind.RACK_LOSS,
    CheckKind.LEADER_SKEW,
)
"""The kinds that follow from metadata."""

KINDS: Mapping[Part, tuple[CheckKind, ...]] = {
    Part.METADATA: METADATA_KINDS,
    Part.TOPICS: (*METADATA_KINDS, *GROUP_KINDS),  # commits to hidden topics are left out, too
    Part.REGISTERED_BROKERS: (CheckKind.BROKER_FENCED,),
    Part.OFFSETS: (CheckKind.FROZEN,),
    Part.GROUPS: GROUP_KINDS,
    Part.COMMITS: GROUP_KINDS,
    Part.SHARE_OFFSETS: (CheckKind.GROUP_FALLING_BEHIND, CheckKind.GROUP_STOPPED),
    Part.CONFIGS: (CheckKind.THROTTLE_LEFT,),  # others see that min.insync.replicas is unknown
    Part.REASSIGNMENTS: (CheckKind.THROTTLE_LEFT,),
    Part.SESSION_TIMEOUT: (CheckKind.THROTTLE_LEFT,),  # the brokers' throttles come with it
    Part.PRODUCERS: (CheckKind.OPEN_TRANSACTION, CheckKind.HANGING_TRANSACTION),
    Part.TRANSACTIONS: (CheckKind.HANGING_TRANSACTION,),
    Part.CONNECTORS: (CheckKind.CONNECT_TASK_FAILED,),
}
"""What cannot be judged without the answer to a part."""

TOLD_ELSEWHERE = frozenset({
    Part.BROKER,  # a finding says that the broker does not answer
    Part.BOOTSTRAP,  # so does one for every broker
    Part.QUORUM,  # what has never been answered is not known; what was, becomes a finding after a while
    Part.LOG_DIRS,  # the bytes on disk are not known
    Part.LOG_ENDS,  # no kind is judged by these
    Part.TIME_POINTS,  # a group's lag in time is not known, so there is no verdict without other evidence
    Part.ELR,  # without it, fewer replicas count as eligible, not more
})  # fmt: skip
"""The parts whose failure shows in what was asked for, or that no kind needs."""


def failed_not_judged(view: View) -> Iterator[NotJudged]:
    """Yield the kinds that depend on an answer that failed, by part and cause.

    A part that is in neither table may matter for every kind.
    """
    failed: dict[tuple[Part, Cause], list[int]] = {}
    for failure in view.snapshot.observation.failures:
        if failure.part not in TOLD_ELSEWHERE:
            cause = Cause(FailureKind(failure.kind), failure.code)
            failed.setdefault((Part(failure.part), cause), []).append(failure.broker)
    for (part, cause), ids in failed.items():
        kinds = KINDS.get(part, tuple(CheckKind))
        brokers = tuple(broker for broker in ids if broker != NO_BROKER)
        names: tuple[str, ...] = ()
        if part is Part.OFFSETS:
            names, brokers = _led_by(view, brokers)
            if not names:
                continue
        yield NotJudged(kinds, why_of(cause), names, brokers, cause)


def _led_by(view: View, brokers: tuple[int, ...]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the topics led by those of `brokers` that are up, and these. Of others, findings tell."""
    table = view.snapshot.brokers
    up = table.id[np.asarray(table.state == BrokerState.UP, np.bool_) & np.isin(table.id, brokers)]
    led = np.asarray(np.isin(view.snapshot.partitions.leader, up), np.bool_)
    return topics_of(view, led), tuple(up.tolist())
