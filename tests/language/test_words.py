"""Figures as words: counts, rates, sizes, durations, and what stands for "not known"."""

import math
from datetime import UTC

import pytest

from kview.language import words
from kview.model.units import NEVER, UNKNOWN


@pytest.mark.parametrize(
    ("length_ms", "text"),
    [
        (0, "0.0 s"),
        (340, "0.3 s"),
        (9_999, "9.9 s"),
        (10_000, "10 s"),
        (59_999, "59 s"),
        (60_000, "1 m"),
        (130_000, "2 m 10 s"),
        (3_600_000, "1 h"),
        (11_100_000, "3 h 5 m"),
        (187_200_000, "2 d 4 h"),
        (-50, "0.0 s"),
        (UNKNOWN, "–"),
        (NEVER, "never"),
    ],
)
def test_durations(length_ms: int, text: str) -> None:
    assert words.duration(length_ms) == text


def test_ages_are_whole_seconds_so_that_they_do_not_flicker() -> None:
    assert words.age(1_000, 5_900) == "4 s"
    assert words.age(UNKNOWN, 5_900) == "–"


@pytest.mark.parametrize(
    ("per_second", "text"),
    [
        (0.0, "0"),
        (0.42, "0.4"),
        (9.96, "10"),
        (1861.4, "1,861"),
        (math.nan, "–"),
        (math.inf, "–"),
        (3.0, "3"),
    ],
)
def test_rates(per_second: float, text: str) -> None:
    assert words.rate(per_second) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (41, "41"), (999.6, "1.0 k"), (7_900, "7.9 k"), (79_400, "79 k"), (2e6, "2.0 M")],
)
def test_si(value: float, text: str) -> None:
    assert words.si(value) == text


def test_sizes_counts_and_signs() -> None:
    assert words.size(1_100_000_000) == "1.1 GB"
    assert words.size(512) == "512 B"
    assert words.size(UNKNOWN) == words.count(UNKNOWN) == words.signed(UNKNOWN) == "–"
    assert words.count(1_204_117) == "1,204,117"
    assert [words.signed(n) for n in (3_410, -2, 0)] == ["+3,410", "-2", "0"]
    assert words.plural(1, "partition") == "1 partition"
    assert words.plural(1_017, "partition") == "1,017 partitions"


def test_bounds_are_marked_but_nothing_is_not() -> None:
    assert words.at_least("10", True) == "≥10"
    assert words.at_least("10", False) == "10"
    assert words.at_least("–", True) == "–"


def test_the_countdown_ends_in_words() -> None:
    assert words.fencing(10_000, 5_100) == "fenced in ≈ 4.9 s"
    assert words.fencing(10_000, 9_950) == "fenced any moment now"
    assert words.fencing(10_000, 11_400) == "fenced any moment now"
    assert words.fencing(10_000, 12_000) == "fencing overdue by ≈ 2.0 s"
    assert words.fencing(UNKNOWN, 12_000) == ""


def test_the_time_of_day_in_a_zone() -> None:
    assert words.clock(1_700_000_000_190, UTC) == "22:13:20.1"
    assert words.clock(1_700_000_000_190, UTC, tenths=False) == "22:13:20"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s"),
        (59, "59 s"),
        (60, "1 m"),
        (3_599, "59 m"),
        (3_600, "1 h"),
        (86_399, "23 h"),
        (200_000, "2 d"),
    ],
)
def test_a_states_age_has_one_unit_and_fits_its_column(seconds: int, said: str) -> None:
    assert words.state_age(1_000, 1_000 + seconds * 1_000, False) == said
    assert words.state_age(1_000, 1_000 + seconds * 1_000, True) == f"≥{said}"
    assert len(f"✕ fenced ≥{said}") <= 14


@pytest.mark.parametrize(
    ("latency_us", "said"),
    [(400, "0.4 ms"), (212_000, "212 ms"), (999_400, "999 ms"), (999_600, "1.0 s"), (1_250_000, "1.2 s")],
)
def test_a_latency_fits_its_column(latency_us: int, said: str) -> None:
    assert words.latency(latency_us) == said
    assert len(said) <= 7
