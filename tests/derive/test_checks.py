"""What a check finds, since when, what it cannot judge, and what makes it fail."""

from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.checks.cluster import Limits
from kview.derive.checks.judge import Watch, more_tells
from kview.derive.checks.judge import step as judge
from kview.derive.checks.outcome import Outcome, Rules, outcome_of
from kview.derive.fold import State, step
from kview.derive.view import Reason, Verdict
from kview.language import checks, verdicts
from kview.model.checks import GROUP_KINDS, CheckFinding, CheckKind, Judgement, Level, NotJudgedWhy
from kview.model.events import Severity
from kview.model.failures import FailureKind
from kview.model.snapshot import Snapshot
from kview.model.states import GroupType
from kview.model.units import NO_BROKER, NO_OFFSET, UNKNOWN
from tests.derive.checking import SET_UP, judged, labels
from tests.derive.checking import rules as ignored
from tests.worlds import START_MS, World, default_world, views
from tests.worlds.kinds import CONNECT, CONSUMER, SHARE, STREAMS, of_every_kind
from tests.worlds.parts import Consumers, Node, topic
from tests.worlds.small import TOPIC, ends, reader, small_world

K, Why = CheckKind, NotJudgedWhy


def alone(judgement: Judgement, kind: CheckKind) -> CheckFinding:
    """The only finding of that kind."""
    (found,) = (finding for finding in judgement.findings if finding.kind is kind)
    return found


def at_once(change: Callable[[Snapshot], Snapshot]) -> Judgement:
    """What is found in the default world's only snapshot after `change`."""
    return judge(Watch(), step(State(), change(default_world().tick()))[1])[1]


def test_a_healthy_cluster_is_judged_healthy_and_nothing_is_left_open() -> None:
    found = judged(default_world(), 8, *SET_UP)
    assert (found.findings, found.not_judged) == ((), ())
    assert found.ignored == 6


def test_how_topics_are_set_up() -> None:
    found = judged(default_world(), 8, "group_*", "*_loss")
    assert labels(found) == [
        "replication_factor_1:audit-log",
        "min_isr_1:invoice",
        "min_isr_1:__consumer_offsets",
    ]
    assert alone(found, K.REPLICATION_FACTOR_1).partition_count == 4


def test_a_cluster_without_topics_is_healthy() -> None:
    found = judged(World([Node(0, "R1"), Node(1, "R2")], [], []), 8)
    assert (found.findings, found.not_judged) == ((), ())


def test_a_crash_with_what_it_does_to_partitions_and_groups() -> None:
    world, watch = default_world(), Watch(ignore=ignored(*SET_UP))
    state = State()
    for second in range(12):
        if second == 8:
            world.crash(4)
        state, view = step(state, world.tick())
        watch, found = judge(watch, view)
    said = labels(found)
    assert said[:5] == [
        "broker_silent:4",
        "silent_leader:audit-log",
        "silent_leader:invoice",
        "silent_leader:payment",
        "silent_leader:__consumer_offsets",
    ]
    assert "frozen:invoice" in said and "group_blocked:billing" in said
    silent = alone(found, K.BROKER_SILENT)
    assert (silent.name, silent.level, silent.partition_count) == ("4", Level.RISK, 12)
    assert silent.since_ms == START_MS + 8_000
    invoice = next(f for f in found.findings if f.key == (K.SILENT_LEADER, "invoice"))
    assert (invoice.partitions, invoice.of_partitions) == ((("invoice", 3), ("invoice", 9)), 10)
    assert [(item.kinds, item.names, item.why, item.brokers) for item in found.not_judged] == [
        ((K.BROKER_SLOW,), ("4",), Why.NOT_ANSWERED, (4,)),
        (GROUP_KINDS, ("fraud-check",), Why.NOT_ANSWERED, (4,)),
    ]


def test_after_fencing_partitions_are_offline_or_short_of_replicas() -> None:
    world = default_world()
    world.groups = []
    judged(world, 2)
    world.crash(4)
    found = judged(world, 11, *SET_UP)
    assert alone(found, K.BROKER_FENCED).name == "4"
    offline = alone(found, K.OFFLINE)
    assert (offline.name, offline.partitions, offline.brokers) == ("audit-log", (("audit-log", 3),), (4,))
    short = {f.name: f for f in found.findings if f.kind is K.UNDER_REPLICATED}
    assert set(short) == {"__consumer_offsets", "invoice", "payment"}
    assert (short["payment"].brokers, short["payment"].replicas) == ((4,), 3)
    assert {f.name for f in found.findings if f.kind is K.AT_MIN_ISR} == {"payment"}
    assert [f.kind for f in found.findings if f.name == "invoice" and f.level is Level.RISK] == []


