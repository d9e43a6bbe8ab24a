"""What is said about a controller of the KRaft quorum."""

from kview.derive.brokers.controllers import Controller, ControllerState, lags
from kview.language import glyphs, words
from kview.language.brokers import BrokerWords
from kview.model.events import Severity
from kview.model.units import UNKNOWN

QUORUM = "quorum"
"""What stands in place of a rack in the rows of controllers."""


def severity(controller: Controller) -> Severity:
    """Return how bad a controller's state is. Losing one is one step from losing the majority."""
    return Severity.CALM if state(controller).fine else Severity.WARN


def state(controller: Controller) -> BrokerWords:
    """Return what a controller is doing, with its sign."""
    match controller.state:
        case ControllerState.ACTIVE:
            return BrokerWords(glyphs.LEADER, "active", fine=True)
        case ControllerState.LOST:
            return _quiet(glyphs.DEAD, "silent", controller)
        case ControllerState.UNKNOWN:
            return BrokerWords(words.UNSEEN, "unknown")
        case _ if lags(controller):
            return _quiet(glyphs.UP, "no fetch", controller)
        case ControllerState.OBSERVES:
            return BrokerWords(glyphs.UP, "observer", fine=True)
        case _:
            return BrokerWords(glyphs.FOLLOWER, "voter", fine=True)


def _quiet(sign: str, name: str, controller: Controller) -> BrokerWords:
    quiet_ms = controller.quiet_ms
    lasts = "" if quiet_ms == UNKNOWN else f"≥{words.duration(quiet_ms, tenths=False)}"
    return BrokerWords(sign, name, lasts=lasts, lasts_ms=quiet_ms, is_bound=True)


def with_lag(controller: Controller) -> str:
    """Return what a node is in the quorum, and how far behind it is."""
    said = "observer" if controller.state is ControllerState.OBSERVES else state(controller).text
    if controller.behind in (UNKNOWN, 0):
        return said
    return f"{said}, {words.plural(controller.behind, 'metadata record')} behind"


def note(controller: Controller, epoch: int, now_ms: int, old_ms: int) -> str:
    """Return what else there is to say: the epoch of the active one, and how far a voter is behind.

    An answer that is older than `old_ms` is given with its age.
    """
    notes = []
    if controller.state is ControllerState.ACTIVE and epoch >= 0:
        notes.append(f"epoch {epoch}")
    if controller.behind not in (UNKNOWN, 0):
        notes.append(f"{words.plural(controller.behind, 'metadata record')} behind")
    age_ms = now_ms - controller.received_ms
    if controller.received_ms != UNKNOWN and age_ms > old_ms:
        notes.append(f"reported {words.duration(age_ms, tenths=False)} ago")
    return f" {glyphs.DOT} ".join(notes)
