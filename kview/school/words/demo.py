"""What is said while a demo goes on, on the screen."""

from collections.abc import Sequence

from kview.language import glyphs
from kview.language.commands import in_force
from kview.language.words import duration, plural
from kview.model.lab import ActiveFault, Command, CommandKind

STARTING = f"starting a fresh cluster for this demo {glyphs.ELLIPSIS}"
ASKED = "what do you think?"
LEFT = "you have left the demo; its cluster keeps running"
NO_ANSWER = "choose an answer first"
BY_ITSELF = "by itself"

# What a key does, for the key line and the head of the caption.
NEXT_STEP, FINISH, NEXT_DEMO = "next step", "finish", "next demo"
SKIP_WAIT, SKIP_ASKS = "skip", "skip?"
TO_NOW = "back to now"
STOP = "stop"
LEAVE = "leave"

_PRESS = {
    CommandKind.CRASH: "crash broker {node}",
    CommandKind.STOP: "stop broker {node}",
    CommandKind.HANG: "hang broker {node}",
    CommandKind.SLOW: "slow broker {node} down",
    CommandKind.LOSE_DISK: "take a disk from broker {node}",
    CommandKind.ISOLATE: "isolate broker {node}",
    CommandKind.START: "bring broker {node} back",
    CommandKind.LOSE_RACK: "cut the power of rack {name}",
    CommandKind.CRASH_CONTROLLER: "crash the active controller",
    CommandKind.UNDO: "undo all faults",
}


def step_of(number: int, steps: int) -> str:
    """Return where in a demo one is. `number` counts from 0."""
    return f"step {number + 1} of {steps}"


def short_step(number: int, steps: int) -> str:
    """Return the same in a few cells."""
    return f"{number + 1}/{steps}"


def to_press(command: Command, key: str, is_aimed: bool) -> str:
    """Return what the person should press. `is_aimed` says whether the key would hit the right broker now."""
    does = _PRESS[command.kind].format(node=command.node, name=command.name)
    if len(key) == 1 and key.isupper():
        key = f"{key} (Shift+{key.lower()})"  # The small letter moves the selection, or does nothing.
    if is_aimed:
        return f"press {key} to {does}"
    if command.kind is CommandKind.LOSE_RACK:
        return f"select a broker of rack {command.name} with the arrow keys, then press {key} to {does}"
    return f"select broker {command.node} with the arrow keys, then press {key} to {does}"


def verdict(is_right: bool, right: str, because: str) -> str:
    """Return whether an answer was right, and why."""
    return f"Right. {because}" if is_right else f"Not quite. The right answer was: {right}. {because}"


def not_asked(extra: Sequence[ActiveFault], way_back: str) -> str:
    """Return that faults are in force which the demo did not ask for, and how to end them."""
    return f"The demo did not ask for this: {', '.join(in_force(extra))}. {way_back}"


def ended(missing: Sequence[tuple[str, int, str]], key: str, restart: str) -> str:
    """Return that faults have ended which the demo still needs, each given as a node's role, number and
    fault."""
    nodes = " and ".join(f"{role} {node}" for role, node, _ in missing)
    way_back = "" if len(missing) > 1 else f"Select it and press {key}, or: "
    return (
        f"This comes too early: the demo still needs {nodes} {missing[0][2]}. {way_back}{restart} starts the"
        " demo again."
    )


def replaced(restart: str) -> str:
    """Return that the demo's cluster is gone, and the key that starts the demo again."""
    return f"The demo's cluster has failed, and a fresh one is in its place: {restart} starts the demo again."


def way_back(key: str, does: str) -> str:
    """Return what to press to end such a fault: `B (restore 3) undoes it`."""
    return f"Watch what it does; {key} ({does}) undoes it and the demo goes on."


def way_back_selected(key: str, node: int, is_broker: bool = True) -> str:
    """Return what to press if the key would bring another node back first.

    A controller often has no row that could be selected, but it was hit last.
    """
    if not is_broker:
        where = f"controller {node}"
        return f"Select a broker that is up and press {key}: that restores {where} and the demo goes on."
    return f"Select broker {node} and press {key}: that undoes it and the demo goes on."


def waiting(sentences: Sequence[tuple[str, int]]) -> str:
    """Return what has not come true yet, behind how long it may still take in ms, negative if unknown:
    `6 s until broker 4 is fenced`.

    What may take equally long stands together.
    """
    within: dict[str, list[str]] = {}
    for text, left_ms in sentences:
        limit = f"{duration(left_ms, tenths=False)} until " if left_ms > 0 else "until "
        within.setdefault(limit, []).append(text)
    return f" {glyphs.DOT} ".join(f"{limit}{' and '.join(texts)}" for limit, texts in within.items())


def watching(sentences: Sequence[str], left_ms: int) -> str:
    """Return how long the step goes on, and what is true so far and should stay so: `6 s stays: …`."""
    stays = f" stays: {f' {glyphs.DOT} '.join(sentences)}" if sentences else ""
    return f"{duration(left_ms, tenths=False)}{stays}"


def missed(sentence: str) -> str:
    """Return that something did not come true in time."""
    return f"This did not happen in time: {sentence}."


def change(noun: str, before: str, after: str) -> str:
    """Return a figure before and after."""
    return f"{noun}: {before} {glyphs.ARROW} {after}" if before != after else f"{noun}: still {after}"


def refused(why: str) -> str:
    """Return that the cluster refused what a step does."""
    return f"The cluster refused it: {why}"


def past(clock: str, key: str) -> str:
    """Return that an earlier step is shown."""
    return f"This is how it was at {clock}. The cluster does not go back: {key} returns to now."


def over(title: str, steps: int, right: int, asked: int) -> str:
    """Return that a demo is over."""
    if asked == 1:
        answers = " Your answer was right." if right else " Your answer was not right, but now you know why."
    else:
        verb = "was" if right == 1 else "were"
        answers = f" {right} of your {asked} answers {verb} right." if asked else ""
    return f"That was: {title}, in {plural(steps, 'step')}.{answers}"


def next_demo(title: str, key: str) -> str:
    """Return what to do after a demo."""
    return f"{key} starts the next one: {title}. The cluster stays as it is until then, and every key works."


def leave_again(key: str) -> str:
    """Return how to leave, which a person may have asked for by mistake."""
    return f"press {key} again to leave; the fault stays as it is"


def begin_again(key: str) -> str:
    """Return what to press to give up a drill for another one."""
    return f"press {key} again to give this one up and begin another"


def still_waits(key: str) -> str:
    """Return that a step still waits for something."""
    return f"the step is not over; press {key} again to go on anyway"
