"""Scripts about a partition whose leader or follower goes away and comes back."""

from tests.differential.play import ALL, LATEST, Play, log_end, produced
from tests.serve import questions as q

THREE = [[0, 1, 2]]
TEN = [f"before-{n}" for n in range(10)]
SESSION_S = 6.0
FETCH_WAIT_S = 0.6
"""A follower's fetch waits for half a second at most."""


def leader_crash(play: Play) -> None:
    """The leader is killed, another replica takes over, and the old leader comes back as a follower."""
    t = play.topic("t", THREE)
    play.watch(t)
    play.watch_brokers()
    play.see("error", play.produce(0, t, TEN))
    play.see("offsets", play.ends(0, t))
    play.crash(0)
    play.until_leader(t, 1)
    play.see("error", play.produce(1, t, ["after"]))
    play.see("offsets", play.ends(1, t))
    play.see("end of epoch 0", q.epoch_end(play.at(1), t, 0))
    play.see("fetch with epoch 0", q.fetch(play.at(1), t, 0, epoch=0)[0])
    play.see("error", play.produce(2, t, ["to a follower"]))
    play.start(0)
    play.up(0)
    play.until_isr(t, 0, 1, 2)
    play.see("error at the old leader", play.produce(0, t, ["to the old leader"]))
    play.prefer(t)
    play.until_leader(t, 0)
    play.see("survivors", play.values(0, t))
    play.see("offsets", play.ends(0, t))


def crash_and_restart_within_the_session(play: Play) -> None:
    """The leader is killed and started again at once: its port stays closed until its old session is over."""
    t = play.topic("t", THREE)
    play.see("error", play.produce(0, t, TEN))
    play.watch(t)
    play.watch_brokers()
    play.crash(0)
    play.start(0)
    play.watch_port(0)
    play.until_leader(t, 1)
    play.up(0)
    play.see("leader that it names first", play.partition(t, of=0).leader_id)
    play.until_isr(t, 0, 1, 2)
    play.until(lambda: play.values(1, t), "the watermark moves")
    play.see("survivors", play.values(1, t))


def unreplicated_records(play: Play) -> None:
    """What only a crashed leader has is truncated, although acks=1 acknowledged it.

    The followers hang while their fetches wait at the leader, so what is written first still reaches their
    sockets.
    """
    t = play.topic("t", THREE)
    play.watch(t)
    play.see("error", play.produce(0, t, TEN))
    play.hold(0.1)  # the followers have just fetched the last of them, so that their next fetches wait
    play.hang(1)
    play.hang(2)
    play.see("error with acks=1", play.produce(0, t, ["into their sockets"], acks=1))
    play.hold(FETCH_WAIT_S)  # a busy leader acknowledges records before it answers waiting fetches
    play.see("error with acks=1", play.produce(0, t, ["lost-1", "lost-2"], acks=1))
    play.see("offsets", play.ends(0, t))
    play.crash(0)
    play.start(1, 2)
    play.up(1, 2)
    play.until_leader(t, 1)
    play.see("error", play.produce(1, t, ["after"]))
    play.start(0)
    play.up(0)
    play.until_isr(t, 0, 1, 2)
    play.see("end of the old leader's log", play.end(0, t))
    play.see("survivors", play.values(1, t))


def follower_crash(play: Play) -> None:
    """A killed follower freezes the high watermark until it is fenced."""
    t = play.topic("t", THREE)
    play.see("error", play.produce(0, t, TEN))
    play.watch(t)
    play.watch_brokers()
    play.crash(2)
    play.see("error with acks=1", play.produce(0, t, ["one"], acks=1))
    waiting = play.send(0, t, ["all"])
    play.hold(1)
    play.see("acks=all", "answered" if waiting.arrived() else "waits")
    play.see("offsets", play.ends(0, t))
    play.until_isr(t, 0, 1)
    play.until(waiting.arrived, "acks=all is answered")
    play.see("acks=all", produced(waiting))
    play.see("offsets", play.ends(0, t))
    play.start(2)
    play.up(2)
    play.until_isr(t, 0, 1, 2)
    play.see("end of the follower's log", play.end(2, t))


def clean_stop(play: Play) -> None:
    """A broker that stops cleanly hands over first: nobody waits for the end of a session."""
    led = play.topic("led", THREE)
    followed = play.topic("followed", [[1, 0, 2]])
    play.see("error", play.produce(0, led, TEN))
    play.watch(led)
    play.watch(followed)
    play.watch_brokers()
    play.stop(0)
    play.see("port", "refuses" if play.lab.refuses(0) else "accepts")
    play.until_leader(led, 1)
    play.until_isr(followed, 1, 2)
    play.see("error", play.produce(1, led, ["after"]))
    play.start(0)
    play.up(0)
    play.until_isr(led, 0, 1, 2)
    play.until_isr(followed, 0, 1, 2)
    play.see("survivors", play.values(1, led))


