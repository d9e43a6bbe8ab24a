"""Scripts about controllers that die: what goes on without one, and what waits."""

from tests.differential.lab import CONTROLLERS
from tests.differential.play import Play
from tests.serve import questions as q

THREE = [[0, 1, 2]]
SESSION_S = 6.0
FORWARDED_S = 90.0
"""A broker waits for a controller for up to a minute, whatever the client's limit."""


def controller_crash(play: Play) -> None:
    """The active controller is killed, another takes over, and fences a follower that dies then."""
    t = play.topic("t", THREE)
    play.watch(t)
    first, epoch = play.quorum()
    play.crash(first)
    play.see("error", play.produce(0, t, ["without a controller"]))
    second, next_epoch = play.quorum()
    play.see("another controller", second != first and second in CONTROLLERS)
    play.see("its epoch is higher", next_epoch > epoch)
    play.crash(2)
    play.until_isr(t, 0, 1)
    play.start(first, 2)
    play.up(2)
    play.until_isr(t, 0, 1, 2)
    play.see("the same controller", play.quorum()[0] == second)
    play.see("survivors", play.values(0, t))


def no_majority(play: Play) -> None:
    """Two of three controllers are killed: records flow, but nobody is fenced, elected or created."""
    t = play.topic("t", THREE)
    play.watch(t)
    play.see("error", play.produce(0, t, ["with a majority"]))
    first, _ = play.quorum()
    others = [controller for controller in CONTROLLERS if controller != first]
    play.crash(first, others[0])
    play.see("error", play.produce(0, t, ["without a majority"]))
    play.crash(1)
    play.see("error with acks=1", play.produce(0, t, ["to the leader alone"], acks=1))
    play.hold(1.5 * SESSION_S)
    play.see("offsets", play.ends(0, t))
    waits = play.at(3, timeout_s=FORWARDED_S)
    play.see("creation", q.create_topic(waits, "never-made", 1, 1, validate_only=False))
    play.start(first, others[0])
    play.until_isr(t, 0, 2)
    play.see("offsets", play.ends(0, t))
    play.start(1)
    play.up(1)
    play.until_isr(t, 0, 1, 2)
    play.see("survivors", play.values(0, t))


SCRIPTS = (controller_crash, no_majority)
