"""What each fault on a simulated cluster does and how to undo it, in one sentence each: for the lab's answers
and for help."""

from dataclasses import dataclass

from kview.model.ports import FaultKind


@dataclass(frozen=True, slots=True)
class FaultWords:
    """How a fault is explained: `usage` as typed, `does` for a person, `undo` the line that ends it.

    `{node}`, `{rack}` and `{argument}` stand for what the command named.
    """

    usage: str
    does: str
    undo: str


WORDS: dict[FaultKind, FaultWords] = {
    FaultKind.CRASH: FaultWords(
        "crash NODE",
        "{node} is killed as by kill -9: it refuses connections, and is fenced when its session runs out",
        "start {id}",
    ),
    FaultKind.STOP: FaultWords(
        "stop NODE",
        "{node} is told to stop: it hands over its leaderships and leaves the ISRs before it ends",
        "start {id}",
    ),
    FaultKind.HANG: FaultWords(
        "hang NODE",
        "{node} is frozen as by kill -STOP: it accepts connections and answers nothing",
        "start {id}",
    ),
    FaultKind.SLOW: FaultWords(
        "slow NODE MILLISECONDSms",
        "{node} is slow: each of its answers and fetches takes {argument} longer",
        "start {id}",
    ),
    FaultKind.START: FaultWords(
        "start NODE",
        "{node} is brought back: whatever fault it had has ended",
        "give the fault again",
    ),
    FaultKind.LOSE_RACK: FaultWords(
        "lose-rack RACK",
        "rack {rack} has lost its power: every broker in it is killed at once",
        "undo",
    ),
    FaultKind.CRASH_CONTROLLER: FaultWords(
        "crash-controller",
        "{node}, the active controller, is killed: the other voters elect one of them",
        "start {id}",
    ),
    FaultKind.UNDO: FaultWords(
        "undo",
        "every fault has ended: all nodes are brought back",
        "give the faults again",
    ),
}