def test_under_min_isr_is_also_under_replicated() -> None:
    world = default_world()
    log = world.log("payment", 3)
    log.isr, log.stalled = [4], frozenset({2, 5})
    found = judged(world, 3, *SET_UP)
    under = alone(found, K.UNDER_MIN_ISR)
    assert (under.level, under.partitions, under.brokers) == (Level.RISK, (("payment", 3),), (2, 5))
    assert alone(found, K.UNDER_REPLICATED).partitions == (("payment", 3),)
    only = judged(world, 3, *SET_UP, "under_min_isr:pay*")
    assert "under_replicated:payment" in labels(only) and only.ignored > found.ignored


def test_not_preferred_and_not_rack_safe() -> None:
    world = default_world()
    world.log("invoice", 3).leader = 2
    log = world.log("invoice", 4)
    log.replicas = log.isr = [2, 0, 1]
    log.ends = dict.fromkeys((2, 0, 1), log.watermark)
    found = judged(world, 3)
    away = alone(found, K.NOT_PREFERRED)
    assert (away.level, away.partitions, away.brokers) == (Level.WEAKNESS, (("invoice", 3),), (4,))
    assert alone(found, K.NOT_RACK_SAFE).partitions == (("invoice", 4),)


def test_since_when() -> None:
    """What was so from the start has no beginning; what came later began when it was seen."""
    world, watch, state = default_world(), Watch(), State()
    world.log("invoice", 3).isr, world.log("invoice", 3).stalled = [4, 5], frozenset({2})
    for second in range(6):
        if second == 3:
            world.log("payment", 3).isr, world.log("payment", 3).stalled = [4, 5], frozenset({2})
        state, view = step(state, world.tick())
        watch, found = judge(watch, view)
        seen_ms = view.snapshot.observation.ended_ms
    since = {f.name: f.since_ms for f in found.findings if f.kind is K.UNDER_REPLICATED}
    assert since == {"invoice": UNKNOWN, "payment": seen_ms - 2_000}


@pytest.mark.parametrize(("leads", "skewed"), [(29, []), (30, ["0"])])
def test_a_broker_that_leads_too_much(leads: int, skewed: list[str]) -> None:
    """Of 60 partitions on three brokers, the mean is 20: 1.5 times that is 30."""
    logs = topic("orders", 60, 1, 1.0)
    for number, log in enumerate(logs):
        log.leader = 0 if number < leads else 1 + number % 2
        log.replicas = log.isr = [log.leader]
        log.ends = {log.leader: 1.0}
    found = judged(World([Node(id, "R1") for id in range(3)], logs, []), 2)
    assert [f.name for f in found.findings if f.kind is K.LEADER_SKEW] == skewed
    if skewed:
        assert (alone(found, K.LEADER_SKEW).amount, alone(found, K.LEADER_SKEW).mean) == (30, 20.0)


def test_few_leaders_are_not_skewed_and_the_limit_is_the_users() -> None:
    logs = topic("orders", 6, 1, 1.0)
    for log in logs:
        log.leader, log.replicas, log.isr, log.ends = 0, [0], [0], {0: 1.0}
    world = World([Node(0, "R1"), Node(1, "R1")], logs, [])
    assert "leader_skew:0" not in labels(judged(world, 2))
    assert "leader_skew:0" not in labels(judged(world, 2, limits=Limits(leader_skew=1.1)))


@pytest.mark.parametrize(("gigabytes", "skewed"), [(5, []), (20, ["2"])])
def test_a_broker_whose_disk_holds_too_much(gigabytes: int, skewed: list[str]) -> None:
    def fill(snapshot: Snapshot) -> Snapshot:
        disks = np.full(6, 4_000_000_000, np.int64)
        disks[2] = gigabytes * 1_000_000_000
        return replace(snapshot, brokers=replace(snapshot.brokers, disk_bytes=disks))

    assert [f.name for f in at_once(fill).findings if f.kind is K.DISK_SKEW] == skewed


