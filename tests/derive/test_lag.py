"""Lag in time: between the points, never beyond them; against a plain calculation."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kview.derive.fold import State, step
from kview.derive.groups.past_ends import SEEDS, EndsThen, Points, capped, with_reading, with_seeds
from kview.derive.groups.unread import Behind, Unread, behind, follow
from kview.derive.history import Thinning, thinned
from kview.model.snapshot import Snapshot, TimePoints
from kview.model.units import NO_OFFSET, UNKNOWN
from tests.derive.limits import at_most
from tests.worlds import default_world
from tests.worlds.tables import table

NOW = 1_760_000_000_000


def points_of(*pairs: tuple[int, int]) -> Points:
    """One partition's points from (milliseconds ago, log end), oldest first."""
    none = Points.none(1)
    layers = tuple(
        EndsThen(NOW - ago, np.array([NOW - ago], np.int64), np.array([end], np.int64)) for ago, end in pairs
    )
    return Points(none.seed_ms, none.seed_ends, layers)


def late(points: Points, *committed: int, at_ms: int = NOW) -> Behind:
    """The lag in time of groups that are seen for the first time."""
    count = len(committed)
    rows, at = np.zeros(count, np.int64), np.full(count, at_ms)
    offsets, no = np.array(committed, np.int64), np.zeros(count, np.bool_)
    return behind(follow(Unread.none(count), offsets, at, rows, points, no), at)


def ask(points: Points, *committed: int, at_ms: int = NOW) -> list[tuple[int, bool]]:
    """The interpolated lag, and whether nothing is known about the time before."""
    found = late(points, *committed, at_ms=at_ms)
    return list(zip(found.guess_ms.tolist(), found.is_open.tolist(), strict=True))


def test_between_two_points_it_is_interpolated() -> None:
    points = points_of((10_000, 1000), (0, 2000))
    assert ask(points, 1000, 1500, 1999) == [(10_000, False), (5_000, False), (10, False)]


def test_at_the_end_nobody_is_behind_and_beyond_it_neither() -> None:
    assert ask(points_of((10_000, 1000), (0, 2000)), 2000, 2500) == [(0, False), (0, False)]


def test_before_the_oldest_point_it_is_a_bound() -> None:
    assert ask(points_of((10_000, 1000), (0, 2000)), 999, 0) == [(10_000, True), (10_000, True)]


def test_without_a_commit_or_without_points_nothing_is_known() -> None:
    assert ask(points_of((10_000, 1000), (0, 2000)), NO_OFFSET, UNKNOWN) == [(UNKNOWN, False)] * 2
    unread = points_of((0, UNKNOWN))
    assert ask(unread, 5) == [(UNKNOWN, False)]


def test_while_nothing_was_written_the_next_record_was_not_there_yet() -> None:
    """The log ended at 1000 until 2 s ago: who committed 1000 is behind since then."""
    assert ask(points_of((10_000, 1000), (2_000, 1000), (0, 1100)), 1000) == [(2_000, False)]


def test_it_is_measured_at_the_time_the_commit_was_read() -> None:
    assert ask(points_of((10_000, 1000), (0, 2000)), 1500, at_ms=NOW - 4_000) == [(1_000, False)]


def reference(pairs: list[tuple[int, int]], committed: int) -> tuple[float, bool]:
    """The same for one offset: the one stretch between neighbouring points in which the log passed it."""
    if committed < pairs[0][1]:
        return pairs[0][0], True
    for (ago, end), (next_ago, next_end) in pairwise(pairs):
        if end <= committed < next_end:
            return ago - (ago - next_ago) * (committed - end) / (next_end - end), False
    return 0, False


