"""Groups at ends that moved away or are not known: recreated topics, resets, lost leaders, frozen writers."""

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.fold import State, step
from kview.derive.view import Verdict, View
from kview.language import events, verdicts, words
from kview.model.events import EventKind, Severity
from kview.model.failures import FailureKind, Part
from kview.model.snapshot import Failure
from kview.model.states import GroupState
from kview.model.units import NO_BROKER, UNKNOWN
from tests.derive.test_verdicts import at, rows, watch
from tests.worlds import World, lean_world, views

STOPPED = "audit-export"


def happened(made: list[View], kind: EventKind) -> list[str]:
    return [events.sentence(event) for view in made for event in view.new_events if event.kind is kind]


def test_a_commit_beyond_the_log_end_is_ahead_of_the_log_and_not_in_the_sum() -> None:
    world = lean_world()
    before = watch(world, 3)[-1]
    others = before.offsets.lag[rows(before, STOPPED)].tolist()
    group, key = world.group(STOPPED), ("audit-log", 2)
    world.log(*key).rate = 0.0
    group.committed[key] = int(world.log(*key).ends[1]) + 48_602
    view = watch(world, 1)[-1]
    row, second = at(view, STOPPED), rows(view, STOPPED)[2]
    assert verdicts.VERDICTS[view.groups.verdict[row]] == "stopped", "which is worse"
    assert verdicts.VERDICTS[view.offsets.verdict[second]] == "ahead of the log"
    assert verdicts.of_offset(view.offsets, second) == "committed offset is 48,602 past the log end"
    assert view.offsets.lag[second] == UNKNOWN
    assert view.groups.lag[row] == pytest.approx(sum(others) - others[2], abs=2_000)
    assert not view.groups.lag_is_bound[row]
    assert view.groups.severity[row] is Severity.WARN


def test_a_topic_that_was_created_again_leaves_its_groups_ahead() -> None:
    world = lean_world()
    group = world.group("fraud-check")
    group.read_share = 1e-12
    watch(world, 5)
    for log in world.logs:
        if log.topic == "audit-log":
            log.topic_id, log.start, log.watermark = "other", 0, 10.0
            log.ends = dict.fromkeys(log.ends, 10.0)
    view = watch(world, 2)[-1]
    row = at(view, "fraud-check")
    assert verdicts.VERDICTS[view.groups.verdict[row]] == "ahead of the log"
    assert words.count(int(view.groups.lag[row])) == "–"


def test_a_commit_between_the_watermark_and_the_log_end_has_no_negative_lag() -> None:
    """A new leader's watermark may be behind: its group has read further under the old one."""
    world = lean_world()
    watch(world, 3)
    log, group = world.log("audit-log", 2), world.group("fraud-check")
    group.read_share, log.min_isr, log.replicas = 1e-12, 2, [*log.replicas, 5]
    log.ends[5], log.rate = log.ends[log.leader], 0.0
    group.committed[log.key] = group_at = int(log.watermark)
    group.read[log.key] = float(group_at)
    log.watermark -= 700
    view = watch(world, 1)[-1]
    row = rows(view, "fraud-check")[2]
    assert view.offsets.lag[row] == 0
    assert view.offsets.verdict[row] is not Verdict.AHEAD_OF_LOG


def reset(world: World, to: int) -> list[View]:
    """`audit-export` is empty for 30 s, then its partition 1 is set to this offset."""

    def each(second: int) -> None:
        if second == 30:
            world.group(STOPPED).committed["audit-log", 1] = to

    return watch(world, 60, each)


def test_a_reset_to_the_end_is_an_event_and_not_a_rate() -> None:
    world = lean_world()
    was, end = world.group(STOPPED).committed["audit-log", 1], int(world.log("audit-log", 1).watermark)
    made = reset(world, end)
    (said,) = happened(made, EventKind.GROUP_RESET)
    way = f"from {was:,} to {end:,} ({end - was:,} forward)"
    assert said == f"offsets of group audit-export were reset: audit-log-1 {way}"
    rates = [float(view.groups.read_rate[at(view, STOPPED)]) for view in made[1:]]
    assert np.nanmax(rates) == 0


