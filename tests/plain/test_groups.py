"""Groups in text and JSON: no figure is more exact than what is known of it."""

import json
import re
from typing import Any

import pytest

from kview.derive.fold import State, step
from kview.derive.view import View
from kview.language import events, findings
from kview.model.events import EventKind
from kview.model.snapshot import TimePoints
from kview.model.states import GroupType
from kview.plain.blocks import MAX_GROUPS, block
from kview.plain.documents import document
from tests.worlds import default_world
from tests.worlds.crowd import GROUPS, STOPPED, crowd
from tests.worlds.kinds import CONNECT, CONSUMER, SHARE, STREAMS, of_every_kind
from tests.worlds.small import TOPIC, ends, reader, small_world, watch
from tests.worlds.tables import START_MS, table

OLD_MS = 40_000


def row(view: View, name: str) -> str:
    """A group's line in a block of text, without runs of spaces."""
    lines = block(view, "a cluster").splitlines()
    (found,) = [" ".join(line.split()) for line in lines if line.startswith(f"  {name} ")]
    return found


def group(view: View, name: str) -> dict[str, Any]:
    """A group in a JSON document."""
    (found,) = [each for each in json.loads(document(view))["groups"] if each["group"] == name]
    return dict(found)


def headline(view: View) -> str:
    now_ms = view.snapshot.observation.ended_ms
    return " · ".join(findings.sentence(finding, now_ms) for finding in view.headline.findings)


def happened(made: list[View], kind: EventKind) -> list[str]:
    return [events.sentence(event) for view in made for event in view.new_events if event.kind is kind]


def with_an_unread_partition(records: int, members: int = 1) -> View:
    """A group that reads everything, but has committed nothing on partition 0, which nobody writes to."""
    world = small_world(reader("mailer", -1, *ends()[1:], members=members))
    log = world.log(TOPIC, 0)
    log.start, log.watermark, log.rate = 17, 17.0 + records, 0.0
    log.ends = {log.leader: log.watermark}
    return watch(world, 15)[-1]


def test_a_group_that_has_not_read_a_partition_is_not_ok() -> None:
    view = with_an_unread_partition(1_083)
    assert "…: nothing committed on 1 partition" in row(view, "mailer")
    assert row(view, "mailer").startswith("mailer Stable 1/1 ≥")
    assert "all healthy" not in headline(view) and "no verdict yet on 1 group" in headline(view)
    shown = group(view, "mailer")
    assert shown["lag_is_bound"] and shown["behind_is_bound"]
    assert shown["verdict"]["kind"] == "undecided"
    assert (shown["verdict"]["reason"], shown["verdict"]["reason_count"]) == ("no_commit", 1)
    assert [each["committed"] is None for each in shown["partitions"]] == [True, False, False, False]


@pytest.mark.parametrize(("records", "members"), [(0, 1), (1_083, 0)])
def test_a_partition_without_records_or_without_an_owner_is_not_missed(records: int, members: int) -> None:
    view = with_an_unread_partition(records, members)
    assert "nothing committed" not in row(view, "mailer")
    assert not group(view, "mailer")["lag_is_bound"]
    assert members == 0 or headline(view).startswith("all healthy")


