"""A partition's log as facts, in a crash: ends, ages, positions of groups, and what happened to it."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from msgspec import structs

from kview.derive.partitions.log import (
    LEAST_ZOOM,
    events_of_broker,
    events_of_partition,
    partition_log,
    unnamed_events,
    zoomed,
)
from kview.derive.view import Verdict, View
from kview.language.partition_log import PAST_THE_END, replica_note
from kview.model.events import Event, EventKind, Severity
from kview.model.units import UNKNOWN
from kview.tui.options import Options
from kview.tui.rows.log_lines import LABELS_A_CELL, Scale, Zoom, _near, log_lines
from kview.tui.text import content
from tests.worlds import crash_script, views
from tests.worlds.crowd import GROUPS, crowd
from tests.worlds.small import TOPIC

SILENT, FENCED = 13, 21


@pytest.fixture(scope="module")
def script() -> list[View]:
    """The views of a crash of broker 4 in second 10."""
    return list(views(crash_script(healthy_s=10, silent_s=14, after_s=2)))


def test_a_silent_follower_keeps_its_last_end_with_the_time_it_was_read(script: list[View]) -> None:
    before, view = script[9], script[SILENT]
    log = partition_log(view, "invoice", 1)
    assert log is not None
    ends = {replica.broker: replica for replica in log.replicas}
    assert list(ends) == [3, 1, 4], "in the order of the replica list"
    assert not ends[4].answers and ends[4].in_isr and ends[4].lag == UNKNOWN
    assert ends[4].end_ms <= before.snapshot.observation.ended_ms < ends[3].end_ms
    assert ends[3].is_leader and ends[3].end == log.log_end > log.high_watermark
    assert ends[4].end <= log.high_watermark <= ends[1].end


def test_a_follower_that_was_read_after_its_leader_says_so(
    script: list[View],
) -> None:
    log = partition_log(script[9], "invoice", 1)
    assert log is not None
    leader, follower = log.replicas[0], log.replicas[1]
    now_ms = leader.end_ms
    later = follower._replace(end=leader.end + 3, end_ms=leader.end_ms + 5, lag=0)
    assert replica_note(later, leader, False, now_ms) == "read later"
    assert replica_note(later._replace(lag=-3), leader, False, now_ms) == "ahead by 3"
    assert replica_note(later._replace(lag=2), leader, False, now_ms) == "lag 2"
    assert replica_note(later._replace(end=leader.end), leader, False, now_ms) == "lag ≈ 0"
    assert replica_note(later, leader._replace(end=UNKNOWN), False, now_ms) == "lag ≈ 0"


def test_a_group_past_the_log_end_says_so(script: list[View]) -> None:
    view = script[9]
    log = partition_log(view, "audit-log", 0)
    assert log is not None
    ahead = view.offsets.verdict.copy()
    ahead[log.groups.offset[-1]] = Verdict.AHEAD_OF_LOG

    def drawn(of: View) -> str:
        lines = log_lines(of, log, Options(), 120, Zoom.WHOLE, 3, log.read_ms)
        return "".join(content(line) for line in lines)

    assert PAST_THE_END not in drawn(view)
    said = drawn(structs.replace(view, offsets=structs.replace(view.offsets, verdict=ahead)))
    assert (
        f"fraud-check {log.groups.committed[-1]:,} {PAST_THE_END}" in said and said.count(PAST_THE_END) == 1
    )


def test_groups_stand_at_their_commits_the_furthest_behind_first(script: list[View]) -> None:
    view = script[9]
    log = partition_log(view, "audit-log", 0)
    assert log is not None
    assert view.snapshot.groups.group[log.groups.group].tolist() == ["audit-export", "fraud-check"]
    assert log.groups.committed[0] < log.groups.committed[1] <= log.high_watermark


@pytest.mark.parametrize("scale", [Scale(0, 1, 10), Scale(7, 12_345, 100), Scale(2**62, 2**63 - 1, 97)])
def test_the_cells_of_many_offsets_are_those_of_each(scale: Scale) -> None:
    span = scale.high - scale.low
    offsets = sorted({0, *(scale.low + span * at // 1_000 for at in range(1_001))})
    assert scale.cells_of(np.array(offsets)).tolist() == [scale.cell(offset) for offset in offsets]


def test_of_very_many_groups_those_with_room_near_their_cells_are_taken_and_the_others_counted() -> None:
    view = crowd()
    log = partition_log(view, TOPIC, 0)
    assert log is not None and len(log.groups) == GROUPS
    scale = Scale(log.first, log.last, 100)
    near, left_out = _near(log, scale, 3)
    cells = Counter(map(scale.cell, near.committed.tolist()))
    of_all = Counter(map(scale.cell, log.groups.committed.tolist()))
    assert cells == {cell: min(count, 3 * LABELS_A_CELL) for cell, count in of_all.items()}
    assert left_out == GROUPS - len(near) > 0


def test_the_zoom_holds_the_watermark_and_every_replica_in_the_isr(script: list[View]) -> None:
    for view in (script[9], script[SILENT], script[FENCED]):
        for row in range(len(view.snapshot.partitions)):
            key = str(view.snapshot.partitions.topic[row]), int(view.snapshot.partitions.partition[row])
            log = partition_log(view, *key)
            assert log is not None
            stretch = zoomed(log)
            assert stretch is not None
            low, high = stretch
            assert high == log.last and log.first <= low <= high - min(LEAST_ZOOM, high - log.first)
            points = [log.high_watermark, *(replica.end for replica in log.replicas if replica.in_isr)]
            assert all(low <= point <= high for point in points if point != UNKNOWN), key


def test_the_zoom_holds_a_follower_outside_the_isr_only_if_it_is_alive_and_near(script: list[View]) -> None:
    log = partition_log(script[9], "invoice", 1)
    assert log is not None
    *others, last = log.replicas
    behind = (log.last - log.first) // 20
    near = last._replace(in_isr=False, end=log.last - behind)
    for replica, is_held in (
        (near, True),
        (near._replace(answers=False), False),
        (near._replace(end=log.first), False),
    ):
        stretch = zoomed(replace(log, replicas=(*others, replica)))
        assert stretch is not None and (stretch[0] <= replica.end) is is_held, replica


def test_a_partition_that_is_not_listed_has_no_log(script: list[View]) -> None:
    assert partition_log(script[9], "invoice", 99) is None
    assert partition_log(script[9], "gone", 0) is None


def test_the_history_names_only_what_concerns_the_partition(script: list[View]) -> None:
    view = script[FENCED]
    kinds = [event.kind for event in events_of_partition(view.events, "invoice", 3)]
    assert EventKind.LEADER_MOVED in kinds and EventKind.ISR_SHRANK in kinds
    assert events_of_partition(view.events, "invoice", 0) == (), "no replica on broker 4"
    times = [event.at_ms for event in events_of_partition(view.events, "invoice", 3)]
    assert times == sorted(times, reverse=True)
    of_broker = {event.kind for event in events_of_broker(view.events, 4)}
    assert {EventKind.BROKER_SILENT, EventKind.BROKER_FENCED, EventKind.ISR_SHRANK} <= of_broker
    assert not {EventKind.BROKER_SILENT, EventKind.BROKER_FENCED} & {
        event.kind for event in events_of_broker(view.events, 2)
    }


def test_an_event_that_cannot_name_all_its_partitions_is_counted() -> None:
    event = Event(1, EventKind.LEADER_LOST, Severity.RISK, partitions=(("a", 0),), partition_count=300)
    assert unnamed_events((event,), "b", 7) == 1
    assert unnamed_events((event,), "a", 0) == 0, "this one is named"
