"""What is said in a drill: find the broker and the cause."""

from kview.language import glyphs
from kview.language.words import duration, plural

INTRO = "Something is wrong with this cluster. Find out what was hit, and what happened. Every screen works."
HEALTHY = (
    "All is well so far. Take in the figures: in a few seconds something will go wrong, and nothing will"
    " announce it."
)
QUIET = "Watch the cluster for a moment: what is wrong may take a minute to show."
SOMETHING_ELSE = "something else: a controller, a producer or a topic"
WHERE = "WHAT WAS HIT?"
MOMENT, ANOTHER = "the moment of the fault", "another one"
NO_HINTS = "there are no more hints"
HEADLINE = "the headline is hidden until you have answered: find out for yourself"


def cause(hit: str, name: str) -> str:
    """Return the question that follows the answer to WHERE. `name` is '' for something else."""
    return f"WHAT HAPPENED TO {hit.upper()} {name}?" if name else "WHAT HAPPENED?"


def clock(length_ms: int) -> str:
    """Return the time on a drill's clock: `2:05`."""
    seconds = max(0, length_ms) // 1000
    return f"{seconds // 60}:{seconds % 60:02}"


def hint(text: str) -> str:
    """Return a hint that somebody has paid for."""
    return f"Hint: {text}"


def give_up(key: str) -> str:
    """Return how to give up, which a person may have asked for by mistake."""
    return f"press {key} again to give up and see the answer"


def keys(answer: str, hint: str, left: int, costs_ms: int) -> str:
    """Return what to press."""
    hints = f"{hint} gives a hint ({left} left, each costs {duration(costs_ms, tenths=False)})"
    return f"press {answer} when you know the answer" + (f" {glyphs.DOT} {hints}" if left else "")


def wrong(tries: int) -> str:
    """Return that an answer was wrong."""
    return f"No, that is not what happened ({plural(tries, 'wrong answer')} so far). Look again."


def solved(cause: str, clock_ms: int, hints: int, tries: int) -> str:
    """Return that a drill is solved."""
    helped = f", with {plural(hints, 'hint')}" if hints else ", without a hint"
    joined = " and" if hints else ", with"
    again = f"{joined} {plural(tries, 'wrong answer')}" if tries else ""
    return f"Right: {cause}. Your time: {clock(clock_ms)}{helped}{again}."


def given_up(cause: str) -> str:
    """Return the answer to somebody who has given up."""
    return f"The answer: {cause}."


def seen_after(symptom: str, after_ms: int) -> str:
    """Return when a symptom was there to be seen, negative if it has not been seen."""
    return f"+{duration(after_ms)} {symptom}" if after_ms >= 0 else f"{symptom}: not seen so far"


def debriefing(key: str, events: str, moment: str) -> str:
    """Return how to see the recording, by the keys of the fault, of the events, and of an event's moment."""
    return (
        f"{key} shows the moment of the fault in the recording. {events} lists the events: {moment} on one of"
        " them shows the cluster as it was then."
    )


def returns(key: str) -> str:
    """Return how to go back to the present while an earlier moment is shown."""
    return f"This is an earlier moment, from the recording. {key} returns to now."
