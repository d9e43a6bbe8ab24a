"""Trends and rates of commits that come at times of their own, read at other times."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kview.derive.commits import Commits, follow, lag_growth, read_rate
from kview.derive.verdicts import RANK, Circumstances, verdict_ranks
from kview.derive.view import Verdict
from kview.model.units import UNKNOWN

NOW = 1_760_000_000_000
WRITES_PER_S = 1000


def watched(
    commits_ms: list[int], left: list[int], seconds: int, first_ms: int = 0
) -> tuple[Commits, Circumstances]:
    """A group on one partition of 1,000 records/s, read every second; its n-th commit left `left[n]`
    records."""
    known = Commits.none(1)
    lag = np.array([UNKNOWN])
    for second in range(seconds):
        at_ms = first_ms + second * 1000
        end = WRITES_PER_S * at_ms // 1000 + 10**6
        done = [n for n, at in enumerate(commits_ms) if at <= at_ms]
        offset = WRITES_PER_S * commits_ms[done[-1]] // 1000 + 10**6 - left[done[-1]]
        lag = np.array([end - offset])
        known = follow(known, np.array([offset]), np.array([NOW + at_ms]), lag, NOW + at_ms)
    yes, no = np.array([True]), np.array([False])
    at = Circumstances(lag, np.array([end]), yes, no, no, no, yes, np.array([float(WRITES_PER_S)]))
    return known, at


def verdict(known: Commits, at: Circumstances) -> int:
    now_ms = int(known.received_ms[0])
    return int(verdict_ranks(known, lag_growth(known, now_ms), at)[0])


@given(st.integers(700, 8000), st.integers(0, 999), st.integers(40, 90))
@settings(max_examples=100, deadline=None)
def test_a_steady_group_does_not_fall_behind_whatever_its_commit_interval(
    interval_ms: int, phase_ms: int, seconds: int
) -> None:
    commits = [phase_ms - 10_000 + n * interval_ms for n in range(200)]
    known, at = watched(commits, [50] * 200, seconds)
    assert verdict(known, at) == RANK[Verdict.OK]


@given(st.integers(700, 8000), st.integers(0, 999))
@settings(max_examples=50, deadline=None)
def test_a_group_that_reads_a_quarter_less_than_is_written_does(interval_ms: int, phase_ms: int) -> None:
    commits = [phase_ms - 10_000 + n * interval_ms for n in range(200)]
    known, at = watched(commits, [50 + at // 4 + 2500 for at in commits], 70)
    assert verdict(known, at) == RANK[Verdict.FALLING_BEHIND]
    assert read_rate(known, int(known.received_ms[0]))[0] == pytest.approx(750, rel=0.25)


def test_one_commit_after_a_pause_is_not_a_trend() -> None:
    steady = [n * 5000 for n in range(8)]
    commits = [*steady, 62_500]
    known, at = watched(commits, [50] * 8 + [20_000], 65)
    assert lag_growth(known, int(known.received_ms[0]))[0] == UNKNOWN
    assert verdict(known, at) == RANK[Verdict.OK]


def test_a_rate_between_commits_is_that_of_the_commits_until_one_is_overdue() -> None:
    commits = [n * 5000 for n in range(9)]
    rates = []
    for seconds in (44, 50, 60):
        known, _ = watched(commits, [0] * 9, seconds)
        rates.append(float(read_rate(known, int(known.received_ms[0]))[0]))
    assert rates[0] == pytest.approx(1000)
    assert 200 < rates[1] < 900
    assert rates[2] < 300