def hang(play: Play) -> None:
    """A leader that hangs accepts connections and is silent, until its session ends and it is replaced."""
    t = play.topic("t", THREE)
    play.see("error", play.produce(0, t, TEN))
    play.watch(t)
    play.watch_brokers()
    play.hang(0)
    play.see("port", "refuses" if play.lab.refuses(0) else "accepts")

    def is_silent() -> bool:
        try:
            log_end(play.at(0, timeout_s=1), t)
        except TimeoutError:
            return True
        return False  # a busy machine has not stopped all its threads yet

    play.until(is_silent, "broker 0 answers no more")
    play.see("answer", "none")
    play.until_leader(t, 1)
    play.see("error", play.produce(1, t, ["after"]))
    play.start(0)
    play.up(0)
    play.until_isr(t, 0, 1, 2)
    play.see("survivors", play.values(1, t))


def short_hang(play: Play) -> None:
    """A leader that hangs for less than its session stays the leader."""
    t = play.topic("t", THREE)
    play.see("error", play.produce(0, t, TEN))
    play.watch(t)
    play.watch_brokers()
    play.hang(0)
    play.hold(SESSION_S / 3)
    play.start(0)
    play.up(0)
    play.see("error", play.produce(0, t, ["after"]))
    play.see("survivors", play.values(0, t))


def rack_loss(play: Play) -> None:
    """Both brokers of a rack are killed. The order in which they are fenced is left to chance, so only the
    ends are seen."""
    topics = {
        "first-survivor-leads": play.topic("first-survivor-leads", [[0, 1, 2]]),
        "below-min": play.topic("below-min", [[0, 1, 2, 3]], min_insync_replicas="3"),
        "untouched": play.topic("untouched", [[2, 3]]),
        "gone": play.topic("gone", [[0]]),
    }

    def see_all() -> None:
        for name, topic in topics.items():
            found = play.partition(topic)
            play.see(name, f"leader {found.leader_id}, isr {sorted(found.isr_nodes)}")

    for name, topic in topics.items():
        play.see(f"{name}: error", play.produce(play.leader(topic), topic, [name]))
    play.hold(1)  # so that the followers hear of the high watermark
    play.crash(0, 1)
    play.until(lambda: play.fenced() == {0, 1}, "the rack is fenced")
    see_all()
    for name in ("first-survivor-leads", "below-min"):
        play.until_leader(topics[name], 2)
        for acks in (1, ALL):
            play.see(f"{name}: error with acks={acks}", play.produce(2, topics[name], ["late"], acks=acks))
        play.see(f"{name}: latest", q.list_offset(play.at(2), topics[name], LATEST))
        play.see(f"{name}: offsets", play.ends(2, topics[name]))
    play.start(0, 1)
    play.up(0, 1)
    for topic, replicas in zip(topics.values(), ([0, 1, 2], [0, 1, 2, 3], [2, 3], [0]), strict=True):
        play.until_isr(topic, *replicas)
    see_all()
    for name, topic in topics.items():
        play.see(f"{name}: survivors", play.values(play.leader(topic), topic))


def empty_election(play: Play) -> None:
    """A partition without records changes its leader: epochs without records, and offsets that stay 0."""
    t = play.topic("t", [[0, 1]])
    play.watch(t)
    play.see("end of epoch 0", q.epoch_end(play.at(0), t, 0))
    play.crash(0)
    play.until_leader(t, 1)
    for epoch in (0, 1, 2):
        play.see(f"end of epoch {epoch}", q.epoch_end(play.at(1), t, epoch))
    play.see("offsets", play.ends(1, t))
    play.see("by time", q.list_offset(play.at(1), t, play.lab.now_ms() - 60_000))
    play.see("largest timestamp", q.list_offset(play.at(1), t, -3))
    play.start(0)
    play.up(0)
    play.until_isr(t, 0, 1)
    play.prefer(t)
    play.until_leader(t, 0)
    play.see("error", play.produce(0, t, ["first"]))
    for epoch in (0, 1, 2, 3):
        play.see(f"end of epoch {epoch}", q.epoch_end(play.at(0), t, epoch))
    play.see("largest timestamp", q.list_offset(play.at(0), t, -3)[0])


SCRIPTS = (
    leader_crash,
    crash_and_restart_within_the_session,
    unreplicated_records,
    follower_crash,
    clean_stop,
    hang,
    short_hang,
    rack_loss,
    empty_election,
)