def _cumulated(steps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    ago, end, out = sum(gap for gap, _ in steps), 100, []
    for gap, grown in steps:
        ago, end = ago - gap, end + grown
        out.append((ago, end))
    return out


series = st.lists(st.tuples(st.integers(1, 30_000), st.integers(0, 500)), min_size=2, max_size=20).map(
    _cumulated
)


@given(series, st.lists(st.integers(0, 12_000), min_size=1, max_size=20))
@settings(max_examples=200)
def test_it_equals_a_plain_interpolation_and_never_grows_with_the_offset(
    pairs: list[tuple[int, int]], committed: list[int]
) -> None:
    committed = sorted(committed)
    got = ask(points_of(*pairs), *committed)
    for offset, (ms, bound) in zip(committed, got, strict=True):
        expected, is_bound = reference(pairs, offset)
        assert ms == pytest.approx(expected, abs=1)
        assert bound == is_bound
    times = [ms for ms, _ in got]
    assert times == sorted(times, reverse=True)


def answers(*rows: tuple[int, int]) -> TimePoints:
    """Answers for invoice-0 from (seconds ago, offset)."""
    return table(
        TimePoints,
        (
            {
                "topic": "invoice",
                "partition": 0,
                "timestamp_ms": NOW - ago * 1000,
                "offset": offset,
                "received_ms": NOW,
            }
            for ago, offset in rows
        ),
    )


def seeded(*rows: tuple[int, int], start: int = 0) -> list[tuple[int, int]]:
    """What is kept of such answers, as (seconds ago, end)."""
    snapshot: Snapshot = default_world().tick()
    partitions = snapshot.partitions
    log_start = np.full(len(partitions), start, np.int64)

    points = with_seeds(
        Points.none(len(partitions)),
        replace(partitions, log_start=log_start),
        answers(*rows),
        partitions.log_end,
    )
    row = int(np.flatnonzero((partitions.topic == "invoice") & (partitions.partition == 0))[0])
    others = np.delete(points.seed_ms, row, 0)
    assert (others == UNKNOWN).all()
    pairs = zip(points.seed_ms[row].tolist(), points.seed_ends[row].tolist(), strict=True)
    return [((NOW - at) // 1000, end) for at, end in pairs if at != UNKNOWN]


def test_answers_by_timestamp_are_points_in_order_of_time() -> None:
    assert seeded((10, 900), (600, 100), (60, 800)) == [(600, 100), (60, 800), (10, 900)]


def test_an_answer_at_the_start_of_a_trimmed_log_says_nothing() -> None:
    assert seeded((600, 500), (60, 800), start=500) == [(60, 800)]
    assert seeded((600, 0), (60, 800), start=0) == [(600, 0), (60, 800)]


def test_unknown_answers_are_left_out_and_the_youngest_are_kept() -> None:
    assert seeded((60, UNKNOWN), (30, -1), (10, 900)) == [(10, 900)]
    many = [(100 - at, 100 + at) for at in range(20)]
    assert seeded(*many) == many[-SEEDS:]


def test_an_answer_above_the_end_of_a_log_that_was_truncated_since_is_cut() -> None:
    end = default_world().log("invoice", 0).watermark + 466
    assert seeded((60, 800), (10, 10**9)) == [(60, 800), (10, int(end))]


def test_after_a_truncation_no_earlier_point_is_above_the_logs_end() -> None:
    points = capped(points_of((10_000, 1000), (5_000, 1400)), np.array([True]), np.array([1200], np.int64))
    points = with_reading(points, np.array([NOW], np.int64), np.array([1200], np.int64), NOW)
    assert [int(layer.ends[0]) for layer in points.readings] == [1000, 1200, 1200]
    assert ask(points, 1100) == [(7_500, False)]


RULE = Thinning(((6_000, 1_000), (30_000, 6_000), (600_000, 60_000)))


@given(st.lists(st.integers(1, 20_000), min_size=1, max_size=120))
@settings(max_examples=100)
def test_thinning_step_by_step_leaves_what_thinning_at_once_leaves(gaps: list[int]) -> None:
    at, layers = NOW, []
    none = np.empty(0, np.int64)
    for gap in gaps:
        at += gap
        layers.append(EndsThen(at, none, none))
    by_step: tuple[EndsThen, ...] = ()
    for layer in layers:
        by_step = thinned((*by_step, layer), layer.at_ms, RULE)
    at_once = thinned(tuple(layers), at, RULE)
    assert [layer.at_ms for layer in by_step] == [layer.at_ms for layer in at_once]
    assert len(by_step) <= at_most(RULE)
    assert by_step[-1] is layers[-1]
    young = tuple(layer for layer in layers if at - layer.at_ms < 600_000)
    assert [x.at_ms for x in thinned(young, at, RULE)] == [x.at_ms for x in at_once]


def test_a_lag_is_exact_if_the_record_was_written_between_two_close_moments() -> None:
    points = points_of((90_000, 1000), (84_000, 1600), (4_000, 1700), (2_500, 1800), (0, 2000))
    found = late(points, 1300, 1750, 1900)
    assert found.ms.tolist() == [87_000, 3_250, 1_250]
    assert not found.is_bound.any() and found.is_estimate.tolist() == [False, False, True]


def test_a_lag_between_two_distant_moments_is_a_bound_or_if_it_is_small_an_estimate() -> None:
    found = late(points_of((90_000, 1000), (60_000, 1600), (5_000, 1700), (0, 2000)), 1300, 1990)
    assert (found.ms[0], found.is_bound[0], found.is_estimate[0]) == (60_000, True, False)
    assert (found.ms[1], found.is_bound[1], found.is_estimate[1]) == (167, False, True)


def test_in_the_first_second_lag_in_time_is_bounded() -> None:
    """A group that stopped 101 s before the first observation, when logs are known to have ended at other
    offsets 60 s and 120 s ago."""
    world = default_world()
    group = world.group("audit-export")
    group.committed = {key: int(world.log(*key).watermark) - 100 * 250 for key in group.committed}
    _, view = step(State(), world.tick())
    at = view.snapshot.groups.group.tolist().index("audit-export")
    assert view.groups.behind_ms[at] == pytest.approx(60_000, abs=2_000)
    assert view.groups.behind_is_bound[at]