def test_no_controller() -> None:
    def end(snapshot: Snapshot) -> Snapshot:
        return replace(snapshot, observation=replace(snapshot.observation, controller_id=NO_BROKER))

    found = at_once(end)
    assert alone(found, K.NO_CONTROLLER).level is Level.RISK
    assert any(item.kinds == (K.VOTER_LOST,) for item in found.not_judged)


def test_a_slow_broker_needs_history() -> None:
    world = default_world()
    world.nodes[2].latency_us = 400_000
    early = judged(world, 3, *SET_UP)
    assert [(item.kinds, item.why) for item in early.not_judged] == [((K.BROKER_SLOW,), Why.NO_HISTORY)]
    assert more_tells(early)
    late = alone(judged(world, 8, *SET_UP), K.BROKER_SLOW)
    assert (late.name, late.amount) == ("2", 400_000)


def test_a_group_without_evidence_is_not_judged_and_may_be_ignored() -> None:
    world = small_world(reader("late", *(end - 20_000 for end in ends())))
    single = ("replication_factor_1", "*_loss")
    found = judged(world, 8, *single)
    assert [(item.kinds, item.names, item.why) for item in found.not_judged] == [
        (GROUP_KINDS, ("late",), Why.NO_HISTORY)
    ]
    assert judged(world, 8, *single, "group_*:la??").not_judged == ()


@pytest.mark.parametrize("members", [0, 1])
def test_a_group_that_has_not_been_read_yet_has_not_committed_nothing(members: int) -> None:
    owned = dict.fromkeys([(TOPIC, 0)] * members, NO_OFFSET)
    seen = small_world(Consumers("unread", 0, members, owned), reader("others", *ends())).tick()
    groups, offsets = seen.groups, seen.offsets
    at, mine = groups.group == "unread", offsets.group == "unread"
    offsets = replace(
        offsets,
        committed=np.where(mine, NO_OFFSET, offsets.committed),
        received_ms=np.where(mine, UNKNOWN, offsets.received_ms),
    )
    _, view = step(State(), replace(seen, groups=replace(groups, unread=at), offsets=offsets))
    row = int(np.flatnonzero(at)[0])
    assert (view.groups.verdict[row], view.groups.reason[row]) == (Verdict.UNKNOWN, Reason.LAG_UNKNOWN)
    assert "nothing" not in verdicts.of_group(view.groups, row)
    assert set(view.offsets.reason[mine]) <= {Reason.LAG_UNKNOWN}
    assert view.groups.severity[row] == Severity.CALM and view.groups.lost[row] == UNKNOWN
    (open_,) = [item for item in judge(Watch(), view)[1].not_judged if "unread" in item.names]
    assert open_.why is Why.NO_HISTORY


@pytest.mark.quick(2)
@pytest.mark.parametrize("kind", [GroupType.CLASSIC, GroupType.CONSUMER, GroupType.SIMPLE])
@pytest.mark.parametrize("interval_s", [60, 300])
def test_that_a_group_commits_rarely_is_said_when_the_usual_time_did_not_tell(
    kind: GroupType, interval_s: int
) -> None:
    """A stuck group would look the same. The check waits for as long as it usually does."""
    rare = reader("rare", *ends(), members=kind is not GroupType.SIMPLE)
    rare.type, rare.commit_every_ms = kind, interval_s * 1000
    world, watch, state, found = small_world(rare), Watch(), State(), list[Judgement]()
    for _ in range(76):
        state, view = step(state, world.tick())
        watch, judgement = judge(watch, view)
        found.append(judgement)
    early, late = found[30], found[75]
    assert [item.why for item in early.not_judged] == [Why.NO_HISTORY]
    (open_,) = late.not_judged
    assert checks.not_judged_label(open_) == "group_*:rare" and more_tells(late)
    assert checks.not_judged(open_) == (
        "too few commits were seen to tell a group that commits rarely from one that is stuck:"
        " observe for longer (--for 15m), or let it pass (--allow-not-judged)"
    )


def test_a_group_that_falls_behind_and_one_that_is_stuck() -> None:
    slow = reader("slow", *ends(), share=0.5)
    stuck = reader("stuck", *(end - 65_000 for end in ends()), share=0.0)
    found = judged(small_world(slow, stuck), 80)
    assert (alone(found, K.GROUP_FALLING_BEHIND).name, alone(found, K.GROUP_STUCK).name) == ("slow", "stuck")
    assert alone(found, K.GROUP_STUCK).behind_ms >= 600_000
    assert alone(found, K.GROUP_STUCK).since_ms == UNKNOWN, "the verdict came long after it got stuck"


