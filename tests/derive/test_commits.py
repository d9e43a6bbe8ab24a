"""Trends and rates of commits that come at times of their own, read at other times."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kview.derive.groups import trends
from kview.derive.groups.commit_moves import follow, read_rate
from kview.derive.groups.commits import Commits, Reading
from kview.derive.groups.trends import Trends
from kview.derive.groups.verdicts import RANK, Circumstances, verdict_ranks
from kview.derive.view import Verdict
from kview.model.units import UNKNOWN

NOW = 1_760_000_000_000
WRITES_PER_S = 1000


def reading(offset: int, at_ms: int, *, end: int, rate: float) -> Reading:
    """What one observation says about a group of one partition, which has members, at `at_ms`."""
    yes, no, zero = np.array([True]), np.array([False]), np.array([0])
    received = np.array([at_ms])
    return Reading(
        committed=np.array([offset]),
        received_ms=received,
        fresh=yes,
        end=np.array([end]),
        end_ms=received,
        lag=np.array([end - offset]),
        beyond=zero,
        log_start=zero,
        log_start_ms=received,
        start_then=zero,
        write_rate=np.array([rate]),
        has_members=yes,
        simple=no,
        joining=no,
        held=no,
        stable_since_ms=np.array([UNKNOWN]),
        group=zero,
        now_ms=at_ms,
    )


def watched(
    commits_ms: list[int], left: list[int], seconds: int, first_ms: int = 0
) -> tuple[Commits, Circumstances]:
    """A group on one partition of 1,000 records/s, read every second; its n-th commit left `left[n]`
    records."""
    known = Commits.none(1)
    lag, shown = np.array([UNKNOWN]), Trends.none(1)
    yes, no = np.array([True]), np.array([False])
    rate = np.array([float(WRITES_PER_S)])
    for second in range(seconds):
        at_ms = first_ms + second * 1000
        end = WRITES_PER_S * at_ms // 1000 + 10**6
        done = [n for n, at in enumerate(commits_ms) if at <= at_ms]
        offset = WRITES_PER_S * commits_ms[done[-1]] // 1000 + 10**6 - left[done[-1]]
        lag = np.array([end - offset])
        read = reading(offset, NOW + at_ms, end=end, rate=WRITES_PER_S)
        known = follow(known, read)
        shown = trends.follow(shown, known, read)
    at = Circumstances(
        lag=lag,
        beyond=np.array([0]),
        behind_ms=lag * 1000 // WRITES_PER_S,
        behind_is_bound=no,
        high_watermark=np.array([end]),
        leader_known=yes,
        leader_silent=no,
        no_leader=no,
        frozen=no,
        has_members=yes,
        nobody=no,
        simple=no,
        paused=no,
        stable_since_ms=np.array([UNKNOWN]),
        cadence_ms=np.full(1, 5_000),
        write_rate=rate,
        stuck=no,
        resting=no,
        abandoned=no,
        trend=shown.shown,
        level=shown.level,
    )
    return known, at


def verdict(known: Commits, at: Circumstances) -> int:
    return int(verdict_ranks(known, at)[0])


@given(st.integers(700, 8000), st.integers(0, 999), st.integers(40, 90))
@settings(max_examples=40)
def test_a_steady_group_does_not_fall_behind_whatever_its_commit_interval(
    interval_ms: int, phase_ms: int, seconds: int
) -> None:
    commits = [phase_ms - 10_000 + n * interval_ms for n in range(200)]
    known, at = watched(commits, [50] * 200, seconds)
    assert verdict(known, at) == RANK[Verdict.OK]


@given(st.integers(700, 8000), st.integers(0, 999))
@settings(max_examples=25)
def test_a_group_that_reads_a_quarter_less_than_is_written_does(interval_ms: int, phase_ms: int) -> None:
    commits = [phase_ms - 10_000 + n * interval_ms for n in range(200)]
    known, at = watched(commits, [50 + at // 4 + 2500 for at in commits], 70)
    assert verdict(known, at) == RANK[Verdict.FALLING_BEHIND]
    assert read_rate(known, int(known.received_ms[0]))[0] == pytest.approx(750, rel=0.25)


@pytest.mark.parametrize("seconds", [60, 63, 66])
def test_a_group_that_is_a_few_seconds_behind_while_a_broker_is_slow_keeps_up(seconds: int) -> None:
    """A leader that runs for 0.3 s of every 1.5 s delays what is read by seconds, for as long."""
    commits = [n * 1000 for n in range(90)]
    left = [4_000 if 40 <= n < 66 else 50 for n in range(90)]
    known, at = watched(commits, left, seconds)
    assert verdict(known, at) == RANK[Verdict.OK]


def test_one_commit_after_a_pause_is_not_a_trend() -> None:
    steady = [n * 5000 for n in range(8)]
    commits = [*steady, 62_500]
    known, at = watched(commits, [50] * 8 + [20_000], 65)
    assert verdict(known, at) == RANK[Verdict.OK]


def cadence_of(offsets: list[int], ends: list[int]) -> int:
    """The cadence of a group that is read every second with these offsets, when the log has these ends.

    The lag is unknown where the end is −1."""
    known = Commits.none(1)
    for second, (offset, end) in enumerate(zip(offsets, ends, strict=True)):
        read = reading(offset, NOW + second * 1000, end=end, rate=1.0)
        known = follow(known, read if end >= 0 else replace(read, lag=np.array([UNKNOWN])))
    return int(known.cadence_ms[0])


def test_a_reader_that_leaves_nothing_to_be_seen_commits_at_least_as_often_as_it_is_read() -> None:
    assert cadence_of([10, 11, 12, 13], [10, 11, 12, 13]) == UNKNOWN, "three moves may be a coincidence"
    assert cadence_of([10, 11, 12, 13, 14], [10, 11, 12, 13, 14]) == 1_000
    assert cadence_of([10, 11, 12, 13, 14], [10, 11, 12, -1, 14]) == UNKNOWN, "records may have waited"
    slow = [10, 11, 12, 13, 14, 14, 14, 15], [10, 11, 12, 13, 14, 15, 15, 15]
    assert cadence_of(*slow) == 2_000, "the longest counts"


def test_a_rate_between_commits_is_that_of_the_commits_until_one_is_overdue() -> None:
    commits = [n * 5000 for n in range(9)]
    rates = []
    for seconds in (44, 50, 60):
        known, _ = watched(commits, [0] * 9, seconds)
        rates.append(float(read_rate(known, int(known.received_ms[0]))[0]))
    assert rates[0] == pytest.approx(1000)
    assert 200 < rates[1] < 900
    assert rates[2] < 300


@pytest.mark.parametrize("turns", [1, 2, 3])
def test_a_group_that_is_read_in_turn_keeps_its_rate_for_two_turns(turns: int) -> None:
    """It is asked in every so many observations, which are 10 s apart. The history goes back for a minute."""
    known, rates, read_ms = Commits.none(1), [], 0
    for at_ms in range(0, 400_000, 10_000):
        is_read = at_ms % (turns * 10_000) == 0 and at_ms <= 240_000
        read_ms = at_ms if is_read else read_ms
        read = reading(10**6 + read_ms, NOW + read_ms, end=10**6 + read_ms, rate=1000.0)
        known = follow(known, replace(read, fresh=np.array([is_read]), now_ms=NOW + at_ms))
        rates.append((at_ms, float(read_rate(known, NOW + at_ms)[0])))
    kept_ms = min(max(15_000, 2 * turns * 10_000), 60_000 - 10_000)
    early = 3 * turns * 10_000
    assert {rate for at_ms, rate in rates if early <= at_ms < 240_000 + kept_ms} == {1000.0}
    assert all(np.isnan(rate) for at_ms, rate in rates if at_ms >= 240_000 + kept_ms)


@pytest.mark.parametrize("interval_ms", [5000, 8000])
@pytest.mark.parametrize("phase_ms", [400, 2500])
def test_a_steady_group_reads_at_its_rate_after_nobody_looked_for_a_minute(
    interval_ms: int, phase_ms: int
) -> None:
    known, rates = Commits.none(1), []
    for second in (*range(40), *range(100, 130)):
        at_ms = second * 1000
        offset = 10**6 + phase_ms + (at_ms - phase_ms) // interval_ms * interval_ms
        known = follow(known, reading(offset, NOW + at_ms, end=offset, rate=1000.0))
        if second >= 100:
            rates.append(float(read_rate(known, NOW + at_ms)[0]))
    seen = [rate for rate in rates if not np.isnan(rate)]
    assert seen and all(750 <= rate <= 1250 for rate in seen), seen
