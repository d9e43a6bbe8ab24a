"""Records that were deleted before a group read them: said for a while, never counted as read; abandoned
groups."""

from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.align import partition_rows
from kview.derive.checks.judge import Watch
from kview.derive.checks.judge import step as judge
from kview.derive.view import Verdict, View
from kview.language import events, findings, verdicts
from kview.model.checks import CheckKind
from kview.model.events import EventKind, Severity
from kview.model.findings import Finding, FindingKind
from kview.model.snapshot import Snapshot
from kview.model.states import GroupState
from kview.model.units import UNKNOWN
from tests.derive.test_verdicts import at, rows, verdict, watch
from tests.worlds import World, default_world, views

KEY = ("invoice", 3)


def sentences(view: View) -> list[str]:
    """What the headline says."""
    return [
        findings.sentence(finding, view.snapshot.observation.ended_ms) for finding in view.headline.findings
    ]


def happened(made: list[View], kind: EventKind) -> list[str]:
    return [events.sentence(event) for view in made for event in view.new_events if event.kind is kind]


def deletion(world: World, at_s: int, records: int) -> Callable[[int], None]:
    """`billing` reads 56/s, far behind; at `at_s` the log start passes it by so many records. At its next
    commit, 3 s later, it goes on from there."""
    group = world.group("billing")
    group.committed = {key: offset - 300_000 for key, offset in group.committed.items()}
    group.read_share = 56 / 440
    start: list[int] = []

    def each(second: int) -> None:
        if second == at_s:
            start.append(int(group.read[KEY]) + records)
            world.log(*KEY).start = start[0]
            group.commit_every_ms = 10**9
        if second == at_s + 3:
            group.read[KEY], group.commit_every_ms = float(start[0]), 1_000

    return each


def test_a_loss_stays_a_finding_until_the_group_has_gone_on_for_a_minute() -> None:
    world = default_world()
    made = watch(world, 130, deletion(world, 40, 24_000))
    lost = [int(view.groups.lost[at(view, "billing")]) for view in made]
    assert lost[39] == 0 and lost[40] == pytest.approx(24_000, abs=60)
    assert min(lost[40:100]) > 23_900 and lost[110] == 0
    assert "24," in "".join(s for s in sentences(made[95]) if s.startswith("group billing: "))
    assert made[95].groups.severity[at(made[95], "billing")] is Severity.RISK
    of_check = judge(Watch(), made[95])[1].findings
    (checked,) = [found for found in of_check if found.kind is CheckKind.GROUP_LOST_RECORDS]
    lag = int(made[95].groups.lag[at(made[95], "billing")])
    assert (checked.amount, checked.lag) == (lost[95], lag) and lag > 100_000
    (told,) = happened(made, EventKind.GROUP_RECORDS_LOST)
    assert told.startswith("≥ 24,0") and told.endswith(" before group billing read them: invoice-3")


def test_skipped_offsets_are_not_read_records() -> None:
    world = default_world()
    made = watch(world, 80, deletion(world, 40, 24_000))
    row = rows(made[0], "billing")[KEY[1]]
    rates = [float(view.offsets.read_rate[row]) for view in made[30:]]
    assert max(rates) < 60, "1,600/s would be the skipped records over 20 s"
    assert rates[-1] == pytest.approx(56, rel=0.1)


def test_a_deletion_that_was_never_seen_before_the_group_went_on_is_a_loss() -> None:
    world = default_world()
    group = world.group("billing")
    group.committed = {key: offset - 300_000 for key, offset in group.committed.items()}
    group.read_share = 56 / 440

    def each(second: int) -> None:
        if second == 40:
            world.log(*KEY).start = int(group.read[KEY]) + 24_000
            group.read[KEY] = float(world.log(*KEY).start)

    made = watch(world, 60, each)
    (told,) = happened(made, EventKind.GROUP_RECORDS_LOST)
    assert told.startswith("≥ 24,0") and told.endswith(" before group billing read them: invoice-3")
    assert max(float(view.offsets.read_rate[rows(view, "billing")[3]]) for view in made[30:]) < 60


@pytest.mark.parametrize("gap_s", [3, 12])
def test_a_deletion_soon_after_kview_could_not_see_the_commits_is_a_loss(gap_s: int) -> None:
    """Too few commits were seen since to tell how fast the group reads. Those before the gap tell it."""
    world = default_world()
    group = world.group("billing")
    group.committed = {key: offset - 300_000 for key, offset in group.committed.items()}
    group.read_share = 56 / 440

    def each(second: int) -> None:
        if second == 36 - gap_s:
            world.cut(group.coordinator)
        if second == 36:
            world.back(group.coordinator)
        if second == 40:
            world.log(*KEY).start = int(group.read[KEY]) + 24_000
            group.read[KEY] = float(world.log(*KEY).start)

    made = watch(world, 60, each)
    (told,) = happened(made, EventKind.GROUP_RECORDS_LOST)
    assert told.startswith("≥ 24,0") and told.endswith(" before group billing read them: invoice-3")
    rates = [float(view.offsets.read_rate[rows(view, "billing")[3]]) for view in made[30:]]
    assert max(rate for rate in rates if rate == rate) < 60