@pytest.mark.parametrize(
    ("unowned", "said"),
    [
        (
            0,
            "(4 partitions, ≥ 11 m 18 s behind). Check its consumers: they own the partitions, but do not"
            " commit",
        ),
        (
            1,
            "(4 partitions, 1 of them not assigned to any member, ≥ 11 m 18 s behind). Check which topics its"
            " consumers subscribe to, and why they do not commit on the others",
        ),
        (
            4,
            "(4 partitions not assigned to any member, ≥ 11 m 18 s behind). Check which topics its consumers"
            " subscribe to",
        ),
    ],
)
def test_a_stuck_group_is_told_apart_by_whether_its_members_own_the_partitions(
    unowned: int, said: str
) -> None:
    watch, state = Watch(), State()
    world = small_world(reader("stuck", *(end - 65_000 for end in ends()), share=0.0))
    for _ in range(80):
        seen = world.tick()
        owner = np.where(seen.offsets.partition < unowned, "", seen.offsets.owner)
        state, view = step(state, replace(seen, offsets=replace(seen.offsets, owner=owner)))
        watch, found = judge(watch, view)
    assert checks.sentence(alone(found, K.GROUP_STUCK), 0) == f"stuck {said}"


def test_a_finding_about_a_group_has_the_groups_kind() -> None:
    """A share group that nobody reads, and whose backlog its coordinator counts."""
    watch, state, world = Watch(), State(), default_world()
    for _ in range(8):
        state, view = step(state, of_every_kind(world.tick(), 40, members=0))
        watch, found = judge(watch, view)
    kinds = {f.name: f.group_type for f in found.findings if f.kind is K.GROUP_STOPPED}
    assert kinds == {"audit-export": "classic", SHARE: "share"}


def test_workers_of_connect_have_no_verdict_by_nature_and_are_not_called_not_judged() -> None:
    """They read nothing under their name. The groups of other kinds are open at first."""
    watch, state, world = Watch(), State(), default_world()
    for _ in range(8):
        state, view = step(state, of_every_kind(world.tick()))
        watch, found = judge(watch, view)
    open_ = {name for item in found.not_judged for name in item.names}
    assert CONNECT in view.snapshot.groups.group and open_ == {SHARE, CONSUMER, STREAMS}


def test_when_nobody_answers_only_that_is_said() -> None:
    world = default_world()
    judged(world, 2)
    for broker in range(6):
        world.crash(broker, FailureKind.SILENT)
    found = judged(world, 3)
    assert labels(found) == [f"broker_silent:{broker}" for broker in range(6)]
    (item,) = found.not_judged
    assert set(item.kinds) == set(CheckKind) - {K.BROKER_SILENT}


def test_a_broker_that_only_kview_cannot_reach() -> None:
    world = default_world()
    judged(world, 2)
    world.cut(4)
    found = judged(world, 8)
    silent = alone(found, K.BROKER_SILENT)
    assert (silent.unreached, silent.level) == (True, Level.WARN)
    assert not any(f.kind is K.SILENT_LEADER for f in found.findings)
    open_ = [item for item in found.not_judged if item.kinds == (K.FROZEN,)]
    assert [item.brokers for item in open_] == [(4,)]
    assert "4" in {f.name for f in found.findings if f.kind is K.BROKER_LOSS}


def test_thirty_brokers_in_three_racks() -> None:
    nodes = [Node(id, f"R{id % 3}") for id in range(30)]
    logs = topic("wide", 30, 3, 1.0)
    for number, log in enumerate(logs):
        log.replicas = log.isr = [number, (number + 1) % 30, (number + 2) % 30]
        log.leader, log.ends, log.min_isr = number, dict.fromkeys(log.replicas, 1.0), 2
    assert labels(judged(World(nodes, logs, []), 8)) == []
    logs[0].isr, logs[0].stalled = [0, 1], frozenset({2})
    assert labels(judged(World(nodes, logs, []), 8)) == [
        "at_min_isr:wide",
        "under_replicated:wide",
        "broker_loss:0",
        "broker_loss:1",
        "rack_loss:R0",
        "rack_loss:R1",
    ]