def test_lag_in_time_is_counted_from_the_moment_the_oldest_unread_record_was_written() -> None:
    """Nobody writes for 40 s. The records of the next second are not read for two minutes."""
    world = small_world(reader("mailer", ends(1)[0], share=1e-12), partitions=1, rate=0.0)

    def each(second: int) -> None:
        world.log(TOPIC, 0).rate = 100.0 if second == OLD_MS // 1000 else 0.0

    made = [group(view, "mailer") for view in watch(world, 160, each)][OLD_MS // 1000 + 2 :]
    for second, shown in enumerate(made, 2):
        assert shown["behind_ms"] == pytest.approx(1000 * second, abs=1_100)
        assert not shown["behind_is_bound"]
        assert shown["lag_records"] == 100
    assert not any(shown["behind_is_estimate"] for shown in made)


def test_the_lag_in_time_of_a_stopped_group_grows_with_the_clock() -> None:
    """It stopped before kview began to watch, and is watched for twenty minutes. Where logs ended before that
    is not read again."""
    world = small_world(
        reader("mailer", *(end - 100 * 1800 for end in ends(4, 500_000)), members=0), size=500_000
    )
    world.interval_ms = 5_000

    def each(number: int) -> None:
        if number == 110:
            world.time_points = table(TimePoints, ())

    made = watch(world, 240, each)
    shown = [group(view, "mailer") for view in made[::10]]
    behind = [each["behind_ms"] for each in shown]
    assert behind == sorted(behind)
    assert behind[-1] - behind[0] == pytest.approx(230 * 5_000, abs=100)
    assert all(each["behind_is_bound"] for each in shown)
    assert behind[-1] < 1_800_000 + 240 * 5_000
    assert {int(view.groups.behind_trend[0]) for view in made} == {0}, "a bound is not seen to grow or shrink"
    assert "stopped: no members, ≥2" in row(made[-1], "mailer")


def test_the_time_of_a_record_between_two_distant_moments_is_a_bound() -> None:
    """The topic was empty ten minutes ago, and had records two minutes ago: they came at any time between."""
    world = small_world(reader("mailer", 0, share=1e-12), partitions=1, rate=0.0)
    log = world.log(TOPIC, 0)
    log.start = 0
    answers = [(600, 0), (120, int(log.watermark)), (60, int(log.watermark))]
    world.time_points = table(
        TimePoints,
        (
            {
                "topic": TOPIC,
                "partition": 0,
                "timestamp_ms": START_MS - 1000 * ago,
                "offset": offset,
                "received_ms": START_MS,
            }
            for ago, offset in answers
        ),
    )
    for second, view in enumerate(watch(world, 5)):
        shown = group(view, "mailer")
        assert shown["behind_is_bound"]
        assert shown["behind_ms"] == pytest.approx(120_000 + 1000 * second, abs=100)


def test_the_lag_in_time_of_a_group_that_reads_on_far_behind_is_an_estimate() -> None:
    world = small_world(reader("mailer", *(end - 100 * 200 for end in ends())))
    made = watch(world, 90)
    for view in made[5:]:
        shown = group(view, "mailer")
        assert shown["behind_ms"] == pytest.approx(200_000, abs=3_000)
        assert shown["behind_is_estimate"] and not shown["behind_is_bound"]
    assert " ≈3 m 2" in row(made[-1], "mailer")


def test_a_reset_over_deleted_records_is_part_of_the_reset() -> None:
    """Partition 3 was at 100, and its log begins at 1,000."""
    first = ends()
    world = small_world(reader("mailer", *(end - 500 for end in first[:3]), 100, members=0), rate=0.0)
    world.log(TOPIC, 3).start = 1_000

    def each(second: int) -> None:
        if second == 25:
            world.groups[0].committed = {(TOPIC, number): end for number, end in enumerate(first)}

    (said,) = happened(watch(world, 30, each), EventKind.GROUP_RESET)
    assert said.endswith(f"orders-0, orders-1 + 2 more, together {3 * 500 + first[3] - 100:,} forward")


def test_a_loss_is_open_until_the_offsets_were_past_it_for_a_minute() -> None:
    """A group without members is below the log start, and is then set to the end by hand."""
    first = ends(2)
    world = small_world(reader("mailer", first[0], first[1] - 900, members=0), partitions=2, rate=0.0)

    def each(second: int) -> None:
        if second == 5:
            world.log(TOPIC, 1).start = first[1] - 400
        if second == 30:
            world.groups[0].committed[TOPIC, 1] = first[1]

    made = watch(world, 100, each)
    assert "group mailer: 500 records deleted before being read" in headline(made[25])
    assert row(made[50], "mailer").endswith("lost records: 500 records deleted before being read")
    assert group(made[50], "mailer")["verdict"]["text"].startswith("lost records: 500 ")
    assert (group(made[50], "mailer")["lost_records"], group(made[50], "mailer")["lost_is_bound"]) == (
        500,
        False,
    )
    assert made[80].headline.severity == "risk"
    assert row(made[95], "mailer").endswith(" ok")
    assert headline(made[95]).startswith("all healthy")


def test_behind_is_not_known_beyond_the_end_of_the_log() -> None:
    first = ends(1)
    world = small_world(reader("mailer", first[0] + 70, share=1e-12), partitions=1, rate=0.0)
    view = watch(world, 5)[-1]
    assert row(view, "mailer").startswith("mailer Stable 1/1 – – ")
    shown = group(view, "mailer")
    assert (shown["behind_ms"], shown["partitions"][0]["behind_ms"]) == (None, None)
    assert shown["verdict"]["kind"] == "ahead_of_log"


def test_the_headline_names_the_group_that_is_furthest_behind() -> None:
    first = ends(1)
    names = {"a": 70, "b": 300, "c": 130}
    groups = [reader(name, first[0] - 100 * ago, members=0) for name, ago in names.items()]
    view = watch(small_world(*groups, partitions=1), 12)[-1]
    assert headline(view).split(" · ")[1].startswith("b stopped, ≥ 2 m 10 s behind (+2 more groups)")


def test_a_group_is_shown_with_its_kind_and_a_simple_one_with_nothing_that_it_has_not() -> None:
    idle = reader("flink", *ends(), members=0)
    idle.type = GroupType.SIMPLE
    small = watch(small_world(idle, reader("mailer", *ends())), 3)[-1]
    assert row(small, "flink").startswith("flink simple (only commits) 28 ")
    assert row(small, "mailer").startswith("mailer Stable 1/1 28 ")
    view = step(State(), of_every_kind(default_world().tick(), members=0))[1]
    assert row(view, SHARE).startswith(f"{SHARE} share Empty 0/0 40 ")
    assert row(view, STREAMS).startswith(f"{STREAMS} streams Stable 1/1 ")
    assert row(view, CONSUMER).startswith(f"{CONSUMER} consumer Reconciling 2/2 ")
    assert row(view, CONNECT).startswith(f"{CONNECT} connect Stable 1/1 ")


def test_groups_that_do_the_same_are_one_line_where_not_all_fit() -> None:
    printed = block(crowd(), "a cluster").splitlines()
    audit = [line for line in printed if "like audit" in line]
    assert len(audit) == 1
    assert re.search(rf"{STOPPED} like audit-0000 +– +[\d,]+ .*stopped: no members", audit[0])
    assert f"  + {GROUPS - STOPPED - MAX_GROUPS + 1:,} more" in printed
