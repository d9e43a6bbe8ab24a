"""What happens in a step: keys that a person presses, and commands of the lab."""

from difflib import get_close_matches

from kview.errors import BadUse
from kview.lab.commands import parse
from kview.model.lab import Command
from kview.school.conduct import Staged
from kview.school.figures import NotAFigure
from kview.school.lesson import Lesson

SLOW_BY = "200ms"
"""How much the key of the action `slow` slows a broker down."""
PRESSES = {
    "crash": "crash",
    "stop": "stop",
    "hang": "hang",
    "slow": "slow",
    "isolate": "isolate",
    "lose-disk": "lose-disk",
    "restore": "start",
    "lose-rack": "lose-rack",
    "crash-controller": "crash-controller",
    "undo-faults": "undo",
}
"""The actions of keys that cause a fault, and the command of the lab that does the same."""
LOOKING = (
    "overview", "placement", "topics", "partitions", "groups", "events", "open", "back", "filter", "sort",
)  # fmt: skip
"""The actions of keys that only show something else."""


def pressed(text: str) -> Command | None:
    """Return what pressing a key does to the cluster, None if it only shows something. Raises NotAFigure."""
    action, *target = text.split() or [""]
    if action in LOOKING:
        return None
    if action not in PRESSES:
        known = [*PRESSES, *LOOKING]
        near = get_close_matches(action, known, 1)
        hint = f"did you mean {near[0]}?" if near else f"available actions: {', '.join(known)}"
        raise NotAFigure(f"no key has an action named {action!r}", hint)
    slow = [SLOW_BY] if action == "slow" and len(target) == 1 else []
    return act(" ".join([PRESSES[action], *target, *slow]))


def act(text: str) -> Command:
    """Return the command in a line. Raises NotAFigure."""
    try:
        return parse(text)
    except BadUse as error:
        from kview.language.errors import message, remedy

        raise NotAFigure(message(error), remedy(error)) from None


def staged(lesson: Lesson) -> tuple[Staged, ...]:
    """Return the steps of a lesson with what they do. Raises NotAFigure."""
    return tuple(
        Staged(step, pressed(step.press) if step.press else None, tuple(map(act, step.does)))
        for step in lesson.steps
    )