def outcome(world: World, rules: Rules, *ignore: str, seconds: int = 8) -> Outcome:
    """The outcome of a check of so many observations."""
    watch = Watch(ignore=ignored(*ignore))
    for view in views(world.tick() for _ in range(seconds)):
        watch, found = judge(watch, view)
    return outcome_of(view, found, seconds * 1000 - 1000, rules)


def six_brokers_in_two_racks() -> World:
    """Three replicas each, min.insync.replicas 2: as good as it gets with two racks."""
    nodes = [Node(id, "R1" if id < 3 else "R2") for id in range(6)]
    return World(nodes, topic("orders", 6, 3, 100.0, min_isr=2), [])


@pytest.mark.parametrize(("fail_on", "healthy"), [("risk", True), ("warn", True), ("weakness", False)])
def test_what_two_racks_cannot_survive_is_a_weakness_and_not_a_failure(fail_on: str, healthy: bool) -> None:
    """One of two racks has two of three replicas of every partition, so its loss stops acks=all."""
    done = outcome(six_brokers_in_two_racks(), Rules(Level(fail_on)))
    assert labels(done.judgement) == ["rack_loss:R1", "rack_loss:R2"]
    assert (done.counts, done.healthy) == ({"risk": 0, "warn": 0, "weakness": 2}, healthy)


@pytest.mark.parametrize("fail_on", ["risk", "warn", "weakness"])
def test_what_is_wrong_now_fails_and_comes_before_the_weaknesses(fail_on: str) -> None:
    """Broker 2 is up and does not keep up with orders-3: a warning, and nothing is at risk yet."""
    world = six_brokers_in_two_racks()
    world.log("orders", 3).isr, world.log("orders", 3).stalled = [4, 5], frozenset({2})
    done = outcome(world, Rules(Level(fail_on)))
    assert [(f.kind, f.level) for f in done.judgement.findings[:2]] == [
        ("at_min_isr", "warn"),
        ("under_replicated", "warn"),
    ]
    assert {f.level for f in done.judgement.findings[2:]} == {"weakness"}
    assert done.healthy is (fail_on == "risk")


def test_how_the_default_world_is_set_up_is_all_weaknesses() -> None:
    """Single replicas, min.insync.replicas 1, and a leader that is not the preferred one."""
    world = default_world()
    world.groups, world.log("invoice", 3).leader = [], 2
    done = outcome(world, Rules())
    assert {f.kind for f in done.judgement.findings} == {
        *(K.REPLICATION_FACTOR_1, K.MIN_ISR_1, K.BROKER_LOSS, K.RACK_LOSS, K.NOT_PREFERRED)
    }
    assert {f.level for f in done.judgement.findings} == {"weakness"} and done.healthy


def test_skew_is_a_weakness() -> None:
    def fill(snapshot: Snapshot) -> Snapshot:
        disks = np.array([9, 1, 1, 1, 1, 1], np.int64) * 1_000_000_000
        return replace(snapshot, brokers=replace(snapshot.brokers, disk_bytes=disks))

    assert alone(at_once(fill), K.DISK_SKEW).level == "weakness"


def test_what_is_not_judged_makes_a_check_fail_unless_that_is_allowed() -> None:
    world = six_brokers_in_two_racks
    assert outcome(world(), Rules(), seconds=1).judgement.not_judged
    assert not outcome(world(), Rules(), seconds=1).healthy
    assert outcome(world(), Rules(allow_not_judged=True), seconds=1).healthy


def test_a_weakness_that_is_not_judged_fails_only_if_weaknesses_do() -> None:
    """Broker 3 names no rack, the others do: what the loss of a rack would do is open, nothing else is."""
    world = six_brokers_in_two_racks()
    world.nodes[3].rack = ""
    done = outcome(world, Rules())
    assert [item.why for item in done.judgement.not_judged] == [Why.RACK_UNKNOWN] and done.healthy
    none = ("*_loss", "not_rack_safe")
    assert not outcome(world, Rules(Level.WEAKNESS), "*_loss:*").healthy
    assert outcome(world, Rules(Level.WEAKNESS), *none).healthy
    assert outcome(world, Rules(Level.WEAKNESS, allow_not_judged=True), "rack_loss:R?").healthy