def test_a_group_that_deletes_what_it_has_read_loses_nothing() -> None:
    """Kafka Streams does so with its repartition topics."""
    world = default_world()
    group = world.group("billing")
    group.commit_every_ms = 5_000

    def purge(second: int) -> None:
        if second % 5 == 0:  # when a commit is due
            for key, offset in group.committed.items():
                world.log(*key).start = int(group.read.get(key, offset))

    made = watch(world, 60, purge)
    assert happened(made, EventKind.GROUP_RECORDS_LOST) == []
    assert {int(view.groups.lost[at(view, "billing")]) for view in made} == {0}
    assert made[-1].groups.read_rate[at(made[-1], "billing")] == pytest.approx(4400, rel=0.05)


def with_starts(snapshots: list[Snapshot], starts: list[dict[tuple[str, int], int]]) -> list[Snapshot]:
    """The same snapshots with these log starts, which were read after the commits."""
    made = []
    for snapshot, raised in zip(snapshots, starts, strict=True):
        table = snapshot.partitions
        keys = list(zip(table.topic.tolist(), table.partition.tolist(), strict=True))
        at = np.array([raised.get(key, old) for key, old in zip(keys, table.log_start.tolist(), strict=True)])
        at_ms = np.where([key in raised for key in keys], table.high_watermark_ms, table.log_start_ms)
        made.append(replace(snapshot, partitions=replace(table, log_start=at, log_start_ms=at_ms)))
    return made


def committed(snapshot: Snapshot, name: str) -> dict[tuple[str, int], int]:
    """What a group has committed, by partition."""
    table = snapshot.offsets
    rows = np.flatnonzero(table.group == name).tolist()
    return {(table.topic[row], int(table.partition[row])): int(table.committed[row]) for row in rows}


@pytest.mark.parametrize("commit_every_ms", [1_000, 5_000])
def test_a_deletion_up_to_a_commit_that_kview_has_not_read_yet_is_not_a_loss(commit_every_ms: int) -> None:
    """The group commits and deletes between kview's readings of its commits and of the log starts."""
    world = default_world()
    world.groups = [world.group("billing")]
    world.groups[0].commit_every_ms = commit_every_ms
    snapshots = [world.tick() for _ in range(60)]
    next_commits = [committed(snapshot, "billing") for snapshot in (*snapshots[1:], snapshots[-1])]
    made = list(views(with_starts(snapshots, next_commits)))
    assert {int(view.groups.lost[at(view, "billing")]) for view in made} == {0}
    assert happened(made, EventKind.GROUP_RECORDS_LOST) == []
    assert made[-1].groups.read_rate[at(made[-1], "billing")] == pytest.approx(4400, rel=0.05)


