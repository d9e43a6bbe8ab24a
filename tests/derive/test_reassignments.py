"""Reassignments: which replicas are moved, what is left, and how long that takes."""

import numpy as np
import pytest
from msgspec.structs import replace

from kview.derive.checks.judge import Watch
from kview.derive.checks.judge import step as judge
from kview.derive.fold import step
from kview.derive.partitions.figures import ordered
from kview.derive.partitions.log import partition_log
from kview.derive.partitions.reassignments import Move, move_of
from kview.derive.view import View
from kview.model.checks import CheckKind
from kview.model.snapshot import Snapshot
from kview.model.units import UNKNOWN
from kview.plain.blocks import block
from kview.tui.options import Options
from kview.tui.rows.partition_heading import partition_heading
from kview.tui.rows.partitions import PartitionRows
from kview.tui.text import content
from tests.worlds.reassignments import SIZE, TOPIC, Moving


def left(view: View) -> tuple[int, bool, int, int]:
    """The records that are left, whether there may be more, the bytes that are left, and the time."""
    moves = view.moves
    row = (moves.records_left, moves.records_left_is_bound, moves.bytes_left, moves.time_left_ms)
    return tuple(column[0].item() for column in row)


def test_from_to_and_what_is_left() -> None:
    view = Moving().look()
    table = view.snapshot.partitions
    assert move_of(table, view.partitions, 0) == Move(before=(0,), after=(1, 2))
    assert left(view) == (2 * SIZE, False, 2 * 100 * SIZE, UNKNOWN), "nobody knows the speed yet"
    assert (
        view.moves.moving.tolist() == [True, False] and left(view)[0] != view.moves.records_left[1] == UNKNOWN
    )


def test_a_replica_in_sync_has_nothing_left_to_copy() -> None:
    scene = Moving()
    scene.log.isr = [0, 1]
    scene.log.ends[1] = float(SIZE)
    assert left(scene.look())[:3] == (SIZE, False, 100 * SIZE)


def test_a_new_replica_begins_at_the_logs_start() -> None:
    scene = Moving()
    scene.log.start = SIZE - 1_000
    assert left(scene.look())[0] == 2_000


def test_the_lag_of_one_new_replica_is_not_known() -> None:
    scene = Moving()

    def unread(snapshot: Snapshot, brokers: tuple[int, ...]) -> Snapshot:
        replicas = snapshot.replicas
        unknown = (replicas.row == 0) & np.isin(replicas.broker, brokers)
        ends, sizes = (np.where(unknown, UNKNOWN, c) for c in (replicas.log_end, replicas.size_bytes))
        return replace(snapshot, replicas=replace(replicas, log_end=ends, size_bytes=sizes))

    scene.snapshot = lambda snapshot: unread(snapshot, (2,))
    assert left(scene.copy(20, 1_000)) == (SIZE - 20_000, True, UNKNOWN, UNKNOWN), "a bound has no time"
    scene.snapshot = lambda snapshot: unread(snapshot, (1, 2))
    assert left(scene.look()) == (UNKNOWN, False, UNKNOWN, UNKNOWN)


def test_a_bound_tells_nothing_of_the_speed_later() -> None:
    scene = Moving()

    def without_2(snapshot: Snapshot) -> Snapshot:
        replicas = snapshot.replicas
        ends = np.where((replicas.row == 0) & (replicas.broker == 2), UNKNOWN, replicas.log_end)
        return replace(snapshot, replicas=replace(replicas, log_end=ends))

    scene.snapshot = without_2
    scene.copy(12, 5_000)
    scene.snapshot = lambda snapshot: snapshot
    assert left(scene.look())[::3] == (80_000, UNKNOWN)


@pytest.mark.parametrize("rate", [0.0, 500.0])
def test_the_time_left_is_that_at_the_speed_of_the_last_minute(rate: float) -> None:
    scene = Moving(rate)
    assert left(scene.copy(9, 1_000))[3] == UNKNOWN, "too early to tell"
    view = scene.copy(21, 1_000)
    records, _, _, time_ms = left(view)
    expected = records / (2 * (1_000 - rate))
    assert time_ms / 1_000 == pytest.approx(expected, rel=0.05)
    scene.copy(70, 200 + rate)
    records, _, _, time_ms = left(scene.look())
    assert time_ms / 1_000 == pytest.approx(records / 400, rel=0.1), "the speed of an hour ago does not count"


def test_there_is_no_time_left_if_nothing_is_copied() -> None:
    scene = Moving()
    scene.copy(20, 1_000)
    assert left(scene.copy(80))[3] == UNKNOWN
    assert left(Moving(100.0).copy(30, 50))[3] == UNKNOWN, "it grows"


def test_the_state_is_small_and_ends_with_the_reassignment() -> None:
    scene = Moving()
    scene.copy(200)
    assert 6 <= len(scene.state.progress.points) <= 7
    scene.state, _ = step(scene.state, scene.world.tick())
    assert scene.state.progress.points == ()


def test_the_list_the_partitions_screen_and_the_text_say_it() -> None:
    view = Moving().copy(20, 1_000)
    now_ms = view.snapshot.observation.ended_ms
    first = PartitionRows(view, Options()).row(0, now_ms).cells
    assert content(first[-1]).startswith("reassigning: 0 → 1 2, 160 k records left, ≈ 1 m 20 s")
    log = partition_log(view, TOPIC, 0)
    assert log is not None
    lines = [content(line) for line in partition_heading(view, log, Options(), now_ms, UNKNOWN, 120)]
    assert lines[1].startswith("  → reassigning 0 → 1 2 (adds 1 2, removes 0): 160 k records left (≈ 20 MB)")
    assert "ISR 1 of 2, 2 being added, 1 being removed" in lines[-1]
    (told,) = (line for line in block(view, "x").splitlines() if "reassigning" in line)
    assert told.endswith("160 k records left, ≈ 1 m 20 s") and "1⊕ 2⊕ 0●" in told


def test_a_move_is_said_next_to_what_is_worse() -> None:
    scene = Moving()
    scene.log.replicas, scene.log.stalled = [1, 2, 0, 3], frozenset({1, 2, 3})
    scene.log.ends[3] = 0.0
    view = scene.look()
    cells = PartitionRows(view, Options()).row(0, view.snapshot.observation.ended_ms).cells
    assert content(cells[-1]).startswith("at min ISR · reassigning: 0 3 → 1 2 3, 200 k records left")


def test_partitions_that_are_moved_come_before_those_that_are_well() -> None:
    view = Moving().look()
    kinds = view.partitions.status.tolist()
    assert kinds == ["reassigning", "ok"]
    rows = np.array([1, 0])
    assert ordered(rows, view.partitions).tolist() == [0, 1]


def test_a_check_finds_nothing_wrong_while_replicas_are_added() -> None:
    found = {finding.kind for finding in judge(Watch(), Moving().look())[1].findings}
    assert not found & {CheckKind.UNDER_REPLICATED, CheckKind.AT_MIN_ISR, CheckKind.UNDER_MIN_ISR}


def test_a_check_blames_no_replica_that_is_being_added() -> None:
    scene = Moving()
    scene.log.replicas, scene.log.stalled = [1, 2, 0, 3], frozenset({1, 2, 3})
    scene.log.ends[3] = 0.0
    found = judge(Watch(), scene.look())[1].findings
    (short,) = [finding for finding in found if finding.kind is CheckKind.UNDER_REPLICATED]
    assert (short.name, short.brokers) == (TOPIC, (3,))
