"""Silent brokers: what is claimed about them needs somebody who answers."""

from collections.abc import Iterator

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.view import PartitionStatus, Verdict, View
from kview.language.findings import sentences
from kview.model.events import EventKind, Severity
from kview.model.failures import FailureKind
from kview.model.snapshot import Snapshot
from kview.model.units import UNKNOWN
from tests.worlds import World, default_world, views

BEFORE_S = 5


def cut_off(why: FailureKind, seconds: int, world: World | None = None) -> Iterator[Snapshot]:
    """Only kview cannot reach broker 4 from second BEFORE_S on."""
    world = world or default_world()
    for second in range(BEFORE_S + seconds):
        if second == BEFORE_S:
            world.cut(4, why)
        yield world.tick()


def hung(seconds: int) -> Iterator[Snapshot]:
    """Broker 4 hangs from second BEFORE_S on: its sockets stay open."""
    world = default_world()
    for second in range(BEFORE_S + seconds):
        if second == BEFORE_S:
            world.crash(4, FailureKind.SILENT)
        yield world.tick()


def without_quorum(snapshot: Snapshot) -> Snapshot:
    """The snapshot of a cluster that does not report when brokers fetch."""
    table = snapshot.brokers
    return replace(
        snapshot,
        brokers=replace(table, last_fetch_ms=np.full(len(table), UNKNOWN)),
        quorum=replace(snapshot.quorum, last_fetch_ms=np.full(len(snapshot.quorum), UNKNOWN)),
    )


def led_by_4(view: View) -> set[str]:
    table = view.snapshot.partitions
    return set(view.partitions.status[(table.leader == 4) & ~table.internal])


def verdict(view: View, group: str) -> str:
    return str(view.groups.verdict[view.snapshot.groups.group.tolist().index(group)])


def said(view: View) -> str:
    return " · ".join(sentences(view.headline.findings, view.snapshot.observation.ended_ms))


@pytest.mark.parametrize("why", [FailureKind.SILENT, FailureKind.REFUSED])
def test_what_only_kview_cannot_see_is_unknown_and_nobody_is_blocked(why: FailureKind) -> None:
    *_, view = views(cut_off(why, 8))
    assert led_by_4(view) == {PartitionStatus.UNKNOWN}
    assert "frozen" not in said(view) and "blocked" not in said(view) and "silent" not in said(view)
    assert (
        "broker 4 has not answered kview for 7.1 s, but the cluster still hears from it, "
        "so the state of 4 partitions is unknown"
    ) in said(view)
    assert view.headline.severity is Severity.WARN
    assert verdict(view, "billing") == Verdict.UNKNOWN
    slow = view.snapshot.groups.group.tolist().index("audit-export")
    assert view.groups.lag[slow] > 0 and view.groups.lag_is_bound[slow], "the ends are old"
    assert (view.partitions.frozen_since_ms == UNKNOWN).all()
    assert view.brokers.fencing_due_ms[4] == UNKNOWN


def test_while_nobody_has_told_a_hung_broker_is_silent_and_nothing_is_frozen() -> None:
    seen = list(views(hung(8)))
    first, later = seen[BEFORE_S], seen[BEFORE_S + 4]
    assert led_by_4(first) == {PartitionStatus.SILENT_LEADER}
    assert "broker 4 silent" in said(first) and "frozen" not in said(first)
    assert verdict(first, "billing") == Verdict.UNKNOWN
    assert "high watermark frozen on 6 other partitions" in said(later)
    assert verdict(later, "billing") == Verdict.BLOCKED
    events = [e for view in seen for e in view.new_events if e.kind is EventKind.WATERMARK_FROZEN]
    assert [e.partition_count for e in events] == [6, 4], "those whose leaders answer, then its own"


def test_a_port_that_refuses_is_evidence_at_once() -> None:
    world = default_world()
    *_, before, view = views(_crash(world))
    assert "high watermark frozen on 6 other partitions" in said(view) and "frozen" not in said(before)


def _crash(world: World) -> Iterator[Snapshot]:
    for _ in range(BEFORE_S):
        yield world.tick()
    world.crash(4)
    yield world.tick()


def test_followers_whose_logs_grow_prove_that_their_leader_lives() -> None:
    """Old clusters do not say when brokers fetch."""
    seen = list(views(map(without_quorum, cut_off(FailureKind.SILENT, 12))))
    assert led_by_4(seen[-1]) == {PartitionStatus.UNKNOWN}
    assert "the cluster still hears from it" in said(seen[-1])
    assert not any("frozen" in said(view) or "blocked" in said(view) for view in seen)


def test_followers_whose_logs_stand_still_prove_that_their_leader_is_lost() -> None:
    *_, view = views(map(without_quorum, hung(6)))
    assert led_by_4(view) == {PartitionStatus.SILENT_LEADER}
    assert "high watermark frozen on 6 other partitions" in said(view)
    assert verdict(view, "billing") == Verdict.BLOCKED


def test_a_group_that_goes_on_reading_proves_that_its_leader_lives() -> None:
    """`audit-log` has no followers that could tell."""
    world = default_world()
    world.logs = [log for log in world.logs if log.topic == "audit-log"]
    world.groups = [world.group("fraud-check")]
    world.groups[0].coordinator = 1
    seen = list(views(map(without_quorum, cut_off(FailureKind.REFUSED, 12, world))))
    assert led_by_4(seen[-1]) == {PartitionStatus.UNKNOWN}
    assert verdict(seen[-1], "fraud-check") == Verdict.UNKNOWN
    assert "the cluster still hears from it" in said(seen[-1])


def test_nobody_says_that_a_watermark_moves_again_while_its_leader_is_not_seen() -> None:
    """A refused connection was taken for the broker's end until the quorum told better."""
    kinds = [event.kind for view in views(cut_off(FailureKind.REFUSED, 8)) for event in view.new_events]
    assert EventKind.WATERMARK_FROZEN in kinds
    assert EventKind.WATERMARK_MOVES in kinds, "those whose leaders answer"
    moved = [
        pair
        for view in views(cut_off(FailureKind.REFUSED, 8))
        for event in view.new_events
        if event.kind is EventKind.WATERMARK_MOVES
        for pair in event.partitions
    ]
    assert moved and not {("invoice", 3), ("invoice", 9), ("payment", 3), ("audit-log", 3)} & set(moved)


def test_what_the_quorum_said_long_ago_proves_nothing() -> None:
    """The controllers fall silent after they have told that they hear the broker.

    `audit-log` has no followers that could tell."""
    world = default_world()
    world.logs, world.groups = [log for log in world.logs if log.topic == "audit-log"], []
    snapshots = list(cut_off(FailureKind.SILENT, 5, world))
    last = snapshots[-1]
    for _ in range(8):
        now = world.tick()
        seen = replace(now.observation, quorum_received_ms=last.observation.quorum_received_ms)
        told = replace(now.brokers, last_fetch_ms=last.brokers.last_fetch_ms)
        snapshots.append(replace(now, observation=seen, brokers=told, quorum=last.quorum))
    heard = ["the cluster still hears from it" in said(view) for view in views(snapshots)]
    assert heard[BEFORE_S + 4 : BEFORE_S + 10] == [True] * 6 and heard[-3:] == [False] * 3
    *_, view = views(snapshots)
    assert "broker 4 silent" in said(view) and led_by_4(view) == {PartitionStatus.SILENT_LEADER}
