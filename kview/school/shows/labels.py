"""What the keys do at the step that a lesson is at, for the key line and the head of the caption."""

from kview.school.conduct import Conduct, Phase
from kview.school.words import demo as said
from kview.tui.actions import Action, Kind
from kview.tui.fault_actions import FAULTS_BY_KEY

ANSWERS = ("overview", "placement", "topics", "partitions")
"""The actions whose keys choose an answer."""


def space_does(conduct: Conduct, insists: bool) -> str:
    """Return what the key of the next step does, '' if it only says what to do instead.

    While the step waits, the key asks first, unless somebody `insists`: it was pressed once.
    """
    if conduct.is_replaced:
        return ""
    match conduct.phase:
        case Phase.WATCH:
            return said.SKIP_WAIT if insists else said.SKIP_ASKS
        case Phase.DONE:
            return said.FINISH if conduct.number == conduct.steps - 1 else said.NEXT_STEP
    return ""


def label(action: Action, conduct: Conduct, is_away: bool, is_auto: bool) -> str | None:
    """Return what another key does, '' if the key line leaves it out, None if that is as always.

    `is_away` says whether an earlier moment is shown, and `is_auto` whether the lesson runs by itself.
    """
    if action.run == "lesson('auto')":
        return "" if conduct.phase is Phase.OVER or is_away else said.STOP if is_auto else None
    key = conduct.staged.key
    if conduct.phase is not Phase.PRESS or is_away or key is None or action.kind is not Kind.FAULT:
        return None
    fault = FAULTS_BY_KEY.get(action.keys[0])
    return action.label if fault is not None and fault.kind is key.kind else None