def test_what_is_committed_beyond_the_end_was_not_read() -> None:
    """The group's last member has just left: its own last commit came when it was no longer one."""
    world = lean_world()
    group, key = world.group(STOPPED), ("audit-log", 1)

    def each(second: int) -> None:
        if second == 20:
            group.committed[key] += 10
        if second == 40:
            group.committed[key] = int(world.log(*key).ends[world.log(*key).leader]) + 5_000

    made = watch(world, 60, each)
    assert len(happened(made, EventKind.GROUP_RESET)) == 1
    rates = [float(view.groups.read_rate[at(view, STOPPED)]) for view in made[1:]]
    assert np.nanmax(rates) < 10


def test_a_reset_to_the_beginning_is_an_event_and_not_a_rate() -> None:
    world = lean_world()
    was, start = world.group(STOPPED).committed["audit-log", 1], world.log("audit-log", 1).start
    made = reset(world, start)
    (said,) = happened(made, EventKind.GROUP_RESET)
    assert said.endswith(f"audit-log-1 from {was:,} to {start:,} ({was - start:,} back)")
    assert all(not view.offsets.read_rate[rows(view, STOPPED)[1]] < 0 for view in made)


def test_a_reader_without_membership_is_not_reset_by_its_own_commits() -> None:
    world = lean_world()
    group = world.group("billing")
    group.state = GroupState.EMPTY

    def each(second: int) -> None:
        if second % 15 == 0:
            group.committed = {key: int(world.log(*key).watermark) for key in group.committed}

    group.members = 0
    made = watch(world, 60, each)
    assert happened(made, EventKind.GROUP_RESET) == []


def test_a_reset_is_seen_whatever_is_written_at_that_moment() -> None:
    """The writers happen to write ten times as much in that second, or nothing at all."""
    for factor in (10.0, 0.0):
        world = lean_world()
        log = world.log("audit-log", 1)
        usual = log.rate

        def each(second: int, world: World = world, usual: float = usual, factor: float = factor) -> None:
            log = world.log("audit-log", 1)
            log.rate = usual * (factor if second == 30 else 1)
            if second == 30:
                world.group(STOPPED).committed[log.key] = int(log.watermark)

        assert len(happened(watch(world, 40, each), EventKind.GROUP_RESET)) == 1, factor


def test_a_reader_without_membership_is_not_reset_when_its_writers_pause() -> None:
    world = lean_world()
    group = world.group("billing")
    group.state, group.members = GroupState.EMPTY, 0
    usual = {key: world.log(*key).rate for key in group.committed}

    def each(second: int) -> None:
        for key in group.committed:
            world.log(*key).rate = 0.0 if second % 15 in (14, 0) else usual[key]
        if second % 15 == 0:
            group.committed = {key: int(world.log(*key).watermark) for key in group.committed}

    assert happened(watch(world, 60, each), EventKind.GROUP_RESET) == []


def test_a_reader_without_membership_that_catches_up_is_reset_once_at_most() -> None:
    world = lean_world()
    group = world.group("billing")
    group.committed = {key: offset - 440 * 600 for key, offset in group.committed.items()}
    group.state, group.members = GroupState.EMPTY, 0

    def each(second: int) -> None:
        if second % 20 == 0:
            group.committed = {key: offset + 440 * 20 * 3 for key, offset in group.committed.items()}

    made = watch(world, 125, each)
    assert len(happened(made, EventKind.GROUP_RESET)) <= 1
    (view,) = made[-1:]
    assert view.groups.read_rate[at(view, "billing")] == pytest.approx(440 * 3 * 10, rel=0.1)


def skipped_forward(share: float, joining: bool) -> list[View]:
    """A slow group 10 minutes behind stops at second 60, is reset to the end 3 s later, and comes back."""
    world = lean_world()
    group = world.group("billing")
    group.committed = {key: offset - 440 * 540 for key, offset in group.committed.items()}
    group.read_share = share

    def each(second: int) -> None:
        if second == 60:
            group.members, group.state = 0, GroupState.EMPTY
        if second == 63:
            group.committed = {key: int(world.log(*key).watermark) for key in group.committed}
            group.read = {key: float(offset) for key, offset in group.committed.items()}
            if joining:
                group.members, group.state = 3, GroupState.PREPARING_REBALANCE
        if second == 66:
            group.members, group.state = 3, GroupState.STABLE

    return watch(world, 180, each)


