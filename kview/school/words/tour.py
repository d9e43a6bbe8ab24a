"""What the first-run tour says."""

from collections.abc import Mapping

from kview.language import commands, glyphs
from kview.model.lab import CommandKind, Done, NodeRole, Outcome

HEADING = "TOUR"
THE_END = "the end"
LEFT = "you have left the tour"
ENDS = "end the tour"
SKIP = "skip the tour"
SHOWS = "show the tour: what the overview shows, in five steps, and a broker to crash"

STEPS = (
    "This is a simulated Kafka cluster on this machine: break it as often as you like. Its servers, the"
    " brokers, are listed by rack. Each leads some partitions and keeps copies of others; ● means that it"
    " answers.",
    "A topic is split into partitions. Each has a leader (●), which writes and reads go to, and copies on"
    " other brokers. Copies that keep up (○) are in sync: the ISR. A record that all of these have is"
    " committed, so any of them can take over without losing it.",
    "Consumer groups read the topics. LAG is how many records a group has not read yet, BEHIND is how long"
    " ago the oldest of them was written, and the verdict says what that means.",
    "The last line lists the keys that work now. {screens} are the screens, {open} opens the selected row,"
    " {back} goes back. {find} finds anything by name, and {help} explains every sign, word and figure of"
    " a screen.",
    "Now break something. The arrow keys select a broker; {crash} kills it, without a warning to anybody, as"
    " if its power was cut. Watch the brokers, and the partitions that it leads.",
)
"""The captions. A name in braces stands for the key of the action of that name, as on the key line."""

GROUPS_STEP = 2
"""The caption about groups."""

TRAP = "Zero lag does not mean that all is well: the cluster may be blocking the group."


def stopped(group: str) -> str:
    """Return what the sign of a group that has stopped means, in the caption about groups."""
    return f"{glyphs.UP} asks for attention: {group} has stopped, because no member is left to read for it."


_SEEN: Mapping[CommandKind, str] = {
    CommandKind.CRASH: "{node} was killed: its port refuses connections. Kafka does not know yet: until the"
    " broker's session ends (broker.session.timeout.ms) the broker is still listed as leader, and what it"
    " leads stands still.",
    CommandKind.HANG: "{node} hangs: it accepts connections but does not answer. Kafka does not know yet:"
    " until the broker's session ends (broker.session.timeout.ms) the broker is still listed as leader, and"
    " what it leads stands still.",
}


def select_first(key: str) -> str:
    """Return what to press if no broker is selected."""
    return f"select a broker with Tab and the arrow keys, then press {key} to crash it"


def leave_first(key: str, back: str) -> str:
    """Return what to do at the caption that asks for a crash: `key` causes it, `back` leaves."""
    return f"press {key} on a broker, or {back} to leave the tour"


def early(done: Done, key: str) -> str:
    """Return that a fault was caused before the tour asked for one, and that `key` goes on."""
    return f"{_sentence(commands.done(done))} The tour ends with what follows from that: {key} goes on."


def happened(done: Done, outcome: Outcome | None, is_whole: bool = False) -> str:
    """Return what a fault, or its end, did: what is to be seen now, or what it led to once that is known.

    `is_whole` says that the brokers that were restored are in sync again.
    """
    if is_whole:
        return _sentence(commands.caught_up(done))
    if outcome is not None:
        return _sentence(commands.outcome(outcome))
    if done.role is NodeRole.BROKER and len(done.nodes) == 1 and done.kind in _SEEN:
        return _SEEN[done.kind].format(node=f"Broker {done.nodes[0]}")
    return _sentence(commands.done(done))


def way_back(key: str, does: str, undo: str) -> str:
    """Return how to undo a fault, `does` being what `key` does now: `restore 4`, or '' if nothing."""
    back = f"{key} ({does}) brings it back. " if does else ""
    return f"{back}{undo} undoes everything."


def more(demos: str, find: str) -> str:
    """Return what to do after the tour, by the keys that list demos and find anything."""
    return (
        f"{demos} lists demos, which explain such failures step by step. {find} tour shows this tour again."
    )


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
