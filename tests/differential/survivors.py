"""Scripts about the last replica standing: what is eligible to lead, and what an unclean election costs."""

from tests.differential.play import ALL, LATEST, Play
from tests.serve import questions as q

THREE = [[0, 1, 2]]


def _down_to_none(play: Play, topic: str) -> None:
    """Kill the replicas one by one: 2, 1, and the leader 0."""
    play.hold(2)  # so that the followers hear of the high watermark, and write it to their disks
    play.crash(2)
    play.until_isr(topic, 0, 1)
    play.see("error", play.produce(0, topic, ["by two"]))
    play.crash(1)
    play.until_isr(topic, 0)
    play.see("error", play.produce(0, topic, ["by one"]))
    play.see("error with acks=1", play.produce(0, topic, ["by one, acks=1"], acks=1))
    play.see("offsets", play.ends(0, topic))
    play.crash(0)
    play.until_leader(topic, -1)


def _last_standing(play: Play, min_isr: int) -> None:
    """The last leader is killed, too; only its own return brings the partition back."""
    t = play.topic("t", THREE, min_insync_replicas=str(min_isr))
    play.see("error", play.produce(0, t, ["by three"]))
    play.watch(t)
    _down_to_none(play, t)
    play.start(1)
    play.up(1)
    play.hold(1)
    play.start(0)
    play.up(0)
    play.until_leader(t, 0)
    play.until_isr(t, 0, 1)
    play.start(2)
    play.up(2)
    play.until_isr(t, 0, 1, 2)
    play.see("survivors", play.values(0, t))
    play.see("offsets", play.ends(0, t))


def last_standing_min_isr_1(play: Play) -> None:
    """With min.insync.replicas 1."""
    _last_standing(play, 1)


def last_standing_min_isr_2(play: Play) -> None:
    """With min.insync.replicas 2, the ISR's former member is eligible until it comes back from its crash."""
    _last_standing(play, 2)


def _unclean(play: Play, min_isr: int) -> None:
    """An unclean election lets a replica lead that is out of sync."""
    t = play.topic("t", THREE, min_insync_replicas=str(min_isr), unclean_leader_election_enable="true")
    play.see("error", play.produce(0, t, ["by three"]))
    play.watch(t)
    _down_to_none(play, t)
    play.start(2)
    play.up(2)
    play.until_leader(t, 2)
    play.see("latest", q.list_offset(play.at(2), t, LATEST))
    play.see("offsets", play.ends(2, t))
    play.see("error with acks=1", play.produce(2, t, ["by the unclean leader"], acks=1))
    play.start(1)
    play.up(1)
    play.until_isr(t, 1, 2)
    play.start(0)
    play.up(0)
    play.until_isr(t, 0, 1, 2)
    play.see("survivors", play.values(2, t))
    play.see("offsets", play.ends(2, t))


def unclean_min_isr_1(play: Play) -> None:
    """With min.insync.replicas 1."""
    _unclean(play, 1)


def unclean_min_isr_2(play: Play) -> None:
    """With min.insync.replicas 2."""
    _unclean(play, 2)


def from_the_elr(play: Play) -> None:
    """Replicas that stopped cleanly are eligible, and one of them is elected when the ISR is empty."""
    t = play.topic("t", THREE, min_insync_replicas="3")
    play.see("error", play.produce(0, t, ["by three"]))
    play.until(lambda: q.fetch(play.at(2), t, 0)[1] == 1, "the follower has heard of the high watermark")
    play.watch(t)
    play.stop(2)
    play.until_isr(t, 0, 1)
    play.stop(1)
    play.until_isr(t, 0)
    play.see("error", play.produce(0, t, ["acks=all"]))
    play.see("error with acks=1", play.produce(0, t, ["acks=1"], acks=1))
    play.see("offsets", play.ends(0, t))
    play.crash(0)
    play.until_leader(t, -1)
    play.start(2)
    play.up(2)
    play.until_leader(t, 2)
    play.see("survivors", play.values(2, t))
    play.see("offsets", play.ends(2, t))
    play.start(1)
    play.up(1)
    play.until_isr(t, 1, 2)
    play.start(0)
    play.up(0)
    play.until_isr(t, 0, 1, 2)
    play.see("error", play.produce(2, t, ["by three again"]))
    play.see("survivors", play.values(2, t))


def unclean_on_request(play: Play) -> None:
    """An administrator asks for an unclean election, once a clean one is impossible."""
    t = play.topic("t", [[0, 1]])
    play.see("error", play.produce(0, t, ["by two"]))
    play.watch(t)
    play.crash(1)
    play.until_isr(t, 0)
    play.see("error", play.produce(0, t, ["by one"]))
    play.crash(0)
    play.until_leader(t, -1)
    play.start(1)
    play.up(1)
    play.see("preferred election", q.elect_leaders(play.at(3), 0, t, 0))
    play.see("unclean election", q.elect_leaders(play.at(3), 1, t, 0))
    play.until_leader(t, 1)
    play.see("survivors", play.values(1, t))
    play.start(0)
    play.up(0)
    play.until_isr(t, 0, 1)
    play.see("end of the old leader's log", play.end(0, t))


def _produce_unanswered(play: Play, topic: str, value: str) -> None:
    """Produce with acks=0, and wait until the leader has the record."""
    before = play.end(0, topic)
    play.send(0, topic, [value], 0)
    play.until(lambda: play.end(0, topic) > before, "acks=0")


def acks(play: Play) -> None:
    """Every acks with min.insync.replicas 1 and 2: with two replicas in sync, with one, with two again."""
    topics = [play.topic(f"min-{least}", [[0, 1]], min_insync_replicas=str(least)) for least in (1, 2)]
    for t in topics:
        play.watch(t)

    def produce_all(moment: str) -> None:
        for t in topics:
            for number in (0, 1, ALL):
                value = f"{moment}, acks={number}"
                if number:
                    play.see(f"{t}: error", f"{value}: {play.produce(0, t, [value], number)}")
                else:
                    _produce_unanswered(play, t, value)
            play.see(f"{t}: offsets", play.ends(0, t))

    produce_all("two")
    play.crash(1)
    for t in topics:
        play.until_isr(t, 0)
    produce_all("one")
    play.start(1)
    play.up(1)
    for t in topics:
        play.until_isr(t, 0, 1)
    play.hold(1)
    produce_all("two again")
    for t in topics:
        play.see(f"{t}: survivors", play.values(0, t))


SCRIPTS = (
    last_standing_min_isr_1,
    last_standing_min_isr_2,
    unclean_min_isr_1,
    unclean_min_isr_2,
    from_the_elr,
    unclean_on_request,
    acks,
)
