"""The nodes of the KRaft quorum that are controllers: which of them is active, and which are lost."""

from enum import StrEnum
from typing import NamedTuple

from kview.derive.brokers.quorum import MAJORITY_QUIET_MS, QUORUM_SILENT_MS, VOTER_QUIET_MS
from kview.derive.view import View
from kview.model.findings import FindingKind
from kview.model.states import QuorumRole
from kview.model.units import UNKNOWN


class ControllerState(StrEnum):
    """What is known about a controller."""

    ACTIVE = "active"
    FOLLOWS = "follows"
    """It fetches the metadata log from the active controller."""
    OBSERVES = "observes"
    """It fetches the metadata log, but does not vote."""
    LOST = "lost"
    """It has not fetched for longer than a controller that lives."""
    UNKNOWN = "unknown"
    """Nobody can tell, because no controller answers, or the active one has not heard from it (yet)."""


class Controller(NamedTuple):
    """A node of the quorum, as the active controller last reported it."""

    node: int
    state: ControllerState
    is_broker: bool
    """Whether the node is a broker (too)."""
    votes: bool
    behind: int
    """Records of the metadata log behind the active controller, UNKNOWN if not known."""
    quiet_ms: int
    """The time from its last fetch to the answer, by the active controller's clock; UNKNOWN if not known."""
    received_ms: int
    """When the answer was received."""


CONTROLLER_FINDINGS = frozenset(
    {
        FindingKind.NO_CONTROLLER,
        FindingKind.QUORUM_LOST,
        FindingKind.QUORUM_SILENT,
        FindingKind.CONTROLLERS_LOST,
    }
)
"""The findings that are about controllers."""

_UNTOLD = frozenset({FindingKind.NO_CONTROLLER, FindingKind.QUORUM_SILENT, FindingKind.NO_BROKER_ANSWERS})
"""The findings that mean that nothing is known about single controllers."""


def is_troubled(view: View) -> bool:
    """Return whether anything is wrong with the controllers."""
    return any(finding.kind in CONTROLLER_FINDINGS for finding in view.headline.findings)


_STATES = {
    QuorumRole.LEADER: ControllerState.ACTIVE,
    QuorumRole.VOTER: ControllerState.FOLLOWS,
    QuorumRole.OBSERVER: ControllerState.OBSERVES,
}


def lost_controllers(view: View) -> frozenset[int]:
    """Return the controllers that are known to be lost."""
    lost = (f.controllers for f in view.headline.findings if f.kind is FindingKind.CONTROLLERS_LOST)
    return frozenset(node for nodes in lost for node in nodes)


def controllers(view: View) -> tuple[Controller, ...]:
    """Return the controllers, sorted by id: the voters, and observers that are not brokers. Empty without
    KRaft, or if the quorum was never described."""
    return tuple(node for node in quorum_nodes(view) if node.votes or not node.is_broker)


def quorum_nodes(view: View) -> tuple[Controller, ...]:
    """Return the voters and the observers of the quorum, sorted by id."""
    seen, quorum = view.snapshot.observation, view.snapshot.quorum
    findings = [f for f in view.headline.findings if f.kind in CONTROLLER_FINDINGS | _UNTOLD]
    lost = lost_controllers(view)
    no_majority = any(finding.kind is FindingKind.QUORUM_LOST for finding in findings)
    is_old = seen.ended_ms - seen.quorum_received_ms > QUORUM_SILENT_MS
    untold = (no_majority and is_old) or any(finding.kind in _UNTOLD for finding in findings)
    brokers = set(view.snapshot.brokers.id.tolist())
    clock_ms = int(quorum.last_fetch_ms.max(initial=UNKNOWN))
    end = int(quorum.log_end.max(initial=UNKNOWN))
    nodes = []
    for row, role in enumerate(quorum.role):
        node, is_leader = int(quorum.node[row]), role == QuorumRole.LEADER
        fetched_ms, log_end = int(quorum.last_fetch_ms[row]), int(quorum.log_end[row])
        unheard = not is_leader and fetched_ms == UNKNOWN
        unheard |= no_majority and fetched_ms < clock_ms - MAJORITY_QUIET_MS
        if node in lost:
            state = ControllerState.LOST
        elif untold or unheard:
            state = ControllerState.UNKNOWN
        else:
            state = _STATES[QuorumRole(role)]
        nodes.append(
            Controller(
                node=node,
                state=state,
                is_broker=node in brokers,
                votes=role != QuorumRole.OBSERVER,
                behind=UNKNOWN if is_leader or UNKNOWN in (end, log_end) else max(0, end - log_end),
                quiet_ms=UNKNOWN if is_leader or UNKNOWN in (clock_ms, fetched_ms) else clock_ms - fetched_ms,
                received_ms=seen.quorum_received_ms,
            )
        )
    return tuple(sorted(nodes))


def rank(controller: Controller) -> int:
    """Return the place of a controller in a list that has the worst first."""
    S = ControllerState
    return (S.LOST, S.UNKNOWN, S.ACTIVE, S.FOLLOWS, S.OBSERVES).index(controller.state)


def lags(controller: Controller) -> bool:
    """Return whether a node follows or observes, but has not fetched for longer than usual."""
    follows = controller.state in (ControllerState.FOLLOWS, ControllerState.OBSERVES)
    return follows and controller.quiet_ms != UNKNOWN and controller.quiet_ms > VOTER_QUIET_MS // 2