@pytest.mark.quick(1)
@pytest.mark.parametrize("joining", [False, True])
def test_a_reset_of_a_group_that_stopped_for_three_seconds_is_an_event_and_not_a_rate(joining: bool) -> None:
    """With `joining`, its members are back by the time kview reads the reset, and rebalance."""
    made = skipped_forward(0.4, joining)
    (said,) = happened(made, EventKind.GROUP_RESET)
    assert said.startswith("offsets of group billing were reset: ")
    rates = [float(view.groups.read_rate[at(view, "billing")]) for view in made[30:]]
    assert np.nanmax(rates) < 2 * 0.4 * 4400


def test_a_group_is_not_ok_for_long_after_a_reset_to_the_end() -> None:
    """It reads 40 % of what is written: 15 s behind after 25 s, and a minute behind after 100 s."""
    made = skipped_forward(0.4, joining=False)
    said = [verdicts.VERDICTS[view.groups.verdict[at(view, "billing")]] for view in made]
    assert said[59] == "falling behind"
    assert set(said[66:80]) <= {"ok", "…"}, "it is near the end, whatever it was before"
    assert "ok" not in said[92:]
    assert set(said[110:]) == {"falling behind"}


def test_a_groups_lag_does_not_fall_when_a_leader_is_lost() -> None:
    """Broker 4 leads audit-log-3, which has one replica: when it is fenced, there is no leader."""
    world = lean_world()
    alive = watch(world, 20)
    lag = int(alive[-1].groups.lag[at(alive[-1], STOPPED)])
    world.crash(4)
    made = list(views([*(view.snapshot for view in alive), *(world.tick() for _ in range(20))]))[20:]
    for view in made:
        assert view.groups.lag[at(view, STOPPED)] >= lag
    row = at(view, STOPPED)
    assert (
        words.at_least(words.count(int(view.groups.lag[row])), bool(view.groups.lag_is_bound[row]))[0] == "≥"
    )
    cell = rows(view, STOPPED)[3]
    assert view.snapshot.partitions.leader[view.offsets.partition_row[cell]] == -1
    assert view.offsets.lag_is_bound[cell] and view.offsets.lag[cell] > 0
    age_ms = view.snapshot.observation.ended_ms - int(view.offsets.log_end_ms[cell])
    assert age_ms == pytest.approx(20_000, abs=200)


def test_nothing_is_said_about_catching_up_while_writers_are_stopped() -> None:
    world = lean_world()
    group = world.group("billing")
    group.committed = {key: offset - 440 * 600 for key, offset in group.committed.items()}
    group.read_share = 0.5
    made = watch(world, 40)
    world.crash(4)
    *_, view = views([*(v.snapshot for v in made), *(world.tick() for _ in range(6))])
    lost = view.partitions.leader_silent_since_ms[view.offsets.partition_row] != UNKNOWN
    mine = view.snapshot.offsets.group == "billing"
    assert (lost & mine).any()
    assert set(view.offsets.catch_up_ms[lost & mine]) == {UNKNOWN}
    assert (
        np.isnan(view.offsets.write_rate[lost & mine]) | (view.offsets.write_rate[lost & mine] == 0)
    ).all()


def test_groups_appear_and_are_deleted_and_move() -> None:
    world = lean_world()
    watch(world, 3)
    state, made = State(), []
    fraud = world.group("fraud-check")
    for what in ("", "", "", "go", "come", "move"):
        if what == "go":
            world.groups.remove(fraud)
        elif what == "come":
            world.groups.append(fraud)
            world.groups.sort(key=lambda group: group.name)
        elif what == "move":
            fraud.coordinator = 2
        state, view = step(state, world.tick())
        made += [events.sentence(event) for event in view.new_events if event.group]
    assert made == [
        "group fraud-check is gone: deleted or expired",
        "group fraud-check appeared",
        "coordinator of group fraud-check moved from broker 4 to 2",
    ]


def test_the_lag_of_a_group_is_a_bound_while_there_may_be_topics_that_kview_may_not_see() -> None:
    """Kafka leaves commits to such topics out of its answer without an error."""
    world, state = lean_world(), State()
    for denied in (False, True):
        snapshot = world.tick()
        if denied:
            failures = (Failure(Part.TOPICS, NO_BROKER, FailureKind.KAFKA_ERROR, 29),)
            snapshot = replace(snapshot, observation=replace(snapshot.observation, failures=failures))
        state, view = step(state, snapshot)
        row = at(view, STOPPED)
        lag = words.at_least(words.count(int(view.groups.lag[row])), bool(view.groups.lag_is_bound[row]))
        assert lag.startswith("≥") is denied