def test_a_group_that_deletes_what_it_has_read_loses_nothing_in_a_burst_of_traffic() -> None:
    """It commits every second, and deletes every 10 s what it has read up to some commit in between."""
    world = default_world()
    log = world.log(*KEY)
    snapshots: list[Snapshot] = []
    starts: list[dict[tuple[str, int], int]] = []
    for second in range(75):
        log.rate = 440.0 * (12 if second % 10 == 0 and second > 20 else 1)
        snapshots.append(world.tick())
        now = committed(snapshots[-1], "billing")[KEY]
        last = committed(snapshots[-2], "billing")[KEY] if second else now
        starts.append({KEY: (last + 2 * now) // 3} if second % 10 == 0 else (starts[-1] if starts else {}))
    made = list(views(with_starts(snapshots, starts)))
    assert {int(view.groups.lost[at(view, "billing")]) for view in made} == {0}
    assert happened(made, EventKind.GROUP_RECORDS_LOST) == []


def test_a_group_that_was_overtaken_is_seen_at_its_next_commit_even_if_log_starts_are_read_last() -> None:
    world = default_world()
    group = world.group("billing")
    group.committed = {key: offset - 300_000 for key, offset in group.committed.items()}
    group.read_share = 56 / 440
    snapshots = [world.tick() for _ in range(60)]
    start = committed(snapshots[40], "billing")[KEY] + 24_000
    starts: list[dict[tuple[str, int], int]] = [{}] * 40 + [{KEY: start}] * 20
    made = list(views(with_starts(snapshots, starts)))
    lost = [int(view.groups.lost[at(view, "billing")]) for view in made]
    assert lost[:41] == [0] * 41, "in observation 40, the commit is older than the log start"
    assert lost[41] == pytest.approx(24_000, abs=120)
    (told,) = happened(made, EventKind.GROUP_RECORDS_LOST)
    assert told.endswith(" before group billing read them: invoice-3")


def test_old_commits_are_not_compared_with_new_log_starts() -> None:
    """Kview cannot reach the coordinator. The group goes on, and deletes what it has read."""
    world = default_world()
    world.groups = [world.group("billing")]
    made = watch(world, 20)
    world.cut(world.group("billing").coordinator)

    def go_on() -> Snapshot:
        for key, read in world.group("billing").read.items():
            world.log(*key).start = int(read)
        return world.tick()

    made = list(views([*(view.snapshot for view in made), *(go_on() for _ in range(30))]))
    rows_of = partition_rows(made[-1].snapshot.offsets, made[-1].snapshot.partitions)
    mine = rows(made[-1], "billing")
    above = made[-1].snapshot.partitions.log_start[rows_of[mine]] > made[-1].snapshot.offsets.committed[mine]
    assert above.any(), "or this shows nothing"
    assert happened(made, EventKind.GROUP_RECORDS_LOST) == []
    assert {int(view.groups.lost[at(view, "billing")]) for view in made} == {0}


def test_a_loss_is_told_once_however_long_the_coordinator_is_silent_afterwards() -> None:
    world = default_world()
    world.interval_ms = 5_000
    group = world.group("billing")
    group.committed = {key: offset - 300_000 for key, offset in group.committed.items()}
    group.read_share, group.commit_every_ms = 56 / 440, 5_000
    world.logs = [log for log in world.logs if not log.internal]

    def each(number: int) -> None:
        if number == 10:
            world.log(*KEY).start = int(group.read[KEY]) + 24_000
            group.read[KEY] = float(world.log(*KEY).start)
        if number == 11:
            world.cut(group.coordinator)

    made = watch(world, 160, each)
    assert len(happened(made, EventKind.GROUP_RECORDS_LOST)) == 1
    assert made[-1].snapshot.offsets.received_ms[rows(made[-1], "billing")[0]] != UNKNOWN


def test_offsets_below_the_log_start_are_lost_records() -> None:
    world = default_world()
    group = world.group("audit-export")
    world.log("audit-log", 1).start = group.committed["audit-log", 1] + 500
    *_, view = watch(world, 3)
    row = at(view, "audit-export")
    assert view.offsets.lost[rows(view, "audit-export")].tolist() == [0, 500, 0, 0]
    assert view.groups.severity[row] is Severity.RISK
    assert view.headline.severity is Severity.RISK
    lost = Finding(FindingKind.RECORDS_LOST, Severity.RISK, group="audit-export", groups=1, count=500)
    assert view.headline.findings[0] == lost
    assert view.groups.lost[row] == 500


def overtaken(world: World) -> None:
    """Every offset of `audit-export` lies below its log's start."""
    group = world.group("audit-export")
    for key, offset in group.committed.items():
        world.log(*key).start = offset + 500


def test_an_empty_group_below_the_log_start_is_abandoned_and_no_alarm() -> None:
    world = default_world()
    overtaken(world)
    for view in watch(world, 30):
        row = at(view, "audit-export")
        assert verdicts.VERDICTS[view.groups.verdict[row]] == "abandoned"
        assert view.groups.severity[row] is Severity.CALM
        assert not [said for said in sentences(view) if "audit-export" in said]
        assert view.groups.lost[row] == 2_000
    assert verdicts.of_group(view.groups, row).startswith(
        "no members, and everything left to read has been deleted"
    )


def test_a_group_that_was_overtaken_while_it_was_watched_is_an_alarm() -> None:
    world = default_world()
    made = watch(world, 30, lambda second: overtaken(world) if second == 10 else None)
    row = at(made[-1], "audit-export")
    assert made[-1].groups.verdict[row] is Verdict.STOPPED
    assert made[-1].groups.severity[row] is Severity.RISK
    (told,) = happened(made, EventKind.GROUP_RECORDS_LOST)
    assert told.startswith("≥ 2,000 records deleted before group audit-export read them: ")


def test_a_group_with_members_is_not_abandoned() -> None:
    world = default_world()
    group = world.group("audit-export")
    group.members, group.state, group.read_share = 1, GroupState.STABLE, 1e-12
    overtaken(world)
    view = watch(world, 3)[-1]
    assert verdict(view, "audit-export") != Verdict.ABANDONED
    assert view.groups.severity[at(view, "audit-export")] is Severity.RISK
