"""Scripts about consumer groups: members that come and go, coordinators that die, records that expire."""

from tests.differential.member import Member, commit, committed, coordinator, described
from tests.differential.play import EARLIEST, LATEST, Play
from tests.serve import questions as q

FOUR = [[3], [3], [3], [3]]
BEAT_S = 1.0
REBALANCE_IN_PROGRESS = 27


def _share(play: Play, group: str, *members: Member) -> None:
    """Let members join and share the four partitions in order of their names. All have been asked to join."""
    answers = [(member, member.join()) for member in members]
    play.see("joined", sorted(member.joined(answer) for member, answer in answers))
    play.see("group", described(play, group, _names(*members)))
    _distribute(play, group, *members)


def _distribute(play: Play, group: str, *members: Member) -> None:
    each = 4 // len(members)
    shares = {m.member_id: list(range(n * each, (n + 1) * each)) for n, m in enumerate(members)}
    leader = next(member for member in members if member.leads)
    answers = [(member, member.sync(shares if member is leader else None)) for member in members]
    play.see("synced", [member.synced(answer) for member, answer in answers])
    play.see("group", described(play, group, _names(*members)))


def _names(*members: Member) -> dict[str, str]:
    return {member.member_id: member.name for member in members}


def members_come_and_go(play: Play) -> None:
    """A second member joins, falls silent, comes back under a new id and leaves."""
    t, group = play.topic("t", FOUR), play.group
    play.see("group", described(play, group, {}))
    a, b = Member(play, group, "a", t), Member(play, group, "b", t)
    _share(play, group, a)
    play.see("heartbeat of a", a.beat())
    play.see("commit of a", a.commit(5))

    joining = b.join()
    play.hold(BEAT_S / 2)
    play.see("group", described(play, group, _names(a, b)))
    play.see("heartbeat of a", a.beat())
    play.see("commit of a", a.commit(6))
    rejoining = a.join()
    play.see("joined", sorted([a.joined(rejoining), b.joined(joining)]))
    play.see("group", described(play, group, _names(a, b)))
    play.see("commit of b", b.commit(7, 3))
    _distribute(play, group, a, b)
    play.see("commit of b", b.commit(8, 3))
    play.see("commit of a tool", commit(play, group, t, 1))

    def a_is_asked_to_join() -> bool:
        play.hold(BEAT_S)
        return a.beat() == REBALANCE_IN_PROGRESS

    play.until(a_is_asked_to_join, "the silent member is missed")
    _share(play, group, a)
    play.see("heartbeat of b", b.beat())
    play.see("commit of b", b.commit(9, 3))
    a.generation -= 1
    play.see("heartbeat of an old generation", a.beat())
    play.see("commit of an old generation", a.commit(9))
    a.generation += 1
    play.see("a leaves", a.leave())
    play.see("a leaves", a.leave())
    play.see("group", described(play, group, {}))
    play.see("commit of a tool", commit(play, group, t, 2))
    play.see("committed", [committed(play, group, t, partition) for partition in range(4)])


def coordinator_loss(play: Play) -> None:
    """The coordinator is killed. Another loads the group: its generation, members and commits remain."""
    t, group = play.topic("t", [[0, 1, 2, 3]] * 4), play.group
    a = Member(play, group, "a", t)
    _share(play, group, a)
    play.see("commit", a.commit(5))
    first = coordinator(play, group)
    play.crash(first)
    second = coordinator(play, group)
    play.see("another coordinator", second != first)
    play.see("group", described(play, group, _names(a)))
    play.see("heartbeat", a.beat())
    play.see("commit", a.commit(6, 1))
    play.see("committed", [committed(play, group, t, partition) for partition in range(4)])
    play.see("a leaves", a.leave())
    play.see("group", described(play, group, {}))
    play.start(first)
    play.up(first)


def not_the_coordinator(play: Play) -> None:
    """Brokers that do not coordinate a group say so."""
    t, group = play.topic("t", [[3]]), play.group
    a = Member(play, group, "a", t)
    play.see("unknown group", described(play, group, {}))
    owner = coordinator(play, group)
    other = next(broker for broker in range(4) if broker != owner)
    play.see("heartbeat of nobody", a.beat())
    play.see("commit of nobody", commit(play, group, t, 1, 0, 3, "nobody"))
    play.see("commit for no topic", commit(play, group, "no-such-topic", 1))
    play.see("deletion elsewhere", q.delete_groups(play.at(other), [group]))
    play.see("commit of a tool", commit(play, group, t, 4))
    play.see("group", described(play, group, {}))
    play.see("deletion", q.delete_groups(play.at(owner), [group, "never-seen"]))
    play.see("committed", committed(play, group, t))


def retention_overtakes(play: Play) -> None:
    """Records expire that a group has not read yet."""
    t, group = play.topic("t", [[0, 1]]), play.group
    play.see("error", play.produce(0, t, [f"old-{n}" for n in range(10)]))
    play.see("commit", commit(play, group, t, 5))
    play.hold(1)
    play.see("alter", q.incremental_alter(play.at(3), q.TOPIC, t, [("retention.ms", q.SET, "1")]))
    play.until(lambda: q.list_offset(play.at(0), t, EARLIEST) == (0, 10), "all records have expired")
    play.see("committed", committed(play, group, t))
    play.see("fetch at 5", q.fetch(play.at(0), t, 5)[0])
    play.see("fetch at 10", q.fetch(play.at(0), t, 10)[:2])
    play.see("latest", q.list_offset(play.at(0), t, LATEST))
    play.see("by time", q.list_offset(play.at(0), t, 0))
    play.see("alter", q.incremental_alter(play.at(3), q.TOPIC, t, [("retention.ms", q.SET, "-1")]))
    play.hold(1)
    play.see("error", play.produce(0, t, ["new"]))
    play.see("records at 10", play.values(0, t))
    play.see("commit", commit(play, group, t, 11))
    play.see("committed", committed(play, group, t))


def deleted_records(play: Play) -> None:
    """An administrator deletes records that a group has not read yet."""
    t, group = play.topic("t", [[0, 1]]), play.group
    play.see("error", play.produce(0, t, [f"old-{n}" for n in range(10)]))
    play.see("commit", commit(play, group, t, 5))
    play.see("deletion", q.delete_records(play.at(0), t, 0, 8))
    play.see("offsets", play.ends(0, t))
    play.see("fetch at 5", q.fetch(play.at(0), t, 5)[0])
    play.see("committed", committed(play, group, t))
    play.crash(0)
    play.until_leader(t, 1)
    play.see("offsets", play.ends(1, t))
    play.see("fetch at 5", q.fetch(play.at(1), t, 5)[0])
    play.start(0)
    play.up(0)
    play.until_isr(t, 0, 1)


SCRIPTS = (
    members_come_and_go,
    coordinator_loss,
    not_the_coordinator,
    retention_overtakes,
    deleted_records,
)
