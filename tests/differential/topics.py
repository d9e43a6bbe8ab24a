"""Scripts about topics that are deleted and created again while a broker misses it."""

from collections.abc import Callable

from tests.differential.member import commit, committed
from tests.differential.play import Play
from tests.serve import questions as q

THREE = [[0, 1, 2]]


def _again(play: Play, away: Callable[[], None], back: Callable[[], None]) -> None:
    """Delete a topic with records and commits and create it again, while broker 2 misses it.

    Nobody asks for the commits before broker 2 is back, because it may be the coordinator.
    """
    t, group = play.topic("t", THREE), "deleted-and-created"
    play.see("error", play.produce(0, t, [f"old-{n}" for n in range(10)]))
    play.see("commit", commit(play, group, t, 7))
    before = q.topic_partitions(play.at(3), [t]).topics[0].topic_id
    away()
    play.see("deletion", play.delete(t))
    play.until(lambda: q.metadata(play.at(0), t) == 3, "the topic is gone")
    play.see("error", play.produce(0, t, ["to a deleted topic"]))
    play.see("deletion again", play.delete(t))
    play.create(t, THREE)
    play.until_leader(t, 0)
    play.see("same id", q.topic_partitions(play.at(3), [t]).topics[0].topic_id == before)
    play.see("error", play.produce(0, t, ["new"], acks=1))
    back()
    play.up(2)
    play.until_isr(t, 0, 1, 2)
    play.until(lambda: play.end(2, t) == 1, "the follower has the new record")
    play.hold(1)
    play.see("what the follower has", play.values(2, t))
    play.see("survivors", play.values(0, t))
    play.see("offsets", play.ends(0, t))
    play.see("end of epoch 0", q.epoch_end(play.at(0), t, 0))
    play.see("committed", committed(play, group, t))
    play.see("commit", commit(play, group, t, 1))
    play.see("committed", committed(play, group, t))


def created_again(play: Play) -> None:
    """No broker misses it."""
    _again(play, lambda: None, lambda: None)


def created_again_with_a_broker_slow(play: Play) -> None:
    """A broker hangs, but for less than its session."""
    _again(play, lambda: play.hang(2), lambda: play.start(2))


def created_again_with_a_broker_hung(play: Play) -> None:
    """A broker hangs until it is fenced."""

    def away() -> None:
        play.hang(2)
        play.until(lambda: play.fenced() == {2}, "it is fenced")

    _again(play, away, lambda: play.start(2))


def created_again_with_a_broker_down(play: Play) -> None:
    """A broker is killed and fenced."""

    def away() -> None:
        play.crash(2)
        play.until(lambda: play.fenced() == {2}, "it is fenced")

    _again(play, away, lambda: play.start(2))


SCRIPTS = (
    created_again,
    created_again_with_a_broker_slow,
    created_again_with_a_broker_hung,
    created_again_with_a_broker_down,
)
